"""The HTTP client against the fake web: every typed reason is provoked for real."""

import asyncio
import contextlib
import gzip
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import cramjam
import pytest
import zstandard

from tests.fetching import QUICK, Rig, with_fetch
from tests.site import FakeWeb, Reply, Site, Tls
from tests.site.responders import bodies, bombs, delays, faults, redirects
from tests.site.responders.pages import html
from trawl.adapters.http import CurlHttpClient
from trawl.errors import SettingsError
from trawl.ports import HttpFailure, HttpRequest, HttpResponse
from trawl.settings import FetchSettings, Settings

PAGE = html("Some page", "The quick brown fox jumps over the lazy dog. " * 40)
HOST = "h.test"


@asynccontextmanager
async def rig_of(web: FakeWeb, page: object, settings: Settings = QUICK) -> AsyncIterator[Rig]:
    web.add(Site(HOST, {"/": page, "/good": PAGE}))  # type: ignore[dict-item]
    async with Rig(web, settings) as rig:
        yield rig


async def reason_of(web: FakeWeb, page: object, settings: Settings = QUICK) -> str:
    """The typed reason of a page; a good page on the same client afterwards proves that the pool is healthy."""
    async with rig_of(web, page, settings) as rig:
        failure = await rig.request(rig.url(HOST))
        assert isinstance(failure, HttpFailure), failure
        assert rig.url(HOST) in failure.detail
        assert "\n" not in failure.detail
        good = await rig.request(rig.url(HOST, "/good"))
        assert isinstance(good, HttpResponse), good
        assert good.body == PAGE.body
        return failure.reason


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (faults.truncated(PAGE, 500), "truncated"),
        (faults.truncated(delays.chunked(PAGE), 500), "truncated"),
        (faults.reset(PAGE, 500), "truncated"),
        (faults.wrong_length(PAGE, len(PAGE.body) + 100), "truncated"),
        (faults.raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nnonsense\r\n"), "truncated"),
        (faults.hang_up(), "connection_lost"),
        (faults.garbage(), "protocol_error"),
        (faults.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), "protocol_error"),
        (faults.many_headers(PAGE), "headers_too_large"),
        (faults.many_headers(PAGE, fields=300, value_bytes=10), "headers_too_large"),
        (delays.endless_headers(), "headers_too_large"),
        (delays.never(), "first_byte_timeout"),
        (delays.stalled(PAGE, 500), "idle_timeout"),
        (faults.content_encoding_lie(bytes(range(256)) * 4), "bad_encoding"),
        (faults.content_encoding_lie(b"\xff\xfe\x00\x01" * 100, "br"), "bad_encoding"),
        (faults.content_encoding_lie(b"\xff\xfe\x00\x01" * 100, "nonsense"), "bad_encoding"),
        (Reply(body=PAGE.body, headers=(("Content-Encoding", "gzip, gzip, gzip"),)), "bad_encoding"),
    ],
)
async def test_each_fault_has_its_reason_and_leaves_the_pool_healthy(
    fake_web: FakeWeb, page: object, reason: str
) -> None:
    assert await reason_of(fake_web, page) == reason


@pytest.mark.parametrize("kind", bombs.KINDS)
@pytest.mark.parametrize("chunked", [False, True])
async def test_case_25_a_bomb_is_stopped_by_its_ratio(fake_web: FakeWeb, kind: str, *, chunked: bool) -> None:
    assert await reason_of(fake_web, bombs.bomb(kind, 50_000_000, chunked=chunked)) == "decode_ratio"


@pytest.mark.parametrize("kind", bombs.KINDS)
async def test_case_25_a_bomb_of_modest_ratio_is_stopped_by_its_size(fake_web: FakeWeb, kind: str) -> None:
    settings = with_fetch(QUICK, decode_ratio_max=1e12, body_bytes_max=3_000_000)
    assert await reason_of(fake_web, bombs.bomb(kind, 50_000_000), settings) == "body_too_large"


async def test_case_25_a_bomb_is_never_unpacked_much_beyond_the_cap(fake_web: FakeWeb) -> None:
    settings = with_fetch(QUICK, decode_ratio_max=1e12, body_bytes_max=1_000_000)
    async with rig_of(fake_web, bombs.bomb("br", 300_000_000), settings) as rig:
        cut = await rig.request(rig.url(HOST), cut_body=True)
        assert isinstance(cut, HttpResponse)
        assert cut.body == bytes(1_000_000)


async def test_an_endless_body_is_stopped_at_the_cap(fake_web: FakeWeb) -> None:
    settings = with_fetch(QUICK, body_bytes_max=500_000)
    assert await reason_of(fake_web, delays.endless(), settings) == "body_too_large"


async def test_an_endless_coded_body_is_stopped_by_its_bytes_on_the_wire(fake_web: FakeWeb) -> None:
    page = Reply(body=gzip.compress(bodies.noise(300_000), 0), headers=(("Content-Encoding", "gzip"),))
    settings = with_fetch(QUICK, wire_bytes_max=200_000)
    assert await reason_of(fake_web, page, settings) == "wire_too_large"
    assert await reason_of(fake_web, delays.chunked(page), settings) == "wire_too_large"


async def test_a_claimed_length_over_the_cap_ends_the_fetch_before_the_body(fake_web: FakeWeb) -> None:
    page = delays.stalled(faults.wrong_length(PAGE, 10_000_000_000), 0)
    assert await reason_of(fake_web, page, with_fetch(QUICK, wire_bytes_max=10**12)) == "body_too_large"


async def test_a_body_of_exactly_the_cap_passes_and_one_byte_more_does_not(fake_web: FakeWeb) -> None:
    async with rig_of(fake_web, Reply(body=b"x" * 1000)) as rig:
        assert isinstance(await rig.request(rig.url(HOST), body_bytes_max=1000), HttpResponse)
        failure = await rig.request(rig.url(HOST), body_bytes_max=999)
        assert isinstance(failure, HttpFailure)
        assert failure.reason == "body_too_large"


async def test_a_dripping_body_is_ended_by_the_whole_time(fake_web: FakeWeb) -> None:
    settings = with_fetch(QUICK, total_seconds_max=0.8)
    assert await reason_of(fake_web, delays.slow(Reply(body=b"x" * 1000), 100), settings) == "total_timeout"


async def test_a_status_line_that_drips_is_ended_by_the_first_byte_limit() -> None:
    ended = asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for letter in b"HTTP/1.1 200 OK but late":
            writer.write(bytes([letter]))
            await asyncio.sleep(0.05)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    client = CurlHttpClient(QUICK.fetch)
    port = server.sockets[0].getsockname()[1]
    failure = await client.fetch(HttpRequest(url=f"http://127.0.0.1:{port}/", address="127.0.0.1"))
    await client.close()
    await ended.wait()
    server.close()
    assert isinstance(failure, HttpFailure)
    assert failure.reason == "first_byte_timeout"


async def test_a_closed_port_is_connect_failed(fake_web: FakeWeb) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        async with Rig(fake_web) as rig:
            failure = await rig.request(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert isinstance(failure, HttpFailure)
    assert (failure.reason, failure.retryable) == ("connect_failed", True)


async def test_a_host_that_accepts_no_connection_is_connect_timeout(fake_web: FakeWeb) -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(4)]  # fill the backlog, so that further handshakes stay unanswered
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        async with Rig(fake_web, with_fetch(QUICK, connect_seconds_max=0.5)) as rig:
            failure = await rig.request(f"http://127.0.0.1:{full.getsockname()[1]}/")
        for one in waiting:
            one.close()
    assert isinstance(failure, HttpFailure)
    assert failure.reason == "connect_timeout"


@pytest.mark.parametrize("tls", ["expired", "wrong-name", "untrusted", "broken"])
async def test_a_certificate_that_is_not_right_is_tls_failed(fake_web: FakeWeb, tls: Tls) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}), Site("bad.test", {"/": PAGE}, tls=tls))
    settings = with_fetch(QUICK, ca_file=str(fake_web.ca_file), proxy=fake_web.proxy)
    async with Rig(fake_web, settings) as rig:
        failure = await rig.request("https://bad.test/")
        assert isinstance(failure, HttpFailure)
        assert failure.reason == "tls_failed"
        assert isinstance(await rig.request("https://a.test/"), HttpResponse)


async def test_direct_tls_with_a_pinned_address_checks_the_name(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))
    async with Rig(fake_web, with_fetch(QUICK, ca_file=str(fake_web.ca_file))) as rig:
        response = await rig.request(rig.url("a.test", scheme="https"))
        assert isinstance(response, HttpResponse), response
        assert response.address == "127.0.0.1"
        failure = await rig.request(rig.url("unknown.test", scheme="https"))
        assert isinstance(failure, HttpFailure)
        assert failure.reason == "tls_failed"


async def test_every_name_reaches_its_site_through_the_proxy(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}), Site("down.test", {}, reachable=False))
    settings = with_fetch(QUICK, ca_file=str(fake_web.ca_file), proxy=fake_web.proxy)
    async with Rig(fake_web, settings) as rig:
        for scheme in ("http", "https"):
            response = await rig.request(f"{scheme}://a.test/")
            assert isinstance(response, HttpResponse), response
            assert (response.body, response.address) == (PAGE.body, "")
        failure = await rig.request("https://down.test/")
        assert isinstance(failure, HttpFailure)
        assert failure.reason == "connect_failed"


async def test_a_socks_proxy_resolves_the_names_itself(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))
    asked: list[bytes] = []

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readexactly(2)
        await reader.readexactly(greeting[1])
        writer.write(b"\x05\x00")
        head = await reader.readexactly(5)
        asked.append(await reader.readexactly(head[4]))
        await reader.readexactly(2)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", fake_web.port)
        writer.write(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        far_writer.write(await reader.readuntil(b"\r\n\r\n"))
        writer.write(await far_reader.readuntil(b"\r\n\r\n"))
        writer.write(await far_reader.readexactly(len(PAGE.body)))
        await writer.drain()
        for one in (far_writer, writer):
            one.close()
            await one.wait_closed()
        ended.set()

    ended = asyncio.Event()
    server = await asyncio.start_server(socks, "127.0.0.1", 0)
    proxy = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with Rig(fake_web, with_fetch(QUICK, proxy=proxy)) as rig:
        response = await rig.request("http://a.test/")
    await ended.wait()
    server.close()
    assert isinstance(response, HttpResponse), response
    assert asked == [b"a.test"]


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "br", "zstd"])
async def test_every_coding_is_taken_off(fake_web: FakeWeb, coding: str) -> None:
    encoders: dict[str, Callable[[bytes], bytes]] = {
        "br": lambda body: bytes(cramjam.brotli.compress(body)),
        "zstd": zstandard.compress,
        "deflate": lambda body: bytes(cramjam.zlib.compress(body)),
    }
    coded = encoders.get(coding, gzip.compress)(PAGE.body)
    page = Reply(body=coded, headers=(("Content-Encoding", coding.upper()),))
    async with rig_of(fake_web, page) as rig:
        response = await rig.request(rig.url(HOST))
        assert isinstance(response, HttpResponse), response
        assert (response.body, response.wire_bytes) == (PAGE.body, len(coded))


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "utf-8", "none"])
@pytest.mark.parametrize("size", [20, 3000, 200_000])
async def test_text_under_a_false_coding_is_delivered_as_it_came(fake_web: FakeWeb, coding: str, size: int) -> None:
    body = (b"<!doctype html><p>plain text under a false label " * 5000)[:size]
    async with rig_of(fake_web, faults.content_encoding_lie(body, coding)) as rig:
        response = await rig.request(rig.url(HOST))
        assert isinstance(response, HttpResponse), response
        assert response.body == body


async def test_a_pinned_address_is_where_the_request_goes(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))
    async with FakeWeb(Site("a.test", {"/": "other"}), address="127.0.0.2") as other, Rig(other) as rig:
        response = await rig.request(rig.url("a.test"), address="127.0.0.2")
        assert isinstance(response, HttpResponse)
        assert (response.body, response.address) == (b"other", "127.0.0.2")
        failure = await rig.request(rig.url("b.test"), address="127.0.0.1")
        assert isinstance(failure, HttpFailure)
        assert failure.reason == "connect_failed"


async def test_a_connection_is_used_again_and_redirects_are_not_followed(fake_web: FakeWeb) -> None:
    async with rig_of(fake_web, redirects.redirect("/good")) as rig:
        first = await rig.request(rig.url(HOST))
        second = await rig.request(rig.url(HOST))
        assert isinstance(first, HttpResponse)
        assert isinstance(second, HttpResponse)
        assert (first.status, len(fake_web._connections)) == (302, 1)


async def test_the_wire_carries_what_the_caller_gave_and_no_cookies(fake_web: FakeWeb) -> None:
    page = Reply(body=b"x", headers=(("Set-Cookie", "id=1; Path=/"),))
    async with rig_of(fake_web, page) as rig:
        for _ in range(2):
            await rig.request(rig.url(HOST), headers=(("User-Agent", "trawl/test"), ("X-One", "größe")))
    seen = fake_web.hits(HOST)[1].headers
    assert (seen["user-agent"], seen["accept-encoding"]) == ("trawl/test", "gzip, deflate, br, zstd")
    assert "cookie" not in seen
    assert "referer" not in seen


async def test_a_cancelled_fetch_frees_its_handle(fake_web: FakeWeb) -> None:
    async with rig_of(fake_web, delays.never()) as rig:
        running = asyncio.create_task(rig.request(rig.url(HOST)))
        await asyncio.sleep(0.1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert isinstance(await rig.request(rig.url(HOST, "/good")), HttpResponse)
        assert len(rig.http._idle[""]) == 1


async def test_many_at_once_do_not_disturb_each_other(fake_web: FakeWeb) -> None:
    pages = {f"/{n}": Reply(body=f"page {n} ".encode() * 1000) for n in range(50)}
    bad = {f"/bad/{n}": page for n, page in enumerate([delays.never(), faults.hang_up(), faults.reset(PAGE, 5)] * 10)}
    fake_web.add(Site(HOST, {**pages, **bad}))
    async with Rig(fake_web) as rig:
        urls = [rig.url(HOST, path) for path in [*pages, *bad]]
        answers = await asyncio.gather(*(rig.request(url) for url in urls))
    for answer, page in zip(answers[:50], pages.values(), strict=True):
        assert isinstance(answer, HttpResponse)
        assert answer.body == page.body
    assert all(isinstance(answer, HttpFailure) for answer in answers[50:])


@pytest.mark.parametrize(
    "settings",
    [FetchSettings(proxy="ftp://x:1"), FetchSettings(proxy="nonsense"), FetchSettings(ca_file="/nowhere/ca.pem")],
)
def test_a_proxy_or_authority_that_cannot_be_used_is_said_at_once(settings: FetchSettings) -> None:
    with pytest.raises(SettingsError, match=r"fetch\.(proxy|ca_file)"):
        CurlHttpClient(settings)


async def test_a_connection_to_another_address_than_the_checked_one_is_ended(
    fake_web: FakeWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rig_of(fake_web, PAGE) as rig:
        monkeypatch.setattr("trawl.adapters.http.client._pinned", lambda _: [f"+{HOST}:{fake_web.port}:127.0.0.1"])
        failure = await rig.request(rig.url(HOST), address="127.0.0.2")  # as if libcurl did not keep to the pin
        assert isinstance(failure, HttpFailure)
        assert (failure.reason, failure.retryable, failure.address) == ("peer_address_mismatch", False, "127.0.0.1")
        monkeypatch.undo()
        assert isinstance(await rig.request(rig.url(HOST)), HttpResponse)
