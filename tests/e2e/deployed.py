"""The five services as processes over real servers, and what a bystander sees of them."""

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Self, TypeAlias

from aiokafka import AIOKafkaConsumer, TopicPartition

from devstack.server import ask
from tests.integration.kafka import topics_of
from tests.outside import outside
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.kafka import Topics
from trawl.errors import StoreError
from trawl.pipeline import TOPIC
from trawl.ports import CrawlProgress, StoredPage
from trawl.records import Record
from trawl.settings import load

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("frontier", "fetcher", "extractor", "dedup", "indexer")
QUICK = {
    "TRAWL_POLITENESS_DELAY_SECONDS": "0",
    "TRAWL_POLITENESS_ADAPTIVE_FACTOR": "0",
    "TRAWL_POLITENESS_ADDRESS_DELAY_SECONDS": "0",
    "TRAWL_POLITENESS_PER_HOST_CONCURRENCY": "16",
    "TRAWL_EMBEDDED_EXTRACT_WORKERS": "1",
    "TRAWL_FRONTIER_ATTEMPTS_MAX": "20",
    "TRAWL_FRONTIER_LEASE_SECONDS": "40",
    "TRAWL_FRONTIER_RETRY_SECONDS": "0.1",
    "TRAWL_KAFKA_SESSION_SECONDS": "6",
}
"""Short waits; a lease that a killed process held ends soon."""

_POLL_SECONDS = 0.2


class Deployment:
    """One deployment: its topics, its keys, its indices, and the processes that serve it."""

    def __init__(
        self,
        kafka: KafkaServer,
        redis: RedisServer,
        opensearch: OpenSearchServer,
        folder: Path,
        variables: Mapping[str, str],
    ) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")}
        prefix = f"e{random.randrange(10**9)}"
        self.variables = {
            **QUICK,
            "TRAWL_KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
            "TRAWL_KAFKA_GROUP_PREFIX": prefix,
            "TRAWL_KAFKA_PARTITIONS": "4",
            "TRAWL_REDIS_URL": redis.url,
            "TRAWL_REDIS_PREFIX": prefix,
            "TRAWL_OPENSEARCH_URL": opensearch.url,
            "TRAWL_OPENSEARCH_PREFIX": prefix,
            "TRAWL_BLOBS_URL": f"file:{folder / 'blobs'}",
            **variables,
        }
        self.environment = {**kept, **self.variables}
        self.folder = folder
        self.settings = load({}, self.environment)
        self.processes: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, *stages: str, module: str = "services.{}") -> None:
        """Start a process of each stage, from its own module or another."""
        for stage in stages or STAGES:
            with (self.folder / f"{stage}.log").open("ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-m", module.format(stage)], cwd=ROOT, env=self.environment, stderr=log
                )
            self.processes.append((stage, process))

    def kill(self, stage: str, number: int = signal.SIGKILL) -> None:
        """End one process of a stage."""
        found = next(one for one in self.processes if one[0] == stage)
        self.processes.remove(found)
        found[1].send_signal(number)
        found[1].wait(60)

    def ended(self, stage: str, seconds: float) -> int:
        """Wait for the end of a stage's only process; its exit code, negative for a signal."""
        found = next(one for one in self.processes if one[0] == stage)
        self.processes.remove(found)
        return found[1].wait(seconds)

    def where(self, stage: str) -> str:
        """The URL under which the stage's latest process tells of itself; fails if its log does not say."""
        found = re.findall(r"metrics and health on (http://[0-9.:]+)", (self.folder / f"{stage}.log").read_text())
        assert found, self.log()
        return str(found[-1])

    def ready(self, stage: str) -> tuple[int, str]:
        """The status and the text that the stage's latest process answers to `/readyz`; status 0 without an answer."""
        status, body = ask(f"{self.where(stage)}/readyz")
        return status, body.decode()

    async def until(
        self,
        wanted: Callable[[], Awaitable[bool]],
        seconds: float,
        *,
        about: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Wait until something holds; fails with the ends of the logs, and if a service has ended."""
        end = time.monotonic() + seconds
        while not await wanted():
            dead = [stage for stage, process in self.processes if process.poll() is not None]
            assert not dead, f"{dead} ended by themselves\n{self.log()}"
            if time.monotonic() >= end:
                told = await about() if about is not None else ""
                raise AssertionError(f"not within {seconds} s: {told}\n{self.log()}")
            await asyncio.sleep(_POLL_SECONDS)

    def memory_bytes(self) -> dict[str, int]:
        """By stage what its processes and those that they started hold in memory."""
        rows = [
            line.split() for line in subprocess.check_output(("ps", "-eo", "pid=,ppid=,rss="), text=True).splitlines()
        ]
        found: Counter[str] = Counter()
        for stage, process in self.processes:
            family = {process.pid}
            family |= {int(pid) for pid, parent, _ in rows if int(parent) == process.pid}
            found[stage] += 1024 * sum(int(size) for pid, _, size in rows if int(pid) in family)
        return dict(found)

    def close(self) -> None:
        """End all that still run."""
        for _, process in self.processes:
            process.terminate()
        for _, process in self.processes:
            process.wait(60)
        self.processes.clear()

    def log(self) -> str:
        """The ends of the services' logs."""
        files = [self.folder / f"{stage}.log" for stage in STAGES]
        return "\n".join(f"{file.name}: {file.read_text()[-1500:]}" for file in files if file.exists())


Deploy: TypeAlias = Callable[..., Deployment]
"""Makes a deployment with these variables."""


class Bystander:
    """Publishes seeds to a deployment and looks at its stores."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        settings = self._deployment.settings
        await self._exit.enter_async_context(topics_of(settings.kafka))
        blobs = FileBlobStore(self._deployment.folder / "blobs")
        connected = await self._exit.enter_async_context(outside(settings, blobs))
        self.codec, self.producer = connected.codec, connected.producer
        self.frontier, self.pages, self.index = connected.frontier, connected.pages, connected.index
        return self

    async def __aexit__(self, *_: object) -> None:
        self._deployment.close()
        await self._exit.aclose()

    async def send(self, *records: Record) -> None:
        """Publish records."""
        await self.producer.send(records)

    async def progress(self, crawl_id: str = "default") -> CrawlProgress:
        """How far a crawl is."""
        return await self.frontier.progress(crawl_id)

    async def until(self, wanted: Callable[[], Awaitable[bool]], seconds: float) -> None:
        """Wait until something holds; fails with the ends of the logs."""
        await self._deployment.until(lambda: self._holds(wanted), seconds, about=self.progress)

    async def _holds(self, wanted: Callable[[], Awaitable[bool]]) -> bool:
        try:
            return await wanted()
        except StoreError:  # the connection is to a server that has started again since
            return False

    async def until_indexed(self, count: int, seconds: float) -> None:
        """Wait until so many pages are stored and nothing of the crawl is under way."""

        async def done() -> bool:
            progress = await self.progress()
            return not progress.queued and not progress.leased and await self.pages.size() >= count

        await self.until(done, seconds)

    async def stored(self, crawl_id: str = "default") -> list[StoredPage]:
        """All pages of a crawl."""
        return [page async for page in self.pages.pages(crawl_id)]

    async def records(self, topic: str) -> list[Record]:
        """All records of a topic that can be read."""
        settings = self._deployment.settings.kafka
        consumer = AIOKafkaConsumer(bootstrap_servers=list(settings.bootstrap_servers), group_id=None)
        await consumer.start()
        try:
            count = Topics(settings).partitions(TOPIC[topic])
            places = [TopicPartition(topic, number) for number in range(count)]
            consumer.assign(places)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(places)
            found: list[Record] = []
            while any([await consumer.position(place) < ends[place] for place in places]):
                for batch in (await consumer.getmany(timeout_ms=500)).values():
                    for message in batch:
                        if message.value is None:  # the note that a dead letter was sent again
                            continue
                        found += await self.codec.decode(TOPIC[topic], message.value)
            return found
        finally:
            await consumer.stop()


@contextmanager
def deployed(
    servers: tuple[KafkaServer, RedisServer, OpenSearchServer], folder: Path, variables: Mapping[str, str]
) -> Iterator[Deployment]:
    """A deployment whose processes end with the block."""
    deployment = Deployment(*servers, folder, variables)
    try:
        yield deployment
    finally:
        deployment.close()


def through(proxy: str, ca_file: Path) -> dict[str, str]:
    """The variables by which any host of a fake web is reached."""
    return {"TRAWL_FETCH_PROXY": proxy, "TRAWL_FETCH_CA_FILE": str(ca_file)}


def texts(pages: Sequence[StoredPage]) -> set[tuple[str, int]]:
    """What does not depend on which of equal pages came first: the texts, and into how many chunks each was cut."""
    return {(page.document.content_sha256, len(page.chunks)) for page in pages}


def clusters(unique: Iterable[str], duplicates: Iterable[tuple[str, str]]) -> set[frozenset[str]]:
    """URLs with the same text, from the unique ones and the duplicates with what each repeats."""
    found = {url: {url} for url in unique}
    for url, original in duplicates:
        found[original].add(url)
    return {frozenset(urls) for urls in found.values()}
