"""One client connection: parses requests, plays replies, and becomes a TLS tunnel end when asked to CONNECT."""

import asyncio
import ssl
import time
from typing import Protocol, cast

from tests.site.encodings import choose, encoded
from tests.site.log import RequestLog
from tests.site.message import Reply, Request, head_of, not_modified, parse_headers
from tests.site.play import play, reset

HEAD_BYTES_MAX = 64 * 1024
_EMPTY_STATUSES = (204, 304)


class Web(Protocol):
    """What a connection needs to know of the web it belongs to."""

    log: RequestLog

    def answer(self, request: Request, *, proxied: bool) -> Reply: ...

    def tunnel(self, host: str) -> ssl.SSLContext | Reply: ...


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive. Plain replies are one synchronous write; all others are played by a task."""

    def __init__(self, web: Web, connections: set["Connection"], *, scheme: str = "http") -> None:
        self._web = web
        self._connections = connections
        self._scheme = scheme
        self._authority: tuple[str, int] | None = None  # of the tunnel, once there is one
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._skip_bytes = 0  # of a request body
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._transport = None
        self._connections.discard(self)
        self._writable.set()
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._task is None:
            self._serve()

    # the Wire that `play` writes to

    async def send(self, data: bytes) -> None:
        if self._transport is None or self._transport.is_closing():
            raise ConnectionResetError("the client went away")
        self._transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def end(self, *, reset: bool = False) -> None:
        if self._transport is None:
            return
        if reset:
            self._reset()
            return
        self._transport.close()

    def _reset(self) -> None:
        if self._transport is not None:
            reset(self._transport)
            self._transport.abort()

    # requests

    def _serve(self) -> None:
        """Answer the requests in the buffer until one needs a task or there is none left."""
        while self._task is None and self._transport is not None and not self._transport.is_closing():
            if self._skip_bytes:
                skipped = min(self._skip_bytes, len(self._buffer))
                del self._buffer[:skipped]
                self._skip_bytes -= skipped
            end = self._buffer.find(b"\r\n\r\n")
            if self._skip_bytes or end < 0:
                if len(self._buffer) > HEAD_BYTES_MAX:
                    self._refuse(431)
                return
            head = bytes(self._buffer[:end])
            del self._buffer[: end + 4]
            self._dispatch(head)

    def _dispatch(self, head: bytes) -> None:
        headers = parse_headers(head)
        method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
        target = rest.rpartition(" ")[0]
        if not target:
            self._refuse(400)
        elif method == "CONNECT":
            self._connect(target)
        else:
            length = headers.get("content-length", "0")
            self._skip_bytes = int(length) if length.isdecimal() else 0
            self._answer(method, target, head, headers)

    def _answer(self, method: str, target: str, head: bytes, headers: dict[str, str]) -> None:
        scheme, authority, proxied = self._scheme, self._authority, self._authority is not None
        if target.startswith("http://"):  # absolute form: this is a forward proxy
            host, slash, path = target[7:].partition("/")
            authority, target, proxied = _split_authority(host, 80), slash + path or "/", True
        elif authority is None:
            authority = _split_authority(headers.get("host", ""), 443 if scheme == "https" else 80)
        request = Request(time.monotonic(), method, scheme, *authority, target, head)
        self._web.log.add(request)
        reply = self._web.answer(request, proxied=proxied)
        self._reply(request, headers, reply)

    def _reply(self, request: Request, headers: dict[str, str], reply: Reply) -> None:
        if (reply.etag is not None or reply.last_modified is not None) and not_modified(reply, headers):
            reply = Reply(304, content_type=None, etag=reply.etag, last_modified=reply.last_modified)
        coding, body = None, reply.body
        if reply.variants:
            coding = choose(reply.variants, headers.get("accept-encoding"))
            body = reply.variants[coding] if coding else body
        elif reply.codings and reply.stream is None:
            coding = choose(reply.codings, headers.get("accept-encoding"))
            body = encoded(body, coding) if coding else body
        closes = headers.get("connection", "").lower() == "close"
        head_only = request.method == "HEAD" or reply.status in _EMPTY_STATUSES
        if reply.is_plain:
            self._write_at_once(reply, body, coding, closes=closes, head_only=head_only)
        else:
            playing = self._play(request.host, reply, body, coding, closes=closes, head_only=head_only)
            self._task = asyncio.create_task(playing)

    def _write_at_once(self, reply: Reply, body: bytes, coding: str | None, *, closes: bool, head_only: bool) -> None:
        if self._transport is None:
            return
        length = None if reply.status in _EMPTY_STATUSES else len(body)
        head = head_of(reply, length, coding, closes=closes)
        self._transport.write(head if head_only else head + body)
        if closes:
            self._transport.close()

    async def _play(
        self, host: str, reply: Reply, body: bytes, coding: str | None, *, closes: bool, head_only: bool
    ) -> None:
        self._web.log.began(host)
        try:
            reusable = await play(reply, body, coding, self, head_only=head_only)
        except ConnectionError:
            reusable = False
        finally:
            self._web.log.ended(host)
        self._task = None
        if closes or not reusable:
            self.end()
        else:
            self._serve()

    def _refuse(self, status: int) -> None:
        if self._transport is not None:
            self._transport.write(head_of(Reply(status, content_type=None), 0, None, closes=True))
            self._transport.close()

    # CONNECT

    def _connect(self, target: str) -> None:
        host, port = _split_authority(target, 443)
        found = self._web.tunnel(host)
        if self._transport is None:
            return
        if isinstance(found, Reply):
            self._transport.write(head_of(found, len(found.body), None, closes=True) + found.body)
            self._transport.close()
            return
        self._authority = (host, port)
        self._transport.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if port != 80:
            self._scheme = "https"
            self._task = asyncio.create_task(self._start_tls(self._transport, found))

    async def _start_tls(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Swap the transport; requests that arrive during the swap wait in the buffer because a task is set."""
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(transport, self, context, server_side=True, ssl_handshake_timeout=30)
        except (OSError, ssl.SSLError):  # the client refused the certificate or went away
            transport.close()
            self._task = None
            self._connections.discard(self)
            return
        self._transport = secured
        self._task = None
        self._serve()


def _split_authority(authority: str, default_port: int) -> tuple[str, int]:
    host, colon, port = authority.lower().rpartition(":")
    if colon and port.isdecimal() and not authority.endswith("]"):
        return host, int(port)
    return authority.lower().removesuffix(":"), default_port
