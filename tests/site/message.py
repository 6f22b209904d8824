"""Requests as the fake web receives them and replies as it plays them, wire form included (RFC 9112)."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Literal

Framing = Literal["length", "chunked", "close"]
Cut = Literal["reset", "close"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; also the log entry of it. `at_seconds` is `time.monotonic()` when its head was complete."""

    at_seconds: float
    method: str
    scheme: str
    host: str
    port: int
    target: str
    head: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]

    @property
    def headers(self) -> dict[str, str]:
        """Header fields by lower-case name; of repeated ones the last."""
        return parse_headers(self.head)

    @property
    def origin(self) -> str:
        default = 443 if self.scheme == "https" else 80
        return f"{self.scheme}://{self.host}" + ("" if self.port == default else f":{self.port}")

    @property
    def url(self) -> str:
        return self.origin + self.target


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server does with one request; every misbehaviour is a field, so that they compose with `altered`."""

    status: int = 200
    body: bytes = b""
    content_type: str | None = "text/html; charset=utf-8"
    headers: tuple[tuple[str, str | bytes], ...] = ()
    stream: Callable[[], Iterable[bytes]] | None = None
    """Makes the body piece by piece instead of `body`; sent chunked unless `claimed_bytes` or `framing` differ."""
    framing: Framing = "length"
    codings: tuple[str, ...] = ()
    """Content codings that the server is willing to apply, in its order of preference."""
    variants: Mapping[str, bytes] = field(default_factory=dict)
    """Bodies encoded in advance, by coding; used where the request accepts one."""
    etag: str | None = None
    last_modified: str | None = None
    claimed_bytes: int | None = None
    """A Content-Length that need not be true."""
    wait_seconds: float = 0.0
    """Silence before the head; infinity never answers."""
    bytes_per_second: float | None = None
    cut_bytes: int | None = None
    """The connection ends after this many bytes of body."""
    cut: Cut = "reset"
    stall_bytes: int | None = None
    """Silence for ever after this many bytes of body."""
    endless_headers: bool = False
    raw: bytes | None = None
    """Written instead of a response, then the connection is closed; need not be HTTP."""

    @property
    def is_plain(self) -> bool:
        """Whether one write plays the whole reply."""
        return (
            self.stream is None
            and self.framing == "length"
            and not self.wait_seconds
            and self.bytes_per_second is None
            and self.cut_bytes is None
            and self.stall_bytes is None
            and not self.endless_headers
            and self.raw is None
            and self.claimed_bytes is None
        )


def parse_headers(head: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in head.split(b"\r\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            fields[name.decode("latin-1").lower()] = value.strip().decode("latin-1")
    return fields


def head_of(reply: Reply, body_bytes: int | None, coding: str | None, *, closes: bool) -> bytes:
    """The head of a response; `body_bytes` is None where the body is not framed by its length."""
    lines: list[bytes] = [_status_line(reply.status), _date()]
    if reply.content_type is not None:
        lines.append(b"Content-Type: " + _octets(reply.content_type))
    lines += [name.encode("ascii") + b": " + _octets(value) for name, value in reply.headers]
    if coding:
        lines.append(b"Content-Encoding: " + coding.encode("ascii"))
    if coding or reply.codings or reply.variants:
        lines.append(b"Vary: Accept-Encoding")
    if reply.etag is not None:
        lines.append(b"ETag: " + _octets(reply.etag))
    if reply.last_modified is not None:
        lines.append(b"Last-Modified: " + _octets(reply.last_modified))
    if body_bytes is not None:
        lines.append(b"Content-Length: %d" % body_bytes)
    elif not closes:
        lines.append(b"Transfer-Encoding: chunked")
    if closes:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


def not_modified(reply: Reply, headers: Mapping[str, str]) -> bool:
    """Whether the validators of the request hold (RFC 9110, 13.2.2: If-None-Match wins over If-Modified-Since)."""
    if reply.status != HTTPStatus.OK:
        return False
    if (asked := headers.get("if-none-match")) is not None:
        known = [tag.strip().removeprefix("W/") for tag in asked.split(",")]
        return reply.etag is not None and ("*" in known or reply.etag.removeprefix("W/") in known)
    since = headers.get("if-modified-since")
    return since is not None and since == reply.last_modified


_REASONS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus}


def _status_line(status: int) -> bytes:
    return _REASONS.get(status) or b"HTTP/1.1 %d Unknown" % status


def _octets(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


_date_cache: list[tuple[int, bytes]] = [(0, b"")]


def _date() -> bytes:
    """The Date field, made once a second."""
    now = int(time.time())
    if _date_cache[0][0] != now:
        _date_cache[0] = (now, b"Date: " + formatdate(now, usegmt=True).encode("ascii"))
    return _date_cache[0][1]
