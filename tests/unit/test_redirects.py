"""Where a redirect leads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.fetcher.redirects import NextHop, RedirectRefused, location_text, next_hop
from trawl.records import Header, Hop
from trawl.url import DEFAULT_RULES

HERE = "http://a.test/dir/page?q=1"


def led(location: str | None, *, url: str = HERE, chain: tuple[Hop, ...] = (), redirects_max: int = 10) -> object:
    headers = [] if location is None else [Header(name="location", value=location)]
    return next_hop(url, headers, chain, redirects_max=redirects_max, rules=DEFAULT_RULES)


def reason(location: str | None, **fields: object) -> str:
    found = led(location, **fields)  # type: ignore[arg-type]
    assert isinstance(found, RedirectRefused), found
    assert HERE in found.detail
    return found.reason


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/x", "http://a.test/x"),
        ("x", "http://a.test/dir/x"),
        ("../x", "http://a.test/x"),
        ("?a", "http://a.test/dir/page?a"),
        ("//b.test/x", "http://b.test/x"),
        ("https://b.test", "https://b.test/"),
        ("HTTPS://B.test:443/X#part", "https://b.test/X"),
        (" /space in ", "http://a.test/space%20in"),
        ("http://user:secret@b.test/x", "http://b.test/x"),
        ("http://b.test./x", "http://b.test/x"),
        ("/größe".encode().decode("latin-1"), "http://a.test/gr%C3%B6%C3%9Fe"),
        ("/größe", "http://a.test/gr%F6%DFe"),
        ("/x?utm_source=1&sid=2", "http://a.test/x?utm_source=1&sid=2"),
        ("\\x", "http://a.test/x"),
    ],
)
def test_a_location_is_resolved_as_browsers_do(location: str, url: str) -> None:
    found = led(location)
    assert isinstance(found, NextHop)
    assert found.url == url


def test_rules_and_keys_see_the_canonical_form_but_the_server_gets_its_own_spelling() -> None:
    assert led("/x?utm_source=1") == NextHop(url="http://a.test/x?utm_source=1", canonical_url="http://a.test/x")


@pytest.mark.parametrize("location", [None, "", "  ", "http://[broken", "http://b.test:99999/", "http://a..b/", "//"])
def test_a_missing_or_broken_location_is_refused(location: str | None) -> None:
    assert reason(location) == "redirect_invalid"


@pytest.mark.parametrize(
    "location", ["file:///etc/hostname", "FILE:///x", "javascript:alert(1)", "ftp://b.test/", "data:,x", "ws://b.test/"]
)
def test_case_27_only_http_and_https_are_followed(location: str) -> None:
    assert reason(location) == "redirect_scheme"


def test_loops_are_seen_over_the_whole_chain() -> None:
    assert reason(HERE) == "redirect_loop"
    assert reason(HERE + "#part") == "redirect_loop"
    earlier = (Hop(url="https://other.test/", status=301), Hop(url="http://a.test/b", status=302))
    assert reason("https://other.test", chain=earlier) == "redirect_loop"
    assert reason("/b", chain=earlier) == "redirect_loop"


@given(st.integers(0, 20))
def test_the_whole_chain_counts_against_the_limit(count: int) -> None:
    chain = tuple(Hop(url=f"https://h{number}.test/", status=302) for number in range(count))
    found = led("/next", chain=chain, redirects_max=10)
    assert isinstance(found, NextHop) == (count < 10)
    if count >= 10:
        assert isinstance(found, RedirectRefused)
        assert found.reason == "too_many_redirects"


@given(st.binary())
def test_any_octets_are_a_location_or_a_refusal(octets: bytes) -> None:
    value = octets.decode("latin-1")
    assert isinstance(location_text(value), str)
    found = led(value)
    assert isinstance(found, NextHop | RedirectRefused)
    if isinstance(found, NextHop):
        assert found.url.startswith(("http://", "https://"))
        assert found.url.isascii()
        assert "#" not in found.url
        assert "@" not in found.url.partition("://")[2].partition("/")[0]
