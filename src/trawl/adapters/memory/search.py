"""Full text (BM25) and vectors in memory, searched one by one."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from trawl.adapters.fusion import reciprocal_ranks
from trawl.adapters.words import terms, words
from trawl.errors import EmbedderMismatchError
from trawl.ports import Chunk, Hit, SearchQuery, Vectors
from trawl.records import Key

_K1: Final = 1.2  # Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009)
_B: Final = 0.75


@dataclass(slots=True)
class _Stored:
    chunk: Chunk
    vector: Vectors  # shape (dimensions,)
    words: list[str]
    sequence: int


class MemorySearchIndex:
    """Chunks with full text and vectors."""

    def __init__(self) -> None:
        self._stored: dict[Key, _Stored] = {}
        self._embedder = ("", 0)
        self._sequence = 0

    async def open(self, embedder: str, dimensions: int) -> None:
        """Bind the index to a model; raises EmbedderMismatchError if it holds another's vectors."""
        if self._stored and self._embedder != (embedder, dimensions):
            name, size = self._embedder
            raise EmbedderMismatchError(
                f"the index holds vectors of {name} ({size} dimensions), not of {embedder} ({dimensions});"
                " search with that model, or index into another folder"
            )
        self._embedder = (embedder, dimensions)

    async def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write chunks with their vectors, row by row; replaces equal ids."""
        if vectors.shape != (len(chunks), self._embedder[1]):
            raise ValueError(f"{len(chunks)} chunks need vectors of {self._embedder[1]} dimensions: {vectors.shape}")
        for chunk, vector in zip(chunks, vectors, strict=True):
            self._stored.pop(chunk.chunk_id, None)
            self._sequence += 1
            text = words(" ".join((chunk.title, *chunk.heading_path, chunk.text)))
            self._stored[chunk.chunk_id] = _Stored(chunk, np.array(vector, dtype=np.float32), text, self._sequence)

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        for chunk_id in chunk_ids:
            self._stored.pop(chunk_id, None)

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        stored = [item for item in self._stored.values() if _wanted(item.chunk, query)]
        rankings = [_best(_bm25(stored, query.text), query.candidates)]
        if query.vector is not None and stored:
            scores = np.stack([item.vector for item in stored]) @ query.vector[0]
            ranked = sorted(zip(stored, scores.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0].sequence))
            rankings.append([item.chunk.chunk_id for item, _ in ranked[: query.candidates]])
        fused = reciprocal_ranks(rankings, limit=query.limit)
        return [Hit(chunk=self._stored[chunk_id].chunk, score=score) for chunk_id, score in fused]

    async def size(self) -> int:
        """Chunks stored."""
        return len(self._stored)


def _wanted(chunk: Chunk, query: SearchQuery) -> bool:
    return query.crawl_id in {"", chunk.crawl_id} and (query.use is None or query.use in chunk.permitted)


def _best(scores: dict[Key, float], limit: int) -> list[Key]:
    return sorted(scores, key=lambda key: -scores[key])[:limit]


def _bm25(stored: Sequence[_Stored], query: str) -> dict[Key, float]:
    """The BM25 score of each chunk that holds a term of the query."""
    phrases = [tuple(word for part in term for word in words(part)) for term in terms(query)]
    counts = [Counter(phrase for phrase in phrases for _ in range(_occurrences(phrase, item.words))) for item in stored]
    mean = sum(len(item.words) for item in stored) / max(1, len(stored))
    scores: dict[Key, float] = {}
    for phrase in phrases:
        holders = sum(count[phrase] > 0 for count in counts)
        idf = math.log(1 + (len(stored) - holders + 0.5) / (holders + 0.5))
        for item, count in zip(stored, counts, strict=True):
            if count[phrase]:
                length = 1 - _B + _B * len(item.words) / max(1.0, mean)
                weight = idf * count[phrase] * (_K1 + 1) / (count[phrase] + _K1 * length)
                scores[item.chunk.chunk_id] = scores.get(item.chunk.chunk_id, 0.0) + weight
    return scores


def _occurrences(phrase: tuple[str, ...], text: list[str]) -> int:
    size = len(phrase)
    return sum(tuple(text[at : at + size]) == phrase for at in range(len(text) - size + 1)) if phrase else 0
