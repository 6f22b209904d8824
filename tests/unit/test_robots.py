"""robots.txt: Google's suite, the cases of other crawlers, groups, spelling, limits and the lines that are no rules."""

import json
import time

import pytest

from tests.data import require
from trawl.robots import (
    EXTENSION_LINES_MAX,
    LINE_BYTES_MAX,
    WILDCARD_RULES_MAX,
    DayWindow,
    RequestRate,
    Robots,
    Verdict,
    allowed,
)

SITE = "https://example.com"


def lets(text: str, path: str, agent: str = "trawl") -> bool:
    return allowed(text.encode(), agent, SITE + path)


@pytest.mark.data
def test_all_of_googles_verdicts() -> None:
    cases = json.loads(require("conformance/google-robots-cases.json").read_text())
    assert len(cases) == 145
    for case in cases:
        # The suite holds octets; here each is one character.
        assert allowed(case["robots"].encode("latin-1"), case["ua"], case["url"]) is case["allow"], case


@pytest.mark.data
def test_all_of_googles_verdicts_with_its_raw_octets_read_as_utf_8() -> None:
    cases = json.loads(require("conformance/google-robots-cases.json").read_text())
    for case in cases:
        url = case["url"].encode("latin-1").decode()
        assert allowed(case["robots"].encode("latin-1"), case["ua"], url) is case["allow"], case


# Groups


@pytest.mark.parametrize(
    ("text", "agent", "group"),
    [
        ("User-agent: trawl\nDisallow: /\nUser-agent: *\nDisallow:", "trawl", "trawl"),
        ("User-agent: *\nDisallow:\nUser-agent: Trawl/2.0 (x)\nDisallow: /", "TRAWL", "trawl"),
        ("User-agent: trawler\nDisallow: /", "trawl", None),
        ("User-agent: tra\nDisallow: /", "trawl", None),
        ("User-agent: my-trawl\nDisallow: /", "trawl", None),
        ("User-agent: trawl-news\nDisallow: /", "trawl", None),
        ("User-agent: trawl2\nDisallow: /", "trawl", None),
        ("User-agent: trawl.org\nDisallow: /", "trawl", None),
        ("User-agent: trawl*\nDisallow: /", "trawl", "trawl"),
        ("User-agent: trawl, other\nDisallow: /", "trawl", "trawl"),
        ("User-agent: MJ12bot\nDisallow: /", "MJ12bot", "mj12bot"),
        ("User-agent: archive.org_bot\nDisallow: /", "archive.org_bot", "archive.org_bot"),
        ("User-agent: * everybody\nDisallow: /", "trawl", "*"),
        ("User-agent: **\nDisallow: /", "trawl", None),
        ("User-agent:\nDisallow: /", "trawl", None),
        ("User-agent: foo\nUser-agent: trawl\nDisallow: /", "trawl", "trawl"),
        ("User-agent: trawl\nUser-agent: *\nDisallow: /", "trawl", "trawl"),
        ("User-agent: *\nDisallow: /", "*", "*"),
        ("", "trawl", None),
    ],
)
def test_case_15_and_16_the_group_is_chosen_by_the_whole_product_token(
    text: str, agent: str, group: str | None
) -> None:
    verdict = Robots.parse(text.encode()).verdict(agent, f"{SITE}/x")
    assert verdict.group == group
    assert verdict.allowed is (group is None)


@pytest.mark.parametrize("agent", ["trawl", "Trawl", "trawl/0.1", "trawl/0.1 (+https://example.org/trawl)"])
def test_case_16_a_token_and_its_user_agent_header_get_the_same_verdict(agent: str) -> None:
    text = "User-agent: *\nDisallow: /\nUser-agent: trawl\nDisallow: /private\nCrawl-delay: 3"
    assert lets(text, "/x", agent)
    assert not lets(text, "/private/x", agent)
    assert Robots.parse(text.encode()).crawl_delay(agent) == 3


def test_groups_of_one_agent_are_merged_and_the_general_group_is_not_added() -> None:
    text = (
        "User-agent: trawl\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n\nUser-agent: TRAWL\nDisallow: /c\nAllow: /a/x"
    )
    assert [lets(text, path) for path in ("/a", "/a/x", "/b", "/c")] == [False, True, True, False]
    assert [lets(text, path, "other") for path in ("/a", "/b", "/c")] == [True, False, True]


@pytest.mark.parametrize(
    "between", ["", "\n\n", "Sitemap: https://e.com/s\n", "Nonsense\n", "Foo: bar\n", "Crawl-delay: 1\n", "# c\n"]
)
def test_only_a_rule_closes_a_group(between: str) -> None:
    assert not lets(f"User-agent: trawl\n{between}User-agent: other\n{between}Disallow: /x\n", "/x")
    assert lets(f"User-agent: trawl\nAllow: /\n{between}User-agent: other\n{between}Disallow: /x\n", "/x")


def test_a_group_of_the_agent_without_rules_allows_everything() -> None:
    assert lets("User-agent: trawl\nDisallow:\n\nUser-agent: *\nDisallow: /", "/x")
    assert lets("User-agent: *\nDisallow: /\n\nUser-agent: trawl", "/x")


def test_an_empty_rule_closes_a_group_like_any_other() -> None:
    text = "User-agent: trawl\nDisallow:\nUser-agent: *\nDisallow: /"
    assert lets(text, "/x")
    assert not lets(text, "/x", "other")


def test_rules_before_the_first_agent_bind_nobody() -> None:
    assert lets("Disallow: /\nUser-agent: *\nDisallow: /y", "/x")


# Rules


@pytest.mark.parametrize(
    "order",
    [["Disallow:", "Disallow: /wp-admin"], ["Disallow: /wp-admin", "Disallow:"], ["Allow:", "Disallow: /wp-admin"]],
)
def test_case_12_an_empty_rule_changes_nothing(order: list[str]) -> None:
    text = "\n".join(["User-agent: *", *order])
    assert not lets(text, "/wp-admin/x")
    assert lets(text, "/x")


@pytest.mark.parametrize(
    ("rules", "path", "wanted"),
    [
        ("Disallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("Allow: /a\nDisallow: /a/b", "/a/b/c", False),
        ("Disallow: /a\nAllow: /a", "/a", True),
        ("Allow: /*.html\nDisallow: /long/path", "/long/path.html", False),
        ("Disallow: /", "/robots.txt", True),
        ("Disallow: /robots.txt", "/robots.txt", True),
        ("Disallow: /", "/robots.txt/x", False),
        ("Disallow: /a*\nAllow: /a", "/ab", False),
        ("Disallow: /a\nAllow: /a*", "/ab", True),
        ("Disallow: /a*\nAllow: /ab", "/abc", True),
        ("Disallow: /a***\nAllow: /ab", "/abc", False),
        ("Disallow: a", "/a", True),
        ("Disallow: *a", "/xa", False),
        ("Disallow: *", "/", False),
        ("Disallow: $", "/", True),
        ("Disallow: /$", "/", False),
        ("Disallow: /$", "/a", True),
        ("Disallow: /*$", "/a", False),
        ("Disallow: /a$b", "/a$b", False),
        ("Disallow: /a$b", "/a", True),
        ("Disallow: /*/a/*/b$", "/x/a/y/b", False),
        ("Disallow: /*/a/*/b$", "/x/a/y/b/b", False),
        ("Disallow: /*/a/*/b$", "/x/a/y/bb", True),
        ("Disallow: /aba*aba$", "/aba", True),
        ("Disallow: /aba*aba$", "/abaaba", False),
        ("Disallow: /a**b", "/ab", False),
        ("Disallow: /*?", "/a?b", False),
        ("Disallow: /*?", "/a", True),
        ("Disallow: /;x", "/;x", False),
        ("Allow: /d/index.html\nDisallow: /", "/d/", True),
        ("Allow: /d/index.html\nDisallow: /", "/d/x", False),
        ("Dissallow: /a", "/a", False),
        ("Disallow /a", "/a", False),
        ("Disallow /a b", "/a", True),
        ("Disallow : /a", "/a", False),
        ("Disallow: /a # no", "/a", False),
        ("#Disallow: /a", "/a", True),
        ("Disallow:/a", "/a", False),
        ("\t Disallow:\t/a \t", "/a", False),
        ("Disallow: /A", "/a", True),
    ],
)
def test_rules_by_example(rules: str, path: str, wanted: bool) -> None:
    assert lets(f"User-agent: *\n{rules}\n", path) is wanted


@pytest.mark.parametrize(
    ("rule", "path", "wanted"),
    [
        ("/en-uk/*q=*relevance*", "/en-uk/search?q=%3Arelevance%3Abrand%3AX", False),
        ("/en-uk/*q=*%3arelevance*", "/en-uk/search?q=%3Arelevance%3Abrand%3AX", False),
        ("/*%2F*", "/a/b", True),
        ("/*%2f*", "/a%2Fb", False),
        ("/*%2F*", "/a%2fb", False),
        ("/a%2Fb", "/a/b", True),
        ("/a/b", "/a%2Fb", True),
        ("/*?q=a:b", "/?q=a%3Ab", True),
        ("/caf%c3%a9", "/caf%C3%A9", False),
        ("/café", "/caf%C3%A9", False),
        ("/café", "/café", False),
        ("/%7Ejoe/", "/~joe/x", False),
        ("/~joe/", "/%7ejoe/x", False),
        ("/%7Ejoe/", "/%7Ejoe/x", False),
        ("/a b", "/a%20b", False),
        ("/a%20b", "/a b", False),
        ("/a|b", "/a%7Cb", False),
        ("/a%2Ab", "/axxb", True),
        ("/a%2Ab", "/a%2ab", False),
        ("/a%24", "/a", True),
        ("/100%", "/100%", False),
        ("/100%", "/100%25", False),
        ("/%zz", "/%zz", False),
    ],
)
def test_case_8_and_10_percent_encoding_is_one_spelling_and_reserved_characters_are_kept(
    rule: str, path: str, wanted: bool
) -> None:
    assert lets(f"User-agent: *\nDisallow: {rule}\n", path) is wanted


def test_where_google_and_the_rfc_differ_on_spelling_an_allow_does_not_open_more_than_google() -> None:
    assert not lets("User-agent: *\nDisallow: /\nAllow: /%7Ejoe/\n", "/~joe/")
    assert lets("User-agent: *\nDisallow: /\nAllow: /~joe/\n", "/~joe/")


def test_octets_that_are_no_utf_8_match_themselves() -> None:
    body = b"User-agent: *\nDisallow: /caf\xe9\n"
    assert not allowed(body, "trawl", f"{SITE}/caf%E9")
    assert allowed(body, "trawl", f"{SITE}/caf%C3%A9")
    assert Robots.parse(body).verdict("trawl", f"{SITE}/caf%E9").rule == "Disallow: /caf\ufffd"


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("https://example.com", False),
        ("https://example.com?q", False),
        ("https://example.com#/a", False),
        ("/a", True),
        ("//example.com/a", True),
        ("https://example.com/a#b", True),
        ("https://example.com/?u=https://x.com/a", False),
        ("https://example.com/\ud800", False),
    ],
)
def test_the_path_of_a_url_is_what_rules_see(url: str, wanted: bool) -> None:
    assert allowed(b"User-agent: *\nDisallow: /\nAllow: /a", "trawl", url) is wanted


def test_a_verdict_names_the_line_that_decided() -> None:
    robots = Robots.parse(b"# hello\nUser-agent: *\r\nDisallow: /Private/ # secret\rAllow: /Private/x\n")
    assert robots.verdict("trawl", f"{SITE}/Private/") == Verdict(
        allowed=False, rule="Disallow: /Private/", line=3, group="*"
    )
    assert robots.verdict("trawl", f"{SITE}/Private/x") == Verdict(
        allowed=True, rule="Allow: /Private/x", line=4, group="*"
    )
    assert robots.verdict("trawl", f"{SITE}/") == Verdict(allowed=True, rule=None, line=None, group="*")


# Reading


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\xef\xbb", b"\xef"])
def test_case_6_a_byte_order_mark_is_no_part_of_the_first_line(mark: bytes) -> None:
    assert not allowed(mark + b"User-agent: *\nDisallow: /", "trawl", f"{SITE}/")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\n", b"\r\r\n"])
def test_all_line_endings_are_read(end: bytes) -> None:
    assert not allowed(end.join([b"User-agent: *", b"Allow: /y", b"Disallow: /x"]), "trawl", f"{SITE}/x")


def test_a_line_is_cut_where_google_cuts_it() -> None:
    kept = LINE_BYTES_MAX - 1 - len("Disallow: ")
    body = f"User-agent: *\nDisallow: {('/' + 'a' * 20_000)[:kept]}bbb\nDisallow: /x\n"
    assert not lets(body, ("/" + "a" * 20_000)[:kept])
    assert lets(body, ("/" + "a" * 20_000)[: kept - 1])
    assert not lets(body, "/x")


def test_beyond_the_cap_nothing_is_read_and_no_rule_is_cut_in_two() -> None:
    body = b"User-agent: *\nDisallow: /a\nDisallow: /private\nDisallow: /z\n"
    whole = len(b"User-agent: *\nDisallow: /a\nDisallow: /private\n")
    for cap, blocked in ((whole, True), (whole - 1, False), (whole - 8, False)):
        robots = Robots.parse(body, body_bytes_max=cap)
        assert robots.verdict("trawl", f"{SITE}/private").allowed is not blocked
        assert robots.verdict("trawl", f"{SITE}/p").allowed
        assert not robots.verdict("trawl", f"{SITE}/a").allowed
        assert robots.verdict("trawl", f"{SITE}/z").allowed
    assert not Robots.parse(body).verdict("trawl", f"{SITE}/z").allowed


def test_rules_within_the_first_500_kibibytes_hold() -> None:
    filler = b"# " + b"x" * 97 + b"\n"
    body = b"User-agent: *\n" + filler * 5118 + b"Disallow: /x\n" + filler * 5000
    assert not allowed(body, "trawl", f"{SITE}/x")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0\0\0",
        b"\xff\xfe",
        b":::\n:\n",
        b"<!DOCTYPE html><html><body>User-agent</body></html>",
        b"\x89PNG\r\n\x1a\n",
        b"#" * 9,
    ],
)
def test_what_is_no_robots_txt_forbids_nothing(body: bytes) -> None:
    assert allowed(body, "trawl", f"{SITE}/x")


# Lines that are no rules


def test_sitemaps_belong_to_no_group() -> None:
    text = "Sitemap: https://e.com/a.xml\nUser-agent: x\nSITE-MAP:/b.xml#c\nDisallow: /\nsitemap: https://e.com/a.xml\nSitemap:\n"
    assert Robots.parse(text.encode()).sitemaps == ("https://e.com/a.xml", "/b.xml")


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        ("Crawl-delay: 3", 3.0),
        ("crawl-DELAY:0.5", 0.5),
        ("Crawl-delay: .5", 0.5),
        ("Crawl-delay: 10 seconds", 10.0),
        ("Crawl-delay: 3\nCrawl-delay: 7\nCrawl-delay: 5", 7.0),
        ("Crawl-delay 4", 4.0),
        ("Crawl-delay: 0", 0.0),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: soon", None),
        ("Crawl-delay:", None),
        ("Disallow: /", None),
    ],
)
def test_case_13_crawl_delay_is_read_in_seconds(lines: str, seconds: float | None) -> None:
    assert Robots.parse(f"User-agent: *\n{lines}\n".encode()).crawl_delay("trawl") == seconds


def test_a_crawl_delay_belongs_to_the_agents_above_it_and_still_closes_no_group() -> None:
    text = (
        "User-agent: *\nCrawl-delay: 10\n\n"
        "User-agent: slow\nCrawl-delay: 3600\nDisallow: /x\n\n"
        "User-agent: trawl\nDisallow: /y\n"
    )
    robots = Robots.parse(text.encode())
    assert robots.crawl_delay("anybody") == 10
    assert robots.crawl_delay("slow") == 3600
    assert robots.crawl_delay("trawl") is None
    assert not robots.verdict("anybody", f"{SITE}/x").allowed


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("1/5", RequestRate(1, 5)),
        ("30/1m", RequestRate(30, 60)),
        ("100 / 24h", RequestRate(100, 86_400)),
        ("1/10s 0600-0845", RequestRate(1, 10, DayWindow(360, 525))),
        ("1/5 0600 - 0845", RequestRate(1, 5, DayWindow(360, 525))),
        ("1/10min 0600-0845", RequestRate(1, 600, DayWindow(360, 525))),
        ("1/1 hour", RequestRate(1, 3600)),
        ("1/30sec", RequestRate(1, 30)),
        ("1/2 H 2200-0400", RequestRate(1, 7200, DayWindow(1320, 240))),
        ("1/10 2200 - 2575", RequestRate(1, 10)),
        ("0/5", None),
        ("1/0", None),
        ("fast", None),
    ],
)
def test_request_rate_is_read(value: str, wanted: RequestRate | None) -> None:
    robots = Robots.parse(f"User-agent: *\nRequest-rate: {value}".encode())
    assert robots.request_rates("trawl") == (() if wanted is None else (wanted,))


def test_the_longest_delay_holds_of_those_that_are_asked_for_at_that_time() -> None:
    text = """User-agent: *
Crawl-delay: 4
Request-rate: 1/5 0600-2200
Request-rate: 1/1m 0900-1000
Request-rate: 2/5"""
    pace = Robots.parse(text.encode()).pace("trawl")
    day = 20_000 * 86_400_000
    asked = {hour: pace.delay_seconds(day + hour * 3_600_000) for hour in (0, 5, 6, 8, 9, 10, 21, 22, 23)}
    assert asked == {0: 4, 5: 4, 6: 5, 8: 5, 9: 60, 10: 5, 21: 5, 22: 4, 23: 4}
    assert pace.delay_seconds(day + 6 * 3_600_000 - 1) == 4
    assert Robots.parse(b"").pace("trawl").delay_seconds(day) == 0


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        (DayWindow(360, 525), (360, 524), (0, 359, 525, 1439)),
        (DayWindow(1320, 240), (1320, 1439, 0, 239), (240, 1319)),
        (DayWindow(0, 1440), (0, 1439), ()),
        (DayWindow(60, 60), (0, 59, 60, 1439), ()),
    ],
)
def test_a_window_may_span_midnight(window: DayWindow, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    assert all(window.holds(minute) for minute in inside)
    assert not any(window.holds(minute) for minute in outside)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0600-0845", DayWindow(360, 525)),
        ("2200-0400", DayWindow(1320, 240)),
        ("0000-2400", DayWindow(0, 1440)),
        ("0000-2460", None),
        ("0060-0100", None),
        ("9900-0100", None),
        ("morning", None),
    ],
)
def test_visit_time_is_read(value: str, wanted: DayWindow | None) -> None:
    robots = Robots.parse(f"User-agent: *\nVisit-time: {value}".encode())
    assert robots.visit_times("trawl") == (() if wanted is None else (wanted,))


def test_visits_are_welcome_at_any_of_the_times_and_else_at_the_next() -> None:
    day, hour = 20_000 * 86_400_000, 3_600_000
    pace = Robots.parse(b"User-agent: *\nVisit-time: 0600-0845\nVisit-time: 2200-0100").pace("trawl")
    opens = {at: (pace.opens_ms(day + at * hour) - day) / hour for at in (0, 1, 5, 6, 8, 9, 21, 22, 23)}
    assert opens == {0: 0, 1: 6, 5: 6, 6: 6, 8: 8, 9: 22, 21: 22, 22: 22, 23: 23}
    assert pace.opens_ms(day + 9 * hour + 59_999) == day + 22 * hour
    assert Robots.parse(b"").pace("trawl").opens_ms(day + 5) == day + 5


def test_extension_lines_are_kept_with_their_group() -> None:
    text = (
        "Host: example.com\nUser-agent: *\nContent-Signal: search=yes, ai-train=no\nAllow: /\n"
        "Content-Usage: /x train-ai=n\n\n"
        "User-agent: trawl\nUser-agent: other\nContent-Usage: train-ai=y\nDisallow: /y\n"
    )
    robots = Robots.parse(text.encode())
    assert [(line.name, line.value, line.line) for line in robots.extensions("anybody")] == [
        ("content-signal", "search=yes, ai-train=no", 3),
        ("content-usage", "/x train-ai=n", 5),
    ]
    for agent in ("trawl", "other"):
        assert [(line.name, line.value) for line in robots.extensions(agent)] == [("content-usage", "train-ai=y")]
    assert [line.name for line in robots.extension_lines if not line.agents] == ["host"]
    assert Robots.parse(b"Content-Signal: x=y").extensions("trawl") == ()


def test_extension_lines_have_a_limit() -> None:
    body = (
        b"User-agent: *\n"
        + b"".join(b"X-%d: y\n" % number for number in range(EXTENSION_LINES_MAX + 5))
        + b"Disallow: /x"
    )
    robots = Robots.parse(body)
    assert len(robots.extension_lines) == EXTENSION_LINES_MAX
    assert not robots.verdict("trawl", f"{SITE}/x").allowed


# Cost


@pytest.mark.parametrize(
    "pattern",
    [
        "/" + "*a" * 8000 + "*b",
        "/" + "a*" * 8000 + "b$",
        "/*" + "a" * 1000 + "*" + "a" * 1000 + "b",
        "/" + "*" * 16_000,
        "/*a*a*a*a*b",
    ],
)
def test_a_hostile_pattern_takes_little_time(pattern: str) -> None:
    robots = Robots.parse(f"User-agent: *\nDisallow: {pattern}\n".encode() * 30)
    began = time.perf_counter()
    for _ in range(20):
        robots.verdict("trawl", f"{SITE}/{'a' * 2000}")
    assert time.perf_counter() - began < 1


def test_wildcard_rules_beyond_the_limit_forbid_more_and_allow_nothing() -> None:
    longer = "".join(f"Disallow: /long/*/{number:08}\n" for number in range(WILDCARD_RULES_MAX - 1))
    text = f"User-agent: *\n{longer}Disallow: /a*b\n"
    assert lets(text, "/a")
    assert not lets(text, "/ab")
    full = f"{text}Disallow: /c*\nDisallow: /d*$\nDisallow: /long/x\n"
    assert [lets(full, path) for path in ("/ab", "/a", "/b", "/c", "/d", "/long/x/y")] == [
        False,
        True,
        True,
        False,
        False,
        False,
    ]
    over = f"User-agent: *\n{longer}Disallow: /long/*/x\nDisallow: /a*b\nAllow: /a*c\n"
    assert [lets(over, path) for path in ("/a", "/ab", "/ac", "/b")] == [False, False, True, True]


def test_a_hostile_file_of_wildcard_rules_takes_little_time() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /*a%d*b\n" % number for number in range(40_000))
    robots = Robots.parse(body)
    robots.verdict("trawl", SITE)
    began = time.perf_counter()
    for _ in range(10):
        robots.verdict("trawl", f"{SITE}/{'a' * 2000}")
    assert time.perf_counter() - began < 0.5


def test_the_largest_file_is_read_and_asked_in_little_time() -> None:
    body = b"User-agent: *\n" + b"".join(b"Disallow: /some/path/%d\n" % number for number in range(25_000))
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        robots = Robots.parse(body[:512_000])
        assert not robots.verdict("trawl", f"{SITE}/some/path/12345").allowed
        best = min(best, time.perf_counter() - began)
    assert best < 1
    began = time.perf_counter()
    for number in range(1000):
        robots.verdict("trawl", f"{SITE}/other/{number}")
    assert time.perf_counter() - began < 0.1
