"""What is large: compressed inline up to a size, by reference to a blob beyond it.

Bodies, and what was extracted from a page (text, Markdown, blocks, structured data), which travels as one compressed
payload of its own. The size is that of all payloads of a record together, so that no record outgrows what brokers take.
A reader gets the record as its writer had it; only a document's raw body, and a static body that a rendered page
carries along, stay references where they became some, since few readers need them.
"""

import asyncio
from dataclasses import replace
from typing import Final

import zstandard

from trawl.errors import BlobNotFoundError, RecordDecodeError
from trawl.plain import from_json, to_json
from trawl.ports import BlobStore
from trawl.records import (
    Content,
    DeadLetter,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Payload,
    Record,
    StaticRender,
    UniqueDocument,
)

COMPRESS_BYTES_MIN: Final = 1024
"""Shorter bytes travel as they are."""
PAYLOAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that claim to unpack to more are refused before anything is allocated."""
_THREAD_BYTES_MIN: Final = 256 * 1024
"""Compressing more than this would hold up the event loop for a millisecond; it is done in a thread."""
_ZSTD: Final = "zstd"


class Payloads:
    """Packs the large parts of records for the wire, and unpacks them again."""

    def __init__(self, blobs: BlobStore | None, inline_bytes_max: int, *, opens_content: bool = True) -> None:
        """Who only passes documents on, and asks for their keys and fingerprints alone, need not open their content."""
        self._blobs = blobs
        self._inline_bytes_max = inline_bytes_max
        self._opens_content = opens_content

    async def pack(self, record: Record) -> Record:
        """The record with its large parts compressed or by reference; raises StoreError."""
        room = self._inline_bytes_max
        match record:
            case FetchedPage():
                body = await self._packed(record.body, room)
                static = await self._packed_static(record.static_render, room - len(body.inline))
                return replace(record, body=body, static_render=static)
            case FetchTask():
                return replace(record, static_render=await self._packed_static(record.static_render, room))
            case FetchOutcome():
                return replace(record, needs_render=await self._packed_static(record.needs_render, room))
            case DeadLetter():
                return replace(record, payload=await self._packed(record.payload, room))
            case ExtractedDocument():
                return await self._packed_document(record, room)
            case UniqueDocument():
                return replace(record, document=await self._packed_document(record.document, room))
        return record

    async def unpack(self, record: Record) -> Record:
        """The record as it was packed, but for the bodies that stay references.

        Raises RecordDecodeError for damaged bytes, BlobNotFoundError for a reference to nothing, and StoreError.
        """
        match record:
            case FetchedPage():
                static = await self._unpacked_static(record.static_render)
                return replace(record, body=await self._unpacked(record.body), static_render=static)
            case FetchTask():
                return replace(record, static_render=await self._unpacked_static(record.static_render))
            case FetchOutcome():
                return replace(record, needs_render=await self._unpacked_static(record.needs_render))
            case DeadLetter():
                return replace(record, payload=await self._unpacked(record.payload))
            case ExtractedDocument():
                return await self._unpacked_document(record)
            case UniqueDocument():
                return replace(record, document=await self._unpacked_document(record.document))
        return record

    # Payloads

    async def _packed(self, payload: Payload, room: int) -> Payload:
        """Compressed where that is worth it; by reference if more than `room` bytes would travel."""
        data = payload.inline
        if len(data) < COMPRESS_BYTES_MIN or payload.encoding == _ZSTD:
            return payload
        compressed = await _compressed(data)
        if self._blobs is not None and len(compressed) > room:
            return Payload(ref=await self._blobs.put(data), size_bytes=payload.size_bytes)
        return Payload(inline=compressed, encoding=_ZSTD, size_bytes=payload.size_bytes)

    async def _unpacked(self, payload: Payload) -> Payload:
        """Inline, as it was; without a blob store a reference stays one."""
        if payload.ref and self._blobs is not None:
            return replace(payload, inline=await self._blobs.get(payload.ref), ref="")
        return await self._inline(payload)

    async def _inline(self, payload: Payload) -> Payload:
        if payload.encoding != _ZSTD or not payload.inline:
            return payload
        return Payload(inline=await _inflated(payload.inline), ref=payload.ref, size_bytes=payload.size_bytes)

    # Records

    async def _packed_static(self, static: StaticRender | None, room: int) -> StaticRender | None:
        return None if static is None else replace(static, body=await self._packed(static.body, room))

    async def _unpacked_static(self, static: StaticRender | None) -> StaticRender | None:
        return None if static is None else replace(static, body=await self._inline(static.body))

    async def _packed_document(self, document: ExtractedDocument, room: int) -> ExtractedDocument:
        size = len(document.text) + len(document.markdown) + len(document.extracted)
        if size >= COMPRESS_BYTES_MIN:
            data = to_json(
                Content(
                    text=document.text,
                    markdown=document.markdown,
                    blocks=document.blocks,
                    extracted=document.extracted,
                )
            )
            content = await self._packed(Payload(inline=data, size_bytes=len(data)), room)
            room -= len(content.inline)
            document = replace(document, text="", markdown="", blocks=(), extracted="", content=content)
        return replace(document, html=await self._packed(document.html, room))

    async def _unpacked_document(self, document: ExtractedDocument) -> ExtractedDocument:
        document = replace(document, html=await self._inline(document.html))
        if document.content is None or not self._opens_content:
            return document
        payload = await self._unpacked(document.content)
        if payload.ref:
            raise BlobNotFoundError(f"the text of {document.url} is in the blob {payload.ref}, and no store was named")
        content = from_json(Content, payload.inline)
        return replace(
            document,
            text=content.text,
            markdown=content.markdown,
            blocks=content.blocks,
            extracted=content.extracted or document.extracted,
            content=None,
        )


async def _compressed(data: bytes) -> bytes:
    compress = zstandard.ZstdCompressor(level=1).compress
    return compress(data) if len(data) < _THREAD_BYTES_MIN else await asyncio.to_thread(compress, data)


async def _inflated(data: bytes) -> bytes:
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= PAYLOAD_BYTES_MAX:
            raise RecordDecodeError(f"a payload claims {size} bytes; at most {PAYLOAD_BYTES_MAX} are read")
        inflate = zstandard.ZstdDecompressor().decompress
        return inflate(data) if size < _THREAD_BYTES_MIN else await asyncio.to_thread(inflate, data)
    except zstandard.ZstdError as error:
        raise RecordDecodeError(f"a payload of {len(data)} bytes is damaged: {error}") from error
