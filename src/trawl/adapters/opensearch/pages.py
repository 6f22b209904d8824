"""Documents in OpenSearch, read by id; a newer fetch is never replaced by an older one."""

import base64
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import zstandard

from trawl.adapters.opensearch.client import ConflictingError, NotThereError, OpenSearchClient
from trawl.adapters.opensearch.indices import PAGES_VERSION, Index, pages_mapping
from trawl.errors import StoreCorruptError, StoreError
from trawl.plain import from_json, to_json
from trawl.ports import StoredPage
from trawl.records import ExtractedDocument, Key
from trawl.settings import OpenSearchSettings
from trawl.url import key_hex

_DOCUMENT_BYTES_MAX: Final = 256 * 1024 * 1024
_TRIES: Final = 5
_BATCH: Final = 100
_SEEN_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Place:
    """What is known of a document that is there: where it stands, and what it may be replaced by."""

    seq_no: int
    term: int
    fetched_at_ms: int
    first: int


class OpenSearchPageStore:
    """Documents by key. A write is made only if the document is still as it was read."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings) -> None:
        self._client = client
        self._index = Index(client, settings, "pages", PAGES_VERSION)
        self._compressor = zstandard.ZstdCompressor(level=3)
        self._places: OrderedDict[Key, _Place | None] = OrderedDict()
        self._made = False

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        found = await self._found(document_key)
        return None if found is None else _page(found["_source"])

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there (then False)."""
        await self._make()
        key = page.document.document_key
        for _ in range(_TRIES):
            if key not in self._places:
                await self._found(key)
            place = self._places.get(key)
            if place is not None and place.fetched_at_ms > page.document.fetched_at_ms:
                return False
            try:
                await self._write(page, place)
            except ConflictingError:
                self._places.pop(key, None)
                continue
            return True
        raise StoreError(f"{page.document.final_url} changes all the time in {self._index.alias}; it was not written")

    async def _write(self, page: StoredPage, place: _Place | None) -> None:
        document = page.document
        first = time.time_ns() if place is None else place.first
        body = {
            "crawl_id": document.crawl_id,
            "url": document.final_url,
            "content_sha256": document.content_sha256,
            "fetched_at_ms": document.fetched_at_ms,
            "indexed_at_ms": page.indexed_at_ms,
            "first": first,
            "chunks": base64.b64encode(np.array(page.chunks, dtype="<i8").tobytes()).decode(),
            "document": base64.b64encode(self._compressor.compress(to_json(document))).decode(),
        }
        condition: dict[str, Any] = {"op_type": "create"}
        if place is not None:
            condition = {"if_seq_no": place.seq_no, "if_primary_term": place.term}
        path = f"/{self._index.alias}/_doc/{key_hex(document.document_key)}"
        answer = await self._client.ask("PUT", path, body, **condition)
        self._know(
            document.document_key, _Place(answer["_seq_no"], answer["_primary_term"], document.fetched_at_ms, first)
        )

    async def delete(self, document_key: Key) -> None:
        """Forget the page; harmless if it is not there."""
        self._places.pop(document_key, None)
        try:
            await self._client.ask("DELETE", f"/{self._index.alias}/_doc/{key_hex(document_key)}")
        except NotThereError:
            return

    async def pages(self, crawl_id: str) -> AsyncIterator[StoredPage]:
        """Every page of a crawl, in the order of first storing."""
        after: list[Any] | None = None
        while True:
            body: dict[str, Any] = {
                "size": _BATCH,
                "query": {"term": {"crawl_id": crawl_id}},
                "sort": ["first", {"fetched_at_ms": "asc"}],
                **({"search_after": after} if after else {}),
            }
            try:
                await self._index.refresh()
                hits = (await self._client.ask("POST", f"/{self._index.alias}/_search", body))["hits"]["hits"]
            except NotThereError:
                return
            for hit in hits:
                yield _page(hit["_source"])
            if len(hits) < _BATCH:
                return
            after = hits[-1]["sort"]

    async def size(self) -> int:
        """Pages stored."""
        return await self._index.count()

    async def migrate(self) -> bool:
        """Move the documents into an index of this version's mapping; whether there was anything to do."""
        return await self._index.migrate(pages_mapping(), {})

    async def _make(self) -> None:
        if not self._made:
            if await self._index.meta() is None:
                await self._index.create(pages_mapping(), {})
            self._made = True

    async def _found(self, document_key: Key) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = await self._client.ask("GET", f"/{self._index.alias}/_doc/{key_hex(document_key)}")
        except NotThereError:
            self._know(document_key, None)
            return None
        source = found["_source"]
        place = _Place(found["_seq_no"], found["_primary_term"], source["fetched_at_ms"], source["first"])
        self._know(document_key, place)
        return found

    def _know(self, document_key: Key, place: _Place | None) -> None:
        self._places[document_key] = place
        self._places.move_to_end(document_key)
        if len(self._places) > _SEEN_MAX:
            self._places.popitem(last=False)


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
