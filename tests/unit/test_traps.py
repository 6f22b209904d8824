"""Traps: each class of endless URLs is recognised, and ordinary sites are left alone."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trawl.frontier.traps import (
    CLOSE_RESULTS_MIN,
    THROTTLE_ONE_IN,
    TemplateState,
    Trap,
    static_trap,
    template_budget,
    template_state,
    template_trap,
)
from trawl.ports import TemplateCounts
from trawl.settings import FrontierSettings
from trawl.url import canonical, is_pattern, request_key, template

LIMITS = FrontierSettings()
SMALL = replace(LIMITS, template_urls_max=100, facet_template_urls_max=10)


@pytest.mark.parametrize(
    ("path", "trap"),
    [
        ("", None),
        ("a/b/c.html?x=1&y=2", None),
        ("2024/01/01/01/news", None),
        ("en/docs/en/api/en/index.html", None),
        ("a/b/a/b/a/b", None),
        ("a/b/a/b/a/b/a/b", Trap.REPEATED_SEGMENTS),
        ("shop/cart/shop/cart/shop/cart/shop/cart/x.html", Trap.REPEATED_SEGMENTS),
        ("x/a/a/a/a", Trap.REPEATED_SEGMENTS),
        ("a/1/a/2/a/3/a/4", Trap.REPEATED_SEGMENTS),
        ("1/1/1/1", Trap.REPEATED_SEGMENTS),
        ("1/2/1/3/1/4/1/5", None),
        ("a////b", None),
        ("a/////b", Trap.REPEATED_SEGMENTS),
        ("/".join(f"s{number}" for number in range(24)), None),
        ("/".join(f"s{number}" for number in range(24)) + "/", None),
        ("/".join(f"s{number}" for number in range(25)), Trap.PATH_TOO_DEEP),
        ("?" + "&".join(f"p{number}" for number in range(16)), None),
        ("?" + "&".join(f"p{number}" for number in range(17)), Trap.TOO_MANY_PARAMETERS),
        ("?" + "q" * 512, None),
        ("?" + "q" * 513, Trap.QUERY_TOO_LONG),
        ("x" * (2048 - len("https://e.com/")), None),
        ("x" * (2049 - len("https://e.com/")), Trap.URL_TOO_LONG),
    ],
)
def test_the_shape_of_one_url(path: str, trap: Trap | None) -> None:
    assert static_trap(f"https://e.com/{path}", LIMITS) is trap


def test_every_static_limit_is_a_setting() -> None:
    tight = replace(LIMITS, path_segments_max=2, query_chars_max=5, query_parameters_max=2, segment_repeats_max=1)
    assert static_trap("https://e.com/a/b/c", tight) is Trap.PATH_TOO_DEEP
    assert static_trap("https://e.com/?a=1234", tight) is Trap.QUERY_TOO_LONG
    assert static_trap("https://e.com/?a&b&c", tight) is Trap.TOO_MANY_PARAMETERS
    assert static_trap("https://e.com/a/a", tight) is Trap.REPEATED_SEGMENTS
    assert static_trap("https://e.com/abc", tight, url_chars_max=16) is Trap.URL_TOO_LONG


def admitted_of(urls: list[str], limits: FrontierSettings) -> int:
    """How many URLs of an endless series a frontier that only looks at traps would admit."""
    counts: dict[str, int] = {}
    for url in map(canonical, urls):
        name = template(url)
        known = TemplateCounts(admitted=counts.get(name, 0))
        if static_trap(url, limits) is None and template_trap(name, known, request_key("c", url), limits) is None:
            counts[name] = known.admitted + 1
    return sum(counts.values())


MONTHS = [(year, month) for year in range(1950, 2050) for month in range(1, 13)]


@pytest.mark.parametrize(
    "urls",
    [
        [f"https://e.com/calendar/{year}/{month:02}" for year, month in MONTHS],
        [f"https://e.com/events/{year}-{month:02}-01/" for year, month in MONTHS],
        [f"https://e.com/whatever?month={month}&year={year}" for year, month in MONTHS],
        [f"https://e.com/whatever?month={year}-{month:02}" for year, month in MONTHS],
        [f"https://e.com/shop?color={number}&size={number % 7}" for number in range(1200)],
        [f"https://e.com/shop?size={number % 7}&color={number}" for number in range(1200)],
        [f"https://e.com/shop?a={n}&b={n % 2}&c={n % 3}&d={n % 4}&e={n % 5}" for n in range(1200)],
    ],
)
def test_case_45_endless_calendars_and_facets_end_at_the_small_budget(urls: list[str]) -> None:
    assert admitted_of(urls, SMALL) == 10


@pytest.mark.parametrize(
    "urls",
    [
        [f"https://e.com/item/{number}" for number in range(1200)],
        [f"https://e.com/list?page={number}" for number in range(1200)],
        [f"https://e.com/(S({number:0>24}))/orders.aspx" for number in range(1200)],
        [f"https://e.com/s/{number:032x}/home" for number in range(1200)],
        [f"https://e.com/home?token=x{number}" for number in range(1200)],
    ],
)
def test_case_45_endless_numbers_and_sessions_end_at_the_budget(urls: list[str]) -> None:
    assert 100 <= admitted_of(urls, SMALL) <= 200  # a session of digits alone is a number, a second template


def test_case_45_relative_links_that_grow_the_path_end() -> None:
    urls = ["https://e.com/" + "docs/more/" * count for count in range(1, 200)]
    assert admitted_of(urls, SMALL) <= 3


def test_sessions_that_the_canonical_form_drops_are_one_page() -> None:
    urls = {canonical(f"https://e.com/home;jsessionid={number}?PHPSESSID={number}") for number in range(100)}
    assert urls == {"https://e.com/home"}


def test_a_site_of_words_has_no_budget() -> None:
    words = [f"{first}-{second}" for first in ("red", "blue", "green") for second in ("shoe", "hat", "coat")]
    urls = [f"https://e.com/{word}/{other}" for word in words for other in words if word != other]
    assert admitted_of(urls, replace(SMALL, template_urls_max=0, facet_template_urls_max=0)) == len(urls)


@pytest.mark.parametrize(
    ("url", "small"),
    [
        ("https://e.com/item/1", False),
        ("https://e.com/list?page=1", False),
        ("https://e.com/blog/2031/04/title", False),
        ("https://e.com/blog/2031-04-01/title", False),
        ("https://e.com/list?page=1&sort=a", True),
        ("https://e.com/?a&b&c&d&e&f", True),
        ("https://e.com/calendar/2031/04", True),
        ("https://e.com/event-list/2031-04-01", True),
        ("https://e.com/prevents/2031/04", False),
        ("https://calendar.e.com/2031/04", False),
        ("https://e.com/x?Month=4", True),
    ],
)
def test_facets_and_calendars_have_the_small_budget(url: str, small: bool) -> None:
    wanted = LIMITS.facet_template_urls_max if small else LIMITS.template_urls_max
    assert template_budget(template(url), LIMITS) == wanted


@pytest.mark.parametrize(
    ("results", "duplicates", "state"),
    [
        (0, 0, TemplateState.OPEN),
        (19, 19, TemplateState.OPEN),
        (20, 15, TemplateState.OPEN),
        (20, 16, TemplateState.THROTTLED),
        (49, 49, TemplateState.THROTTLED),
        (50, 50, TemplateState.CLOSED),
        (100, 95, TemplateState.CLOSED),
        (100, 94, TemplateState.THROTTLED),
        (100, 79, TemplateState.OPEN),
    ],
)
def test_a_template_whose_pages_are_duplicates_is_throttled_then_closed(
    results: int, duplicates: int, state: TemplateState
) -> None:
    assert template_state(TemplateCounts(results=results, duplicates=duplicates), LIMITS) is state


def test_a_throttled_template_admits_a_share_that_does_not_change_on_replay() -> None:
    counts = TemplateCounts(admitted=30, results=30, duplicates=25)
    keys = [request_key("c", f"https://e.com/item/{number}") for number in range(5000)]
    traps = [template_trap("e.com/item/{n}", counts, key, LIMITS) for key in keys]
    assert set(traps) == {None, Trap.TEMPLATE_DUPLICATES}
    assert 0.8 < traps.count(None) / (len(keys) / THROTTLE_ONE_IN) < 1.2
    assert traps == [template_trap("e.com/item/{n}", counts, key, LIMITS) for key in keys]


def test_a_closed_template_admits_nothing_and_a_plain_url_is_never_refused() -> None:
    counts = TemplateCounts(admitted=10**9, results=CLOSE_RESULTS_MIN, duplicates=CLOSE_RESULTS_MIN)
    for key in range(-20, 20):
        assert template_trap("e.com/item/{n}", counts, key, LIMITS) is Trap.TEMPLATE_DUPLICATES
        assert template_trap("e.com/item", counts, key, LIMITS) is None


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_more_duplicates_never_open_a_template(results: int, one: int, other: int) -> None:
    order = list(TemplateState)
    fewer, more = sorted((min(one, results), min(other, results)))
    states = [template_state(TemplateCounts(results=results, duplicates=count), LIMITS) for count in (fewer, more)]
    assert order.index(states[0]) <= order.index(states[1])


@settings(max_examples=300, deadline=None)
@given(st.text("abc/12?&=;.-", max_size=60))
def test_any_url_has_a_decision(tail: str) -> None:
    url = canonical(f"https://e.com/{tail}")
    assert static_trap(url, LIMITS) in {None, *Trap}
    name = template(url)
    full = TemplateCounts(admitted=LIMITS.template_urls_max)
    assert (template_trap(name, full, 0, LIMITS) is Trap.TEMPLATE_BUDGET) is is_pattern(name)
