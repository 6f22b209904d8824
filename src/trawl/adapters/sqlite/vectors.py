"""Vectors in SQLite, compared one by one with numpy, a slab at a time."""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from trawl.ports import Vectors

SLAB_ROWS: Final = 8192
CACHE_BYTES_MAX: Final = 64_000_000


_SCALE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class Slab:
    """Some vectors: their rows' numbers, the numbers of their crawls, a scale each, and shape (rows, dimensions)."""

    seqs: npt.NDArray[np.int64]
    crawls: npt.NDArray[np.int64]
    scales: npt.NDArray[np.float32]
    matrix: npt.NDArray[np.int8]

    def dot(self, vector: Vectors) -> Vectors:
        """The dot products with a vector of shape (dimensions,)."""
        products: Vectors = (self.matrix.astype(np.float32) @ vector) * self.scales
        return products


def stored_form(vectors: Vectors) -> list[bytes]:
    """Each row as a scale and 8-bit integers, a quarter of the space.

    The dot product of two unit vectors of 256 dimensions changes by less than 0.001.
    """
    scales = np.maximum(np.abs(vectors).max(axis=1, initial=0.0), np.finfo(np.float32).tiny) / 127
    quantised = np.rint(vectors / scales[:, np.newaxis]).astype(np.int8)
    pairs = zip(scales.astype("<f4"), quantised, strict=True)
    return [scale.tobytes() + row.tobytes() for scale, row in pairs]


def _slab(rows: list[tuple[int, int, bytes]], dimensions: int) -> Slab:
    stored = np.frombuffer(b"".join(row[2] for row in rows), dtype=np.uint8).reshape(len(rows), -1)
    scales = np.ascontiguousarray(stored[:, :_SCALE_BYTES]).view("<f4")[:, 0]
    matrix = np.ascontiguousarray(stored[:, _SCALE_BYTES : _SCALE_BYTES + dimensions]).view(np.int8)
    numbers = np.array([row[:2] for row in rows], dtype=np.int64)
    return Slab(numbers[:, 0], numbers[:, 1], scales, matrix)


class VectorTable:
    """The table `vector`; keeps it in memory between searches while it is small and unchanged."""

    def __init__(self, connection: sqlite3.Connection, *, cache_bytes_max: int = CACHE_BYTES_MAX) -> None:
        self._connection = connection
        self._cache_bytes_max = cache_bytes_max
        self._cached: list[Slab] | None = None
        self._version = (0, 0)

    def nearest(self, vector: Vectors, limit: int, crawl: int | None, without: Sequence[int] = ()) -> list[int]:
        """Numbers of the rows with the largest dot product with `vector`, shape (1, dimensions); best first.

        Of one crawl, or of all, and none of the rows `without`.
        """
        left_out = np.array(without, dtype=np.int64)
        seqs = np.empty(0, dtype=np.int64)
        scores = np.empty(0, dtype=np.float32)
        for slab in self._slabs(vector.shape[1]):
            found = slab.dot(vector[0])
            numbers = slab.seqs
            if crawl is not None:
                kept = slab.crawls == crawl
                found, numbers = found[kept], numbers[kept]
            if len(left_out):
                kept = np.isin(numbers, left_out, invert=True)
                found, numbers = found[kept], numbers[kept]
            seqs, scores = np.concatenate((seqs, numbers)), np.concatenate((scores, found))
            best = np.lexsort((seqs, -scores))[:limit]
            seqs, scores = seqs[best], scores[best]
        return [int(seq) for seq in seqs]

    def _slabs(self, dimensions: int) -> Iterator[Slab]:
        """All vectors, from memory if they are there and nothing has changed."""
        version = (self._connection.execute("PRAGMA data_version").fetchone()[0], self._connection.total_changes)
        if self._cached is not None and version == self._version:
            yield from self._cached
            return
        self._cached, self._version = None, version
        kept: list[Slab] | None = []
        size = 0
        cursor = self._connection.execute("SELECT seq, crawl, vector FROM vector ORDER BY seq")
        while rows := cursor.fetchmany(SLAB_ROWS):
            slab = _slab(rows, dimensions)
            size += slab.matrix.nbytes + slab.seqs.nbytes + slab.crawls.nbytes + slab.scales.nbytes
            kept = [*kept, slab] if kept is not None and size <= self._cache_bytes_max else None
            yield slab
        self._cached = kept
