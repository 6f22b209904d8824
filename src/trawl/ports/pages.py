"""Documents, blobs, chunks and vectors."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from trawl.kinds import Use
from trawl.records import ExtractedDocument, Key, Millis

Vectors = npt.NDArray[np.float32]
"""Shape (texts, dimensions), each row of length 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A document as it was indexed."""

    document: ExtractedDocument
    chunks: tuple[Key, ...] = ()
    """The manifest: ids of its chunks, in order."""
    indexed_at_ms: Millis = 0
    """0 while a patch is being written: the manifest then names every chunk that may be there."""


class PageStore(Protocol):
    """Documents by key: manifest, blocks, text; the state from which everything else can be rebuilt."""

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        ...

    async def get_many(self, document_keys: Sequence[Key]) -> dict[Key, StoredPage]:
        """The pages of those documents that are indexed."""
        ...

    async def put(self, page: StoredPage) -> bool:
        """Store or replace.

        Not if a page with a newer fetch time is there, or the page was withdrawn as of this fetch time or a newer one:
        then False.
        """
        ...

    async def put_many(self, pages: Sequence[StoredPage]) -> list[bool]:
        """Store or replace many, in order; for each whether it was done, as by `put`.

        The call as a whole is no atomic step: after an error some may be stored.
        """
        ...

    async def delete(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """Withdraw the page as of that fetch time, unless something newer is known of it (then False).

        Whether it was there or not, that it is withdrawn is remembered, so that an older fetch delivered late does not
        bring it back; not for ever, but for the last `WITHDRAWN_MAX` documents at least or for months.
        """
        ...

    def pages(self, crawl_id: str) -> AsyncIterator[StoredPage]:
        """Every page of a crawl, in the order of first storing."""
        ...

    async def size(self) -> int:
        """Pages stored."""
        ...


class BlobStore(Protocol):
    """Large bytes by reference."""

    async def put(self, data: bytes) -> str:
        """Store the bytes (once, by content); the reference."""
        ...

    async def get(self, ref: str) -> bytes:
        """The bytes; raises BlobNotFoundError."""
        ...

    async def delete(self, ref: str) -> None:
        """Forget the bytes; harmless if they are not there."""
        ...

    async def sweep(self, older_than_ms: Millis, keep: frozenset[str]) -> int:
        """Delete blobs last put before that time, except those to keep; how many."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One piece of a document as it is searched."""

    chunk_id: Key
    document_key: Key
    crawl_id: str
    url: str
    title: str
    heading_path: tuple[str, ...]
    text: str
    position: int
    """0 for the first chunk of its document."""
    fetched_at_ms: Millis
    language: str = ""
    tags: tuple[str, ...] = ()
    permitted: tuple[str, ...] = ()
    """The uses (`trawl.kinds.Use`) that nobody forbids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """What is looked for."""

    text: str
    """Words for the full-text search."""
    vector: Vectors | None = None
    """Shape (1, dimensions), or None for full text only."""
    limit: int = 10
    candidates: int = 100
    """Taken from each of full text and vectors before fusion."""
    crawl_id: str = ""
    """Only this crawl; empty is all."""
    use: Use | None = None
    """Only chunks whose site does not forbid this use; none is all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One found chunk."""

    chunk: Chunk
    score: float
    """Higher is better; comparable within one answer only."""


class SearchIndex(Protocol):
    """Chunks with full text and vectors."""

    async def open(self, embedder: str, dimensions: int) -> None:
        """Bind the index to a model; raises EmbedderMismatchError if it holds another's vectors."""
        ...

    async def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write chunks with their vectors, row by row; replaces equal ids."""
        ...

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        ...

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        ...

    async def size(self) -> int:
        """Chunks stored."""
        ...


class Embedder(Protocol):
    """Texts to vectors."""

    @property
    def name(self) -> str:
        """The model's name and version, stored in the index."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, each of length 1."""
        ...

    async def close(self) -> None:
        """Let go of what it holds."""
        ...


class Tap(Protocol):
    """Sees the documents that leave the duplicate gate, before their outcomes are told: files, exports."""

    async def document(self, document: ExtractedDocument, duplicate_of: str) -> ExtractedDocument:
        """A unique document (`duplicate_of` is empty), or a duplicate of the document at that URL; idempotent.

        Returns the document with its raw body by reference, if the tap keeps raw bodies.
        """
        ...

    async def withdrawn(self, document: ExtractedDocument) -> None:
        """A document that is no longer there; harmless if it never was."""
        ...
