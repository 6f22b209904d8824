"""Connections out of the egress proxy: to a checked address, or through the proxy that the operator named."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final, TypeAlias
from urllib.parse import SplitResult, unquote, urlsplit

Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
"""Of one connection."""

_PORTS: Final = {"http": 3128, "https": 443, "socks5": 1080, "socks5h": 1080}
_SOCKS_NAME: Final = 3


class RefusedError(Exception):
    """That a connection must not, or cannot, be made."""


def forwards(upstream: str) -> bool:
    """Whether a proxy takes plain requests as they are, so that it needs no tunnel for them."""
    return upstream.startswith(("http://", "https://"))


def credential(upstream: str) -> str:
    """The credential for a proxy; empty without one."""
    parts = urlsplit(upstream)
    if parts.username is None:
        return ""
    return "Basic " + b64encode(f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()).decode()


async def open_to(host: str, port: int, addresses: Sequence[str], upstream: str, *, tunnel: bool = True) -> Streams:
    """A connection to a checked address, or to or through the upstream proxy; raises RefusedError or OSError."""
    if upstream:
        return await _through(urlsplit(upstream), host, port, upstream if tunnel else "")
    for address in addresses:
        try:
            reader, writer = await asyncio.open_connection(address, port)
        except OSError:
            continue
        peer = writer.get_extra_info("peername")
        if peer is None or ip_address(peer[0].partition("%")[0]) != ip_address(address.partition("%")[0]):
            writer.transport.abort()
            raise RefusedError
        return reader, writer
    raise RefusedError


async def _through(proxy: SplitResult, host: str, port: int, upstream: str) -> Streams:
    """A tunnel through a proxy: CONNECT over HTTP or HTTPS, or SOCKS5 (RFC 1928, RFC 1929); none without `upstream`."""
    context = ssl.create_default_context() if proxy.scheme == "https" else None
    reader, writer = await asyncio.open_connection(
        proxy.hostname, proxy.port or _PORTS.get(proxy.scheme, 3128), ssl=context
    )
    try:
        if proxy.scheme.startswith("socks5"):
            await _socks(proxy, host, port, reader, writer)
        elif upstream:
            await _connect(credential(upstream), host, port, reader, writer)
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer


async def _connect(
    credential: str, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if credential:
        lines.append(f"Proxy-Authorization: {credential}")
    writer.write("\r\n".join([*lines, "", ""]).encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ")[1:2] != [b"200"]:
        raise RefusedError


async def _socks(
    proxy: SplitResult, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    named = proxy.username is not None
    writer.write(b"\x05\x01\x02" if named else b"\x05\x01\x00")
    if await reader.readexactly(2) != (b"\x05\x02" if named else b"\x05\x00"):
        raise RefusedError
    if named:
        user, password = unquote(proxy.username or "").encode(), unquote(proxy.password or "").encode()
        writer.write(bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        if (await reader.readexactly(2))[1]:
            raise RefusedError
    name = host.encode("ascii")
    writer.write(bytes([5, 1, 0, _SOCKS_NAME, len(name)]) + name + port.to_bytes(2, "big"))
    head = await reader.readexactly(5)
    if head[1]:
        raise RefusedError
    await reader.readexactly({1: 3, 3: head[4], 4: 15}.get(head[3], 0) + 2)
