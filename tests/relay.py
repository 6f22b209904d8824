"""A way to a server that is shut, slow, or changes what passes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeAlias

from devstack.process import free_port

Change: TypeAlias = Callable[[bytes], bytes]
"""What is made of the bytes that a server answers."""
_CHUNK_BYTES = 65_536


class Relay:
    """A port of loopback behind which a server is, unless it is shut."""

    def __init__(self, target: int, *, connect_seconds: float = 0.0) -> None:
        self.port = free_port()
        self.change: Change | None = None
        self._target = target
        self._connect_seconds = connect_seconds
        self._server: asyncio.Server | None = None
        self._ways: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Pass connections on."""
        self._server = await asyncio.start_server(self._taken, "127.0.0.1", self.port)

    async def shut(self) -> None:
        """Cut all connections, and take none."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for way in self._ways:
            way.cancel()
        await asyncio.gather(*self._ways, return_exceptions=True)

    def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        way = asyncio.create_task(self._pass_on(reader, writer))
        self._ways.add(way)
        way.add_done_callback(self._ways.discard)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with _closing(writer):
            await asyncio.sleep(self._connect_seconds)
            answers, asked = await asyncio.open_connection("127.0.0.1", self._target)
            async with _closing(asked):
                await asyncio.gather(
                    self._copy(reader, asked, changed=False), self._copy(answers, writer, changed=True)
                )

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, changed: bool) -> None:
        while data := await source.read(_CHUNK_BYTES):
            sink.write(self.change(data) if changed and self.change is not None else data)
            await sink.drain()
        sink.close()


@asynccontextmanager
async def _closing(writer: asyncio.StreamWriter) -> AsyncIterator[None]:
    """Close a connection in the end, and wait until it is; that it breaks meanwhile is nothing to tell."""
    with suppress(OSError):
        try:
            yield
        finally:
            writer.close()
            await writer.wait_closed()


@asynccontextmanager
async def relay(target: int, *, connect_seconds: float = 0.0) -> AsyncIterator[Relay]:
    """A relay that is open, until the end of the block; each connection takes so long to be made."""
    made = Relay(target, connect_seconds=connect_seconds)
    await made.open()
    try:
        yield made
    finally:
        await made.shut()
