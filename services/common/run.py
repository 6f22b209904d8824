"""One service process from its settings to its end: connections, telemetry, worker, consumer, signals."""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from services.common.connections import Patience
from services.common.consumer import Consumer, OnAssigned
from services.common.health import Health
from services.common.telemetry import Metrics, TelemetryServer
from services.common.watch import Watch
from services.common.worker import Producer, Work, Worker
from trawl.adapters.blobs import open_blobs
from trawl.adapters.clocks import SystemClock
from trawl.adapters.kafka import RecordProducer, Topics, open_codec
from trawl.errors import KafkaUnavailableError, SettingsError, TrawlError
from trawl.kinds import Stage
from trawl.ports import BlobStore, Clock
from trawl.settings import FILE_VARIABLE, Settings, load, read

_LOG = logging.getLogger(__name__)
_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What every service is given."""

    settings: Settings
    clock: Clock
    health: Health
    metrics: Metrics
    patience: Patience
    watch: Watch
    """What the service cannot do without is added here."""
    producer: Producer
    blobs: BlobStore
    exit: AsyncExitStack
    """What is pushed here is closed when the service ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What one service does."""

    work: Work
    on_assigned: OnAssigned | None = None
    """Told the partitions, before a record of them is taken, and what is left when some are revoked."""
    loops: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = field(default=())
    """What runs beside the worker."""


Build = Callable[[Context], Awaitable[Service]]


def main(stage: Stage, build: Build, *, opens_content: bool = True) -> None:
    """Run a service until it is told to stop (SIGTERM, SIGINT); ends the process with 0, or with 1 after an error.

    `opens_content` is false for a stage that never looks at the text of documents: it is passed on as it came.
    """
    try:
        settings = _settings()
        _log_to_stderr(stage, settings.service.log_level)
        asyncio.run(serve(stage, build, settings, opens_content=opens_content))
    except TrawlError as error:
        sys.stderr.write(f"trawl {stage}: {error}\n")
        sys.exit(1)


async def serve(stage: Stage, build: Build, settings: Settings, *, opens_content: bool = True) -> None:
    """Run a service with these settings until it is told to stop."""
    health, clock = Health(), SystemClock()
    metrics = Metrics(stage, refresh_seconds=settings.opensearch.refresh_seconds)
    patience = Patience(health, clock, settings.service)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with AsyncExitStack() as exit_:
        telemetry = TelemetryServer(metrics, health, settings.service)
        await telemetry.open()
        exit_.push_async_callback(telemetry.close)
        starting = asyncio.create_task(
            _start(build, settings, health, metrics, clock, patience, exit_, opens_content=opens_content)
        )
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        service, worker, consumer = starting.result()
        health.begun()
        await _run(service, worker, consumer, stopping, settings)


async def _start(
    build: Build,
    settings: Settings,
    health: Health,
    metrics: Metrics,
    clock: Clock,
    patience: Patience,
    exit_: AsyncExitStack,
    *,
    opens_content: bool,
) -> tuple[Service, Worker, Consumer]:
    """Open all connections; each is waited for, and readiness says for which."""
    blobs = open_blobs(settings.blobs, Path.cwd())
    watch = Watch(health, clock, settings.service.check_seconds)
    topics = Topics(settings.kafka)
    exit_.push_async_callback(topics.close)
    await patience.until_done("the topics", topics.require)
    watch.add("the topics", lambda: _require(topics))
    opened = partial(open_codec, settings.kafka, blobs=blobs, opens_content=opens_content)
    codec = await patience.until_done("the schema registry", opened)
    exit_.push_async_callback(codec.close)
    producer = RecordProducer(settings.kafka, codec)
    exit_.push_async_callback(producer.close)
    await patience.until_done("Kafka", producer.open)
    context = Context(
        settings=settings,
        clock=clock,
        health=health,
        metrics=metrics,
        patience=patience,
        watch=watch,
        producer=producer,
        blobs=blobs,
        exit=exit_,
    )
    service = await build(context)
    service = replace(service, loops=(*service.loops, watch.run))
    worker = Worker(service.work, codec, producer, patience, metrics, clock)
    consumer = Consumer(service.work, worker, settings.kafka, on_assigned=service.on_assigned)
    return service, worker, consumer


async def _require(topics: Topics) -> None:
    """Raise KafkaError unless all topics are as they must be; after a failure the next look connects anew."""
    try:
        await topics.require()
    except KafkaUnavailableError:
        await topics.close()
        raise


async def _run(
    service: Service, worker: Worker, consumer: Consumer, stopping: asyncio.Task[Any], settings: Settings
) -> None:
    tasks = [
        asyncio.create_task(consumer.run(), name="consumer"),
        asyncio.create_task(worker.crashed(), name="worker"),
        *(asyncio.create_task(loop(), name="loop") for loop in service.loops),
    ]
    await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    _LOG.info("stopping")
    ended = [task for task in tasks if task.done()]
    for task in tasks[2:]:
        task.cancel()
    worker.close()
    await worker.idle(settings.service.stop_seconds_max)
    worker.cancel()
    await consumer.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        await task


# Settings and logs


def _settings() -> Settings:
    path = os.environ.get(FILE_VARIABLE, "")
    return load(read(Path(path) if path else None), os.environ)


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = str(stage)

    def format(self, record: logging.LogRecord) -> str:
        """The line of one log record."""
        line = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "stage": self._stage,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _log_to_stderr(stage: Stage, level: str) -> None:
    if level.lower() not in _LEVELS:
        raise SettingsError(f"service.log_level = {level!r} cannot be used; it is one of {', '.join(_LEVELS)}")
    handler = logging.StreamHandler()
    handler.setFormatter(_JsonLines(stage))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in ("aiokafka", "faust", "mode"):
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLogger().level))
    logging.getLogger("opensearch").setLevel(logging.ERROR)  # it warns of each document that is not there
