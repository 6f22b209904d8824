"""Documents in OpenSearch, read by id; a newer fetch is never replaced by an older one.

The version of a document is its fetch time, and OpenSearch itself refuses an older one. A withdrawn document leaves its
fetch time only, with a version between that of its fetch and that of the next, so that it stays away until a newer
fetch brings it back.
"""

import base64
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import zstandard

from trawl.adapters.opensearch.client import NotThereError, OpenSearchClient
from trawl.adapters.opensearch.indices import HELD_PAGES, PAGES_VERSION, Index, pages_shape
from trawl.errors import StoreCorruptError
from trawl.plain import from_json, to_json
from trawl.ports import StoredPage
from trawl.records import ExtractedDocument, Key, Millis
from trawl.settings import OpenSearchSettings
from trawl.url import key_hex

_DOCUMENT_BYTES_MAX: Final = 256 * 1024 * 1024
_BATCH: Final = 64
"""Documents read in one request."""
_FIRSTS_MAX: Final = 10_000
"""So many documents' times of first storing are remembered, to write them again without reading."""
_TIME_MAX: Final = 2**62 - 1
_WITHDRAWN_KEPT_MS: Final = 90 * 86_400_000
"""Withdrawn documents are remembered for this long after their fetch: longer than any topic keeps an older one."""
_PURGE_EVERY: Final = 1_000
"""Withdrawals by this process between two purges of those that were remembered for long enough."""


class OpenSearchPageStore:
    """Documents by key."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings) -> None:
        self._client = client
        self._index = Index(client, settings, "pages", PAGES_VERSION)
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._firsts: OrderedDict[Key, int] = OrderedDict()  # 0 for one that is not there
        self._made = False
        self._withdrawals = 0

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        return (await self.get_many([document_key])).get(document_key)

    async def get_many(self, document_keys: Sequence[Key]) -> dict[Key, StoredPage]:
        """The pages of those documents that are indexed."""
        found = await self._sources(document_keys)
        return {key: _page(source) for key, source in found.items() if "document" in source}

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there, or was withdrawn since (then False)."""
        return (await self.put_many([page]))[0]

    async def put_many(self, pages: Sequence[StoredPage]) -> list[bool]:
        """Store or replace many; for each whether it was done, as by `put`."""
        if not pages:
            return []
        await self._make()
        keys = [page.document.document_key for page in pages]
        unknown = [key for key in keys if key not in self._firsts]
        if unknown:
            await self._sources(unknown, fields="first")
        now = time.time_ns()
        items = []
        for number, page in enumerate(pages):
            key = page.document.document_key
            first = self._firsts.get(key) or now + number
            items.append(self._item(page, first))
            self._know(key, first)
        written = await self._bulk(items)
        for key, done in zip(keys, written, strict=True):
            if not done:
                self._firsts.pop(key, None)
        return written

    async def delete(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """Withdraw the page as of that time, unless something newer is known of it (then False); see the port."""
        self._firsts.pop(document_key, None)
        content = {"fetched_at_ms": fetched_at_ms}
        (done,) = await self._bulk([self._line(document_key, 2 * _bounded(fetched_at_ms) + 1, content)])
        self._withdrawals += 1
        if self._withdrawals % _PURGE_EVERY == 0:
            await self.purge(time.time_ns() // 1_000_000 - _WITHDRAWN_KEPT_MS)
        return done

    async def purge(self, before_ms: Millis) -> int:
        """Forget that documents were withdrawn whose last fetch was before that time; how many."""
        query = {"bool": {"must_not": HELD_PAGES, "filter": {"range": {"fetched_at_ms": {"lt": before_ms}}}}}
        path = f"/{self._index.alias}/_delete_by_query"
        await self._index.refresh()
        return int((await self._client.ask("POST", path, {"query": query}, conflicts="proceed"))["deleted"])

    async def pages(self, crawl_id: str) -> AsyncIterator[StoredPage]:
        """Every page of a crawl, in the order of first storing; read in batches, so writers are not held up."""
        after: list[Any] | None = None
        try:
            await self._index.refresh()
            while True:
                hits = await self._next(crawl_id, after)
                for hit in hits:
                    yield _page(hit["_source"])
                if len(hits) < _BATCH:
                    return
                after = hits[-1]["sort"]
        except NotThereError:
            return

    async def size(self) -> int:
        """Pages stored."""
        return await self._index.count(HELD_PAGES)

    async def migrate(self) -> bool:
        """Move the documents into an index of this version's mapping; whether there was anything to do."""
        return await self._index.migrate(pages_shape())

    async def _next(self, crawl_id: str, after: list[Any] | None) -> list[dict[str, Any]]:
        body: dict[str, Any] = {
            "size": _BATCH,
            "query": {"term": {"crawl_id": crawl_id}},
            "sort": ["first", "url"],
            **({"search_after": after} if after else {}),
        }
        answer = await self._client.ask("POST", f"/{self._index.alias}/_search", body)
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    async def _make(self) -> None:
        """Make the index if there is none; move one of an older version."""
        if not self._made:
            if await self._index.meta() is None:
                await self._index.create(pages_shape())
            await self.migrate()
            self._made = True

    async def _bulk(self, items: Sequence[bytes]) -> list[bool]:
        await self._make()
        try:
            return await self._client.bulk(items)
        except NotThereError:  # somebody deleted the index meanwhile
            self._made = False
            await self._make()
            return await self._client.bulk(items)

    async def _sources(self, document_keys: Sequence[Key], fields: str = "") -> dict[Key, dict[str, Any]]:
        """What is stored of documents, withdrawn ones included; when each was stored first is remembered."""
        found: dict[Key, dict[str, Any]] = {}
        keys = list(dict.fromkeys(document_keys))
        for start in range(0, len(keys), _BATCH):
            part = keys[start : start + _BATCH]
            parameters = {"_source_includes": fields} if fields else {}
            documents = await self._client.documents(self._index.alias, [key_hex(key) for key in part], **parameters)
            for key, one in zip(part, documents, strict=True):
                source = one["_source"] if one["found"] else {}
                self._know(key, source.get("first", 0))
                if source:
                    found[key] = source
        return found

    def _item(self, page: StoredPage, first: int) -> bytes:
        document = page.document
        content = {
            "crawl_id": document.crawl_id,
            "url": document.final_url,
            "content_sha256": document.content_sha256,
            "fetched_at_ms": document.fetched_at_ms,
            "indexed_at_ms": page.indexed_at_ms,
            "first": first,
            "chunks": base64.b64encode(np.array(page.chunks, dtype="<i8").tobytes()).decode(),
            "document": base64.b64encode(self._compressor.compress(to_json(document))).decode(),
        }
        return self._line(document.document_key, 2 * _bounded(document.fetched_at_ms), content)

    def _line(self, document_key: Key, version: int, content: dict[str, Any]) -> bytes:
        action = {
            "_index": self._index.alias,
            "_id": key_hex(document_key),
            "version": version,
            "version_type": "external_gte",
        }
        return msgspec.json.encode({"index": action}) + b"\n" + msgspec.json.encode(content)

    def _know(self, document_key: Key, first: int) -> None:
        self._firsts[document_key] = first
        self._firsts.move_to_end(document_key)
        if len(self._firsts) > _FIRSTS_MAX:
            self._firsts.popitem(last=False)


def _bounded(at_ms: Millis) -> int:
    """A time that a version can tell."""
    return min(max(at_ms, 0), _TIME_MAX)


def _page(source: dict[str, Any]) -> StoredPage:
    try:
        packed = base64.b64decode(source["document"])
        plain = zstandard.ZstdDecompressor().decompress(packed, max_output_size=_DOCUMENT_BYTES_MAX)
        chunks = np.frombuffer(base64.b64decode(source["chunks"]), dtype="<i8")
    except (KeyError, ValueError, zstandard.ZstdError) as error:
        raise StoreCorruptError(f"the page {source.get('url')} in OpenSearch cannot be read: {error!r}") from error
    return StoredPage(
        document=from_json(ExtractedDocument, plain),
        chunks=tuple(chunks.tolist()),
        indexed_at_ms=source["indexed_at_ms"],
    )
