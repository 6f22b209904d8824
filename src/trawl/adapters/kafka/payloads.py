"""What is large: compressed inline up to a size, by reference to a blob beyond it.

Bodies, and the text, Markdown and blocks of a document, which travel as one compressed payload of their own. A reader
gets the record as its writer had it.
"""

from dataclasses import replace
from typing import Final

import zstandard

from trawl.errors import RecordDecodeError
from trawl.plain import from_json, to_json
from trawl.ports import BlobStore
from trawl.records import Content, DeadLetter, ExtractedDocument, FetchedPage, Payload, Record, UniqueDocument

COMPRESS_BYTES_MIN: Final = 1024
"""Shorter bytes travel as they are."""
PAYLOAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""Bytes that claim to unpack to more are refused before anything is allocated."""
_ZSTD: Final = "zstd"


class Payloads:
    """Packs the large parts of records for the wire, and unpacks them again."""

    def __init__(self, blobs: BlobStore | None, inline_bytes_max: int) -> None:
        self._blobs = blobs
        self._inline_bytes_max = inline_bytes_max
        self._compressor = zstandard.ZstdCompressor(level=1)
        self._decompressor = zstandard.ZstdDecompressor()

    async def pack(self, record: Record) -> Record:
        """The record with its large parts compressed or by reference; raises StoreError."""
        match record:
            case FetchedPage():
                return replace(record, body=await self._packed(record.body))
            case DeadLetter():
                return replace(record, payload=await self._packed(record.payload))
            case ExtractedDocument():
                return await self._packed_document(record)
            case UniqueDocument():
                return replace(record, document=await self._packed_document(record.document))
        return record

    async def unpack(self, record: Record) -> Record:
        """The record as it was packed; a document's raw body stays a reference.

        Raises RecordDecodeError for damaged bytes, BlobNotFoundError for a reference to nothing, and StoreError.
        """
        match record:
            case FetchedPage():
                return replace(record, body=await self._unpacked(record.body))
            case DeadLetter():
                return replace(record, payload=await self._unpacked(record.payload))
            case ExtractedDocument():
                return await self._unpacked_document(record)
            case UniqueDocument():
                return replace(record, document=await self._unpacked_document(record.document))
        return record

    async def _packed(self, payload: Payload) -> Payload:
        data = payload.inline
        if len(data) < COMPRESS_BYTES_MIN or payload.encoding == _ZSTD:
            return payload
        compressed = self._compressor.compress(data)
        if self._blobs is not None and len(compressed) > self._inline_bytes_max:
            return Payload(ref=await self._blobs.put(data), size_bytes=payload.size_bytes)
        return Payload(inline=compressed, encoding=_ZSTD, size_bytes=len(data))

    async def _unpacked(self, payload: Payload) -> Payload:
        if payload.ref and self._blobs is not None:
            return replace(payload, inline=await self._blobs.get(payload.ref), ref="")
        if payload.encoding != _ZSTD:
            return payload
        return Payload(inline=self._inflated(payload.inline), size_bytes=payload.size_bytes)

    def _inflated(self, data: bytes) -> bytes:
        try:
            size = zstandard.frame_content_size(data)
            if not 0 <= size <= PAYLOAD_BYTES_MAX:
                raise RecordDecodeError(f"a payload claims {size} bytes; at most {PAYLOAD_BYTES_MAX} are read")
            return self._decompressor.decompress(data, max_output_size=PAYLOAD_BYTES_MAX)
        except zstandard.ZstdError as error:
            raise RecordDecodeError(f"a payload of {len(data)} bytes is damaged: {error}") from error

    async def _packed_document(self, document: ExtractedDocument) -> ExtractedDocument:
        document = replace(document, html=await self._packed(document.html))
        content = Content(text=document.text, markdown=document.markdown, blocks=document.blocks)
        if len(document.text) + len(document.markdown) < COMPRESS_BYTES_MIN:
            return document
        data = to_json(content)
        packed = await self._packed(Payload(inline=data, size_bytes=len(data)))
        return replace(document, text="", markdown="", blocks=(), content=packed)

    async def _unpacked_document(self, document: ExtractedDocument) -> ExtractedDocument:
        html = document.html
        if html.encoding == _ZSTD and html.inline:
            document = replace(document, html=await self._unpacked(html))
        if document.content is None:
            return document
        content = from_json(Content, (await self._unpacked(document.content)).inline)
        return replace(document, text=content.text, markdown=content.markdown, blocks=content.blocks, content=None)
