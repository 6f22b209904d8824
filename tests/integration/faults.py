"""What the tests of bad input share: a way to a server that is shut or lies, and what a service says of itself."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from devstack.process import free_port
from devstack.server import ask
from tests.e2e.deployed import Deployment
from tests.servers import RedisServer

Change: TypeAlias = Callable[[bytes], bytes]
"""What is made of the bytes that a server answers."""
QUICK = {
    "TRAWL_SERVICE_RETRY_SECONDS": "0.2",
    "TRAWL_SERVICE_RETRY_SECONDS_MAX": "0.5",
    "TRAWL_SERVICE_CHECK_SECONDS": "0.5",
    "TRAWL_KAFKA_REQUEST_SECONDS_MAX": "5",
}
"""Short waits between two tries."""
_CHUNK_BYTES = 65_536
_POLL_SECONDS = 0.2
_TIME = re.compile(rb"\A\*2\r\n\$10\r\n(\d{10})\r\n(\$\d\r\n\d{1,6}\r\n)\Z")
"""What Redis answers to TIME: seconds and microseconds."""


class Relay:
    """A port of loopback behind which a server is, unless it is shut."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.change: Change | None = None
        self._target = target
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
        with ExitStack() as stack, suppress(OSError):
            stack.enter_context(closing(writer))
            answers, asked = await asyncio.open_connection("127.0.0.1", self._target)
            stack.enter_context(closing(asked))
            await asyncio.gather(self._copy(reader, asked, changed=False), self._copy(answers, writer, changed=True))

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, changed: bool) -> None:
        while data := await source.read(_CHUNK_BYTES):
            sink.write(self.change(data) if changed and self.change is not None else data)
            await sink.drain()
        sink.close()


@asynccontextmanager
async def relay(target: int) -> AsyncIterator[Relay]:
    """A relay that is open, until the end of the block."""
    made = Relay(target)
    await made.open()
    try:
        yield made
    finally:
        await made.shut()


def later(seconds: int) -> Change:
    """Redis tells a time that is so much later: to a client its own clock is slow."""
    return lambda data: _TIME.sub(lambda found: b"*2\r\n$10\r\n%d\r\n%b" % (int(found[1]) + seconds, found[2]), data)


@contextmanager
def own_redis(folder: Path) -> Iterator[RedisServer]:
    """A Redis of one's own, to be told and to be filled as one likes."""
    with RedisServer(folder / "own-redis", free_port()) as server:
        yield server


# What services say


class Witness:
    """Looks at what the services of a deployment say of themselves."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    async def until(self, wanted: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
        """Wait until something holds; fails with the ends of the logs, and if a service has ended."""
        end = asyncio.get_running_loop().time() + seconds
        while not await wanted():
            dead = [stage for stage, process in self._deployment.processes if process.poll() is not None]
            assert not dead, f"{dead} ended by themselves\n{self._deployment.log()}"
            assert asyncio.get_running_loop().time() < end, f"not within {seconds} s\n{self._deployment.log()}"
            await asyncio.sleep(_POLL_SECONDS)

    async def until_ready(self, *stages: str) -> None:
        """Wait until they say that they are ready."""

        async def ready() -> bool:
            return all([(await self._said(stage))[0] == 200 for stage in stages])

        await self.until(ready)

    async def told(self, stage: str, pattern: str) -> str:
        """The reason, once a service says that it is not ready for one that matches; alive it is all the time.

        The log has the reason as a warning, and the metrics that the service is not ready.
        """
        said = ""

        async def matches() -> bool:
            nonlocal said
            status, said = await self._said(stage)
            return status == 503 and re.search(pattern, said) is not None

        await self.until(matches)
        assert await asyncio.to_thread(ask, f"{self._deployment.where(stage)}/healthz") == (200, b"ok\n")
        assert (await self._metrics(stage))["trawl_ready"] == 0
        assert any(re.search(pattern, line) for line in self.warnings(stage)), self._deployment.log()
        return said

    async def until_behind(self, stage: str, topic: str, records: int) -> None:
        """Wait until the service says that it is so many records behind on a topic."""

        async def behind() -> bool:
            return (await self._metrics(stage)).get(f'trawl_lag_records{{topic="{topic}"}}') == records

        await self.until(behind)
        seconds = (await self._metrics(stage))[f'trawl_lag_seconds{{topic="{topic}"}}']
        assert (seconds > 0) == (records > 0)

    async def _metrics(self, stage: str) -> dict[str, float]:
        """By name and labels what `/metrics` tells."""
        _, text = await asyncio.to_thread(ask, f"{self._deployment.where(stage)}/metrics")
        lines = [line.rpartition(" ") for line in text.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    def warnings(self, stage: str) -> list[str]:
        """The warnings in a service's log."""
        lines = [json.loads(line) for line in self._log(stage).splitlines() if line.startswith("{")]
        return [str(line["message"]) for line in lines if line["level"] == "warning"]

    async def _said(self, stage: str) -> tuple[int, str]:
        if "metrics and health on" not in self._log(stage):
            return 0, ""
        return await asyncio.to_thread(self._deployment.ready, stage)

    def _log(self, stage: str) -> str:
        file = self._deployment.folder / f"{stage}.log"
        return file.read_text() if file.exists() else ""
