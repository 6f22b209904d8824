"""Credentials, proxies and TLS profiles by host, over real connections."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.fetching import QUICK, Rig, robots_task, with_fetch
from tests.site import FakeWeb, Reply, Site
from tests.site.responders import pages, redirects, robots
from trawl.access import AccessRules
from trawl.errors import SettingsError
from trawl.kinds import OutcomeClass
from trawl.ports import HttpFailure, HttpResponse
from trawl.records import FetchedPage

CANARY = "canary-90be"
PAGE = pages.html("Page", "Something to read.")


def rules(*tables: dict[str, Any], proxies: dict[str, Any] | None = None) -> AccessRules:
    return AccessRules.compile({"rule": list(tables), "proxies": proxies or {}}, {})


def told(web: FakeWeb, host: str) -> list[bool]:
    """For each request that came to a host: whether it held the secret."""
    return [CANARY in str(one.headers) + one.url for one in web.hits(host)]


# Credentials


async def test_credentials_reach_their_origin_and_no_redirect_takes_them_elsewhere(fake_web: FakeWeb) -> None:
    port, https_port = fake_web.port, fake_web.https_port
    fake_web.add(
        Site(
            "in.test",
            {
                "/robots.txt": robots.rules("User-agent: *\nDisallow:\n"),
                "/": PAGE,
                "/here": redirects.redirect("/"),
                "/there": redirects.redirect(f"http://out.test:{port}/"),
                "/up": redirects.redirect(f"https://in.test:{https_port}/"),
            },
        ),
        Site("out.test", {"/": PAGE, "/back": redirects.redirect(f"http://in.test:{port}/")}),
    )
    access = rules({"hosts": [f"http://in.test:{port}"], "bearer": CANARY, "cookies": {"session": CANARY}})
    async with Rig(fake_web, with_fetch(QUICK, ca_file=str(fake_web.ca_file)), access=access) as rig:
        assert (await rig.page(rig.url("in.test", "/here"))).status == 200
        assert told(fake_web, "in.test") == [True, True]
        await rig.stage.step(robots_task(rig.url("in.test")))  # what robots.txt says to us is what holds for us
        assert told(fake_web, "in.test") == [True, True, True]
        fake_web.log.clear()
        await rig.records(rig.url("in.test", "/there"))
        await rig.page(rig.url("out.test"))
        await rig.records(rig.url("in.test", "/up"))
        await rig.page(rig.url("in.test", scheme="https"))
        assert told(fake_web, "out.test") == [False]
        assert told(fake_web, "in.test") == [True, True, False]


async def test_robots_txt_that_redirects_takes_no_credentials_along(fake_web: FakeWeb) -> None:
    port = fake_web.port
    fake_web.add(
        Site("in.test", {"/robots.txt": redirects.redirect(f"http://out.test:{port}/robots.txt")}),
        Site("out.test", {"/robots.txt": robots.rules("User-agent: *\nDisallow: /x\n")}),
    )
    access = rules({"hosts": [f"http://in.test:{port}"], "bearer": CANARY})
    async with Rig(fake_web, access=access) as rig:
        await rig.stage.step(robots_task(rig.url("in.test")))
    assert (told(fake_web, "in.test"), told(fake_web, "out.test")) == ([True], [False])


async def test_cookies_that_a_server_sets_are_not_kept(fake_web: FakeWeb) -> None:
    setting = Reply(body=b"x", headers=(("Set-Cookie", f"a={CANARY}; Path=/"),))
    fake_web.add(Site("in.test", {"/": setting, "/next": PAGE}))
    async with Rig(fake_web) as rig:
        await rig.page(rig.url("in.test"))
        await rig.page(rig.url("in.test", "/next"))
    assert told(fake_web, "in.test") == [False, False]


# Proxies


@dataclass
class Socks:
    """A SOCKS5 proxy on loopback that leads every name to one port (RFC 1928, RFC 1929)."""

    target: int
    password: bytes = b""
    refuses: int = 0
    """The reply code for every request; 0 lets them through."""
    asked: list[bytes] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Socks"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._answer(reader, writer)
        writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        methods = await reader.readexactly((await reader.readexactly(2))[1])
        if self.password and 2 not in methods:
            writer.write(b"\x05\xff")
            return
        writer.write(b"\x05\x02" if self.password else b"\x05\x00")
        if self.password:
            user = await reader.readexactly((await reader.readexactly(2))[1])
            given = await reader.readexactly((await reader.readexactly(1))[0])
            writer.write(b"\x01\x00" if (user, given) == (b"u", self.password) else b"\x01\x01")
        head = await reader.readexactly(5)
        self.asked.append(await reader.readexactly(head[4]))
        await reader.readexactly(2)
        writer.write(bytes([5, self.refuses, 0, 1, 127, 0, 0, 1, 0, 0]))
        if self.refuses:
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()


async def test_hosts_go_through_the_proxy_of_their_rule_and_the_rest_directly(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}), Site("b.test", {"/": PAGE}), Site("c.de", {"/": PAGE}))
    async with Socks(fake_web.port).serving() as plain, Socks(fake_web.port, password=b"p@ss").serving() as german:
        access = rules(
            {"hosts": ["a.test"], "proxy": "plain"},
            {"hosts": ["*.de", "c.de"], "country": "DE"},
            proxies={
                "plain": f"socks5://127.0.0.1:{plain.port}",
                "exit": {"url": f"socks5://127.0.0.1:{german.port}", "user": "u", "password": "p@ss", "country": "DE"},
            },
        )
        async with Rig(fake_web, access=access) as rig:
            for url in ("http://a.test/", "http://c.de/"):
                assert (await rig.page(url)).address == ""
            assert (await rig.page(rig.url("b.test"))).address == "127.0.0.1"
            assert list(rig.names.asked) == ["b.test"]
        assert (plain.asked, german.asked) == ([b"a.test"], [b"c.de"])


async def test_a_rule_may_leave_out_the_proxy_of_all_others(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}), Site("b.test", {"/": PAGE}))
    settings = with_fetch(QUICK, proxy=fake_web.proxy)
    async with Rig(fake_web, settings, access=rules({"hosts": [f"a.test:{fake_web.port}"], "proxy": "direct"})) as rig:
        assert (await rig.page(f"http://a.test:{fake_web.port}/")).address == "127.0.0.1"
        assert (await rig.page("http://b.test/")).address == ""


async def test_an_https_proxy_is_spoken_to_over_tls(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", fake_web.port)
        await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))

    context = fake_web.authority.context("localhost")
    async with await asyncio.start_server(relay, "127.0.0.1", 0, ssl=context) as server:
        proxy = f"https://localhost:{server.sockets[0].getsockname()[1]}"
        async with Rig(fake_web, with_fetch(QUICK, proxy=proxy, ca_file=str(fake_web.ca_file))) as rig:
            for scheme in ("http", "https"):
                answer = await rig.request(f"{scheme}://a.test/")
                assert isinstance(answer, HttpResponse), answer
        async with Rig(fake_web, with_fetch(QUICK, proxy=proxy)) as rig:  # whose certificate nobody vouches for
            assert isinstance(await rig.request("http://a.test/"), HttpFailure)


@pytest.mark.parametrize(
    ("password", "refuses", "reason"),
    [
        (b"other", 0, "proxy_auth_required"),
        (b"", 1, "proxy_failed"),
        (b"", 2, "proxy_failed"),
        (b"", 4, "connect_failed"),
        (b"", 5, "connect_failed"),
    ],
)
async def test_what_a_socks_proxy_refuses_is_told_apart(
    fake_web: FakeWeb, password: bytes, refuses: int, reason: str
) -> None:
    async with Socks(fake_web.port, password=password, refuses=refuses).serving() as socks:
        proxy = {"url": f"socks5://127.0.0.1:{socks.port}", "user": "u", "password": CANARY}
        access = rules({"hosts": ["a.test"], "proxy": "p"}, proxies={"p": proxy})
        async with Rig(fake_web, access=access) as rig:
            outcome = await rig.outcome("http://a.test/")
    assert outcome.reason == reason
    assert CANARY not in repr(outcome)


@pytest.mark.parametrize(
    ("status", "reason"), [(407, "proxy_auth_required"), (403, "proxy_failed"), (502, "connect_failed")]
)
async def test_what_an_http_proxy_refuses_is_told_apart_and_counts_against_the_proxy(
    fake_web: FakeWeb, status: int, reason: str
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"Proxy-Authorization: Basic " + b64encode(f"u:{CANARY}".encode()) in head
        writer.write(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        access = rules(
            {"hosts": ["a.test"], "proxy": "p"}, proxies={"p": {"url": url, "user": "u", "password": CANARY}}
        )
        async with Rig(fake_web, access=access) as rig:
            outcome = await rig.outcome("https://a.test/")
            assert outcome.reason == reason
            assert outcome.outcome is (OutcomeClass.FAILED if status == 407 else OutcomeClass.RETRY)
            assert CANARY not in repr(outcome)
            failures = (await rig.politeness.state("host:a.test")).failures
            assert failures == (1 if reason == "connect_failed" else 0)


async def test_a_password_that_a_plain_request_lacks_is_the_proxys(fake_web: FakeWeb) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        proxy = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Rig(fake_web, with_fetch(QUICK, proxy=proxy)) as rig:
            outcome = await rig.outcome("http://a.test/")
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.FAILED, "proxy_auth_required")


async def test_a_proxy_that_is_away_is_tried_again_and_no_failure_of_the_host(fake_web: FakeWeb) -> None:
    async with Rig(fake_web, with_fetch(QUICK, proxy="http://127.0.0.1:1")) as rig:
        for scheme in ("http", "https"):
            outcome = await rig.outcome(f"{scheme}://a.test/")
            assert (outcome.outcome, outcome.reason) == (OutcomeClass.RETRY, "proxy_failed")
        assert (await rig.politeness.state("host:a.test")).failures == 0


# TLS profiles


async def hello(reader: asyncio.StreamReader) -> tuple[int, ...]:
    """The cipher suites of a ClientHello (RFC 8446, section 4.1.2)."""
    record = await reader.readexactly(5)
    body = await reader.readexactly(int.from_bytes(record[3:]))
    at = 4 + 2 + 32
    at += 1 + body[at]
    suites = body[at + 2 : at + 2 + int.from_bytes(body[at : at + 2])]
    found = [int.from_bytes(suites[n : n + 2]) for n in range(0, len(suites), 2)]
    return tuple(one for one in found if one & 0x0F0F != 0x0A0A)  # GREASE differs from time to time


async def test_only_the_host_that_a_rule_names_sees_another_handshake(fake_web: FakeWeb) -> None:
    seen: dict[str, tuple[int, ...]] = {}

    async def listen(host: str, url: str, rig: Rig) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen[host] = await hello(reader)
            writer.close()

        async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
            await rig.records(url.format(port=server.sockets[0].getsockname()[1]))

    access = rules({"hosts": ["*.named.test"], "impersonate": "firefox"})
    async with Rig(fake_web, access=_AnyPort(access)) as rig:
        for host in ("plain.test", "a.named.test", "other.test"):
            await listen(host, f"https://{host}:{{port}}/", rig)
    assert seen["a.named.test"] != seen["plain.test"]
    assert seen["other.test"] == seen["plain.test"]


class _AnyPort(AccessRules):
    """Rules for hosts whatever their port, which a test does not choose."""

    def __init__(self, inner: AccessRules) -> None:
        super().__init__()
        self._inner = inner

    def of(self, canonical_url: str) -> Any:
        scheme, _, rest = canonical_url.partition("://")
        return self._inner.of(f"{scheme}://{rest.partition(':')[0]}/")


async def test_a_browser_that_nobody_knows_is_said(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))
    access = rules({"hosts": [f"a.test:{fake_web.port}", f"http://a.test:{fake_web.port}"], "impersonate": "mosaic"})
    async with Rig(fake_web, access=access) as rig:
        with pytest.raises(SettingsError, match="mosaic"):
            await rig.page(rig.url("a.test"))


async def test_the_user_agent_stays_ours_under_another_handshake(fake_web: FakeWeb) -> None:
    fake_web.add(Site("a.test", {"/": PAGE}))
    access = rules({"hosts": [f"https://a.test:{fake_web.https_port}"], "impersonate": "chrome"})
    async with Rig(fake_web, with_fetch(QUICK, ca_file=str(fake_web.ca_file)), access=access) as rig:
        page = await rig.page(rig.url("a.test", scheme="https"))
        assert isinstance(page, FetchedPage)
    (request,) = fake_web.hits("a.test", "/")
    assert request.headers["user-agent"] == QUICK.fetch.user_agent
    assert "sec-ch-ua" not in request.headers
