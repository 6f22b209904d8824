"""A Faust app that hands messages to the worker and commits only what the worker says.

Faust acknowledges a record whose agent raised, and with many records under way commits past unfinished ones
(faust-streaming issue 606). So its streams never acknowledge here: the offsets come from the worker, by partition the
contiguous prefix of what has ended, and are committed at an interval and when partitions are revoked.
"""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any, Final

import faust
from aiokafka.errors import KafkaError as BrokerError
from faust.types import TP

from services.common.progress import Place
from services.common.worker import Message, Work, Worker
from trawl.adapters.kafka.connection import tls_context
from trawl.kinds import Stage
from trawl.settings import KafkaSettings

_LOG = logging.getLogger(__name__)
COMMIT_SECONDS: Final = 0.5
"""Between two commits: what a crash makes a successor do again."""
METADATA_SECONDS: Final = 10.0
"""A topic that is made, or made anew, is found after at most this long; the client's own default is five minutes."""
LAG_SECONDS: Final = 5.0
"""Between two looks at how far the topics go."""
BUFFER_RECORDS: Final = 64
"""Records that wait for the worker in memory, by topic; bodies may be a megabyte each."""

OnAssigned = Callable[[frozenset[Place]], Awaitable[None]]


class Consumer:
    """The partitions of a stage's topics that the group gives this process."""

    def __init__(
        self, work: Work, worker: Worker, settings: KafkaSettings, *, on_assigned: OnAssigned | None = None
    ) -> None:
        self._worker = worker
        self._on_assigned = on_assigned
        self._data = tempfile.TemporaryDirectory(prefix="trawl-faust-")
        self.app = _app(work.stage, settings, self._data.name)
        self.places: frozenset[Place] = frozenset()
        """What is assigned now."""
        self._committing = asyncio.Lock()
        for topic in work.topics:
            self._agent(topic)
        signals: Any = self.app
        signals.on_partitions_assigned.connect(self._assigned)
        signals.on_partitions_revoked.connect(self._revoked)

    def _agent(self, name: str) -> None:
        raw: dict[str, Any] = {
            "key_type": bytes,
            "value_type": bytes,
            "key_serializer": "raw",
            "value_serializer": "raw",
        }
        topic = self.app.topic(name, **raw, allow_empty=True)

        async def forward(stream: Any) -> None:
            async for event in stream.noack().events():
                await self._worker.take(_message(event.message))

        forward.__name__ = name.replace(".", "_").replace("-", "_")
        self.app.agent(topic, concurrency=1)(forward)

    async def run(self) -> None:
        """Join the group and hand over messages until cancelled, or until Faust gives up (then RuntimeError)."""
        self.app.finalize()
        await self.app.start()
        tasks = [
            asyncio.create_task(self.app.wait_until_stopped()),
            asyncio.create_task(self._commit_always()),
            asyncio.create_task(self._measure_always()),
        ]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                await task
            raise RuntimeError(f"the consumer of group {self.app.conf.id} has ended: {self.app.crash_reason!r}")
        finally:
            for task in tasks:
                task.cancel()

    async def close(self) -> None:
        """Commit what has ended, and leave the group."""
        await self.commit()
        await self.app.stop()
        self._data.cleanup()

    async def commit(self) -> None:
        """Commit what the worker says; what fails is committed the next time."""
        async with self._committing:
            offsets = self._worker.committable()
            if not offsets or self.app.client_only:
                return
            try:
                consumer: Any = self.app.consumer
                done = await consumer._commit_offsets(  # noqa: SLF001 - the worker owns the commit, see above
                    {TP(topic, partition): offset for (topic, partition), offset in offsets.items()}
                )
            except BrokerError as error:
                _LOG.warning("offsets could not be committed, and will be: %r", error)
                return
            if done:
                self._worker.committed(offsets)

    async def _commit_always(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self.commit()

    async def _measure_always(self) -> None:
        while True:
            await asyncio.sleep(LAG_SECONDS)
            consumer: Any = self.app.consumer
            places = {TP(*place): place for place in self.places}
            try:
                ends = await consumer.highwaters(*places) if places else {}
            except (BrokerError, TimeoutError) as error:
                _LOG.debug("the ends of topics are not known: %r", error)
                continue
            begun = {places[at]: consumer._committed_offset.get(at) or 0 for at in ends}  # noqa: SLF001 - see above
            self._worker.measure_lag({places[at]: int(end or 0) for at, end in ends.items()}, begun)

    async def _assigned(self, _: Any, assigned: set[TP], **__: Any) -> None:
        self.places = frozenset((tp.topic, tp.partition) for tp in assigned)
        _LOG.info("%d partitions assigned", len(self.places))
        self._worker.assigned(self.places)
        if self._on_assigned is not None:
            await self._on_assigned(self.places)

    async def _revoked(self, _: Any, revoked: set[TP], **__: Any) -> None:
        if not revoked:
            return
        await self.commit()
        self.places -= {(tp.topic, tp.partition) for tp in revoked}
        if self._on_assigned is not None:
            await self._on_assigned(self.places)


def _app(stage: Stage, settings: KafkaSettings, folder: str) -> faust.App:
    session = settings.session_seconds
    return faust.App(
        f"{settings.group_prefix}-{stage}",
        broker=[f"kafka://{server}" for server in settings.bootstrap_servers],
        broker_credentials=_credentials(settings),
        broker_session_timeout=session,
        broker_heartbeat_interval=session / 5,
        broker_rebalance_timeout=3 * session,
        broker_request_timeout=max(settings.request_seconds_max, session + 5),
        broker_max_poll_records=BUFFER_RECORDS,
        consumer_metadata_max_age_ms=int(1000 * METADATA_SECONDS),
        consumer_max_fetch_size=2 * settings.record_bytes_max,
        consumer_auto_offset_reset="earliest",
        stream_buffer_maxsize=BUFFER_RECORDS,
        stream_wait_empty=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        datadir=folder,
        store="memory://",
    )


def _credentials(settings: KafkaSettings) -> Any:
    """What Faust needs of the security settings; None for plain connections."""
    protocol = settings.security_protocol
    context = None
    if protocol.endswith("SSL"):
        context = tls_context(settings)
    if protocol.startswith("SASL"):
        return faust.SASLCredentials(
            username=settings.username,
            password=settings.password,
            mechanism=settings.sasl_mechanism,
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context is not None else None


def _message(found: Any) -> Message:
    return Message(
        topic=found.topic,
        partition=found.partition,
        offset=found.offset,
        key=found.key or b"",
        value=found.value,
        timestamp_ms=int(1000 * found.timestamp) if found.timestamp else 0,
    )
