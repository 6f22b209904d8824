"""Indices by version behind an alias: made in one place, and moved from one version of their mapping to the next."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from trawl.adapters.opensearch.client import NotThereError, OpenSearchClient
from trawl.errors import StoreError, StoreTooNewError
from trawl.settings import OpenSearchSettings

PAGES_VERSION: Final = 1
CHUNKS_VERSION: Final = 1
_META: Final = "trawl"
_POLL_SECONDS: Final = 0.1
_POLL_SECONDS_MAX: Final = 5.0
_WORDS_ANALYSIS: Final = {
    "analysis": {
        "tokenizer": {"words": {"type": "pattern", "pattern": "[\\W_]+", "flags": "UNICODE_CHARACTER_CLASS"}},
        "analyzer": {
            "words": {"type": "custom", "tokenizer": "words", "filter": ["lowercase", "asciifolding"]},
        },
    }
}
"""What a word is to the full-text search: letters and digits, as `trawl.adapters.words` has it."""


HELD_PAGES: Final = {"exists": {"field": "crawl_id"}}
"""Finds the pages that are not withdrawn."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an index is made of; a change of it is a new version."""

    mapping: dict[str, Any]
    analysis: dict[str, Any]


def pages_shape() -> Shape:
    """The index of documents: found by id; what is queried besides stands apart."""
    mapping = {
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
    return Shape(mapping, {})


def chunks_shape(dimensions: int, settings: OpenSearchSettings) -> Shape:
    """The index of chunks. The engine is Lucene always: others need native libraries that a node may not have."""
    keyword = {"type": "keyword", "ignore_above": 2048}
    shown = {"type": "keyword", "index": False, "doc_values": False}
    method = {
        "name": "hnsw",
        "engine": "lucene",
        "space_type": "innerproduct",
        "parameters": {"m": settings.hnsw_m, "ef_construction": settings.hnsw_ef_construction},
    }
    mapping = {
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
    return Shape(mapping, _WORDS_ANALYSIS)


class Index:
    """One kind of index: an alias, and behind it the index of a version."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings, kind: str, version: int) -> None:
        self._client = client
        self._settings = settings
        self._version = version
        self.alias = client.name(kind)

    async def meta(self) -> dict[str, Any] | None:
        """What is noted in the mapping of the index; none if there is no index. StoreTooNewError for a newer one."""
        found = await self._behind()
        return None if found is None else found[1]

    async def _behind(self) -> tuple[str, dict[str, Any]] | None:
        """The index behind the alias and what is noted in its mapping, read as one."""
        try:
            found = await self._client.ask("GET", f"/{self.alias}/_mapping")
        except NotThereError:
            return None
        if len(found) != 1:
            raise StoreError(
                f"the alias {self.alias} at {self._client.where} names several indices: {', '.join(sorted(found))};"
                f" leave it the one of the highest version"
            )
        ((index, mapping),) = found.items()
        noted: dict[str, Any] = mapping["mappings"].get("_meta", {}).get(_META, {})
        if int(noted.get("version", 0)) > self._version:
            raise StoreTooNewError(
                f"the index {self.alias} at {self._client.where} is of version {noted['version']}, newer than this"
                f" Trawl's {self._version}: upgrade Trawl, or name another opensearch.prefix"
            )
        return index, noted

    async def outdated(self) -> bool:
        """Whether there is an index of an older version."""
        known = await self.meta()
        return known is not None and int(known.get("version", 0)) < self._version

    async def create(self, shape: Shape, **noted: Any) -> None:
        """Make the template and the index of this version, and its alias; harmless if it is there."""
        await self._create(shape, noted, {"aliases": {self.alias: {}}})

    async def delete(self) -> None:
        """Delete the index behind the alias; harmless if there is none."""
        try:
            for name in await self._client.ask("GET", f"/_alias/{self.alias}"):
                await self._client.ask("DELETE", f"/{name}")
        except NotThereError:
            return

    async def migrate(self, shape: Shape, **noted: Any) -> bool:
        """Copy an older version's documents into an index of this one, and move the alias in one step; whether it did.

        Writing to the old index is blocked from before the copy, so a write is refused and tried again rather than
        lost. Each step may be done twice, or by two processes at once, so a migration that was cut off is done by the
        next call, and one that another process overtakes is done by that one. The old index stays, closed to writes,
        until `delete_old`.
        """
        found = await self._behind()
        if found is None or int(found[1].get("version", 0)) >= self._version:
            return False
        old, known = found
        new = f"{self.alias}-v{self._version}"
        await self._create(shape, {**known, **noted}, {})
        actions = [{"remove": {"index": old, "alias": self.alias}}, {"add": {"index": new, "alias": self.alias}}]
        try:
            await self._client.ask("PUT", f"/{old}/_block/write")
            await self._copy(old, new)
            await self._client.ask("POST", "/_aliases", {"actions": actions})
        except StoreError:
            if await self.outdated():  # else another process was quicker, and the new index may have grown since
                raise
        return True

    async def delete_old(self) -> int:
        """Delete the indices of older versions, once nobody wants to go back to them; how many."""
        names = [f"{self.alias}-v{version}" for version in range(self._version)]
        in_use = set(await self._client.ask("GET", f"/_alias/{self.alias}"))
        there = [name for name in names if name not in in_use and await self._exists(name)]
        for name in there:
            await self._client.ask("DELETE", f"/{name}")
        return len(there)

    async def refresh(self) -> None:
        """Make what was written visible to searches now."""
        await self._client.ask("POST", f"/{self.alias}/_refresh")

    async def count(self, query: dict[str, Any] | None = None) -> int:
        """Documents in the index, or those that a query finds."""
        try:
            return await self._count_of(self.alias, query)
        except NotThereError:
            return 0

    async def _exists(self, name: str) -> bool:
        try:
            await self._client.ask("GET", f"/{name}/_mapping")
        except NotThereError:
            return False
        return True

    async def _create(self, shape: Shape, noted: dict[str, Any], body: dict[str, Any]) -> None:
        name = f"{self.alias}-v{self._version}"
        template = {"index_patterns": [name], "template": self._body(shape, noted)}
        await self._client.ask("PUT", f"/_index_template/{name}", template)
        try:
            await self._client.ask("PUT", f"/{name}", body)
        except StoreError as error:
            if "resource_already_exists" not in str(error):
                raise

    async def _copy(self, old: str, new: str) -> None:
        """Copy what is not there yet; documents keep their versions."""
        body = {
            "source": {"index": old},
            "dest": {"index": new, "version_type": "external"},
            "conflicts": "proceed",
        }
        await self._client.ask("POST", f"/{old}/_refresh")  # a copy sees what searches see
        task = (await self._client.ask("POST", "/_reindex", body, wait_for_completion="false"))["task"]
        wait = _POLL_SECONDS
        while not (state := await self._client.ask("GET", f"/_tasks/{task}"))["completed"]:
            await asyncio.sleep(wait)
            wait = min(2 * wait, _POLL_SECONDS_MAX)
        failures = state.get("error") or state.get("response", {}).get("failures")
        counts = [await self._count_of(name) for name in (old, new)]
        if failures or counts[0] != counts[1]:
            raise StoreError(
                f"{old} at {self._client.where} could not be copied to {new}: {counts[1]} of {counts[0]} documents are"
                f" there; {old} takes no writes until the migration is done by another start, or its"
                f" index.blocks.write is lifted ({str(failures)[:300]})"
            )

    async def _count_of(self, name: str, query: dict[str, Any] | None = None) -> int:
        await self._client.ask("POST", f"/{name}/_refresh")
        body = None if query is None else {"query": query}
        return int((await self._client.ask("POST", f"/{name}/_count", body))["count"])

    def _body(self, shape: Shape, noted: dict[str, Any]) -> dict[str, Any]:
        settings = {
            "number_of_shards": self._settings.shards,
            "number_of_replicas": self._settings.replicas,
            "refresh_interval": f"{int(1000 * self._settings.refresh_seconds)}ms",
            "knn": True,
        }
        meta = {_META: {**noted, "version": self._version}}
        return {
            "settings": {"index": settings, **shape.analysis},
            "mappings": {**shape.mapping, "_meta": meta},
        }
