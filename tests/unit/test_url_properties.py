"""Laws of URLs: the canonical form is stable, keys are words, names are safe, scope agrees with itself."""

import re

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from trawl.errors import InvalidUrlError
from trawl.kinds import ScopeKind
from trawl.url import (
    CanonicalRules,
    Scope,
    canonical,
    fetch_id,
    file_name,
    host_of,
    join,
    key_hex,
    key_of_hex,
    origin_of,
    request_key,
    template,
)

PIECES = st.sampled_from(
    [
        *"abZ09-._~:/?#[]@!$&'()*+,;=%|^{}<>\"\\ é日\t",
        "..",
        "./",
        "%2e",
        "%2F",
        "%41",
        "%7e",
        "%25",
        "%c3%A9",
        "%3B",
        ";jsessionid=",
        ";jsessionid=A1/",
        "/.",
        "/../",
        "//",
        "utm_source=",
        "&utm_x=1",
        "sid=",
        "0123456789abcdef",
        "&",
        "=",
        "%5F",
        "xn--",
        "0x7f",
        "127.0.0.1",
    ]
)
tails = st.lists(PIECES, max_size=25).map("".join)
hosts = st.one_of(
    st.sampled_from(
        ["e.com", "E.COM.", "e.com:443", "user:pw@e.com", "bücher.de", "[::1]:80", "1.2.3", "e.com:8080", "e。com"]
    ),
    st.lists(PIECES, min_size=1, max_size=6).map("".join),
)
urls = st.builds("{}://{}/{}".format, st.sampled_from(["http", "https", "HTTPS"]), hosts, tails)
rules = st.builds(
    CanonicalRules, sort_query=st.booleans(), drop_parameters=st.sampled_from([frozenset(), frozenset({"a", "b*"})])
)


def canonical_or_skip(url: str, rule: CanonicalRules) -> str:
    try:
        return canonical(url, rule)
    except InvalidUrlError:
        assume(False)
        raise


@settings(max_examples=1500, deadline=None)
@given(urls, rules)
@example("https://e.com/a/..;jsessionid=1", CanonicalRules())
@example("https://e.com/%2%45/%2e%2E;jsessionid=%41", CanonicalRules())
@example("http://0x7f./", CanonicalRules())
@example("https://e.com/?utm%255Fa=1&%75tm_a", CanonicalRules())
def test_the_canonical_form_is_idempotent(url: str, rule: CanonicalRules) -> None:
    once = canonical_or_skip(url, rule)
    assert canonical(once, rule) == once
    assert join(once, "") == once, "a canonical URL is serialised as the standard has it"


@settings(max_examples=500, deadline=None)
@given(urls)
def test_the_canonical_form_is_plain(url: str) -> None:
    once = canonical_or_skip(url, CanonicalRules())
    assert re.fullmatch(r"https?://[^/?#@]+/[^?#]*(\?[^#]+)?", once)
    assert once.isascii()
    assert not re.search(r"[\s\x00-\x20]", once)
    assert not re.search(r"%(?![0-9A-F]{2})", once)
    assert not re.search(r"%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", once)
    assert once.startswith(origin_of(once) + "/")
    assert origin_of(once).endswith(host_of(once))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(["a=1", "b=2", "b=3", "utm_source=x", "fbclid=1", "c"]), max_size=6),
    st.text("abc/.-", max_size=10),
    st.text("abc", max_size=5),
)
def test_what_does_not_change_the_page_does_not_change_the_form(
    parameters: list[str], path: str, fragment: str
) -> None:
    kept = [parameter for parameter in parameters if not parameter.startswith(("utm", "fb"))]
    plain = f"https://e.com/{path}" + (f"?{'&'.join(kept)}" if kept else "")
    dressed = f"HTTPS://me:pw@E.com.:443/{path}?{'&'.join(parameters)}#{fragment}"
    assert canonical(dressed) == canonical(plain)


@settings(max_examples=300, deadline=None)
@given(st.permutations(["a=1", "b=2", "c=3", "d"]))
def test_a_sorted_query_does_not_depend_on_the_order(parameters: list[str]) -> None:
    url = f"https://e.com/?{'&'.join(parameters)}"
    assert canonical(url, CanonicalRules(sort_query=True)) == "https://e.com/?a=1&b=2&c=3&d"
    assert canonical(url) == url


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_url_or_refused(text: str) -> None:
    try:
        canonical_form = canonical(text)
    except InvalidUrlError:
        return
    assert canonical_form.startswith(("http://", "https://"))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_key_survives_its_hexadecimal_form(key: int) -> None:
    assert key_of_hex(key_hex(key)) == key
    assert len(key_hex(key)) == 16


@given(st.text(max_size=20), st.text(max_size=20), st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**53))
def test_keys_are_signed_words(crawl_id: str, url: str, key: int, at_ms: int) -> None:
    for word in (request_key(crawl_id, url), fetch_id(key, "page", "static", at_ms)):
        assert -(2**63) <= word < 2**63


@settings(max_examples=300, deadline=None)
@given(urls, st.integers(20, 200))
def test_a_file_name_is_safe_everywhere(url: str, name_chars_max: int) -> None:
    once = canonical_or_skip(url, CanonicalRules())
    for disambiguate in (False, True):
        name = file_name(once, disambiguate=disambiguate, name_chars_max=name_chars_max)
        assert re.fullmatch(r"http[A-Za-z0-9._-]*", name)
        assert len(name) <= name_chars_max


@settings(max_examples=300, deadline=None)
@given(urls, urls)
def test_a_seed_is_in_its_own_scope_and_the_host_test_agrees(seed: str, url: str) -> None:
    seed = canonical_or_skip(seed, CanonicalRules())
    url = canonical_or_skip(url, CanonicalRules())
    for kind in ScopeKind:
        scope = Scope.compile(kind, [seed])
        assert scope.allows(seed)
        assert scope.allows_host(host_of(url)) or not scope.allows(url)
        assert scope.allows(url) or not scope.allows_whole(host_of(url))
        scope.widen(url)
        assert scope.allows(seed)
        assert scope.allows(url)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 10**9), st.integers(0, 10**9), st.sampled_from(["p{}", "{}/x", "a-{}.html", "s?q={}", "s?q=a{}&r=1"])
)
def test_urls_that_differ_in_numbers_alone_share_a_template(one: int, other: int, pattern: str) -> None:
    first, second = (template(f"https://e.com/{pattern.format(number)}") for number in (one, other))
    assert first == second
