"""The fake web is a real server: it speaks HTTP and TLS as its users believe."""

import asyncio
import os
import signal
import time
from collections.abc import Callable

import pytest
from curl_cffi import CurlECode
from curl_cffi.requests.exceptions import RequestException

from tests.data import DATA, require
from tests.site import FakeWeb, Request, Site, Tls, altered, sequence, with_headers
from tests.site.clients import browser, crawl, exchange
from tests.site.process import WebProcess
from tests.site.responders.pages import encoded_as, html, negotiated, text, validated
from tests.site.sites import archive, demo, onesite, onesite_generated, tiny
from tests.site.sites.archive import archived_urls
from tests.site.sites.tiny import tiny_paths
from trawl.url import canonical


async def test_one_server_plays_many_hosts_in_both_schemes(fake_web: FakeWeb) -> None:
    hosts = ("a.test", "b.test", "xn--mnchen-3ya.test")
    fake_web.add(*(Site(host, {"/": f"<p>I am {host}"}) for host in hosts))
    async with browser(fake_web) as client:
        for host in hosts:
            for scheme in ("http", "https"):
                response = await client.get(f"{scheme}://{host}/")
                assert (response.status_code, response.text) == (200, f"<p>I am {host}"), response.url


async def test_direct_requests_reach_the_first_site_and_others_by_their_host_field(fake_web: FakeWeb) -> None:
    fake_web.add(Site("first.test", {"/": "first"}), Site("second.test", {"/": "second"}))
    first = await exchange(fake_web, "GET / HTTP/1.1\nHost: 127.0.0.1:1\nConnection: close\n\n")
    second = await exchange(fake_web, "GET / HTTP/1.1\nHost: second.test\nConnection: close\n\n")
    assert first.endswith(b"\r\n\r\nfirst")
    assert second.endswith(b"\r\n\r\nsecond")


async def test_direct_tls_serves_loopback_with_a_trusted_certificate(fake_web: FakeWeb) -> None:
    fake_web.add(Site("first.test", {"/": "first"}))
    async with browser(fake_web, direct=True) as client:
        assert (await client.get(fake_web.https_url + "/")).text == "first"


async def test_hosts_that_are_unknown_or_down_are_the_proxys_502(fake_web: FakeWeb) -> None:
    fake_web.add(Site("down.test", {"/": "x"}, reachable=False))
    async with browser(fake_web) as client:
        for host in ("down.test", "unknown.test"):
            assert (await client.get(f"http://{host}/")).status_code == 502
            with pytest.raises(RequestException, match="502"):
                await client.get(f"https://{host}/")


@pytest.mark.parametrize("tls", ["expired", "wrong-name", "untrusted", "broken"])
async def test_each_tls_fault_fails_the_handshake(fake_web: FakeWeb, tls: Tls) -> None:
    fake_web.add(Site("bad.test", {"/": "x"}, tls=tls), Site("good.test", {"/": "x"}))
    async with browser(fake_web) as client:
        with pytest.raises(RequestException) as caught:
            await client.get("https://bad.test/")
        assert caught.value.code in {CurlECode.PEER_FAILED_VERIFICATION, CurlECode.SSL_CONNECT_ERROR}
        assert (await client.get("https://good.test/")).status_code == 200
        assert (await client.get("http://bad.test/")).status_code == 200


async def test_a_site_of_one_scheme_is_not_found_under_the_other(fake_web: FakeWeb) -> None:
    fake_web.add(Site("secure.test", {"/": "x"}, scheme="https"))
    async with browser(fake_web) as client:
        assert (await client.get("https://secure.test/")).status_code == 200
        assert (await client.get("http://secure.test/")).status_code == 404


async def test_connections_are_kept_and_pipelined_requests_answered_in_order(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/1": "one", "/2": altered("two", wait_seconds=0.05), "/3": "three"}))
    answer = await exchange(
        fake_web,
        "GET /1 HTTP/1.1\nHost: a.test\n\n",
        "POST /2 HTTP/1.1\nHost: a.test\nContent-Length: 5\n\nhello",
        "GET /3 HTTP/1.1\nHost: a.test\nConnection: close\n\n",
    )
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b"one") < answer.index(b"two") < answer.index(b"three")


async def test_head_has_the_head_of_get_and_no_body(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": "twelve bytes"}))
    answer = await exchange(fake_web, "HEAD / HTTP/1.1\nHost: a.test\nConnection: close\n\n")
    assert b"Content-Length: 12\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("nonsense", ["\n\n\n\n", "GET\n\n", "x" * 70_000])
async def test_what_is_not_http_is_refused(fake_web: FakeWeb, nonsense: str) -> None:
    answer = await exchange(fake_web, nonsense)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd"])
async def test_bodies_are_encoded_where_the_request_accepts_it(fake_web: FakeWeb, coding: str) -> None:
    page = html("Page", "word " * 200)
    fake_web.add(Site("a.test", {"/": negotiated(page), "/always": encoded_as(page, coding)}))
    async with browser(fake_web) as client:
        asked = await client.get("http://a.test/", headers={"Accept-Encoding": coding})
        assert asked.headers["content-encoding"] == coding
        assert int(asked.headers["content-length"] or 0) < len(page.body)
        plain = await client.get("http://a.test/", headers={"Accept-Encoding": f"identity, {coding};q=0"})
        assert "content-encoding" not in plain.headers
        always = await client.get("http://a.test/always", headers={"Accept-Encoding": coding})
        assert asked.content == plain.content == always.content == page.body


async def test_validators_make_304(fake_web: FakeWeb) -> None:
    changed = "Thu, 01 Jan 2026 00:00:00 GMT"
    fake_web.add(Site("a.test", {"/": validated(html("Page"), etag='"v1"', last_modified=changed)}))
    async with browser(fake_web) as client:
        for name, value, status in (
            ("If-None-Match", '"v1"', 304),
            ("If-None-Match", 'W/"v0", W/"v1"', 304),
            ("If-None-Match", '"v2"', 200),
            ("If-Modified-Since", changed, 304),
            ("If-Modified-Since", "Wed, 01 Jan 2025 00:00:00 GMT", 200),
        ):
            response = await client.get("http://a.test/", headers={name: value})
            assert (response.status_code, bool(response.content)) == (status, status == 200), (name, value)
            assert response.headers["etag"] == '"v1"'


async def test_lookup_is_target_then_path_then_longest_prefix_then_fallback(fake_web: FakeWeb) -> None:
    pages = {"/a": "path", "/a?x=1": "target", "/a/*": "prefix", "/a/b/*": "longer"}
    fake_web.add(Site("a.test", pages, fallback=text("none", status=410)))
    async with browser(fake_web) as client:
        for target, found in (
            ("/a", "path"),
            ("/a?x=1", "target"),
            ("/a?x=2", "path"),
            ("/a/z", "prefix"),
            ("/a/b/c", "longer"),
            ("/z", "none"),
        ):
            assert (await client.get("http://a.test" + target)).text == found, target


async def test_the_log_tells_who_was_asked_when_and_how(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": sequence("one", "two"), "/x": with_headers("x", ("X-Kind", "odd"))}))
    began = time.monotonic()
    async with browser(fake_web) as client:
        assert (await client.get("http://a.test/", headers={"X-Asked": "yes"})).text == "one"
        await asyncio.sleep(0.05)
        assert (await client.get("http://a.test/")).text == "two"
        assert (await client.get("https://a.test/x?q=1")).headers["x-kind"] == "odd"
    hits = fake_web.hits("a.test")
    assert [hit.url for hit in hits] == ["http://a.test/", "http://a.test/", "https://a.test/x?q=1"]
    assert hits[0].headers["x-asked"] == "yes"
    assert began <= hits[0].at_seconds <= time.monotonic()
    assert fake_web.gaps("a.test")[0] >= 0.05
    assert len(fake_web.hits("a.test", "/x")) == len(fake_web.hits(path="/x?q=1")) == 1
    assert fake_web.hits("b.test") == []


async def test_requests_in_flight_at_one_moment_are_counted(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": altered("slow", wait_seconds=0.1)}))
    async with browser(fake_web) as client:
        await asyncio.gather(*(client.get("http://a.test/") for _ in range(3)))
    assert fake_web.log.in_flight_max("a.test") == 3


async def test_a_generated_site_links_all_its_distinct_pages(fake_web: FakeWeb) -> None:
    fake_web.add(tiny("tiny.test", 60))
    found = await crawl(fake_web, "http://tiny.test")
    assert found.keys() == set(tiny_paths(60))
    assert len(set(found.values())) == 60
    async with browser(fake_web) as client:
        for path in ("/n/60", "/n/0", "/n/01", "/n/x"):
            assert (await client.get("http://tiny.test" + path)).status_code == 404, path


async def test_a_generated_benchmark_site_has_the_sizes_of_real_pages_and_reaches_all(fake_web: FakeWeb) -> None:
    fake_web.add(onesite_generated(40))
    found = await crawl(fake_web, "http://onesite.test")
    assert len(found) == 40
    assert 80_000 < sum(map(len, found.values())) / 40 < 800_000


@pytest.mark.data
async def test_the_archived_pages_as_one_site_are_all_reachable(fake_web: FakeWeb) -> None:
    require("wcxb-dev")
    fake_web.add(onesite(DATA, pages_max=150))
    found = await crawl(fake_web, "https://onesite.test")
    assert len(found) == 150


@pytest.mark.data
async def test_archived_pages_are_served_under_their_own_hosts_and_schemes(fake_web: FakeWeb) -> None:
    require("wcxb-dev")
    urls = archived_urls(DATA)
    assert len(urls) == 1492
    fake_web.add(*archive(DATA))
    async with browser(fake_web) as client:
        for url in list(urls)[::50]:
            response = await client.get(url)
            assert (response.status_code, response.encoding) == (200, "utf-8"), url
            assert "<" in response.text
            assert (await client.get(url, headers={"Accept-Encoding": "identity"})).content == response.content
            robots = await client.get("/".join([*url.split("/")[:3], "robots.txt"]))
            assert robots.status_code == 404


@pytest.mark.data
def test_archived_pages_are_also_found_by_their_canonical_urls() -> None:
    require("wcxb-dev")
    by_host = {site.host: site for site in archive(DATA)}
    for url in archived_urls(DATA):
        scheme, _, rest = canonical(url).partition("://")
        host, _, target = rest.partition("/")
        request = Request(0.0, "GET", scheme, host, 443, "/" + target, b"")
        assert by_host[host].reply(request).status == 200, url


async def test_the_demo_site_can_be_hosted_under_a_name(fake_web: FakeWeb) -> None:
    fake_web.add(demo())
    found = await crawl(fake_web, "https://demo.test")
    assert len(found) >= 25


def test_as_a_process_it_serves_counts_and_ends_with_its_input(web_process: Callable[..., WebProcess]) -> None:
    web = web_process("tiny:tiny.test:50", "misbehaving")

    async def ask() -> None:
        async with browser(web) as client:
            assert (await client.get("https://tiny.test/n/49")).status_code == 200
            assert (await client.get("http://bad.test/status/500", headers={"X-Asked": "yes"})).status_code == 500

    asyncio.run(ask())
    assert web.total() == 2
    assert [hit.url for hit in web.hits()] == ["https://tiny.test/n/49", "http://bad.test/status/500"]
    assert web.hits("bad.test", "/status/500")[0].headers["x-asked"] == "yes"
    web.clear()
    assert (web.total(), web.gaps("bad.test")) == (0, [])
    web.__exit__(None, None, None)
    assert not web.ca_file.exists()


def test_as_a_process_it_ends_cleanly_when_told_to(web_process: Callable[..., WebProcess]) -> None:
    web = web_process("demo")
    os.kill(web.pid, signal.SIGTERM)
    web.__exit__(None, None, None)
    assert not web.ca_file.exists()
