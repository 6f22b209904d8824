"""HTTP over libcurl: one multi handle, a pool of easy handles, every limit enforced while the answer streams."""

import asyncio
from itertools import chain
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from curl_cffi import AsyncCurl, Curl, CurlError, CurlHttpVersion, CurlInfo, CurlMOpt, CurlOpt

from trawl.access import checked_proxy
from trawl.adapters.http.alternatives import Alternatives
from trawl.adapters.http.decoding import ACCEPT_ENCODING, Body
from trawl.adapters.http.failures import RETRYABLE, SENTENCES, message_of, reason_of
from trawl.adapters.http.profiles import prepared
from trawl.adapters.http.transfer import Transfer
from trawl.errors import SettingsError
from trawl.ports import HttpFailure, HttpRequest, HttpResponse
from trawl.settings import FetchSettings

_HTTP2: Final = CurlHttpVersion.V2TLS
_HTTP3: Final = CurlHttpVersion.V3
"""Over QUIC first, and over TCP soon after if nothing answers there."""
_DNS_CACHE_SECONDS: Final = 30  # pinned names live in libcurl's cache this long, so that it cannot grow for ever
_TIMED_OUT: Final = 28


class CurlHttpClient:
    """An HttpClient over libcurl: HTTP/1.1, HTTP/2 and, where it was offered, HTTP/3; connections are used again.

    Bound to the event loop of its first request. No cookies, no redirects, no proxy from the environment. Through a
    proxy, that of the request or else `fetch.proxy`, names are resolved there, and `address` is not used. A request
    that impersonates a browser has handles of its own. Raises SettingsError if the proxy or the CA file cannot be used.
    """

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._proxy = _proxy(settings.proxy)
        self._ca_file = _ca_file(settings.ca_file)
        self._multis: dict[bool, AsyncCurl] = {}
        """The connections; those for HTTP/3 apart, since libcurl rather uses an old one over TCP again."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alternatives = Alternatives()
        self._idle: dict[str, list[Curl]] = {}
        """Handles by the browser that they impersonate."""

    async def fetch(self, request: HttpRequest) -> HttpResponse | HttpFailure:
        """The answer, or a typed failure; never raises for what a server does."""
        loop = self._bound()
        offered = self._takes_http3(request, loop.time())
        multi = self._opened(loop, offered=offered)
        idle = self._idle.get(request.impersonate)
        curl = idle.pop() if idle else self._new_handle(request.impersonate)
        transfer = Transfer(request, self._settings, curl, loop.time, offered=offered)
        finished = False
        try:
            self._prepare(curl, transfer)
            error = await self._perform(multi, loop, curl, transfer)
            result = self._answer(curl, transfer, error, loop.time())
            self._remember(transfer, result, loop.time())
            finished = True
        finally:
            if not finished:
                multi.remove_handle(curl)  # cancelled under way: the connection closes with it
            self._give_back(curl, request.impersonate)
        return result

    async def close(self) -> None:
        """Close all connections."""
        for multi in self._multis.values():
            await multi.close()  # type: ignore[no-untyped-call]
        self._multis.clear()
        for curl in chain.from_iterable(self._idle.values()):
            curl.close()
        self._idle.clear()

    def _bound(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if not self._multis:
            self._loop = loop
        if loop is not self._loop:
            raise RuntimeError("an HTTP client serves the event loop of its first request only; make one for each loop")
        return loop

    def _opened(self, loop: asyncio.AbstractEventLoop, *, offered: bool) -> AsyncCurl:
        multi = self._multis.get(offered)
        if multi is None:
            multi = self._multis[offered] = AsyncCurl(loop=loop)
            multi.setopt(CurlMOpt.MAXCONNECTS, self._settings.connections_idle_max)  # type: ignore[no-untyped-call]
        return multi

    def _new_handle(self, profile: str) -> Curl:
        """A handle with everything that is the same for all requests of a profile."""
        settings = self._settings
        curl = Curl()
        if profile and not prepared(curl, profile):
            curl.close()
            raise SettingsError(f"impersonate = {profile!r} of the access file names no browser that libcurl knows")
        options: list[tuple[CurlOpt, int | str]] = [
            (CurlOpt.NOSIGNAL, 1),
            (CurlOpt.PROTOCOLS_STR, "http,https"),
            (CurlOpt.FOLLOWLOCATION, 0),
            (CurlOpt.PATH_AS_IS, 1),
            (CurlOpt.HTTP_CONTENT_DECODING, 0),
            (CurlOpt.HTTP09_ALLOWED, 0),
            (CurlOpt.SUPPRESS_CONNECT_HEADERS, 1),
            (CurlOpt.CONNECTTIMEOUT_MS, _milliseconds(settings.connect_seconds_max)),
            (CurlOpt.DNS_CACHE_TIMEOUT, _DNS_CACHE_SECONDS),
            (CurlOpt.NOPROXY, ""),
        ]
        if self._ca_file:
            options += [(CurlOpt.CAINFO, self._ca_file), (CurlOpt.PROXY_CAINFO, self._ca_file)]
        for option, value in options:
            curl.setopt(option, value)
        return curl

    def _prepare(self, curl: Curl, transfer: Transfer) -> None:
        request = transfer.request
        headers = [f"{name}: {value}".encode("latin-1", "replace") for name, value in request.headers]
        if not any(name.lower() == "accept-encoding" for name, _ in request.headers):
            headers.append(f"Accept-Encoding: {ACCEPT_ENCODING}".encode())
        curl.setopt(CurlOpt.URL, request.url)
        curl.setopt(CurlOpt.HTTPHEADER, headers)
        proxy = self._proxy_of(request)
        curl.setopt(CurlOpt.PROXY, proxy)
        curl.setopt(CurlOpt.RESOLVE, [] if proxy else _pinned(request))
        if not request.impersonate:
            curl.setopt(CurlOpt.HTTP_VERSION, int(_HTTP3 if transfer.offered else _HTTP2))
        curl.setopt(CurlOpt.TIMEOUT_MS, _milliseconds(request.total_seconds_max))
        curl.setopt(CurlOpt.HEADERFUNCTION, transfer.on_header)
        curl.setopt(CurlOpt.WRITEFUNCTION, transfer.on_body)

    def _takes_http3(self, request: HttpRequest, now: float) -> bool:
        if not self._settings.http3 or request.impersonate or self._proxy_of(request):
            return False
        return request.url.startswith("https:") and self._alternatives.offers(_origin(request)[0], now)

    def _remember(self, transfer: Transfer, result: HttpResponse | HttpFailure, now: float) -> None:
        """What the answer says of HTTP/3, and whether it came that way."""
        origin, port = _origin(transfer.request)
        if transfer.offered and transfer.http_version != "3" and transfer.is_new:
            self._alternatives.failed(origin, now)
        if isinstance(result, HttpResponse) and self._settings.http3:
            self._alternatives.learn(origin, port, result.headers, now)

    def _proxy_of(self, request: HttpRequest) -> str:
        return self._proxy if request.proxy is None else _proxy(request.proxy)

    async def _perform(
        self, multi: AsyncCurl, loop: asyncio.AbstractEventLoop, curl: Curl, transfer: Transfer
    ) -> CurlError | None:
        watch = _Watch(multi, loop, curl, transfer, self._settings)
        done = multi.add_handle(curl)
        watch.start()
        try:
            await done
        except CurlError as error:
            return error
        finally:
            watch.stop()
        return None

    def _answer(
        self, curl: Curl, transfer: Transfer, error: CurlError | None, now: float
    ) -> HttpResponse | HttpFailure:
        body = transfer.body
        if transfer.stopped == "cut" and body is not None:
            return self._response(curl, transfer, body, now)
        if error is None and not transfer.stopped and body is not None:
            reason = body.finish()
            return self._failure(transfer, reason, "", now) if reason else self._response(curl, transfer, body, now)
        if transfer.stopped:
            return self._failure(transfer, transfer.stopped, "", now)
        if error is None:
            return self._failure(transfer, "protocol_error", "the answer has no final header", now)
        text = message_of(str(error))
        reason = reason_of(
            int(error.code),
            text,
            connected=_microseconds(curl, CurlInfo.PRETRANSFER_TIME_T) > 0,
            answered=transfer.answered,
            timed_out=now - transfer.started >= transfer.request.total_seconds_max - 0.05,
            proxied=bool(self._proxy_of(transfer.request)),
        )
        return self._failure(transfer, reason, text, now)

    def _response(self, curl: Curl, transfer: Transfer, body: Body, now: float) -> HttpResponse:
        sent = _microseconds(curl, CurlInfo.PRETRANSFER_TIME_T)
        first_byte = _microseconds(curl, CurlInfo.STARTTRANSFER_TIME_T)
        return HttpResponse(
            status=transfer.status,
            headers=tuple(transfer.headers),
            body=body.content(),
            wire_bytes=body.wire_bytes,
            http_version=transfer.http_version,
            address="" if self._proxy_of(transfer.request) else transfer.address,
            connect_ms=sent / 1000,
            first_byte_ms=max(0, first_byte - sent) / 1000,
            total_ms=(now - transfer.started) * 1000,
        )

    def _failure(self, transfer: Transfer, reason: str, message: str, now: float) -> HttpFailure:
        told = message and reason not in {"truncated", "proxy_auth_required"}
        sentence = message if told else SENTENCES.get(reason, message or reason)
        if reason.endswith("_timeout"):
            sentence = SENTENCES[reason]
        return HttpFailure(
            reason=reason,
            detail=f"{transfer.request.url}: {sentence}",
            retryable=reason in RETRYABLE,
            status=transfer.status,
            headers=tuple(transfer.headers),
            address="" if self._proxy_of(transfer.request) else transfer.address,
            total_ms=(now - transfer.started) * 1000,
        )

    def _give_back(self, curl: Curl, profile: str) -> None:
        """Keep the handle for the next request; its lists of headers and pinned names are freed first."""
        curl.clean_handles_and_buffers()
        idle = self._idle.setdefault(profile, [])
        if not self._multis or len(idle) >= self._settings.connections_idle_max:
            curl.close()
        else:
            idle.append(curl)


class _Watch:
    """Ends a transfer whose first byte, or next byte, takes too long."""

    def __init__(
        self,
        multi: AsyncCurl,
        loop: asyncio.AbstractEventLoop,
        curl: Curl,
        transfer: Transfer,
        settings: FetchSettings,
    ) -> None:
        self._multi = multi
        self._loop = loop
        self._curl = curl
        self._transfer = transfer
        self._settings = settings
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        first = min(self._settings.first_byte_seconds_max, self._settings.idle_seconds_max)
        self._timer = self._loop.call_at(self._transfer.started + first, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if self._transfer.answered:
            reason, due = "idle_timeout", self._transfer.last_activity + self._settings.idle_seconds_max
        else:
            sent_us = _microseconds(self._curl, CurlInfo.PRETRANSFER_TIME_T)
            sent = self._transfer.started + sent_us / 1e6 if sent_us else now  # else libcurl still watches the connect
            reason, due = "first_byte_timeout", sent + self._settings.first_byte_seconds_max
        if now < due:
            wait = min(due - now, self._settings.idle_seconds_max)
            self._timer = self._loop.call_later(max(wait, 0.001), self._look)
            return
        self._transfer.stopped = reason
        self._multi.set_exception(self._curl, CurlError(reason, _TIMED_OUT))


def _pinned(request: HttpRequest) -> list[str]:
    """The entry that makes libcurl connect to the checked address; `+` lets it expire."""
    if not request.address:
        return []
    parts = urlsplit(request.url)
    host = parts.hostname or ""
    if host == request.address:
        return []
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = f"[{request.address}]" if ":" in request.address else request.address
    return [f"+{host}:{port}:{address}"]


def _origin(request: HttpRequest) -> tuple[str, int]:
    """Scheme, host and port, and the port alone."""
    parts = urlsplit(request.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme}://{parts.hostname}:{port}", port


def _microseconds(curl: Curl, info: CurlInfo) -> int:
    value = curl.getinfo(info)
    return value if isinstance(value, int) else 0


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _proxy(url: str) -> str:
    """The proxy as libcurl takes it; names are always resolved by the proxy."""
    if not url:
        return ""
    checked_proxy(url, "fetch.proxy")
    return f"socks5h{url.removeprefix('socks5')}" if url.startswith("socks5:") else url


def _ca_file(path: str) -> str:
    if path and not Path(path).is_file():
        raise SettingsError(f"fetch.ca_file = {path!r} cannot be used; there is no such file")
    return path
