"""One document in a browser: given to it, watched until it comes to rest, and taken."""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from playwright.async_api import CDPSession, Page
from playwright.async_api import Error as PlaywrightError

from trawl.adapters.browser.egress import Meter
from trawl.adapters.browser.scripts import TAKE, WATCH
from trawl.adapters.browser.trackers import is_tracker
from trawl.ports import Rendered, RenderFailure, RenderRequest
from trawl.settings import BrowserSettings

_DROPPED: Final = frozenset(
    {
        "alt-svc", "clear-site-data", "connection", "content-disposition", "content-encoding", "content-length",
        "keep-alive", "nel", "report-to", "set-cookie", "set-cookie2", "strict-transport-security", "trailer",
        "transfer-encoding",
    }
)  # fmt: skip
"""Header fields of the document that the browser is not given."""
_UNCOUNTED: Final = frozenset({"EventSource", "WebSocket", "Ping", "Prefetch"})
"""Requests that go on for ever, or that no page waits for."""
_LONG_SECONDS: Final = 5.0
"""A request that takes longer is no longer waited for: it may be one that never ends."""
_LOOK_SECONDS: Final = 0.1
_ANSWER_SECONDS: Final = 3.0
"""A browser that does not answer for so long is busy with the page's scripts."""
_RELOADS_MAX: Final = 1


class PageRun:
    """Shows one document on a fresh page."""

    def __init__(
        self,
        page: Page,
        session: CDPSession,
        request: RenderRequest,
        settings: BrowserSettings,
        meter: Meter,
        memory: Callable[[], Awaitable[int]],
    ) -> None:
        self._page = page
        self._session = session
        self._request = request
        self._settings = settings
        self._meter = meter
        self._memory = memory
        self._began = time.monotonic()
        self._blocked_types = {name.capitalize() for name in settings.block}
        self._main_frame = ""
        self._shown = 0
        self._navigated_to = ""
        self._over = asyncio.Event()
        self._crashed = False
        self._requests = 0
        self._blocked = 0
        self._in_flight: dict[str, float] = {}
        self._network_at = self._began
        self._world = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> Rendered | RenderFailure:
        """The final DOM, or why there is none; raises Playwright's Error if the browser is gone."""
        await self._open()
        too_large = await self._rest()
        if self._crashed:
            return self._failed("render_crashed", "the browser's page crashed")
        if too_large:
            return self._failed("render_too_large", too_large)
        if self._navigated_to:
            return self._rendered(b"", self._request.url, settled=True)
        return await self._taken()

    @property
    def elapsed_ms(self) -> float:
        """Since the beginning."""
        return round(1000 * (time.monotonic() - self._began), 3)

    # Opening

    async def _open(self) -> None:
        session = self._session
        self._page.on("crash", lambda _: self._end(crashed=True))
        session.on("Fetch.requestPaused", lambda event: self._start(self._judge(event)))
        session.on("Network.requestWillBeSent", self._sent)
        for name in ("Network.loadingFinished", "Network.loadingFailed"):
            session.on(name, lambda event: self._finished(event["requestId"]))
        tree = await session.send("Page.getFrameTree")
        self._main_frame = tree["frameTree"]["frame"]["id"]
        await session.send("Page.enable")
        await session.send("Network.enable")
        await session.send("Fetch.enable", {"patterns": [{"urlPattern": "*"}]})
        if self._request.accept_language or self._request.user_agent:
            await session.send("Network.setUserAgentOverride", _identity(self._request))
        seconds = self._settings.seconds_max
        await asyncio.wait_for(session.send("Page.navigate", {"url": self._request.url}), seconds)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _end(self, *, crashed: bool = False) -> None:
        self._crashed = self._crashed or crashed
        self._over.set()

    # What the page asks for

    async def _judge(self, event: Mapping[str, Any]) -> None:
        """Answer the document itself, refuse what is blocked, and let the rest go to the egress proxy."""
        try:
            await self._decide(event)
        except PlaywrightError:
            return  # the page is over

    async def _decide(self, event: Mapping[str, Any]) -> None:
        url, kind, paused = event["request"]["url"], event["resourceType"], event["requestId"]
        if kind == "Document" and event["frameId"] == self._main_frame:
            if self._is_document(url):
                self._shown += 1
                await self._session.send("Fetch.fulfillRequest", {"requestId": paused, **self._document()})
                return
            if not self._navigated_to:
                self._navigated_to = url
            self._end()
            await self._session.send("Fetch.failRequest", {"requestId": paused, "errorReason": "Aborted"})
            return
        if self._is_refused(url, kind):
            self._blocked += 1
            await self._session.send("Fetch.failRequest", {"requestId": paused, "errorReason": "BlockedByClient"})
            return
        self._requests += 1
        await self._session.send("Fetch.continueRequest", {"requestId": paused, **self._with_fields(event["request"])})

    def _is_document(self, url: str) -> bool:
        """Whether the main frame asks for the document that we have; a page may ask for it again once."""
        return self._shown <= _RELOADS_MAX and url.partition("#")[0] == self._request.url.partition("#")[0]

    def _document(self) -> dict[str, Any]:
        headers = [
            {"name": header.name, "value": header.value}
            for header in self._request.headers
            if header.name not in _DROPPED
        ]
        body = base64.b64encode(self._request.body).decode("ascii")
        return {"responseCode": self._request.status or 200, "responseHeaders": headers, "body": body}

    def _is_refused(self, url: str, kind: str) -> bool:
        parts = urlsplit(url)
        if kind == "Document" or kind in self._blocked_types or parts.scheme not in {"http", "https", "ws", "wss"}:
            return True
        if self._requests >= self._settings.requests_max or self._meter.spent:
            return True
        return "Tracker" in self._blocked_types and is_tracker(parts.hostname or "")

    def _with_fields(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The credentials of the document's origin, for it alone; a redirect does not take them along (CDP, Fetch)."""
        if not self._request.fields or _origin(asked["url"]) != _origin(self._request.url):
            return {}
        ours = {name.lower() for name, _ in self._request.fields}
        kept = [(name, value) for name, value in asked["headers"].items() if name.lower() not in ours]
        return {"headers": [{"name": name, "value": value} for name, value in (*kept, *self._request.fields)]}

    def _sent(self, event: Mapping[str, Any]) -> None:
        if event.get("type") not in _UNCOUNTED:
            self._in_flight[event["requestId"]] = self._network_at = time.monotonic()

    def _finished(self, request_id: str) -> None:
        if self._in_flight.pop(request_id, None) is not None:
            self._network_at = time.monotonic()

    # Until it comes to rest

    async def _rest(self) -> str:
        """Wait until the page rests, leaves or its time is over; what is too large about it, if anything."""
        deadline = self._began + self._settings.seconds_max
        looks = 0
        while not self._over.is_set() and time.monotonic() < deadline:
            try:
                await asyncio.wait_for(self._over.wait(), _LOOK_SECONDS)
            except TimeoutError:
                looks += 1
            if looks % 5 == 1 and await self._memory() > self._settings.memory_bytes_max:
                return f"the page takes more than browser.memory_bytes_max = {self._settings.memory_bytes_max}"
            if not self._over.is_set() and await self._rests():
                return ""
        return ""

    async def _rests(self) -> bool:
        now = time.monotonic()
        waiting = [at for at in self._in_flight.values() if now - at < _LONG_SECONDS]
        if waiting or now - self._network_at < self._settings.settle_seconds:
            return False
        quiet_ms = await self._ask(WATCH)
        return isinstance(quiet_ms, int | float) and quiet_ms >= 1000 * self._settings.settle_seconds

    async def _ask(self, script: str) -> Any:
        """What a script in our own world of the page gives; None if the page is busy or has just been replaced."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                if not self._world:
                    made = await self._session.send(
                        "Page.createIsolatedWorld", {"frameId": self._main_frame, "worldName": "trawl"}
                    )
                    self._world = made["executionContextId"]
                found = await self._session.send(
                    "Runtime.evaluate",
                    {"expression": script, "contextId": self._world, "returnByValue": True},
                )
        except TimeoutError:
            return None
        except PlaywrightError:
            self._world = 0
            return None
        return found["result"].get("value")

    # Taking it

    async def _taken(self) -> Rendered | RenderFailure:
        settled = time.monotonic() < self._began + self._settings.seconds_max
        found = await self._ask(TAKE.replace("LIMIT", str(self._settings.html_bytes_max)))
        if self._crashed:
            return self._failed("render_crashed", "the browser's page crashed")
        if not isinstance(found, dict):
            return self._failed(
                "render_timeout", "its scripts let no one else to the page; seconds_max may be too short"
            )
        html = found.get("html", "").encode("utf-8", "replace")
        if "html" not in found or len(html) > self._settings.html_bytes_max:
            size = max(len(html), found.get("chars", 0))
            return self._failed(
                "render_too_large", f"its DOM is {size} long, browser.html_bytes_max is {self._settings.html_bytes_max}"
            )
        url = str(found["url"])
        if _origin(url) != _origin(self._request.url):
            return self._failed("render_crashed", f"the page replaced itself by {url[:100]}")
        return self._rendered(html, url, settled=settled)

    def _rendered(self, html: bytes, url: str, *, settled: bool) -> Rendered:
        return Rendered(
            html=html,
            final_url=url,
            navigated_to=self._navigated_to,
            settled=settled,
            requests=self._requests,
            blocked=self._blocked + self._meter.refused,
            wire_bytes=self._meter.wire_bytes,
            elapsed_ms=self.elapsed_ms,
        )

    def _failed(self, reason: str, detail: str) -> RenderFailure:
        return RenderFailure(reason=reason, detail=f"{self._request.url}: {detail}", elapsed_ms=self.elapsed_ms)


def _identity(request: RenderRequest) -> dict[str, str]:
    said = {"userAgent": request.user_agent, "acceptLanguage": request.accept_language}
    return {name: value for name, value in said.items() if value}


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
