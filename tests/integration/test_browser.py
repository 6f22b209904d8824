"""A real Chromium behind our own proxy: what it shows, what it costs, and what no page can do with it."""

import asyncio
import base64
import os
import re
import signal
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from devstack.packages import require
from tests.site import FakeWeb, Reply, Site, altered
from tests.site.responders import delays, pages, redirects
from trawl.adapters.browser import RefusedError, browser_path, is_there, open_renderer
from trawl.adapters.browser.egress import EgressProxy, Meter
from trawl.adapters.browser.pool import ChromiumRenderer
from trawl.adapters.browser.trackers import is_tracker
from trawl.errors import SettingsError
from trawl.ports import Rendered, RenderFailure, RenderRequest
from trawl.records import Header
from trawl.settings import BrowserSettings

HTML = (Header(name="content-type", value="text/html; charset=utf-8"),)
HOST = "app.test"
BODY = b'<script src="/app.js"></script>'
QUICK = BrowserSettings(settle_seconds=0.2, seconds_max=6.0)


@dataclass
class Names:
    """Every name leads to the fake web, but for those that are refused; ports are those that were asked for."""

    refused: set[str] = field(default_factory=set)
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def __call__(self, host: str, port: int, _: bool) -> tuple[str, ...]:
        self.asked.append((host, port))
        if host in self.refused:
            raise RefusedError
        return ("127.0.0.1",)


@dataclass
class Stand:
    """A browser, the web that it sees and the names that lead there."""

    renderer: ChromiumRenderer
    web: FakeWeb
    names: Names

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.web.url.rpartition(':')[2]}"

    async def show(self, body: str, path: str = "/", **request: Any) -> Rendered | RenderFailure:
        return await self.renderer.render(
            RenderRequest(url=self.origin + path, status=200, headers=HTML, body=body.encode(), **request)
        )

    async def shown(self, body: str, path: str = "/", **request: Any) -> Rendered:
        found = await self.show(body, path, **request)
        assert isinstance(found, Rendered), found
        return found

    def hits(self, path: str) -> int:
        return len(self.web.hits(HOST, path))


@pytest.fixture(autouse=True, scope="module")
def chromium() -> str:
    """Installed where we may; else the tests fail with what to install."""
    return browser_path(QUICK) or require("chromium-headless-shell", "chromium-headless-shell")


@pytest.fixture
async def stand(fake_web: FakeWeb) -> AsyncIterator[Stand]:
    names = Names()
    renderer = open_renderer(QUICK, names)
    assert isinstance(renderer, ChromiumRenderer)
    try:
        yield Stand(renderer, fake_web, names)
    finally:
        await renderer.close()


async def test_the_final_dom_and_the_final_url_are_what_scripts_made_of_the_document(stand: Stand) -> None:
    script = """
    setTimeout(async () => {
      const said = await (await fetch('/data.json')).json();
      document.getElementById('root').innerHTML = `<h1>${said.title}</h1><p>ünïcode`;
      history.pushState({}, '', '/made');
    }, 100);
    """
    stand.web.add(Site(HOST, {"/app.js": script, "/data.json": '{"title": "Lanterns"}', "/": "not asked for"}))
    found = await stand.shown('<!doctype html><div id="root"></div><script src="/app.js"></script>')
    assert "<h1>Lanterns</h1><p>ünïcode</p>" in found.html.decode()
    assert found.final_url == f"{stand.origin}/made"
    assert (found.settled, found.requests, found.navigated_to) == (True, 2, "")
    assert found.wire_bytes > len(script)
    assert stand.hits("/") == 0  # the document was given, not fetched


async def test_shadow_roots_are_flattened_with_their_slots(stand: Stand) -> None:
    body = """<x-card><b slot="name">Ada</b></x-card><script>
    customElements.define('x-card', class extends HTMLElement {
      connectedCallback() {
        const root = this.attachShadow({mode: 'open'});
        root.innerHTML = '<style>p{}</style><p>Hello <slot name="name">nobody</slot><x-leaf></x-leaf></p>';
      }});
    customElements.define('x-leaf', class extends HTMLElement {
      connectedCallback() { this.attachShadow({mode: 'open'}).innerHTML = '<i>leaf</i>'; }});
    </script>"""
    html = (await stand.shown(body)).html.decode()
    assert '<p>Hello <b slot="name">Ada</b><x-leaf><i>leaf</i></x-leaf></p>' in html


async def test_images_media_fonts_trackers_and_frames_are_not_fetched(stand: Stand) -> None:
    stand.web.add(
        Site(
            HOST,
            {
                "/ok.js": "document.title = 'ran'",
                "/style.css": "@font-face{font-family:f;src:url(/f.woff2)} body{font-family:f}",
            },
        )
    )
    stand.web.add(Site("www.google-analytics.com", {"/track.js": "document.title = 'tracked'"}))
    port = stand.origin.rpartition(":")[2]
    found = await stand.shown(
        '<link rel="stylesheet" href="/style.css"><img src="/a.png"><video src="/v.mp4"></video>'
        '<iframe src="/frame"></iframe>'
        f'<script src="http://www.google-analytics.com:{port}/track.js"></script><script src="/ok.js"></script>text'
    )
    assert "<title>ran</title>" in found.html.decode()
    assert found.requests == 2
    assert found.blocked >= 4
    assert [stand.hits(path) for path in ("/a.png", "/v.mp4", "/frame", "/f.woff2")] == [0, 0, 0, 0]
    assert stand.web.hits("www.google-analytics.com") == []


def test_a_tracker_is_known_with_the_hosts_below_it() -> None:
    assert is_tracker("www.googletagmanager.com")
    assert is_tracker("doubleclick.net")
    assert not is_tracker("notdoubleclick.net")
    assert not is_tracker("net")


SSRF = {
    "fetch": "fetch('{url}').catch(() => 0)",
    "fetch without cors": "fetch('{url}', {mode: 'no-cors'}).catch(() => 0)",
    "script": "document.body.append(Object.assign(document.createElement('script'), {src: '{url}'}))",
    "style": "document.head.append(Object.assign(document.createElement('link'), {rel: 'stylesheet', href: '{url}'}))",
    "prefetch": "document.head.append(Object.assign(document.createElement('link'), {rel: 'prefetch', href: '{url}'}))",
    "preconnect": "document.head.innerHTML += '<link rel=preconnect href={url}><link rel=dns-prefetch href={url}>'",
    "beacon": "navigator.sendBeacon('{url}', 'x')",
    "worker": "new Worker(URL.createObjectURL(new Blob([\"fetch('{url}'); importScripts('{url}')\"])))",
    "websocket": "new WebSocket('{url}'.replace('http', 'ws'))",
    "events": "new EventSource('{url}')",
    "frame": "document.body.append(Object.assign(document.createElement('iframe'), {src: '{url}'}))",
    "popup": "window.open('{url}')",
    "form": "document.body.innerHTML = '<form method=post action={url}></form>'; document.forms[0].submit()",
    "webrtc": "const c = new RTCPeerConnection({iceServers: [{urls: ['stun:{at}', 'turn:{at}?transport=tcp'],"
    " username: 'a', credential: 'b'}]}); c.createDataChannel('x');"
    " c.createOffer().then((offer) => c.setLocalDescription(offer))",
    "redirect": "fetch('/leads', {mode: 'no-cors'}).catch(() => 0)",
    "leave": "location = '{url}'",
}  # fmt: skip


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "rebinding.test", "[::1]"])
async def test_no_way_leads_a_page_to_an_address_that_is_refused(stand: Stand, host: str) -> None:
    """A canary listens on loopback; whoever connects to it is counted."""
    reached: list[bytes] = []

    async def canary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append(await reader.read(200))
        writer.close()

    server = await asyncio.start_server(canary, "::1" if host == "[::1]" else "127.0.0.1", 0)
    authority = f"{host}:{server.sockets[0].getsockname()[1]}"
    stand.names.refused |= {"127.0.0.1", "localhost", "rebinding.test", "::1"}
    leads = redirects.redirect(f"http://{authority}/x")
    stand.web.add(Site(HOST, {"/leads": leads, "/ran": "x"}))
    stand.renderer = open_renderer(replace(QUICK, pages_max=4), stand.names)  # type: ignore[assignment]
    try:
        scripts = [way.replace("{url}", f"http://{authority}/x").replace("{at}", authority) for way in SSRF.values()]
        await asyncio.gather(
            *(stand.show(f"<body><p>text</p><script>fetch('/ran'); {script}</script>") for script in scripts)
        )
        assert reached == []
        assert stand.hits("/ran") >= len(SSRF) - 2  # each page did run; two leave before it is asked
    finally:
        await stand.renderer.close()
        server.close()


HOSTILE = {
    "a script that never ends": "<p>text</p><script>setTimeout(() => { while (true) {} }, 50)</script>",
    "a script that never begins to end": "<p>text</p><script>while (true) {}</script>",
    "dialogs without end": "<p>text</p><script>setInterval(() => alert(1), 0)</script>",
    "changes without end": "<p>text</p><script>setInterval(() => document.body.append('x'), 1)</script>",
    "popups without end": "<p>text</p><script>for (let i = 0; i < 100; i++) window.open('/p' + i)</script>",
    "downloads": "<p>text</p><a download=f href='data:application/octet-stream,x' id=a></a>"
    "<script>for (let i = 0; i < 50; i++) a.click()</script>",
    "a document that replaces itself": "<p>text</p><script>location = 'about:blank'</script>",
    "reloads without end": "<p>text</p><script>location.reload()</script>",
    "hashes without end": "<p>text</p><script>setInterval(() => { location.hash = Math.random() }, 1)</script>",
    "a huge document": "<p>text</p><script>document.body.append('x'.repeat(20e6))</script>",
    "fetches without end": "<p>text</p><script>for (let i = 0; i < 2000; i++) fetch('/f' + i).catch(() => 0)</script>",
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_what_a_page_does_ends_typed_and_in_time_and_the_next_page_is_shown(stand: Stand, kind: str) -> None:
    stand.web.add(Site(HOST, {}, fallback=pages.text("x")))
    stand.renderer = open_renderer(replace(QUICK, seconds_max=1.0, requests_max=30), stand.names)  # type: ignore[assignment]
    async with asyncio.timeout(30):
        found = await stand.show(HOSTILE[kind])
        if isinstance(found, RenderFailure):
            assert found.reason in {"render_timeout", "render_crashed", "render_too_large"}
            assert stand.origin in found.detail
        else:
            assert found.navigated_to or b"<p>text</p>" in found.html
            assert found.requests <= 30
        after = await stand.shown("<p>good</p><script>document.body.append('shown')</script>")
    assert b"shown" in after.html
    await stand.renderer.close()


async def test_each_limit_ends_a_page_typed(fake_web: FakeWeb) -> None:
    names = Names()
    big = "x" * 300_000
    fake_web.add(Site(HOST, {"/big.js": f"document.title='{big}'", "/a.js": "document.title += 'a'"}))

    async def shown(body: str, **limits: Any) -> Rendered | RenderFailure:
        renderer = open_renderer(replace(QUICK, **limits), names)
        try:
            return await Stand(renderer, fake_web, names).show(body)  # type: ignore[arg-type]
        finally:
            await renderer.close()

    page = '<title></title><script src="/big.js"></script>'
    within = await shown(page, wire_bytes_max=400_000)
    assert isinstance(within, Rendered)
    assert b"xxx" in within.html
    cut = await shown(page, wire_bytes_max=100_000)
    assert isinstance(cut, Rendered)
    assert b"xxx" not in cut.html
    large = await shown(page, html_bytes_max=300_000)
    assert isinstance(large, RenderFailure)
    assert large.reason == "render_too_large"
    scripts = "<title></title>" + "".join(f'<script src="/a.js?{number}"></script>' for number in range(5))
    few = await shown(scripts, requests_max=3)
    assert isinstance(few, Rendered)
    assert b"<title>aaa</title>" in few.html
    assert (few.requests, few.blocked) == (3, 2)
    heavy = await shown("<p>x</p>", memory_bytes_max=1_000_000)
    assert isinstance(heavy, RenderFailure)
    assert heavy.reason == "render_too_large"
    started = asyncio.get_running_loop().time()
    restless = await shown("<p>x</p><script>setInterval(() => document.body.append('y'), 10)</script>", seconds_max=1.0)
    assert isinstance(restless, Rendered)
    assert not restless.settled
    assert asyncio.get_running_loop().time() - started < 10


async def test_a_script_that_leads_elsewhere_is_told_and_not_followed(stand: Stand) -> None:
    stand.web.add(Site(HOST, {"/next": "next"}))
    found = await stand.shown("<p>x</p><script>location.assign('/next?a=1#b')</script>")
    assert found.navigated_to == f"{stand.origin}/next?a=1"
    assert stand.hits("/next") == 0


async def test_credentials_go_to_the_documents_origin_and_no_redirect_takes_them_elsewhere(stand: Stand) -> None:
    port = stand.origin.rpartition(":")[2]
    other = f"http://other.test:{port}"
    allowed = (("Access-Control-Allow-Origin", "*"),)
    stand.web.add(Site(HOST, {
        "/own.json": "{}", "/away": redirects.redirect(f"{other}/redirected"),
    }))  # fmt: skip
    stand.web.add(Site("other.test", {path: Reply(body=b"x", headers=allowed) for path in ("/asked", "/redirected")}))
    script = f"fetch('/own.json'); fetch('/away'); fetch('{other}/asked')"
    await stand.shown(f"<p>x</p><script>{script}</script>", fields=(("Authorization", "Bearer secret"),))
    sent = {request.path: dict(request.headers) for host in (HOST, "other.test") for request in stand.web.hits(host)}
    names = {path: {name.lower() for name in headers} for path, headers in sent.items()}
    assert "authorization" in names["/own.json"]
    assert "authorization" not in names["/asked"]
    assert "authorization" not in names["/redirected"]


async def test_nothing_that_a_page_keeps_is_there_for_the_next(stand: Stand) -> None:
    look = "document.body.append(`[${document.cookie}][${localStorage.length}][${sessionStorage.length}]`)"
    script = f"<script>{look}; document.cookie='a=1'; localStorage.x=1; sessionStorage.x=1</script>"
    for _ in range(2):
        assert b"[][0][0]" in (await stand.shown(f"<body>{script}")).html


async def test_a_script_that_pages_share_is_fetched_once(stand: Stand) -> None:
    script = altered(
        pages.text("document.title = 'ran'"),
        headers=(("Content-Type", "text/javascript"), ("Cache-Control", "max-age=600")),
    )
    stand.web.add(Site(HOST, {"/app.js": script}))
    for path in ("/1", "/2", "/3"):
        assert b"<title>ran</title>" in (await stand.shown('<script src="/app.js"></script>', path)).html
    assert stand.hits("/app.js") == 1


async def test_a_browser_that_is_killed_is_replaced_and_the_page_shown(stand: Stand) -> None:
    await stand.shown("<p>before</p>")
    killed = [pid for pid in _children() if _is_browser(pid)]
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert b"after" in (await stand.shown("<p>after</p>")).html


async def test_nothing_is_left_of_a_renderer_that_was_closed(stand: Stand) -> None:
    await stand.shown("<p>x</p>")
    assert [pid for pid in _children() if _is_browser(pid)]
    await stand.renderer.close()
    for _ in range(50):
        if not [pid for pid in _children() if _is_browser(pid)]:
            return
        await asyncio.sleep(0.1)
    pytest.fail("a browser was left running")


async def test_pages_beside_each_other_do_not_wait_for_a_slow_one(stand: Stand) -> None:
    stand.web.add(Site(HOST, {"/slow.js": delays.delayed(pages.text("1"), 3)}))
    slow = asyncio.create_task(stand.show('<script src="/slow.js"></script>', "/slow"))
    await stand.shown("<p>x</p>", "/first")  # the browser's start
    began = asyncio.get_running_loop().time()
    await stand.shown("<p>quick</p>", "/quick")
    assert asyncio.get_running_loop().time() - began < 2.5
    await slow


async def test_a_browser_that_runs_elsewhere_is_used_for_its_country(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(Site(HOST, {"/app.js": "document.title = 'remote'"}))
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: ASYNC220 - it goes on beside the test
            [browser_path(QUICK), "--headless", "--no-sandbox", "--remote-debugging-port=0",
             f"--user-data-dir={tmp_path / 'data'}"],
            stderr=file,
        )  # fmt: skip
    try:
        async with asyncio.timeout(20):
            while (line := re.search(rb"DevTools listening on (\S+)", log.read_bytes())) is None:  # noqa: ASYNC110 - a file
                await asyncio.sleep(0.05)
        endpoint = line[1].decode()
        settings = replace(QUICK, cdp_urls=(f"de {endpoint}",), executable=str(tmp_path / "none"))
        assert is_there(settings)
        renderer = open_renderer(settings, Names())
        stand = Stand(renderer, fake_web, Names())  # type: ignore[arg-type]
        assert b"<title>remote</title>" in (await stand.shown(BODY.decode(), country="DE")).html
        elsewhere = await stand.show(BODY.decode(), country="FR")
        assert isinstance(elsewhere, RenderFailure)
        assert elsewhere.reason == "render_unavailable"
        await renderer.close()
        assert process.poll() is None  # it is not ours to end
    finally:
        process.kill()
        process.wait(10)


async def test_a_port_of_the_proxy_is_for_those_who_know_its_password(fake_web: FakeWeb) -> None:
    fake_web.add(Site(HOST, {"/": "secret"}))
    port = fake_web.url.rpartition(":")[2]
    proxy = EgressProxy(Names(), Meter(1_000_000, 100), host="127.0.0.1", with_password=True)
    await proxy.open()
    try:
        for credential, wanted in (("", b" 407 "), ("x", b" 407 "), (proxy.password, b" 200 ")):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            basic = base64.b64encode(f"trawl:{credential}".encode()).decode()
            told = f"Proxy-Authorization: Basic {basic}\r\n" if credential else ""
            writer.write(f"GET http://{HOST}:{port}/ HTTP/1.1\r\nHost: {HOST}:{port}\r\n{told}\r\n".encode())
            assert wanted in (await reader.readuntil(b"\r\n"))
            writer.close()
    finally:
        await proxy.close()


async def test_the_web_is_reached_through_an_upstream_proxy(fake_web: FakeWeb) -> None:
    fake_web.add(Site(HOST, {"/app.js": "document.title = 'through'"}))
    names = Names()
    renderer = open_renderer(QUICK, names)
    request = RenderRequest(url=f"http://{HOST}/", status=200, headers=HTML, body=BODY, proxy=fake_web.proxy)
    try:
        found = await renderer.render(request)
    finally:
        await renderer.close()
    assert isinstance(found, Rendered)
    assert b"<title>through</title>" in found.html


async def test_a_certificate_of_the_settings_is_trusted_and_no_other_is(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(Site(HOST, {"/app.js": "document.title = 'safe'"}, scheme="https"))
    own = tmp_path / "own.pem"
    own.write_text(await asyncio.to_thread(_certificate, int(fake_web.https_url.rpartition(":")[2])))
    for ca_file, wanted in ((str(own), True), ("", False)):
        renderer = open_renderer(QUICK, Names(), ca_file=ca_file)
        request = RenderRequest(url=f"https://{HOST}/", status=200, headers=HTML, body=BODY, proxy=fake_web.proxy)
        try:
            found = await renderer.render(request)
        finally:
            await renderer.close()
        assert isinstance(found, Rendered)
        assert (b"<title>safe</title>" in found.html) is wanted


def _certificate(port: int) -> str:
    """What the fake web shows for the host, as PEM."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as secure,
    ):
        return ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True) or b"")


async def test_a_browser_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    settings = replace(QUICK, executable=str(tmp_path / "no-browser"))
    assert not is_there(settings)
    renderer = open_renderer(settings, Names())
    found = await renderer.render(RenderRequest(url="http://app.test/", status=200, headers=HTML, body=b"<p>x"))
    assert isinstance(found, RenderFailure)
    assert found.reason == "render_unavailable"
    assert "apt-get install chromium-headless-shell" in found.detail
    with pytest.raises(SettingsError, match=r"fetch\.ca_file"):
        open_renderer(QUICK, Names(), ca_file=str(tmp_path / "none.pem"))
    assert browser_path(QUICK)


def _children() -> list[int]:
    """All processes that this one started, and those that they started."""
    found: list[int] = []
    table: dict[int, int] = {}
    parents = {os.getpid()}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                table[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
    while parents:
        parents = {pid for pid, parent in table.items() if parent in parents}
        found += parents
    return found


def _is_browser(pid: int) -> bool:
    try:
        return b"--user-data-dir" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
