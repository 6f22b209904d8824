"""A fetcher-like process for test_worker_commit: takes records, ends them out of order, and sends each on.

    python -m tests.integration.commit_worker BOOTSTRAP GROUP_PREFIX IN_FLIGHT

Results go to `trawl.fetched`, one for each record, with its place in the key. What fails ends the process.
"""

import asyncio
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaProducer

from services.common.connections import Patience
from services.common.consumer import Consumer
from services.common.health import Health
from services.common.telemetry import Metrics
from services.common.worker import Message, Work, Worker
from trawl.adapters.clocks import SystemClock
from trawl.kinds import Stage
from trawl.pipeline import Topic
from trawl.settings import Settings

SLOW = b"slow"
SLOW_SECONDS = 10.0


class Raw:
    """Records are bytes here: the worker does not look inside."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self._producer = producer

    async def decode(self, topic: Topic, data: bytes) -> Sequence[Any]:
        del topic
        return [data]

    async def send(self, records: Sequence[Any]) -> None:
        sent = [await self._producer.send("trawl.fetched", record, partition=0) for record in records]
        await asyncio.gather(*sent)


async def step(records: Sequence[Any]) -> list[Sequence[Any]]:
    for record in records:
        await asyncio.sleep(SLOW_SECONDS if record.startswith(SLOW) else random.expovariate(1 / 0.03))
    return [[record] for record in records]


def alone(message: Message) -> Any:
    return message.topic, message.partition, message.offset


async def run(bootstrap: str, prefix: str, in_flight: int) -> None:
    settings = replace(Settings().kafka, bootstrap_servers=(bootstrap,), group_prefix=prefix, session_seconds=6.0)
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True) as producer:
        clock, raw = SystemClock(), Raw(producer)
        patience, metrics = Patience(Health(), clock, Settings().service), Metrics(Stage.FETCHER)
        work = Work(
            stage=Stage.FETCHER, topics=("trawl.fetch-tasks",), step=step, lane_of=alone, in_flight_max=in_flight
        )
        worker = Worker(work, raw, raw, patience, metrics, clock)
        consumer = Consumer(work, worker, settings)
        running = [asyncio.create_task(consumer.run()), asyncio.create_task(worker.crashed())]
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3])))
