"""Every responder of the fake web does what its name says, seen from a socket or through a real client."""

import asyncio
import time
from email.utils import parsedate_to_datetime

import pytest
from curl_cffi import CurlECode
from curl_cffi.requests.exceptions import RequestException

from tests.site import FakeWeb, Page, Site, altered, sequence
from tests.site.clients import browser, exchange
from tests.site.responders import (
    bodies,
    delays,
    faults,
    limits,
    redirects,
    robots,
)
from tests.site.responders.pages import html
from tests.site.sites import misbehaving

GET = "GET / HTTP/1.1\nHost: x.test\nConnection: close\n\n"
PAGE = html("Page", "word " * 400)


async def raw(web: FakeWeb, page: Page) -> bytes:
    web.add(Site("x.test", {"/": page}))
    return await exchange(web, GET)


@pytest.mark.parametrize("status", redirects.REDIRECT_STATUSES)
async def test_redirects_have_their_status_and_location(fake_web: FakeWeb, status: int) -> None:
    answer = await raw(fake_web, redirects.redirect("../b#c", status))
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert b"\r\nLocation: ../b#c\r\n" in answer


async def test_a_location_can_be_missing_or_any_bytes(fake_web: FakeWeb) -> None:
    assert b"Location" not in await raw(fake_web, redirects.redirect(None))
    assert b"\r\nLocation: \r\n" in await raw(fake_web, redirects.redirect(""))
    assert "\r\nLocation: /größe\r\n".encode() in await raw(fake_web, redirects.redirect("/größe"))
    assert b"\r\nLocation: /gr\xf6\xdfe\r\n" in await raw(fake_web, redirects.redirect(b"/gr\xf6\xdfe"))


async def test_chains_end_and_loops_do_not(fake_web: FakeWeb) -> None:
    pages = {"/": "end", **redirects.chain(3, "/"), **redirects.loop("/l/1", "/l/2"), **redirects.growing()}
    fake_web.add(Site("x.test", pages), *redirects.loop_of_hosts("a.test", "b.test", "c.test"))
    async with browser(fake_web) as client:
        end = await client.get("http://x.test/hop/1", allow_redirects=True)
        assert (end.text, end.redirect_count) == ("end", 3)
        for url in ("http://x.test/l/1", "http://x.test/grow/", "http://a.test/around"):
            with pytest.raises(RequestException) as caught:
                await client.get(url, allow_redirects=True, max_redirects=20)
            assert caught.value.code == CurlECode.TOO_MANY_REDIRECTS
    assert {hit.host for hit in fake_web.hits(path="/around")} == {"a.test", "b.test", "c.test"}


async def test_redirects_to_other_hosts_and_schemes_keep_the_target(fake_web: FakeWeb) -> None:
    fake_web.add(
        Site("x.test", {"/*": redirects.to_host("www.x.test")}, scheme="https"),
        Site("y.test", {"/*": redirects.to_scheme("https")}),
        Site("www.x.test", {"/a?b=c": "here"}),
    )
    async with browser(fake_web) as client:
        found = await client.get("https://x.test/a?b=c", allow_redirects=True)
        assert (found.url, found.text) == ("https://www.x.test/a?b=c", "here")
        assert (await client.get("http://y.test/q?r")).headers["location"] == "https://y.test/q?r"


async def test_slow_bodies_keep_their_speed_and_late_heads_their_delay(fake_web: FakeWeb) -> None:
    began = time.monotonic()
    answer = await raw(fake_web, delays.delayed(delays.slow("x" * 100, 400), 0.2))
    assert answer.endswith(b"x" * 100)
    assert 0.4 < time.monotonic() - began < 2


@pytest.mark.parametrize("page", [delays.never(), delays.stalled(PAGE, 700)], ids=["never", "stalled"])
async def test_silent_servers_stay_silent(fake_web: FakeWeb, page: Page) -> None:
    fake_web.add(Site("x.test", {"/": page}))
    async with browser(fake_web) as client:
        with pytest.raises(RequestException) as caught:
            await client.get("http://x.test/", timeout=0.3)
    assert caught.value.code == CurlECode.OPERATION_TIMEDOUT


@pytest.mark.parametrize("page", [delays.endless(), delays.endless_headers(), bodies.huge()])
async def test_endless_replies_go_on_past_any_cap(fake_web: FakeWeb, page: Page) -> None:
    fake_web.add(Site("x.test", {"/": page}))
    reader, writer = await asyncio.open_connection("127.0.0.1", fake_web.port)
    writer.write(GET.replace("\n", "\r\n").encode())
    octets = 0
    while octets < 3_000_000:
        octets += len(await asyncio.wait_for(reader.read(1 << 16), 5))
    writer.close()


async def test_a_huge_page_has_its_size_and_ends(fake_web: FakeWeb) -> None:
    fake_web.add(Site("x.test", {"/": bodies.huge(2_000_000)}))
    async with browser(fake_web) as client:
        body = (await client.get("http://x.test/")).content
    assert 2_000_000 <= len(body) < 2_200_000


@pytest.mark.parametrize(
    ("page", "codes"),
    [
        (faults.reset(PAGE, 700), {CurlECode.RECV_ERROR}),
        (faults.truncated(PAGE, 700), {CurlECode.PARTIAL_FILE}),
        (faults.truncated(delays.chunked(PAGE), 700), {CurlECode.PARTIAL_FILE, CurlECode.RECV_ERROR}),
        (faults.wrong_length(PAGE, 9_999), {CurlECode.PARTIAL_FILE}),
        (faults.hang_up(), {CurlECode.GOT_NOTHING}),
        (faults.garbage(), {CurlECode.UNSUPPORTED_PROTOCOL, CurlECode.WEIRD_SERVER_REPLY}),
        (faults.content_encoding_lie(), {CurlECode.BAD_CONTENT_ENCODING, CurlECode.WRITE_ERROR}),
    ],
    ids=["reset", "truncated", "truncated-chunked", "too-long", "hang-up", "garbage", "coding-lie"],
)
async def test_broken_connections_and_lies_are_what_a_client_sees(
    fake_web: FakeWeb, page: Page, codes: set[CurlECode]
) -> None:
    fake_web.add(Site("x.test", {"/": page}))
    async with browser(fake_web) as client:
        with pytest.raises(RequestException) as caught:
            await client.get("http://x.test/")
        assert caught.value.code in codes


async def test_a_length_that_is_too_short_cuts_the_body_for_the_client(fake_web: FakeWeb) -> None:
    fake_web.add(Site("x.test", {"/": faults.wrong_length(PAGE, 100)}))
    async with browser(fake_web) as client:
        assert (await client.get("http://x.test/")).content == PAGE.body[:100]


async def test_bodies_can_be_chunked_or_end_with_the_connection(fake_web: FakeWeb) -> None:
    chunked = await raw(fake_web, delays.chunked("abc"))
    assert b"Transfer-Encoding: chunked" in chunked
    assert chunked.endswith(b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    closed = await raw(fake_web, delays.chunked("abc", close=True))
    assert b"Content-Length" not in closed
    assert closed.endswith(b"Connection: close\r\n\r\nabc")


async def test_refusals_say_when_to_come_back_and_end(fake_web: FakeWeb) -> None:
    fake_web.add(
        Site("x.test", {"/s": limits.busy_at_first("yes", times=2, retry_after=3), "/d": limits.busy_until(30)})
    )
    async with browser(fake_web) as client:
        answers = [await client.get("http://x.test/s") for _ in range(4)]
        assert [one.status_code for one in answers] == [429, 429, 200, 200]
        assert answers[0].headers["retry-after"] == "3"
        date = (await client.get("http://x.test/d")).headers["retry-after"] or ""
        assert 29 < parsedate_to_datetime(date).timestamp() - time.time() <= 31


async def test_robots_in_every_state(fake_web: FakeWeb) -> None:
    fake_web.add(*robots.sites())
    silent = {"timeout", "reset", "truncated", "endless", "slow"}
    async with browser(fake_web) as client:
        for state in robots.STATES.keys() - silent:
            response = await client.get(f"http://{state}.robots.test/robots.txt")
            assert response.status_code == _STATUSES.get(state, 200), state
        for state in silent:
            with pytest.raises(RequestException):
                await client.get(f"http://{state}.robots.test/robots.txt", timeout=0.5)
        huge = (await client.get("http://huge.robots.test/robots.txt")).content
    assert huge.index(b"/early/") < 500 * 1024 < huge.index(b"/late/")


_STATUSES = {
    "missing": 404,
    "forbidden": 403,
    "unauthorised": 401,
    "gone": 410,
    "busy": 429,
    "error": 500,
    "unavailable": 503,
    "redirect": 301,
    "redirect-loop": 302,
    "redirect-to-private": 302,
}


async def test_sequences_step_and_stay_and_pages_can_change_while_served(fake_web: FakeWeb) -> None:
    site = Site("x.test", {"/": sequence("a", "b")})
    fake_web.add(site)
    async with browser(fake_web) as client:
        assert [(await client.get("http://x.test/")).text for _ in range(3)] == ["a", "b", "b"]
        site.pages["/"] = altered("c", status=203)
        assert (await client.get("http://x.test/")).status_code == 203


async def test_the_misbehaving_host_answers_at_every_path_that_ends(fake_web: FakeWeb) -> None:
    site = misbehaving("bad.test")
    fake_web.add(site)
    calm = [path for path in site.pages if not path.startswith(("/slow", "/fault", "/bomb", "/body", "/sitemap-bomb"))]
    assert len(calm) > 120
    for path in calm:
        request = f"GET {path.replace('*', '1')} HTTP/1.1\nHost: bad.test\nConnection: close\n\n"
        assert (await exchange(fake_web, request)).startswith(b"HTTP/1.1 "), path
