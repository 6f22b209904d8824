"""Chunks in OpenSearch: full text (BM25) and k-NN (HNSW), fused by reciprocal rank as in the other indexes."""

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from trawl.adapters.fusion import reciprocal_ranks
from trawl.adapters.opensearch.client import NotThereError, OpenSearchClient
from trawl.adapters.opensearch.indices import CHUNKS_VERSION, Index, chunks_shape
from trawl.adapters.words import indexable, terms
from trawl.errors import EmbedderMismatchError, StoreError
from trawl.ports import Chunk, Hit, SearchQuery, Vectors
from trawl.records import Key
from trawl.settings import OpenSearchSettings
from trawl.url import key_hex, key_of_hex

_DECIMALS: Final = 6
"""Of a vector's numbers; beyond them single precision has nothing to say."""


class OpenSearchSearchIndex:
    """Chunks with full text and vectors."""

    def __init__(self, client: OpenSearchClient, settings: OpenSearchSettings, *, refresh: bool = False) -> None:
        """With `refresh`, what is written can be found at once; without, after `refresh_seconds`."""
        self._client = client
        self._settings = settings
        self._refresh = refresh
        self._index = Index(client, settings, "chunks", CHUNKS_VERSION)
        self._embedder, self._dimensions = "", 0

    async def open(self, embedder: str, dimensions: int) -> None:
        """Bind the index to a model, and move it if it is of an older version.

        Raises EmbedderMismatchError if it holds another model's vectors.
        """
        known = await self._index.meta()
        if known is not None and (known.get("embedder"), known.get("dimensions")) != (embedder, dimensions):
            if await self._index.count():
                raise EmbedderMismatchError(
                    f"{self._index.alias} at {self._client.where} holds vectors of {known.get('embedder')}"
                    f" ({known.get('dimensions')} dimensions), not of {embedder} ({dimensions}); use that model, or"
                    f" index anew under another opensearch.prefix"
                )
            await self._index.delete()
            known = None
        if known is None:
            shape = chunks_shape(dimensions, self._settings)
            await self._index.create(shape, embedder=embedder, dimensions=dimensions)
        await self.migrate()
        self._embedder, self._dimensions = embedder, dimensions

    async def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write chunks with their vectors, row by row; replaces equal ids."""
        if vectors.shape != (len(chunks), self._dimensions):
            raise ValueError(f"{len(chunks)} chunks, {self._dimensions} dimensions, but vectors of {vectors.shape}")
        rows = np.round(vectors.astype(np.float64), _DECIMALS).tolist()
        items = [
            msgspec.json.encode({"index": {"_index": self._index.alias, "_id": key_hex(chunk.chunk_id)}})
            + b"\n"
            + msgspec.json.encode(_source(chunk, row))
            for chunk, row in zip(chunks, rows, strict=True)
        ]
        try:
            await self._client.bulk(items, refresh=self._refresh)
        except NotThereError:  # somebody deleted the index meanwhile
            await self.open(self._embedder, self._dimensions)
            await self._client.bulk(items, refresh=self._refresh)

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        items = [
            msgspec.json.encode({"delete": {"_index": self._index.alias, "_id": key_hex(chunk_id)}})
            for chunk_id in chunk_ids
        ]
        with contextlib.suppress(NotThereError):
            await self._client.bulk(items, refresh=self._refresh)

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        searches = [_text_search(query)] if terms(query.text) else []
        if query.vector is not None:
            await self._check(query.vector)
            searches.append(_vector_search(query))
        if not searches or query.limit <= 0:
            return []
        fused = reciprocal_ranks(await self._rankings(searches, query.candidates), limit=query.limit)
        chunks = await self._chunks([key for key, _ in fused])
        return [Hit(chunk=chunks[key], score=score) for key, score in fused if key in chunks]

    async def size(self) -> int:
        """Chunks stored."""
        return await self._index.count()

    async def migrate(self) -> bool:
        """Move the chunks into an index of this version's mapping; whether there was anything to do."""
        dimensions = int((await self._index.meta() or {}).get("dimensions", 0))
        return await self._index.migrate(chunks_shape(dimensions, self._settings))

    async def _rankings(self, searches: Sequence[dict[str, Any]], limit: int) -> list[list[Key]]:
        """What each search finds, best first; all are asked in one request."""
        head = {"index": self._index.alias}
        bodies = [line for body in searches for line in (head, {"size": limit, "_source": False, **body})]
        rankings = []
        for answer in (await self._client.ask_many("/_msearch", bodies))["responses"]:
            if "error" in answer:
                if answer.get("status") == 404:
                    return []
                raise StoreError(f"OpenSearch at {self._client.where} cannot search: {answer['error']}"[:500])
            hits = answer["hits"]["hits"]
            hits.sort(key=lambda hit: (-hit["_score"], hit["_id"]))  # ties alike, whatever segment or replica answered
            rankings.append([key_of_hex(hit["_id"]) for hit in hits])
        return rankings

    async def _chunks(self, keys: Sequence[Key]) -> dict[Key, Chunk]:
        if not keys:
            return {}
        ids = [key_hex(key) for key in keys]
        found = await self._client.documents(self._index.alias, ids, _source_excludes="words,vector")
        return {key_of_hex(one["_id"]): _chunk(one) for one in found if one["found"]}

    async def _check(self, vector: Vectors) -> None:
        if not self._dimensions:
            known = await self._index.meta() or {}
            self._embedder, self._dimensions = known.get("embedder", ""), known.get("dimensions", 0)
        if self._dimensions and vector.shape[1] != self._dimensions:
            raise EmbedderMismatchError(
                f"{self._index.alias} holds vectors of {self._embedder} ({self._dimensions} dimensions); the query has"
                f" {vector.shape[1]}"
            )


def _filter(query: SearchQuery) -> list[dict[str, Any]]:
    wanted = {"crawl_id": query.crawl_id, "permitted": str(query.use or "")}
    return [{"term": {field: value}} for field, value in wanted.items() if value]


def _text_search(query: SearchQuery) -> dict[str, Any]:
    phrases = [{"match_phrase": {"words": " ".join(term)}} for term in terms(query.text)]
    return {"query": {"bool": {"should": phrases, "minimum_should_match": 1, "filter": _filter(query)}}}


def _vector_search(query: SearchQuery) -> dict[str, Any]:
    assert query.vector is not None
    near: dict[str, Any] = {"vector": query.vector[0].astype(float).tolist(), "k": query.candidates}
    wanted = _filter(query)
    if wanted:
        near["filter"] = {"bool": {"filter": wanted}}
    return {"query": {"knn": {"vector": near}}}


def _source(chunk: Chunk, vector: list[float]) -> dict[str, Any]:
    return {
        "document_key": key_hex(chunk.document_key),
        "crawl_id": chunk.crawl_id,
        "url": chunk.url,
        "title": chunk.title,
        "heading_path": chunk.heading_path,
        "text": chunk.text,
        "position": chunk.position,
        "fetched_at_ms": chunk.fetched_at_ms,
        "language": chunk.language,
        "tags": chunk.tags,
        "permitted": chunk.permitted,
        "words": indexable(" ".join((chunk.title, *chunk.heading_path, chunk.text))),
        "vector": vector,
    }


def _chunk(found: dict[str, Any]) -> Chunk:
    source = found["_source"]
    return Chunk(
        chunk_id=key_of_hex(found["_id"]),
        document_key=key_of_hex(source["document_key"]),
        crawl_id=source["crawl_id"],
        url=source["url"],
        title=source["title"],
        heading_path=tuple(source["heading_path"]),
        text=source["text"],
        position=source["position"],
        fetched_at_ms=source["fetched_at_ms"],
        language=source["language"],
        tags=tuple(source["tags"]),
        permitted=tuple(source["permitted"]),
    )
