"""The order of the frontier: laws of the scoring function."""

from hypothesis import given
from hypothesis import strategies as st

from trawl.frontier.score import score

UNIT = st.floats(0, 1)


@given(st.integers(0, 30), UNIT, UNIT)
def test_a_shallower_page_comes_first_all_else_equal(depth: int, priority: float, sitemap: float) -> None:
    nearer = score(depth=depth, seed_priority=priority, sitemap_priority=sitemap)
    assert nearer > score(depth=depth + 1, seed_priority=priority, sitemap_priority=sitemap)


@given(st.integers(0, 10**6))
def test_a_host_of_which_less_is_known_comes_first(urls: int) -> None:
    assert score(depth=1, host_urls=urls) > score(depth=1, host_urls=urls * 2 + 1)


@given(st.floats(0, 10**8), st.floats(1, 10**8))
def test_a_page_not_fetched_for_longer_is_never_later(age: float, more: float) -> None:
    assert score(depth=1, staleness_seconds=age + more) >= score(depth=1, staleness_seconds=age)


def test_a_page_never_fetched_is_the_stalest() -> None:
    assert score(depth=1) > score(depth=1, staleness_seconds=10**6)


@given(
    st.integers(0, 50),
    st.integers(0, 10**7),
    st.floats(-1, 2),
    st.none() | st.floats(-1, 2),
    st.none() | st.floats(0, 1e9),
)
def test_scores_stay_between_0_and_1_whatever_a_sitemap_claims(
    depth: int, urls: int, priority: float, sitemap: float | None, age: float | None
) -> None:
    value = score(depth=depth, host_urls=urls, seed_priority=priority, sitemap_priority=sitemap, staleness_seconds=age)
    assert 0 <= value <= 1.0000001
