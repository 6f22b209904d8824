"""The proxy that all requests of a browser pass: it resolves and checks each host, and connects to what it checked.

A browser resolves names itself, follows redirects itself and opens sockets for scripts. So it is given no network but
this: an HTTP proxy on an address of our own, one port for each browser context, which tunnels (CONNECT, RFC 9110,
section 9.3.6) or forwards plain requests, counts what passes, and cuts off what is beyond the limits of a page.
"""

import asyncio
import contextlib
import re
import secrets
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from trawl.adapters.browser.peers import is_ours
from trawl.adapters.browser.upstream import RefusedError, Streams, credential, forwards, open_to

Check: TypeAlias = Callable[[str, int, bool], Awaitable[tuple[str, ...]]]
"""The addresses of a host and port that may be connected to, none if it goes through a proxy; raises RefusedError."""

_HEAD_BYTES_MAX: Final = 65_536
_HEAD_SECONDS_MAX: Final = 30.0
_CONNECT_SECONDS_MAX: Final = 10.0
_IDLE_SECONDS_MAX: Final = 60.0
_PIECE_BYTES: Final = 65_536
_AUTHORITY: Final = re.compile(rb"(?:\[([0-9A-Fa-f:.]+)\]|([^\s/:@\[\]]+)):(\d{1,5})")
_HOP_BY_HOP: Final = (b"connection:", b"proxy-connection:", b"proxy-authorization:", b"keep-alive:")


@dataclass(slots=True)
class Meter:
    """What has passed for one page, and how much may."""

    wire_bytes_max: int
    connections_max: int
    wire_bytes: int = 0
    connections: int = 0
    refused: int = 0

    def begin(self) -> None:
        """Count from zero, for the next page."""
        self.wire_bytes = self.connections = self.refused = 0

    @property
    def spent(self) -> bool:
        """Whether no more may pass."""
        return self.wire_bytes >= self.wire_bytes_max or self.connections > self.connections_max


class EgressProxy:
    """One port on which a browser context finds the network; `async with` opens and closes it.

    With a password, everybody who knows it may use the port; without one, only processes of this user.
    """

    def __init__(
        self, check: Check, meter: Meter, *, host: str, upstream: str = "", with_password: bool = False
    ) -> None:
        self._check = check
        self._meter = meter
        self._host = host
        self._upstream = upstream
        self.password = secrets.token_urlsafe(18) if with_password else ""
        self._credential = b"Basic " + b64encode(f"trawl:{self.password}".encode())
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Where the browser finds it."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def open(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._accept, self._host, 0, limit=_HEAD_BYTES_MAX)

    async def close(self) -> None:
        """Stop listening, and cut off all that still passes."""
        if self._server is not None:
            self._server.close()
        self.cut_off()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)

    def cut_off(self) -> None:
        """End all connections of the page that is over."""
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass  # the browser or the server went away, which is theirs to do
        except asyncio.CancelledError:
            pass  # the page is over: nobody waits for this task
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.password and not is_ours(writer):
            return
        async with asyncio.timeout(_HEAD_SECONDS_MAX):
            head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head[:-4].split(b"\r\n")
        method, _, rest = request.partition(b" ")
        target = rest.partition(b" ")[0]
        if self.password and not self._knows_password(lines):
            await _answer(writer, 407, "Proxy-Authenticate: Basic realm=trawl\r\n")
            return
        self._meter.connections += 1
        try:
            streams = await self._connected(method, target)
        except (RefusedError, OSError, TimeoutError):
            self._meter.refused += 1
            await _answer(writer, 403)
            return
        try:
            await self._pass(method, target, lines, (reader, writer), streams)
        finally:
            streams[1].transport.abort()

    def _knows_password(self, lines: list[bytes]) -> bool:
        given = [line.partition(b":")[2].strip() for line in lines if line.lower().startswith(b"proxy-authorization:")]
        return len(given) == 1 and secrets.compare_digest(given[0], self._credential)

    async def _connected(self, method: bytes, target: bytes) -> Streams:
        """A connection to the checked address of what is asked for; raises RefusedError."""
        host, port = _asked_for(method, target)
        if self._meter.spent:
            raise RefusedError
        async with asyncio.timeout(_CONNECT_SECONDS_MAX):
            addresses = await self._check(host, port, bool(self._upstream))
            return await open_to(host, port, addresses, self._upstream, tunnel=not self._forwards(method))

    def _forwards(self, method: bytes) -> bool:
        """Whether a request is handed to the upstream proxy as it is."""
        return method != b"CONNECT" and forwards(self._upstream)

    async def _pass(self, method: bytes, target: bytes, lines: list[bytes], browser: Streams, server: Streams) -> None:
        if method == b"CONNECT":
            browser[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server[1].write(self._forwarded(method, target, lines))
        up = asyncio.create_task(self._pump(browser[0], server[1]))
        try:
            if method != b"CONNECT":
                browser[1].write(await _closing_head(server[0]))
            await self._pump(server[0], browser[1])
        finally:
            up.cancel()
            await asyncio.wait([up])

    def _forwarded(self, method: bytes, target: bytes, lines: list[bytes]) -> bytes:
        """The head of a plain request as it is sent on: for one exchange, without what was for us."""
        kept = [line for line in lines if not line.lower().startswith(_HOP_BY_HOP)]
        if self._forwards(method):
            secret = credential(self._upstream)
            kept += [f"Proxy-Authorization: {secret}".encode()] if secret else []
        else:
            parts = urlsplit(target.decode("ascii"))
            target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}".encode()
        return b"\r\n".join([method + b" " + target + b" HTTP/1.1", *kept, b"Connection: close", b"", b""])

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        """Pass bytes on and count them, until one side ends or the page has had its share."""
        while not self._meter.spent:
            async with asyncio.timeout(_IDLE_SECONDS_MAX):
                piece = await source.read(_PIECE_BYTES)
                if not piece:
                    break
                self._meter.wire_bytes += len(piece)
                sink.write(piece)
                await sink.drain()
        with contextlib.suppress(OSError):
            if sink.can_write_eof():
                sink.write_eof()


def _asked_for(method: bytes, target: bytes) -> tuple[str, int]:
    """The host and port of a request to a proxy; raises RefusedError."""
    if method == b"CONNECT":
        match = _AUTHORITY.fullmatch(target)
        if match is None:
            raise RefusedError
        return (match[1] or match[2]).decode("ascii", "replace").lower(), int(match[3])
    try:
        parts = urlsplit(target.decode("ascii"))
        host, port = parts.hostname or "", parts.port or 80
    except ValueError:
        raise RefusedError from None
    if parts.scheme != "http" or not host:
        raise RefusedError
    return host, port


async def _closing_head(server: asyncio.StreamReader) -> bytes:
    """The head of the answer, which tells the browser that this connection is for one exchange."""
    async with asyncio.timeout(_IDLE_SECONDS_MAX):
        head = await server.readuntil(b"\r\n\r\n")
    status, *lines = head[:-4].split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(_HOP_BY_HOP)]
    return b"\r\n".join([status, *kept, b"Connection: close", b"", b""])


async def _answer(writer: asyncio.StreamWriter, status: int, fields: str = "") -> None:
    writer.write(f"HTTP/1.1 {status} trawl\r\n{fields}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    with contextlib.suppress(OSError):
        await writer.drain()
        writer.write_eof()
        await asyncio.sleep(0)
