"""Reciprocal rank fusion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.adapters.fusion import reciprocal_ranks

rankings = st.lists(st.lists(st.integers(0, 20), unique=True, max_size=12), max_size=3)


def test_scores_are_those_of_the_paper() -> None:
    fused = reciprocal_ranks([[1, 2, 3], [3, 4]], limit=10)
    assert [key for key, _ in fused] == [3, 1, 2, 4]
    assert [score for _, score in fused] == pytest.approx([1 / 63 + 1 / 61, 1 / 61, 1 / 62, 1 / 62])


def test_ties_keep_the_order_of_the_first_ranking_and_repeats_count_once() -> None:
    assert [key for key, _ in reciprocal_ranks([[5, 5, 6], [7]], limit=10)] == [5, 7, 6]
    assert reciprocal_ranks([[5, 5]], limit=10) == reciprocal_ranks([[5]], limit=10)


@given(rankings, st.integers(0, 30))
def test_the_fusion_is_the_union_best_first_within_the_limit(lists: list[list[int]], limit: int) -> None:
    fused = reciprocal_ranks(lists, limit=limit)
    union = {key for ranking in lists for key in ranking}
    assert len(fused) == min(limit, len(union))
    assert [score for _, score in fused] == sorted((score for _, score in fused), reverse=True)
    assert {key for key, _ in fused} <= union


@given(st.lists(st.integers(), unique=True, max_size=20))
def test_one_ranking_alone_keeps_its_order(ranking: list[int]) -> None:
    assert [key for key, _ in reciprocal_ranks([ranking, []], limit=100)] == ranking


@given(rankings, st.integers(0, 20))
def test_a_better_rank_never_lowers_a_score(lists: list[list[int]], key: int) -> None:
    before = dict(reciprocal_ranks(lists, limit=100))
    raised = [[key, *(other for other in ranking if other != key)] if key in ranking else ranking for ranking in lists]
    after = dict(reciprocal_ranks(raised, limit=100))
    assert after.get(key, 0.0) >= before.get(key, 0.0)
