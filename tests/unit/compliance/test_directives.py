"""What X-Robots-Tag and meta robots say, to whom, and of which uses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.compliance.directives import Directive, date_ms, directives
from trawl.kinds import Use

NOW_MS = 1_700_000_000_000  # 2023-11-14


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("noindex", [Directive("noindex")]),
        (" NoIndex , NOFOLLOW ", [Directive("noindex"), Directive("nofollow")]),
        ("", []),
        (",,", []),
        (
            "otherbot: noindex, nofollow",
            [Directive("noindex", agent="otherbot"), Directive("nofollow", agent="otherbot")],
        ),
        ("a: noindex, b: nofollow", [Directive("noindex", agent="a"), Directive("nofollow", agent="b")]),
        ("max-snippet:0", [Directive("max-snippet", "0")]),
        (
            "trawl: max-snippet: 20, noindex",
            [Directive("max-snippet", "20", "trawl"), Directive("noindex", agent="trawl")],
        ),
        (
            "unavailable_after: Wed, 03 Sep 2025 13:09:53 GMT, nofollow",
            [Directive("unavailable_after", "Wed, 03 Sep 2025 13:09:53 GMT"), Directive("nofollow")],
        ),
        *(
            (f"unavailable_after: {date}, noindex", [Directive("unavailable_after", date), Directive("noindex")])
            for date in ("25 Jun 2010 15:00:00 PST", "25 Jun 2010 15:00:00", "2010-06-25T15:00", "nonsense 1")
        ),
        ("unavailable_after: 25 Jun 2010 15:00:00 PST", [Directive("unavailable_after", "25 Jun 2010 15:00:00 PST")]),
        (
            "unavailable_after: 2025-09-03, noindex",
            [Directive("unavailable_after", "2025-09-03"), Directive("noindex")],
        ),
        (
            "Bot: unavailable_after: Wednesday, 03-Sep-25 13:09:53 GMT",
            [Directive("unavailable_after", "Wednesday, 03-Sep-25 13:09:53 GMT", "bot")],
        ),
    ],
)
def test_a_field_is_read_into_directives(field: str, expected: list[Directive]) -> None:
    assert list(directives(field)) == expected


@pytest.mark.parametrize(
    ("field", "denied"),
    [
        ("noindex", {Use.INDEX}),
        ("nofollow", {Use.FOLLOW}),
        ("none", {Use.INDEX, Use.FOLLOW}),
        ("nosnippet", {Use.SNIPPET, Use.AI_INPUT}),
        ("max-snippet: 0", {Use.SNIPPET, Use.AI_INPUT}),
        ("max-snippet: -1", set()),
        ("max-snippet: 30", set()),
        ("noarchive", {Use.AI_INPUT, Use.AI_TRAIN}),
        ("nocache", {Use.AI_INPUT, Use.AI_TRAIN}),
        ("noai", {Use.AI_INPUT, Use.AI_TRAIN}),
        ("noimageai, noimageindex, notranslate, max-image-preview: none", set()),
        ("unavailable_after: 2010-06-25T15:00:00-08:00", {Use.INDEX}),
        ("unavailable_after: 14 Nov 2023 22:13:19 GMT", {Use.INDEX}),
        ("unavailable_after: 14 Nov 2023 22:13:21 GMT", set()),
        ("unavailable_after: one day", set()),
        ("all", set()),
    ],
)
def test_a_directive_denies_uses(field: str, denied: set[Use]) -> None:
    said = [pair for directive in directives(field) for pair in directive.says(NOW_MS)]
    assert {use for use, allowed in said if not allowed} == denied


def test_what_is_allowed_is_said_too() -> None:
    (every,) = directives("all")
    assert every.says(NOW_MS) == ((Use.INDEX, True), (Use.FOLLOW, True))


@pytest.mark.parametrize(
    ("field", "binds"),
    [
        ("noindex", True),
        ("trawl: noindex", True),
        ("TRAWL: noindex", True),
        ("*: noindex", True),
        ("trawlbot: noindex", False),
        ("traw: noindex", False),
        ("googlebot: noindex", False),
    ],
)
def test_a_directive_binds_the_agent_that_it_names(field: str, binds: bool) -> None:
    (found,) = directives(field)
    assert found.binds("Trawl") is binds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "yesterday",
        "99999-01-01",
        "1e400",
        "Wed, 99 Sep 2025 13:09:53 GMT",
        "\0",
        "9" * 20 + " Jan 2020 00:00:00 GMT",
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert date_ms(text) is None


@given(st.text(max_size=300))
def test_any_text_is_read_and_read_again_from_what_it_says(field: str) -> None:
    found = directives(field)
    for directive in found:
        directive.says(NOW_MS)
    assert len(found) <= field.count(",") + 1


@given(
    st.lists(st.sampled_from(["noindex", "nofollow", "max-snippet: 0", "unavailable_after: 2020-01-01"]), min_size=1)
)
def test_directives_mean_the_same_together_and_apart(texts: list[str]) -> None:
    together = directives(", ".join(texts))
    assert together == tuple(one for text in texts for one in directives(text))


@given(
    st.lists(
        st.one_of(
            st.sampled_from(
                ["Wed,", "Jan", "2020", "00:00:00", "GMT", "PST", "-0800", "T", "-", ":", "+9999999999", ","]
            ),
            st.integers(0, 10**25).map(str),
        ),
        max_size=9,
    )
)
def test_whatever_looks_like_a_date_is_one_or_none(parts: list[str]) -> None:
    found = date_ms(" ".join(parts))
    assert found is None or isinstance(found, int)
    for directive in directives(f"unavailable_after: {' '.join(parts)}, noindex"):
        directive.says(NOW_MS)
