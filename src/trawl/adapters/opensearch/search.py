"""Chunks in OpenSearch: full text (BM25) and k-NN (HNSW), fused by reciprocal rank as in the other indexes."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from trawl.adapters.fusion import reciprocal_ranks
from trawl.adapters.opensearch.client import NotThereError, OpenSearchClient
from trawl.adapters.opensearch.indices import CHUNKS_VERSION, WORDS_ANALYSIS, Index, chunks_mapping
from trawl.adapters.words import indexable, terms
from trawl.errors import EmbedderMismatchError
from trawl.ports import Chunk, Hit, SearchQuery, Vectors
from trawl.records import Key
from trawl.settings import OpenSearchSettings
from trawl.url import key_hex

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
        self._dimensions = 0

    async def open(self, embedder: str, dimensions: int) -> None:
        """Bind the index to a model; raises EmbedderMismatchError if it holds another's vectors."""
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
            mapping = chunks_mapping(dimensions, self._settings)
            await self._index.create(mapping, WORDS_ANALYSIS, embedder=embedder, dimensions=dimensions)
        self._dimensions = dimensions

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
        await self._bulk(items)

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        await self._bulk([
            msgspec.json.encode({"delete": {"_index": self._index.alias, "_id": key_hex(chunk_id)}})
            for chunk_id in chunk_ids
        ])  # fmt: skip

    async def _bulk(self, items: Sequence[bytes]) -> None:
        part: list[bytes] = []
        size = 0
        for item in items:
            if part and size + len(item) > self._settings.bulk_bytes_max:
                await self._client.bulk(part, refresh=self._refresh)
                part, size = [], 0
            part.append(item)
            size += len(item)
        if part:
            await self._client.bulk(part, refresh=self._refresh)

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        searches = [_text_search(query)] if terms(query.text) else []
        if query.vector is not None:
            await self._check(query.vector)
            searches.append(_vector_search(query))
        if not searches or query.limit <= 0:
            return []
        try:
            rankings = [await self._ranking(body, query.candidates) for body in searches]
        except NotThereError:
            return []
        fused = reciprocal_ranks(rankings, limit=query.limit)
        chunks = await self._chunks([key for key, _ in fused])
        return [Hit(chunk=chunks[key], score=score) for key, score in fused if key in chunks]

    async def size(self) -> int:
        """Chunks stored."""
        return await self._index.count()

    async def migrate(self) -> bool:
        """Move the chunks into an index of this version's mapping; whether there was anything to do."""
        known = await self._index.meta()
        dimensions = int((known or {}).get("dimensions", 0))
        return await self._index.migrate(chunks_mapping(dimensions, self._settings), WORDS_ANALYSIS)

    async def _ranking(self, body: dict[str, Any], limit: int) -> list[int]:
        body = {"size": limit, "_source": False, **body}
        found = await self._client.ask("POST", f"/{self._index.alias}/_search", body)
        return [_key(hit["_id"]) for hit in found["hits"]["hits"]]

    async def _chunks(self, keys: Sequence[Key]) -> dict[Key, Chunk]:
        if not keys:
            return {}
        body = {"ids": [key_hex(key) for key in keys]}
        found = await self._client.ask("POST", f"/{self._index.alias}/_mget", body, _source_excludes="words,vector")
        return {_key(one["_id"]): _chunk(one) for one in found["docs"] if one.get("found")}

    async def _check(self, vector: Vectors) -> None:
        known = await self._index.meta()
        if known is not None and vector.shape[1] != known.get("dimensions"):
            raise EmbedderMismatchError(
                f"{self._index.alias} holds vectors of {known.get('embedder')} ({known.get('dimensions')} dimensions);"
                f" the query has {vector.shape[1]}"
            )


def _filter(query: SearchQuery) -> list[dict[str, Any]]:
    return [{"term": {"crawl_id": query.crawl_id}}] if query.crawl_id else []


def _text_search(query: SearchQuery) -> dict[str, Any]:
    phrases = [{"match_phrase": {"words": " ".join(term)}} for term in terms(query.text)]
    return {"query": {"bool": {"should": phrases, "minimum_should_match": 1, "filter": _filter(query)}}}


def _vector_search(query: SearchQuery) -> dict[str, Any]:
    assert query.vector is not None
    near: dict[str, Any] = {"vector": query.vector[0].astype(float).tolist(), "k": query.candidates}
    if query.crawl_id:
        near["filter"] = {"bool": {"filter": _filter(query)}}
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
        chunk_id=_key(found["_id"]),
        document_key=_key(source["document_key"]),
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


def _key(text: str) -> Key:
    return int.from_bytes(bytes.fromhex(text), "big", signed=True)
