"""What the worker commits, through a real broker: out of order, over rebalances and kills, nothing is lost."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.servers import KafkaServer

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 8
TASKS, RESULTS = "trawl.fetch-tasks", "trawl.fetched"


class Group:
    """Processes of one consumer group, started and killed."""

    def __init__(self, bootstrap: str, *, in_flight: int = 200) -> None:
        self._command = [sys.executable, "-m", "tests.integration.commit_worker", bootstrap, "commit", str(in_flight)]
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, count: int = 1) -> None:
        for _ in range(count):
            process = subprocess.Popen(self._command, cwd=ROOT, stderr=subprocess.PIPE, env={**os.environ})
            self.processes.append(process)

    def kill(self, number: int = signal.SIGKILL) -> None:
        process = self.processes.pop(0)
        process.send_signal(number)
        process.wait()
        if process.stderr:
            process.stderr.close()

    def alive(self) -> bool:
        return all(process.poll() is None for process in self.processes)

    def close(self) -> None:
        while self.processes:
            self.kill()


@asynccontextmanager
async def topics(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(TASKS, PARTITIONS, 1), NewTopic(RESULTS, 1, 1)])
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            yield producer
        await admin.delete_topics([TASKS, RESULTS])
    finally:
        await admin.close()


async def put(producer: AIOKafkaProducer, count: int, *, slow: Sequence[int] = ()) -> None:
    for number in range(count):
        word = "slow" if number in slow else "quick"
        await producer.send(TASKS, f"{word}:{number}".encode(), partition=number % PARTITIONS)
    await producer.flush()


class Look:
    """What a bystander sees: results, and how far the group has committed."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.seen: Counter[int] = Counter()

    async def __aenter__(self) -> Self:
        self._results = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        await self._results.start()
        self._results.assign([TopicPartition(RESULTS, 0)])
        await self._results.seek_to_beginning()
        self._group = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap, group_id="commit-fetcher", enable_auto_commit=False
        )
        await self._group.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._results.stop()
        await self._group.stop()

    async def results(self) -> int:
        """How many different records have a result by now."""
        while True:
            found = await self._results.getmany(timeout_ms=200)
            if not found:
                return len(self.seen)
            for records in found.values():
                self.seen.update(int(record.value.partition(b":")[2]) for record in records if record.value)

    async def committed(self) -> dict[int, int]:
        """By partition the committed offset."""
        return {
            partition: await self._group.committed(TopicPartition(TASKS, partition)) or 0
            for partition in range(PARTITIONS)
        }

    async def nothing_is_committed_without_its_result(self) -> None:
        committed = await self.committed()
        await self.results()
        missing = [
            number
            for partition, offset in committed.items()
            for number in range(partition, partition + PARTITIONS * offset, PARTITIONS)
            if number not in self.seen
        ]
        assert missing == []


@pytest.fixture
def group(kafka_server: KafkaServer) -> Iterator[Group]:
    found = Group(kafka_server.bootstrap)
    yield found
    found.close()


async def until_all(look: Look, group: Group, count: int, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while await look.results() < count:
            assert group.alive()
    async with asyncio.timeout(10):
        while sum((await look.committed()).values()) < count:  # noqa: ASYNC110 - a broker tells nobody
            await asyncio.sleep(0.1)


@pytest.mark.timeout(240)
async def test_thousands_of_records_out_of_order_over_rebalances_and_kills(
    kafka_server: KafkaServer, group: Group
) -> None:
    count = 6000
    async with topics(kafka_server.bootstrap) as producer, Look(kafka_server.bootstrap) as look:
        await put(producer, count)
        group.start(2)
        for number in range(4):
            reached = min(count * (number + 1) // 6, count)
            async with asyncio.timeout(60):
                while await look.results() < reached:
                    await look.nothing_is_committed_without_its_result()
            group.kill(random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            group.start(2 if number == 1 else 1)
        await until_all(look, group, count, 120)
        await look.nothing_is_committed_without_its_result()
        assert set(look.seen) == set(range(count))
        twice = sum(times - 1 for times in look.seen.values())
        assert twice < 4 * 2 * 300  # of each kill or rebalance at most what was under way or not yet committed


async def test_a_slow_record_holds_back_its_partitions_commit_and_nothing_else(
    kafka_server: KafkaServer, group: Group
) -> None:
    async with topics(kafka_server.bootstrap) as producer, Look(kafka_server.bootstrap) as look:
        await put(producer, 1600, slow=(0,))
        group.start()
        async with asyncio.timeout(30):
            while await look.results() < 1599:
                pass
        async with asyncio.timeout(30):
            while list((await look.committed()).values())[1:] != [200] * (PARTITIONS - 1):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.1)
        assert (await look.committed())[0] == 0
        await until_all(look, group, 1600, 60)
