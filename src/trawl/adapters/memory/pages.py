"""Documents and blobs in memory."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence

from trawl.adapters.clocks import SystemClock
from trawl.errors import BlobNotFoundError
from trawl.ports import WITHDRAWN_MAX, StoredPage
from trawl.records import Key, Millis


class MemoryPageStore:
    """Documents by key."""

    def __init__(self, *, withdrawn_max: int = WITHDRAWN_MAX) -> None:
        self._pages: dict[Key, StoredPage] = {}
        self._withdrawn: dict[Key, Millis] = {}  # in the order of withdrawal
        self._withdrawn_max = withdrawn_max

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        return self._pages.get(document_key)

    async def get_many(self, document_keys: Sequence[Key]) -> dict[Key, StoredPage]:
        """The pages of those documents that are indexed."""
        found = {key: await self.get(key) for key in document_keys}
        return {key: page for key, page in found.items() if page is not None}

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there, or was withdrawn since (then False)."""
        key, fetched_at_ms = page.document.document_key, page.document.fetched_at_ms
        known = self._pages.get(key)
        if known is not None and known.document.fetched_at_ms > fetched_at_ms:
            return False
        if key in self._withdrawn and self._withdrawn[key] >= fetched_at_ms:
            return False
        self._withdrawn.pop(key, None)
        self._pages[key] = page
        return True

    async def put_many(self, pages: Sequence[StoredPage]) -> list[bool]:
        """Store or replace many, in order; for each whether it was done, as by `put`."""
        return [await self.put(page) for page in pages]

    async def delete(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """Withdraw the page as of that time, unless something newer is known of it (then False); see the port."""
        known = self._pages.get(document_key)
        if known is not None and known.document.fetched_at_ms > fetched_at_ms:
            return False
        if self._withdrawn.get(document_key, fetched_at_ms) > fetched_at_ms:
            return False
        self._pages.pop(document_key, None)
        self._withdrawn.pop(document_key, None)
        self._withdrawn[document_key] = fetched_at_ms
        if len(self._withdrawn) > self._withdrawn_max:
            del self._withdrawn[next(iter(self._withdrawn))]
        return True

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
