"""Reciprocal rank fusion of ranked lists (pure), shared by the search indexes that have none of their own."""

from collections.abc import Iterable, Sequence
from typing import Final

RANK_CONSTANT: Final = 60
"""How slowly the weight of a rank falls; the value of the paper."""


def reciprocal_ranks(rankings: Iterable[Sequence[int]], *, limit: int) -> list[tuple[int, float]]:
    """Keys fused by the sum of 1 / (60 + rank) over the rankings that hold them, best first, at most `limit`.

    Needs no scores, so BM25 and cosine lists mix without calibration: Cormack, Clarke and Buettcher, "Reciprocal rank
    fusion outperforms Condorcet and individual rank learning methods" (SIGIR 2009). Keys that tie keep the order in
    which they were first met, so the result is deterministic. A key repeated in one ranking counts by its best rank.
    """
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, key in enumerate(dict.fromkeys(ranking), start=1):
            scores[key] = scores.get(key, 0.0) + 1.0 / (RANK_CONSTANT + rank)
    fused = sorted(scores.items(), key=lambda entry: -entry[1])
    return fused[: max(0, limit)]
