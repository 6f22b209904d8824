"""Indices by version behind an alias: made in one place, and moved from one version of their mapping to the next."""

from typing import Any, Final

from trawl.adapters.opensearch.client import NotThereError, OpenSearchClient
from trawl.errors import StoreError, StoreTooNewError
from trawl.settings import OpenSearchSettings

PAGES_VERSION: Final = 1
CHUNKS_VERSION: Final = 1
_META: Final = "trawl"
WORDS_ANALYSIS: Final = {
    "analysis": {
        "tokenizer": {"words": {"type": "pattern", "pattern": "[\\W_]+", "flags": "UNICODE_CHARACTER_CLASS"}},
        "analyzer": {
            "words": {"type": "custom", "tokenizer": "words", "filter": ["lowercase", "asciifolding"]},
        },
    }
}
"""What a word is to the full-text search: letters and digits, as `trawl.adapters.words` has it."""


def pages_mapping() -> dict[str, Any]:
    """The mapping of documents: found by id; what is queried besides stands apart."""
    return {
        "dynamic": "strict",
        "properties": {
            "crawl_id": {"type": "keyword"},
            "url": {"type": "keyword", "ignore_above": 2048},
            "content_sha256": {"type": "keyword", "index": False, "doc_values": False},
            "fetched_at_ms": {"type": "long"},
            "indexed_at_ms": {"type": "long"},
            "first": {"type": "long"},
            "chunks": {"type": "binary"},
            "document": {"type": "binary"},
        },
    }


def chunks_mapping(dimensions: int, settings: OpenSearchSettings) -> dict[str, Any]:
    """The mapping of chunks. The engine is Lucene always: others need native libraries that a node may not have."""
    keyword = {"type": "keyword", "ignore_above": 2048}
    shown = {"type": "keyword", "index": False, "doc_values": False}
    method = {
        "name": "hnsw",
        "engine": "lucene",
        "space_type": "innerproduct",
        "parameters": {"m": settings.hnsw_m, "ef_construction": settings.hnsw_ef_construction},
    }
    return {
        "dynamic": "strict",
        "properties": {
            "document_key": keyword,
            "crawl_id": keyword,
            "url": keyword,
            "title": shown,
            "heading_path": shown,
            "text": shown,
            "position": {"type": "integer", "index": False},
            "fetched_at_ms": {"type": "long"},
            "language": keyword,
            "tags": keyword,
            "permitted": keyword,
            "words": {"type": "text", "analyzer": "words", "norms": True},
            "vector": {"type": "knn_vector", "dimension": dimensions, "method": method},
        },
    }


class Index:
    """One kind of index: an alias, and behind it the index of a version."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings, kind: str, version: int) -> None:
        self._client = client
        self._settings = settings
        self._version = version
        self.alias = client.name(kind)

    async def meta(self) -> dict[str, Any] | None:
        """What is noted in the mapping of the index; none if there is no index. StoreTooNewError for a newer one."""
        try:
            found = await self._client.ask("GET", f"/{self.alias}/_mapping")
        except NotThereError:
            return None
        (mapping,) = found.values()
        noted: dict[str, Any] = mapping["mappings"].get("_meta", {}).get(_META, {})
        if int(noted.get("version", 0)) > self._version:
            raise StoreTooNewError(
                f"the index {self.alias} at {self._client.where} is of version {noted['version']}, newer than this"
                f" Trawl's {self._version}: upgrade Trawl, or name another opensearch.prefix"
            )
        return noted

    async def create(self, mapping: dict[str, Any], analysis: dict[str, Any], **noted: Any) -> None:
        """Make the index of this version and its alias; harmless if it is there."""
        body = self._body(mapping, analysis, noted)
        body["aliases"] = {self.alias: {}}
        try:
            await self._client.ask("PUT", f"/{self.alias}-v{self._version}", body)
        except StoreError as error:
            if "resource_already_exists" not in str(error):
                raise

    async def delete(self) -> None:
        """Delete the index behind the alias; harmless if there is none."""
        try:
            for name in await self._client.ask("GET", f"/_alias/{self.alias}"):
                await self._client.ask("DELETE", f"/{name}")
        except NotThereError:
            return

    async def migrate(self, mapping: dict[str, Any], analysis: dict[str, Any], **noted: Any) -> bool:
        """Copy an older version's documents into an index of this one, and move the alias in one step; whether it did.

        Writing to the old index is blocked from before the copy until the alias has moved, so a write is refused and
        tried again rather than lost. The old index stays until someone deletes it.
        """
        known = await self.meta()
        if known is None or int(known.get("version", 0)) >= self._version:
            return False
        (old,) = await self._client.ask("GET", f"/_alias/{self.alias}")
        new = f"{self.alias}-v{self._version}"
        await self._client.ask("PUT", f"/{new}", self._body(mapping, analysis, {**known, **noted}))
        await self._client.ask("PUT", f"/{old}/_block/write")
        try:
            await self._copy(old, new)
        except BaseException:
            await self._client.ask("PUT", f"/{old}/_settings", {"index.blocks.write": None})
            await self._client.ask("DELETE", f"/{new}")
            raise
        actions = [{"remove": {"index": old, "alias": self.alias}}, {"add": {"index": new, "alias": self.alias}}]
        await self._client.ask("POST", "/_aliases", {"actions": actions})
        return True

    async def _copy(self, old: str, new: str) -> None:
        body = {"source": {"index": old}, "dest": {"index": new}}
        answer = await self._client.ask("POST", "/_reindex", body, wait_for_completion="true", refresh="true")
        if answer.get("failures"):
            raise StoreError(f"{old} could not be copied to {new}: {str(answer['failures'])[:300]}")

    async def refresh(self) -> None:
        """Make what was written visible to searches now."""
        await self._client.ask("POST", f"/{self.alias}/_refresh")

    async def count(self) -> int:
        """Documents in the index."""
        try:
            await self.refresh()
            return int((await self._client.ask("GET", f"/{self.alias}/_count"))["count"])
        except NotThereError:
            return 0

    def _body(self, mapping: dict[str, Any], analysis: dict[str, Any], noted: dict[str, Any]) -> dict[str, Any]:
        settings = {
            "number_of_shards": self._settings.shards,
            "number_of_replicas": self._settings.replicas,
            "refresh_interval": f"{int(1000 * self._settings.refresh_seconds)}ms",
            "knn": True,
        }
        meta = {_META: {**noted, "version": self._version}}
        return {"settings": {"index": settings, **analysis}, "mappings": {**mapping, "_meta": meta}}
