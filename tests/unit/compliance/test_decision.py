"""All statements about a page, from every place, and the one decision over them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.compliance.decision import decide
from trawl.compliance.preferences import Preferences
from trawl.compliance.statements import POLICY, RULE_CHARS_MAX, condensed, of_headers, of_meta, of_robots, of_tdm_file
from trawl.compliance.tdmrep import TdmFile
from trawl.kinds import Use
from trawl.records import Evidence
from trawl.robots import Robots

NOW_MS = 1_700_000_000_000
URL = "https://a.test/page"


def said(*evidence: Evidence) -> dict[str, bool]:
    """What holds for the uses that somebody has spoken of."""
    return {str(use): one.allowed for use, one in decide(evidence).items() if one.allowed is not None}


def headers(*fields: tuple[str, str]) -> list[Evidence]:
    return list(of_headers(fields, "trawl", NOW_MS))


def metas(*fields: tuple[str, str]) -> list[Evidence]:
    return list(of_meta(fields, "trawl", NOW_MS))


def robots(text: str, url: str = URL) -> list[Evidence]:
    parsed = Robots.parse(text.encode())
    return list(of_robots(parsed, Preferences(parsed.extensions("trawl")), "trawl", url, NOW_MS))


def test_nobody_has_spoken() -> None:
    assert set(decide(())) == set(Use)
    assert said(*headers(("content-type", "text/html")), *metas(("viewport", "noindex")), *robots("")) == {}


def test_each_statement_says_where_it_stands() -> None:
    text = "User-agent: *\nAllow: /page\nContent-Usage: train-ai=n\n"
    found = [*robots(text), *headers(("X-Robots-Tag", "trawl: noindex")), *metas(("Robots", "NOFOLLOW"))]
    assert [(one.source, one.rule, one.purpose, one.allowed) for one in found] == [
        ("robots.txt", "line 2: Allow: /page", "fetch", True),
        ("robots.txt", "line 3: content-usage: train-ai=n", "ai-train", False),
        ("x-robots-tag", "trawl: noindex", "index", False),
        ("meta", "nofollow", "follow", False),
    ]
    assert {one.seen_at_ms for one in found} == {NOW_MS}
    decisions = decide(found)
    assert (decisions[Use.INDEX].allowed, decisions[Use.INDEX].because) == (False, found[2])


def test_what_may_not_be_fetched_has_no_preferences() -> None:
    assert said(*robots("User-agent: *\nDisallow: /\nContent-Usage: train-ai=y\n")) == {"fetch": False}


def test_the_strictest_holds_wherever_it_stands() -> None:
    loose = [*headers(("Content-Usage", "train-ai=y")), *metas(("robots", "all"))]
    assert said(*loose) == {"ai-train": True, "index": True, "follow": True}
    strict = headers(("X-Robots-Tag", "none"), ("X-Robots-Tag", "other: nosnippet"), ("Content-Signal", "ai-train=no"))
    assert said(*loose, *strict) == {"ai-train": False, "index": False, "follow": False}


def test_fields_that_are_repeated_are_read_as_http_and_robots_tags_want_it() -> None:
    apart = headers(("Content-Usage", "train-ai=n"), ("Content-Usage", "search=n"))
    assert said(*apart) == {"ai-train": False, "index": False, "snippet": False}
    assert said(*headers(("X-Robots-Tag", "other: noindex"), ("X-Robots-Tag", "nofollow"))) == {"follow": False}


def test_the_reservation_nearest_to_the_page_supersedes_the_others() -> None:
    file = list(of_tdm_file(TdmFile.parse(b'[{"location": "/", "tdm-reservation": 1}]'), URL, NOW_MS))
    assert said(*file) == {"ai-input": False, "ai-train": False}
    assert file[0].rule == "/: tdm-reservation: 1"
    header = headers(("TDM-Reservation", "0"))
    assert said(*file, *header) == {"ai-input": True, "ai-train": True}
    page = metas(("tdm-reservation", "1"), ("tdm-policy", "https://a.test/p"))
    assert said(*page, *file, *header) == {"ai-input": False, "ai-train": False}
    assert page[0].rule == "tdm-reservation: 1; tdm-policy: https://a.test/p"
    for values in (("1", "x"), ("x", "1", ""), ("0", "1"), ("1", "0"), ("1, 1",)):
        assert said(*metas(*(("tdm-reservation", value) for value in values)))["ai-train"] is False
    unset = metas(("tdm-reservation", "maybe"))
    assert said(*file, *unset) == {"ai-input": False, "ai-train": False}
    assert said(*page, *headers(("Content-Signal", "ai-train=yes")))["ai-train"] is False


def test_what_the_operator_has_agreed_with_the_site_holds() -> None:
    licence = Evidence(source=POLICY, rule="a licence", purpose="ai-train", allowed=True)
    site = headers(("Content-Usage", "train-ai=n"), ("X-Robots-Tag", "noindex"))
    assert said(*site, licence) == {"ai-train": True, "index": False}
    assert decide([*site, licence])[Use.AI_TRAIN].because == licence


def test_a_statement_is_quoted_in_part() -> None:
    (found,) = headers(("Content-Signal", "ai-train=no" + " " * 10_000))
    assert (len(found.rule), found.allowed) == (RULE_CHARS_MAX, False)


def test_however_much_is_said_little_is_kept_and_no_decision_changes() -> None:
    many = headers(*[("X-Robots-Tag", ", ".join(["all"] * 100 + ["none", "noai"] * 50))] * 200)
    lines = "".join(f"Content-Usage: /p*{number} train-ai=n\n" for number in range(2000))
    many += robots(f"User-agent: *\n{lines}", "https://a.test/page1")
    assert len(many) > 30_000
    assert said(*condensed(many)) == said(*many)
    assert len(condensed(many)) < 40
    assert condensed(condensed(many)) == condensed(many)


@pytest.mark.parametrize("seed", range(3))
@given(
    st.lists(
        st.builds(
            Evidence,
            source=st.sampled_from(["robots.txt", "meta", "x-robots-tag", "tdmrep.json", "tdm-reservation", POLICY]),
            rule=st.just("r"),
            purpose=st.sampled_from([str(use) for use in Use]),
            allowed=st.booleans(),
        ),
        max_size=12,
    )
)
def test_the_order_of_statements_does_not_matter_and_one_more_denial_never_allows(
    seed: int, evidence: list[Evidence]
) -> None:
    assert said(*condensed(evidence)) == said(*evidence)
    mixed = list(evidence)
    random.Random(seed).shuffle(mixed)
    assert said(*mixed) == said(*evidence)
    for use in Use:
        denied = Evidence(source="meta", rule="no", purpose=str(use), allowed=False)
        before, after = decide(evidence)[use].allowed, decide([*evidence, denied])[use].allowed
        assert after is False or (after is before is True and any(one.source == POLICY for one in evidence))
