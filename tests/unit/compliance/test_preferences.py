"""AIPREF and Content Signals, in fields and in robots.txt; and TDMRep's file."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.compliance.preferences import Preferences, content_signal, content_usage
from trawl.compliance.tdmrep import Reservation, TdmFile, reservation
from trawl.kinds import Use
from trawl.robots import Robots

NO_TRAINING = ((Use.AI_TRAIN, False),)
SEARCH = ((Use.INDEX, True), (Use.SNIPPET, True))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("train-ai=n", NO_TRAINING),
        ("train-ai=y", ((Use.AI_TRAIN, True),)),
        ("train-ai=y, search=n", ((Use.AI_TRAIN, True), (Use.INDEX, False), (Use.SNIPPET, False))),
        ("train-ai=n;until=5, other=y", NO_TRAINING),
        # draft-ietf-aipref-vocab, sections 6.5.1 and 6.5.2
        ('train-ai=y, train-ai, search=n, search="n"', ()),
        ("train-ai;allow=n, train-ai=y", ((Use.AI_TRAIN, True),)),
        ('train-ai;has;parameters="?"', ()),
        ("train-ai=n, Search=n", ()),
        ("train-ai=no", ()),
        ("train-ai=(n)", ()),
        ("train-ai=?0", ()),
        ("train-ai = n", ()),
        ("", ()),
        ("train-ai=ñ", ()),
    ],
)
def test_content_usage_is_a_dictionary_of_tokens(value: str, expected: object) -> None:
    assert content_usage(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("search=yes, ai-train=no", (*SEARCH, *NO_TRAINING)),
        ("ai-input=no", ((Use.AI_INPUT, False),)),
        ("AI-Train=NO", NO_TRAINING),
        ("ai-train = no ,, other=yes, ai-input=maybe", NO_TRAINING),
        ("", ()),
    ],
)
def test_content_signals_are_names_with_yes_or_no(value: str, expected: object) -> None:
    assert content_signal(value) == expected


@given(st.text(max_size=200))
def test_any_text_is_read(value: str) -> None:
    content_usage(value)
    content_signal(value)


def preferences(text: str, url: str, agent: str = "trawl") -> dict[Use, set[bool]]:
    robots = Robots.parse(text.encode())
    found: dict[Use, set[bool]] = {}
    for _, said in Preferences(robots.extensions(agent)).lines_for(url):
        for use, allowed in said:
            found.setdefault(use, set()).add(allowed)
    return found


EXAMPLE = """\
User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""
"""Of draft-ietf-aipref-attach, section 3.4."""


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("trawl", "/test", {Use.AI_TRAIN: {False}}),
        ("trawl", "/ai-ok/test", {Use.AI_TRAIN: {True}}),
        ("trawl", "/ai-ok", {Use.AI_TRAIN: {False}}),
        ("ExampleBot", "/test", {Use.AI_TRAIN: {True}}),
    ],
)
def test_the_most_specific_path_of_the_group_holds(agent: str, path: str, expected: dict[Use, set[bool]]) -> None:
    assert preferences(EXAMPLE, f"https://a.test{path}", agent) == expected


def test_rules_of_one_path_hold_together_and_signals_stand_beside_them() -> None:
    text = """\
User-agent: *
Content-Signal: search=yes, ai-train=no
Content-Usage: /a*z train-ai=n
Content-Usage: /a*z train-ai=y
Content-Usage: /%61 search=n
"""
    assert preferences(text, "https://a.test/abcz") == {
        Use.AI_TRAIN: {True, False},
        Use.INDEX: {True},
        Use.SNIPPET: {True},
    }
    assert preferences(text, "https://a.test/a?b=1")[Use.INDEX] == {True, False}
    assert preferences(text, "https://a.test/b") == {Use.AI_TRAIN: {False}, Use.INDEX: {True}, Use.SNIPPET: {True}}


def test_no_number_of_lines_hides_one() -> None:
    crowd = "".join(f"Content-Usage: /p{number}/ train-ai=y\n" for number in range(1000))
    text = f"User-agent: *\n{crowd}Content-Usage: train-ai=n\n"
    assert preferences(text, "https://a.test/page") == {Use.AI_TRAIN: {False}}
    assert preferences(text, "https://a.test/p7/x") == {Use.AI_TRAIN: {True}}


def test_a_line_that_says_nothing_leaves_the_word_to_a_less_specific_one() -> None:
    text = "User-agent: *\nContent-Usage: /page/x train-ai=maybe\nContent-Usage: /page train-ai=n\n"
    assert preferences(text, "https://a.test/page/x") == {Use.AI_TRAIN: {False}}


# TDMRep


def test_a_reservation_is_one_or_zero_and_anything_else_is_unset() -> None:
    assert reservation("1", "https://a.test/p") == Reservation(True, "https://a.test/p")
    assert reservation(" 0 ", "https://a.test/p") == Reservation(False)
    assert [reservation(value) for value in ("", "2", "true", "1, 1", "yes")] == [None] * 5


def tdm_file(*rules: Any) -> TdmFile:
    return TdmFile.parse(json.dumps(rules).encode())


RULES = (
    {"location": "/directory-a/", "tdm-reservation": 1},
    {"location": "/directory-b/html/", "tdm-reservation": 1, "tdm-policy": "https://provider.test/policy.json"},
    {"location": "/directory-b/images/*.jpg", "tdm-reservation": 0},
    {"location": "/exactly$", "tdm-reservation": 1},
    {"location": "/directory-b/", "tdm-reservation": 0},
)
"""After the example of the report, section 4.1."""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/directory-a/x.pdf", Reservation(True)),
        ("/directory-b/html/", Reservation(True, "https://provider.test/policy.json")),
        ("/directory-b/images/x/y.jpg?q", Reservation(False)),
        ("/directory-b/images/x.png", Reservation(False)),
        ("/exactly", Reservation(True)),
        ("/exactly/not", None),
        ("/Directory-a/x", None),
        ("/", None),
    ],
)
def test_the_first_rule_that_matches_holds(path: str, expected: Reservation | None) -> None:
    found = tdm_file(*RULES).reservation(f"https://provider.test{path}")
    assert (found and found[1]) == expected


def test_what_is_no_rule_is_skipped() -> None:
    odd: list[Any] = [
        1,
        None,
        [],
        {},
        {"location": 5, "tdm-reservation": 1},
        {"location": "/", "tdm-reservation": True},
    ]
    odd += [{"location": "/", "tdm-reservation": 7}, {"location": "/", "tdm-reservation": 1, "tdm-policy": 3}]
    assert tdm_file(*odd).rules == (("/", Reservation(True)),)
    for body in (b"", b"{}", b"nonsense", b"\xff\xfe", b"[" * 100_000, b'{"location": "/", "tdm-reservation": 1}'):
        assert TdmFile.parse(body) == TdmFile()
    assert TdmFile.parse(b"\xef\xbb\xbf" + json.dumps(RULES).encode()) == tdm_file(*RULES)
