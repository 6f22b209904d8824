"""Browsers, their contexts and who may use them: a pool that starts, replaces and ends them."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext
from playwright.async_api import Error as PlaywrightError

from trawl.adapters.browser.certificates import pins_of
from trawl.adapters.browser.egress import Check, EgressProxy, Meter
from trawl.adapters.browser.finding import HOW_TO, browser_path
from trawl.adapters.browser.page import PageRun
from trawl.ports import Rendered, RenderFailure, RenderRequest
from trawl.settings import BrowserSettings

PATCHRIGHT: Final = "patchright"
_ENGINES: Final = {"": "playwright.async_api", PATCHRIGHT: "patchright.async_api"}
_NOWHERE: Final = "http://127.0.0.1:9"
"""The proxy of whatever belongs to no context: none of it reaches anything."""
_CLOSE_SECONDS: Final = 5.0
_MARGIN_SECONDS: Final = 10.0
_CONTEXTS_MAX: Final = 8
"""Contexts kept for the next page of their origin, by each browser."""
_STORED: Final = "cookies,local_storage,session_storage,indexeddb,cache_storage,file_systems,websql"


@dataclass(slots=True)
class _Context:
    """A browser context with its own way out."""

    key: tuple[str, ...]
    context: BrowserContext
    proxy: EgressProxy
    meter: Meter
    pages: int = 0

    async def close(self) -> None:
        with contextlib.suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(self.context.close(), _CLOSE_SECONDS)
        await self.proxy.close()


@dataclass(slots=True)
class _Browser:
    """One browser that runs, and its idle contexts, the longest idle first."""

    driver: Any
    browser: Browser
    idle: list[_Context] = field(default_factory=list)
    busy: int = 0
    broken: bool = False

    async def close(self) -> None:
        """End it, however it is."""
        while self.idle:
            await self.idle.pop().proxy.close()
        with contextlib.suppress(PlaywrightError, TimeoutError):
            await asyncio.wait_for(self.browser.close(), _CLOSE_SECONDS)
        with contextlib.suppress(Exception):  # a driver that is gone raises what it likes
            await asyncio.wait_for(self.driver.stop(), _CLOSE_SECONDS)

    async def memory_bytes(self) -> int:
        """Resident memory of all its processes; 0 where the system does not tell."""
        with contextlib.suppress(PlaywrightError):
            session = await self.browser.new_browser_cdp_session()
            try:
                found = await session.send("SystemInfo.getProcessInfo")
            finally:
                await session.detach()
            return sum(_resident_bytes(process["id"]) for process in found["processInfo"])
        return 0


class ChromiumRenderer:
    """A Renderer over Chromium, started when it is first needed. `check` judges each host that a page asks for."""

    def __init__(self, settings: BrowserSettings, check: Check, *, ca_file: str = "") -> None:
        self._settings = settings
        self._check = check
        self._pins = pins_of(ca_file)
        self._room = asyncio.Semaphore(settings.pages_max)
        self._browsers: dict[tuple[str, str], _Browser] = {}
        self._starting: dict[tuple[str, str], asyncio.Lock] = {}
        self._remote = _by_country(settings.cdp_urls)

    async def render(self, request: RenderRequest) -> Rendered | RenderFailure:
        """The final DOM, or a typed failure; a browser that dies is replaced, and the page tried once more."""
        began = time.monotonic()
        async with self._room:
            for last in (False, True):
                try:
                    return await self._rendered(request)
                except (PlaywrightError, TimeoutError, OSError) as error:
                    if last:
                        return _failed(request, "render_crashed", f"the browser failed twice: {_line(error)}", began)
                except _UnavailableError as error:
                    return _failed(request, "render_unavailable", str(error), began)
        raise AssertionError

    async def close(self) -> None:
        """End all browsers."""
        browsers, self._browsers = list(self._browsers.values()), {}
        for browser in browsers:
            await browser.close()

    async def _rendered(self, request: RenderRequest) -> Rendered | RenderFailure:
        browser = await self._browser(request.engine, request.country)
        browser.busy += 1
        healthy = False
        try:
            async with (
                asyncio.timeout(self._settings.seconds_max + _MARGIN_SECONDS),
                self._context(browser, request) as context,
            ):
                found = await self._shown(browser, context, request)
            healthy = not isinstance(found, RenderFailure)
        finally:
            browser.busy -= 1
            browser.broken = browser.broken or not (healthy or browser.browser.is_connected())
            await self._judge(browser)
        return found

    async def _shown(self, browser: _Browser, context: _Context, request: RenderRequest) -> Rendered | RenderFailure:
        context.meter.begin()
        page = await context.context.new_page()
        try:
            session = await context.context.new_cdp_session(page)
            found = await PageRun(page, session, request, self._settings, context.meter, browser.memory_bytes).run()
            await session.send("Storage.clearDataForOrigin", {"origin": _origin(request.url), "storageTypes": _STORED})
        finally:
            context.proxy.cut_off()
            await _closed(page.close, browser)
        return found

    @contextlib.asynccontextmanager
    async def _context(self, browser: _Browser, request: RenderRequest) -> AsyncIterator[_Context]:
        """A context for pages of this origin, from the idle ones or new; kept for the next if all went well."""
        key = (_origin(request.url), request.user_agent, request.accept_language, request.proxy)
        found = next((one for one in browser.idle if one.key == key), None)
        if found is None:
            found = await self._new_context(browser, request, key)
        else:
            browser.idle.remove(found)
        keep = False
        try:
            yield found
            keep = True
        finally:
            found.pages += 1
            if keep and not browser.broken and found.pages < self._settings.pages_per_context_max:
                with contextlib.suppress(PlaywrightError):
                    await found.context.clear_cookies()
                browser.idle.append(found)
                while len(browser.idle) > _CONTEXTS_MAX:
                    await browser.idle.pop(0).close()
            else:
                await found.close()

    async def _new_context(self, browser: _Browser, request: RenderRequest, key: tuple[str, ...]) -> _Context:
        meter = Meter(self._settings.wire_bytes_max, 2 * self._settings.requests_max)
        proxy = EgressProxy(
            self._check,
            meter,
            host=self._settings.egress_host,
            upstream=request.proxy,
            with_password=bool(self._remote),
        )
        await proxy.open()
        access = {"server": proxy.url, "bypass": "<-loopback>"}
        if proxy.password:
            access.update(username="trawl", password=proxy.password)
        try:
            context = await browser.browser.new_context(
                proxy=access,  # type: ignore[arg-type] # its keys are those of ProxySettings
                accept_downloads=False,
                service_workers="block",
            )
        except BaseException:
            await proxy.close()
            raise
        return _Context(key, context, proxy, meter)

    # Browsers

    async def _browser(self, engine: str, country: str) -> _Browser:
        """The browser of an engine and a country, started if it is not there; raises _UnavailableError."""
        key = (engine, country if country in self._remote else "")
        async with self._starting.setdefault(key, asyncio.Lock()):
            found = self._browsers.get(key)
            if found is None or found.broken or not found.browser.is_connected():
                if found is not None and not found.busy:
                    await found.close()
                found = self._browsers[key] = await self._started(*key)
            return found

    async def _started(self, engine: str, country: str) -> _Browser:
        try:
            module = import_module(_ENGINES[engine])
        except ModuleNotFoundError:
            name = engine or "browser"
            raise _UnavailableError(f"the extra is not installed: pip install 'trawl[{name}]'") from None
        driver = await module.async_playwright().start()
        try:
            return _Browser(driver, await self._launched(driver, country))
        except PlaywrightError as error:
            await driver.stop()
            raise _UnavailableError(f"the browser does not start: {_line(error)}") from None
        except BaseException:
            await driver.stop()
            raise

    async def _launched(self, driver: Any, country: str) -> Browser:
        remote = self._remote.get(country)
        if remote is not None:
            connected: Browser = await driver.chromium.connect_over_cdp(remote)
            return connected
        path = browser_path(self._settings)
        if not path:
            raise _UnavailableError(f"there is no browser; {HOW_TO}")
        launched: Browser = await driver.chromium.launch(
            executable_path=path,
            headless=True,
            chromium_sandbox=self._settings.sandbox and os.getuid() != 0,
            proxy={"server": _NOWHERE},
            args=[*_arguments(self._settings), *self._pins],
            ignore_default_args=["--disable-popup-blocking"],
        )
        return launched

    async def _judge(self, browser: _Browser) -> None:
        """Replace a browser that is broken or has grown too large, once nobody uses it."""
        if not browser.broken and await browser.memory_bytes() > self._settings.memory_bytes_max:
            browser.broken = True
        if browser.broken and not browser.busy:
            self._browsers = {key: one for key, one in self._browsers.items() if one is not browser}
            await browser.close()


class _UnavailableError(Exception):
    """That there is no browser to be had."""


def _arguments(settings: BrowserSettings) -> list[str]:
    """What keeps Chromium from any network but the egress proxy."""
    return [
        "--disable-quic",
        "--dns-prefetch-disable",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {settings.egress_host}",
        f"--js-flags=--max-old-space-size={max(64, settings.memory_bytes_max // 2_000_000)}",
    ]


def _by_country(urls: tuple[str, ...]) -> dict[str, str]:
    """Endpoints of remote browsers by country; that of no country under an empty text."""
    found: dict[str, str] = {}
    for text in urls:
        country, _, url = text.rpartition(" ")
        found.setdefault(country.strip().upper(), url)
    return found


async def _closed(close: Callable[[], Any], browser: _Browser) -> None:
    """Close a page; a browser that cannot is broken."""
    try:
        await asyncio.wait_for(close(), _CLOSE_SECONDS)
    except (PlaywrightError, TimeoutError):
        browser.broken = True


def _failed(request: RenderRequest, reason: str, why: str, began: float) -> RenderFailure:
    return RenderFailure(
        reason=reason, detail=f"{request.url}: {why}", elapsed_ms=round(1000 * (time.monotonic() - began), 3)
    )


def _line(error: Exception) -> str:
    """The first line of an error, shortened."""
    return (str(error) or type(error).__name__).strip().splitlines()[0][:200]


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _resident_bytes(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:  # noqa: PTH123 - read often
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
