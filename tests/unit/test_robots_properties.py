"""Laws of robots.txt: noise changes no verdict, matching agrees with the definition, parsing never fails."""

import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data import require
from trawl.robots import LINE_BYTES_MAX, Robots, allowed

NOISE = st.sampled_from(
    [
        b"",
        b"   ",
        b"\t",
        b"# a comment: User-agent: *",
        b"  # Disallow: /",
        b"Sitemap: https://example.com/s.xml",
        b"Unknown-line: with a value",
        b"Crawl-delay: 3",
        b"words without meaning here",
        b"Content-Signal: ai-train=no",
        b"\xff\xfe\x00",
        b":",
        b"Noindex: /",
    ]
)


@cache
def google_cases() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads(require("conformance/google-robots-cases.json").read_text())
    return cases


def disguised(body: bytes, data: st.DataObject) -> bytes:
    """The same rules with noise between the lines, other line endings, a byte order mark and other upper case."""
    lines: list[bytes] = []
    for line in body.split(b"\n"):
        lines += data.draw(st.lists(NOISE, max_size=2))
        key, colon, value = line.partition(b":")
        if colon and b"#" not in key and len(line) < LINE_BYTES_MAX - 100:
            key = data.draw(st.sampled_from([key, key.upper(), key.lower(), key.title(), b" \t" + key + b" "]))
            ending = data.draw(st.sampled_from([b"", b" ", b"\t", b" # a comment"]))
            line = key + b":" + data.draw(st.sampled_from([b"", b" ", b"\t "])) + value + ending  # noqa: PLW2901 - the line, disguised
        lines.append(line)
    mark = data.draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + data.draw(st.sampled_from([b"\n", b"\r\n", b"\r", b"\n\n"])).join(lines)


@pytest.mark.data
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_noise_changes_none_of_googles_verdicts(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(google_cases()))
    body = disguised(case["robots"].encode("latin-1"), data)
    assert allowed(body, case["ua"], case["url"]) is case["allow"]


def matches(pattern: str, path: str) -> bool:
    """The definition of RFC 9309, section 2.2.3, by dynamic programming over all prefixes."""
    anchored = pattern.endswith("$")
    reached = {0}
    for character in pattern[:-1] if anchored else pattern:
        if character == "*":
            reached = set(range(min(reached), len(path) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(path) and path[at] == character}
    return len(path) in reached if anchored else bool(reached)


patterns = st.text("ab/*$", max_size=8).map("/{}".format)
paths = st.text("ab/$", max_size=10).map("/{}".format)


@settings(max_examples=1000, deadline=None)
@given(patterns, paths)
def test_matching_agrees_with_the_definition(pattern: str, path: str) -> None:
    blocked = not allowed(f"User-agent: *\nDisallow: {pattern}".encode(), "trawl", f"https://example.com{path}")
    assert blocked is matches(pattern, path)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.booleans(), patterns), max_size=8), paths)
def test_the_longest_matching_rule_decides_and_allow_wins_a_tie(rules: list[tuple[bool, str]], path: str) -> None:
    body = "User-agent: *\n" + "\n".join(f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules)
    hits = [(len(pattern), allow) for allow, pattern in rules if matches(pattern, path)]
    assert allowed(body.encode(), "trawl", f"https://example.com{path}") is (not hits or max(hits)[1])


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.booleans(), patterns), max_size=8), paths, st.randoms(use_true_random=False))
def test_the_order_of_rules_does_not_matter(rules: list[tuple[bool, str]], path: str, random: Any) -> None:
    lines = [f"{'Allow' if allow else 'Disallow'}: {pattern}" for allow, pattern in rules]
    mixed = random.sample(lines, len(lines))
    first, second = ("\n".join(["User-agent: *", *order]).encode() for order in (lines, mixed))
    assert allowed(first, "trawl", f"https://example.com{path}") is allowed(
        second, "trawl", f"https://example.com{path}"
    )


@settings(max_examples=500, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(
            st.one_of(
                NOISE,
                st.sampled_from([b"User-agent:", b"User-agent: *", b"Allow:", b"Disallow: /%", b"Disallow: *\xff"]),
                st.binary(max_size=20),
            ),
            max_size=20,
        ).map(b"\n".join),
    ),
    st.text(max_size=20),
    st.text(max_size=30),
)
def test_any_bytes_agent_and_url_have_a_verdict(body: bytes, agent: str, url: str) -> None:
    robots = Robots.parse(body)
    verdict = robots.verdict(agent, url)
    assert (verdict.rule is None) is (verdict.line is None)
    assert verdict.allowed or verdict.rule is not None
    assert robots == Robots.parse(body)
    delay = robots.crawl_delay(agent)
    assert delay is None or 0 <= delay < 1e10


names = st.from_regex(r"[A-Za-z][A-Za-z_-]{0,8}", fullmatch=True)


@settings(max_examples=200, deadline=None)
@given(names, st.sampled_from(["", "/1.0", " and more", "*", ", other", "\t"]), st.booleans())
def test_a_group_binds_the_agent_of_its_name(name: str, ending: str, upper: bool) -> None:
    body = f"User-agent: {name.upper() if upper else name}{ending}\nDisallow: /".encode()
    assert not allowed(body, name, "https://example.com/")


@settings(max_examples=200, deadline=None)
@given(names, names)
def test_a_group_binds_no_agent_of_a_longer_or_shorter_name(name: str, more: str) -> None:
    for group, agent in ((name, name + more), (name + more, name), (more + name, name), (name + "2", name)):
        if group.lower() != agent.lower():
            assert allowed(f"User-agent: {group}\nDisallow: /".encode(), agent, "https://example.com/")
