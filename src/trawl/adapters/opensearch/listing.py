"""What the page store holds besides the pages of one crawl: which crawls there are, and what was withdrawn."""

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Final

from trawl.adapters.opensearch.client import OpenSearchClient
from trawl.adapters.opensearch.indices import HELD_PAGES, PAGES_VERSION, Index
from trawl.errors import StoreError
from trawl.records import Key, Millis
from trawl.settings import OpenSearchSettings
from trawl.url import key_of_hex

_BATCH: Final = 1000
_KEPT_OPEN: Final = "5m"
"""OpenSearch keeps its place in a listing for this long after each batch."""


class PageListing:
    """Reads all of the page store's index; writes nothing."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings) -> None:
        self._client = client
        self._index = Index(client, settings, "pages", PAGES_VERSION)

    async def check(self) -> None:
        """Raise StoreError unless there is an index that this version can read; make what was written visible."""
        if await self._index.meta() is None:
            raise StoreError(
                f"OpenSearch at {self._client.where} has no index {self._index.alias}; nothing was indexed yet, or"
                f" opensearch.prefix is another"
            )
        await self._index.refresh()

    async def crawl_ids(self) -> AsyncIterator[str]:
        """The crawls that have pages, in the order of their names."""
        after: dict[str, Any] = {}
        while True:
            crawls = {"size": _BATCH, "sources": [{"id": {"terms": {"field": "crawl_id"}}}], **after}
            body = {"size": 0, "aggs": {"crawls": {"composite": crawls}}}
            answer = await self._client.ask("POST", f"/{self._index.alias}/_search", body)
            found = answer["aggregations"]["crawls"]
            for bucket in found["buckets"]:
                yield bucket["key"]["id"]
            if "after_key" not in found:
                return
            after = {"after": found["after_key"]}

    async def withdrawn(self) -> AsyncGenerator[tuple[Key, Millis], None]:
        """Withdrawn documents, each with the time of the fetch as of which it was; to be closed by the reader."""
        body = {
            "size": _BATCH,
            "query": {"bool": {"must_not": HELD_PAGES}},
            "sort": ["_doc"],
            "_source": ["fetched_at_ms"],
        }
        answer = await self._client.ask("POST", f"/{self._index.alias}/_search", body, scroll=_KEPT_OPEN)
        try:
            while hits := answer["hits"]["hits"]:
                for hit in hits:
                    yield key_of_hex(hit["_id"]), hit["_source"]["fetched_at_ms"]
                place = {"scroll": _KEPT_OPEN, "scroll_id": answer["_scroll_id"]}
                answer = await self._client.ask("POST", "/_search/scroll", place)
        finally:
            await self._client.ask("DELETE", "/_search/scroll", {"scroll_id": answer["_scroll_id"]})
