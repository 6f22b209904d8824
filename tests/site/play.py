"""Plays a reply that is more than one write: slow, endless, cut, lying or streamed."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Protocol

from tests.site.message import Reply, head_of

_PIECE_BYTES = 64 * 1024
_TICK_SECONDS = 0.1
_RESET = struct.pack("ii", 1, 0)


class Wire(Protocol):
    """The sending side of a connection."""

    async def send(self, data: bytes) -> None: ...

    def end(self, *, reset: bool = False) -> None: ...


async def play(reply: Reply, body: bytes, coding: str | None, wire: Wire, *, head_only: bool) -> bool:
    """Play a reply to the end; True if the connection can serve another request."""
    await asyncio.sleep(reply.wait_seconds)
    if reply.raw is not None:
        await wire.send(reply.raw)
        return False
    if reply.endless_headers:
        await _endless_headers(wire)
    length = _length(reply, body)
    closes = reply.framing == "close"
    await wire.send(head_of(reply, length, coding, closes=closes))
    if head_only:
        return not closes
    chunked = length is None and not closes
    async for piece in _paced(_pieces(reply, body), reply):
        await wire.send(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
    return await _finish(reply, body, wire, chunked=chunked) and not closes


def reset(transport: asyncio.BaseTransport) -> None:
    """Make the close of a connection a TCP reset: a zero linger time discards what is unsent and sends RST."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _length(reply: Reply, body: bytes) -> int | None:
    if reply.claimed_bytes is not None:
        return reply.claimed_bytes
    return len(body) if reply.framing == "length" and reply.stream is None else None


def _pieces(reply: Reply, body: bytes) -> Iterator[bytes]:
    """The body in pieces that are never empty (an empty chunk would end the body)."""
    whole: Iterable[bytes] = (body,) if reply.stream is None else reply.stream()
    step = _PIECE_BYTES
    if reply.bytes_per_second is not None:
        step = max(1, int(reply.bytes_per_second * _TICK_SECONDS))
    for part in whole:
        for start in range(0, len(part), step):
            yield part[start : start + step]


async def _paced(pieces: Iterator[bytes], reply: Reply) -> AsyncIterator[bytes]:
    """The pieces at the wanted speed and up to the wanted end."""
    left = min(
        reply.cut_bytes if reply.cut_bytes is not None else 1 << 62,
        reply.stall_bytes if reply.stall_bytes is not None else 1 << 62,
    )
    for piece in pieces:
        if left <= 0:
            return
        yield piece[:left]
        left -= len(piece)
        if reply.bytes_per_second is not None:
            await asyncio.sleep(len(piece) / reply.bytes_per_second)


async def _finish(reply: Reply, body: bytes, wire: Wire, *, chunked: bool) -> bool:
    if reply.stall_bytes is not None:
        await asyncio.sleep(float("inf"))
    if reply.cut_bytes is not None:
        await asyncio.sleep(0.05)  # lets the bytes before the cut reach the client, which a reset would discard
        wire.end(reset=reply.cut == "reset")
        return False
    if chunked:
        await wire.send(b"0\r\n\r\n")
    return reply.claimed_bytes is None or reply.claimed_bytes == len(body)


async def _endless_headers(wire: Wire) -> None:
    await wire.send(b"HTTP/1.1 200 OK\r\n")
    number = 0
    while True:
        await wire.send(b"".join(b"X-Endless-%d: %b\r\n" % (number + i, b"a" * 100) for i in range(100)))
        number += 100
        await asyncio.sleep(0)
