"""What the tests of bad input share: a server that lies, and what a service says of itself."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from devstack.process import free_port
from devstack.server import ask
from tests.e2e.deployed import Deployment
from tests.relay import Change
from tests.servers import RedisServer

QUICK = {
    "TRAWL_SERVICE_RETRY_SECONDS": "0.2",
    "TRAWL_SERVICE_RETRY_SECONDS_MAX": "0.5",
    "TRAWL_SERVICE_CHECK_SECONDS": "0.5",
    "TRAWL_KAFKA_REQUEST_SECONDS_MAX": "5",
}
"""Short waits between two tries."""
_TIME = re.compile(rb"\A\*2\r\n\$10\r\n(\d{10})\r\n(\$\d\r\n\d{1,6}\r\n)\Z")
"""What Redis answers to TIME: seconds and microseconds."""


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
        await self._deployment.until(wanted, seconds)

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
