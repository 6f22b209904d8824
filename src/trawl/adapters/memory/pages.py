"""Documents and blobs in memory."""

import hashlib
from collections.abc import AsyncIterator, Callable

from trawl.adapters.clocks import SystemClock
from trawl.errors import BlobNotFoundError
from trawl.ports import StoredPage
from trawl.records import Key, Millis


class MemoryPageStore:
    """Documents by key."""

    def __init__(self) -> None:
        self._pages: dict[Key, StoredPage] = {}

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        return self._pages.get(document_key)

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there (then False)."""
        known = self._pages.get(page.document.document_key)
        if known is not None and known.document.fetched_at_ms > page.document.fetched_at_ms:
            return False
        self._pages[page.document.document_key] = page
        return True

    async def delete(self, document_key: Key) -> None:
        """Forget the page; harmless if it is not there."""
        self._pages.pop(document_key, None)

    async def pages(self, crawl_id: str) -> AsyncIterator[StoredPage]:
        """Every page of a crawl, in the order of first storing."""
        for page in list(self._pages.values()):
            if page.document.crawl_id == crawl_id:
                yield page

    async def size(self) -> int:
        """Pages stored."""
        return len(self._pages)


class MemoryBlobStore:
    """Large bytes by their SHA-256."""

    def __init__(self, now_ms: Callable[[], Millis] | None = None) -> None:
        self._now_ms = now_ms or SystemClock().now_ms
        self._blobs: dict[str, tuple[bytes, Millis]] = {}

    async def put(self, data: bytes) -> str:
        """Store the bytes (once, by content); the reference."""
        ref = hashlib.sha256(data).hexdigest()
        self._blobs[ref] = (bytes(data), self._now_ms())
        return ref

    async def get(self, ref: str) -> bytes:
        """The bytes; raises BlobNotFoundError."""
        if ref not in self._blobs:
            raise BlobNotFoundError(f"there is no blob {ref!r}; it was swept, or belongs to another store")
        return self._blobs[ref][0]

    async def delete(self, ref: str) -> None:
        """Forget the bytes; harmless if they are not there."""
        self._blobs.pop(ref, None)

    async def sweep(self, older_than_ms: Millis, keep: frozenset[str]) -> int:
        """Delete blobs last put before that time, except those to keep; how many."""
        old = [ref for ref, (_, at_ms) in self._blobs.items() if at_ms < older_than_ms and ref not in keep]
        for ref in old:
            del self._blobs[ref]
        return len(old)
