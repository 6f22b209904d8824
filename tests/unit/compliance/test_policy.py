"""The operator's own policy, and the policy guide's tables."""

import re
from pathlib import Path

import pytest

from trawl.compliance.decision import decide
from trawl.compliance.directives import directives
from trawl.compliance.policy import OwnPolicy, uses_of
from trawl.compliance.preferences import READERS
from trawl.compliance.statements import META, POLICY, ROBOTS_TAG, ROBOTS_TXT, TDM_HEADER, TDM_META, of_headers
from trawl.errors import SettingsError
from trawl.kinds import Use

NOW_MS = 1_700_000_000_000
GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "policy.md").read_text("utf-8")
DENIED = [("X-Robots-Tag", "noai"), ("Content-Usage", "train-ai=n")]


def verdicts(url: str, *lines: str) -> dict[str, bool]:
    return {one.purpose: one.allowed for one in OwnPolicy(lines).of(url, NOW_MS)}


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of a table of the guide: the first cell, and the others."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:3] == "| `"
    ]
    return {cells[0].strip("`"): cells[1:] for cells in found}


def test_a_licence_holds_over_what_the_site_says() -> None:
    own = list(OwnPolicy(["https://a.test/x ai-train=allow: licence 7"]).of("https://a.test/x/y", NOW_MS))
    decided = decide([*of_headers(DENIED, "trawl", NOW_MS), *own])
    because = decided[Use.AI_TRAIN].because
    assert decided[Use.AI_TRAIN].allowed is True
    assert because is not None
    assert (because.source, because.rule, because.seen_at_ms) == (
        POLICY, "https://a.test/x ai-train=allow: licence 7", NOW_MS
    )  # fmt: skip
    assert decided[Use.AI_INPUT].allowed is False, "of that the licence does not speak"


def test_the_most_specific_statement_speaks() -> None:
    lines = ["* ai-train=deny", "https://a.test ai-train=allow", "https://a.test/private/ ai-train=deny: not this"]
    assert verdicts("https://b.test/", *lines) == {"ai-train": False}
    assert verdicts("https://a.test/x", *lines) == {"ai-train": True}
    assert verdicts("https://a.test/private/x", *lines) == {"ai-train": False}
    assert verdicts("http://a.test/x", "https://a.test/ index=deny") == {}
    assert verdicts("https://a.test:8443/x", "https://a.test/ index=deny") == {}


def test_paths_of_statements_are_patterns_as_in_robots_txt() -> None:
    lines = ["https://A.test:443/*.pdf$ index=deny", "https://a.test/caf%C3%A9 snippet=deny"]
    assert verdicts("https://a.test/x.pdf", *lines) == {"index": False}
    assert verdicts("https://a.test/x.pdf?y", *lines) == {}
    assert verdicts("https://a.test/café", *lines) == {"snippet": False}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ai-train=allow", "a statement is"),
        ("https://a.test/ ai-train=yes", "a statement is"),
        ("https://a.test/ ai_train=allow", "a statement is"),
        ("https://a.test/ training=allow", "'training', which is no use"),
        ("https://a.test/ fetch=allow", "'fetch', which is no use"),
        ("a.test ai-train=allow", "'a.test', which is no URL"),
        ("ftp://a.test/ ai-train=allow", "which is no URL"),
    ],
)
def test_what_is_no_statement_is_refused_with_the_reason(line: str, told: str) -> None:
    with pytest.raises(SettingsError, match=r"compliance\.statements") as refused:
        OwnPolicy([line])
    assert told in str(refused.value)


def test_a_required_use_must_be_one() -> None:
    assert uses_of("compliance.require", ["ai-input", "index"]) == (Use.AI_INPUT, Use.INDEX)
    with pytest.raises(SettingsError, match=r"compliance\.require names 'ai', which is no use of a page; .*ai-input"):
        uses_of("compliance.require", ["ai"])


def test_the_guide_tells_every_use_and_every_source() -> None:
    assert list(rows("Six uses")) == [str(use) for use in Use]
    assert set(rows("Sources")) == {POLICY, ROBOTS_TXT, ROBOTS_TAG, META, TDM_HEADER, TDM_META, *READERS}


def test_the_guide_tells_what_each_directive_means() -> None:
    for text, (forbids, allows) in rows("Directives").items():
        (directive,) = directives(text)
        said = directive.says(NOW_MS)
        assert sorted(use for use, allowed in said if not allowed) == re.findall(r"`([^`]+)`", forbids), text
        assert sorted(use for use, allowed in said if allowed) == re.findall(r"`([^`]+)`", allows), text
