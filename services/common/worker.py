"""The worker: decode, step, route, dead-letter; and for each partition what may be committed.

    consumer ──take()──> lane ──> decode ──> step ──> send, acknowledged ──> ended ──> (commit)
                                     │         │
                                     └─────────┴── dead letter, acknowledged ──┘

Records of one lane are done one batch after the other, in order; lanes do not wait for each other. A record has ended
when everything that follows from it was acknowledged by a broker, be it results or a dead letter. What a server that
does not answer holds up waits, and with it the partition's commit; it is neither dropped nor given up.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias

from services.common.connections import Patience
from services.common.lag import Stand, lag_of
from services.common.progress import Delivery, PartitionProgress, Place
from services.common.telemetry import Metrics
from trawl.errors import (
    BlobNotFoundError,
    EmbedderMismatchError,
    RecordDecodeError,
    SettingsError,
    StaleEpochError,
    StoreCorruptError,
    UnknownSchemaError,
)
from trawl.failures import failure, traceback_of, url_of
from trawl.kinds import Stage
from trawl.pipeline import TOPIC, Topic
from trawl.ports import Clock
from trawl.records import DeadLetter, Payload, Record

_LOG = logging.getLogger(__name__)
_SPAN_MAX = 20_000
"""Offsets of a partition from the first that has not ended; from there on the partition waits for it."""
_SPAN_SECONDS = 0.05
FATAL = (EmbedderMismatchError, SettingsError)
"""No record is to blame for these: the deployment is wired wrongly."""


@dataclass(frozen=True, slots=True)
class Message:
    """One record as a broker delivered it."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes | None
    timestamp_ms: int = 0

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self.topic, self.partition


class Codec(Protocol):
    """Bytes to records."""

    async def decode(self, topic: Topic, data: bytes) -> Sequence[Record]:
        """The records in a message; raises RecordDecodeError, UnknownSchemaError or KafkaError."""
        ...


class Producer(Protocol):
    """Records to a broker."""

    async def send(self, records: Sequence[Record]) -> None:
        """Send all, and return when a broker has acknowledged each; raises KafkaError or StoreError."""
        ...


Step: TypeAlias = Callable[[Sequence[Record]], Awaitable[Sequence[Sequence[Record]]]]
"""What a stage makes of records: the results of each, in order."""
LaneOf: TypeAlias = Callable[[Message], Hashable]
"""Which records wait for each other; a value of its own for each that waits for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a service does with its records."""

    stage: Stage
    topics: tuple[str, ...]
    """What is read."""
    step: Step
    lane_of: LaneOf
    batch_max: int = 1
    """Records that a lane gives to one step."""
    in_flight_max: int = 256
    """Records under way; no further ones are taken then."""
    done: Callable[[Sequence[Record]], Awaitable[None]] | None = None
    """Told records whose results were acknowledged; told again after an error that passes."""


async def one_by_one(
    step: Callable[[Record], Awaitable[Sequence[Record]]], records: Sequence[Record]
) -> list[Sequence[Record]]:
    """The step of a stage that takes one record at a time."""
    return [await step(record) for record in records]


def _placed(
    decoded: Sequence[tuple[Message, Sequence[Record]]], results: Sequence[Sequence[Record]]
) -> Iterator[Record]:
    """The results in order; a dead letter that a stage wrote says where the message lies that it is of."""
    messages = ((message, len(records)) for message, records in decoded for _ in records)
    for (message, count), found in zip(messages, results, strict=True):
        for result in found:
            yield _letter_of(message, result, whole=count == 1) if isinstance(result, DeadLetter) else result


def _letter_of(message: Message, letter: DeadLetter, *, whole: bool) -> DeadLetter:
    """The letter with the place of a message, and its bytes as they came; of one record among several, its own."""
    data = message.value or b""
    return replace(
        letter,
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        payload=Payload(inline=data, size_bytes=len(data)) if whole else letter.payload,
    )


@dataclass(slots=True)
class _Lane:
    waiting: deque[Message] = field(default_factory=deque)
    task: asyncio.Task[None] | None = None


class Worker:
    """Takes messages, works on them, and knows how far each partition may be committed."""

    def __init__(
        self, work: Work, codec: Codec, producer: Producer, patience: Patience, metrics: Metrics, clock: Clock
    ) -> None:
        self._work = work
        self._codec = codec
        self._producer = producer
        self._patience = patience
        self._metrics = metrics
        self._clock = clock
        self._places: dict[Place, PartitionProgress] = {}
        self._taken_ms: dict[Place, int] = {}
        self._lanes: dict[Hashable, _Lane] = {}
        self._room = asyncio.Semaphore(work.in_flight_max)
        self._in_flight = 0
        self._crashed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moved_at = time.monotonic()
        self._closed = asyncio.Event()

    # Messages

    def close(self) -> None:
        """Take nothing more; what is under way goes on."""
        self._closed.set()

    async def take(self, message: Message) -> None:
        """Begin with a message, as soon as there is room; what is known already is not begun again."""
        if self._closed.is_set():
            return
        progress = self._places.setdefault(message.place, PartitionProgress())
        delivery = progress.deliver(message.offset)
        self._taken_ms[message.place] = message.timestamp_ms
        if delivery is not Delivery.NEW:
            self._metrics.records.labels(message.topic, "known").inc()
            return
        await self._room.acquire()
        if self._closed.is_set():
            self._room.release()
            return
        while progress.span > _SPAN_MAX:  # noqa: ASYNC110 - rare, and no event tells it
            await asyncio.sleep(_SPAN_SECONDS)
        self._in_flight += 1
        self._metrics.in_flight.set(self._in_flight)
        key = self._work.lane_of(message)
        lane = self._lanes.setdefault(key, _Lane())
        lane.waiting.append(message)
        if lane.task is None:
            lane.task = asyncio.create_task(self._run(key, lane), name=f"{self._work.stage} {key}")

    async def _run(self, key: Hashable, lane: _Lane) -> None:
        try:
            while lane.waiting:
                batch = [lane.waiting.popleft() for _ in range(min(len(lane.waiting), self._work.batch_max))]
                await self._batch(batch)
            del self._lanes[key]
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - a shell that cannot even write a dead letter ends the process
            if not self._crashed.done():
                self._crashed.set_exception(error)

    async def crashed(self) -> None:
        """Wait for ever, or raise what no record is to blame for."""
        await self._crashed

    async def idle(self, seconds: float) -> bool:
        """Wait until nothing is under way, at most that long; whether that came to pass."""
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)
        return not self._lanes

    def cancel(self) -> None:
        """Leave what is under way; it is delivered again to whoever has its partition next."""
        for lane in list(self._lanes.values()):
            if lane.task is not None:
                lane.task.cancel()

    # Batches

    async def _batch(self, messages: Sequence[Message]) -> None:
        decoded: list[tuple[Message, Sequence[Record]]] = []
        for message in messages:
            records = await self._decoded(message)
            if records is None:
                self._ended(message, "dead_letter")
            else:
                decoded.append((message, records))
        await self._step(decoded)

    async def _decoded(self, message: Message) -> Sequence[Record] | None:
        """The records of a message; none for one that cannot be read, of which a dead letter was written."""
        topic = TOPIC[message.topic]
        try:
            return await self._patience.until_done("reading records", lambda: self._read(topic, message.value or b""))
        except (RecordDecodeError, UnknownSchemaError, BlobNotFoundError) as error:
            _LOG.error("%s[%d]@%d cannot be read: %s", message.topic, message.partition, message.offset, error)
            await self._send([self._letter(message, error)])
            return None

    async def _read(self, topic: Topic, data: bytes) -> Sequence[Record]:
        try:
            return await self._codec.decode(topic, data)
        except StoreCorruptError as error:  # a damaged blob stays damaged; the record that names it must not wait
            raise RecordDecodeError(str(error)) from error

    async def _step(self, decoded: Sequence[tuple[Message, Sequence[Record]]]) -> None:
        records = [record for _, found in decoded for record in found]
        if not records:
            return
        began = time.perf_counter()
        try:
            results = await self._patience.until_done("the stage's stores", lambda: self._work.step(records))
            stepped = time.perf_counter()
            await self._send(list(_placed(decoded, results)))
        except StaleEpochError as error:
            self._leave([message for message, _ in decoded], error)
            return
        except FATAL:
            raise
        except Exception as error:  # noqa: BLE001 - the shell turns a stage's bug into dead letters, one by one
            await self._blame(decoded, error)
            return
        self._metrics.step_seconds.observe(stepped - began)
        if self._work.done is not None:
            done = self._work.done
            await self._patience.until_done("the stage's stores", lambda: done(records))
        for message, _ in decoded:
            self._ended(message, "done")

    def _leave(self, messages: Sequence[Message], error: StaleEpochError) -> None:
        """Their shard has another owner, who is given them by the group."""
        _LOG.warning("%d records are left to the shard's new owner: %s", len(messages), error)
        for message in messages:
            if message.place in self._places:
                self._places[message.place].leave(message.offset)
        self._left(len(messages))

    async def _blame(self, decoded: Sequence[tuple[Message, Sequence[Record]]], error: Exception) -> None:
        """Find the record that it is due to: each is tried alone."""
        if len(decoded) == 1:
            await self._failed(*decoded[0], error)
            return
        for one in decoded:
            await self._step([one])

    async def _failed(self, message: Message, records: Sequence[Record], error: Exception) -> None:
        """A dead letter of the message as it came, and the end of each visit that is in it."""
        _LOG.error(
            "%s failed on %s[%d]@%d %s: %s", self._work.stage, message.topic, message.partition, message.offset,
            ", ".join(map(url_of, records)), error, exc_info=error,
        )  # fmt: skip
        endings = [
            ending
            for record in records
            for ending in failure(self._work.stage, record, error, self._clock.now_ms())
            if not isinstance(ending, DeadLetter)
        ]
        await self._send([self._letter(message, error), *endings])
        self._ended(message, "dead_letter")

    def _letter(self, message: Message, error: Exception) -> DeadLetter:
        letter = DeadLetter(
            stage=self._work.stage,
            reason=type(error).__name__,
            topic=message.topic,
            payload=Payload(),
            error=traceback_of(error),
            at_ms=self._clock.now_ms(),
        )
        return _letter_of(message, letter, whole=True)

    async def _send(self, records: Sequence[Record]) -> None:
        if not records:
            return
        began = time.perf_counter()
        await self._patience.until_done("Kafka", lambda: self._producer.send(records))
        self._metrics.send_seconds.observe(time.perf_counter() - began)
        for record in records:
            self._metrics.see(record)

    # Progress

    def _ended(self, message: Message, result: str) -> None:
        if message.place in self._places:
            self._places[message.place].end(message.offset)
        self._metrics.records.labels(message.topic, result).inc()
        self._left(1)

    def _left(self, count: int) -> None:
        self._in_flight -= count
        self._metrics.in_flight.set(self._in_flight)
        for _ in range(count):
            self._room.release()

    def assigned(self, places: frozenset[Place]) -> None:
        """From now on these are this process's partitions; what is known of others is forgotten."""
        self._places = {place: progress for place, progress in self._places.items() if place in places}
        self._taken_ms = {place: at_ms for place, at_ms in self._taken_ms.items() if place in places}
        for progress in self._places.values():
            progress.rejoin()
        for lane in self._lanes.values():
            mine = deque(message for message in lane.waiting if message.place in places)
            self._left(len(lane.waiting) - len(mine))
            lane.waiting = mine

    def committable(self) -> dict[Place, int]:
        """The offsets that may be committed now, of partitions with progress since the last commit."""
        self._metrics.uncommitted.set(max((progress.span for progress in self._places.values()), default=0))
        found = {place: progress.committable() for place, progress in self._places.items()}
        reached = {place: offset for place, offset in found.items() if offset is not None}
        if reached or not self._in_flight:
            self._moved_at = time.monotonic()
        self._metrics.stalled_seconds.set(round(time.monotonic() - self._moved_at, 1))
        return reached

    def committed(self, offsets: dict[Place, int]) -> None:
        """These offsets were committed."""
        for place, offset in offsets.items():
            if place in self._places:
                self._places[place].commit(offset)
                self._metrics.commits.labels(place[0]).inc()

    def measure_lag(self, ends: Mapping[Place, int], begun: Mapping[Place, int]) -> None:
        """Tell how far this process is behind these ends; where nothing was delivered yet, it stands where it began."""
        stands = {place: Stand(offset) for place, offset in begun.items()}
        for place, progress in self._places.items():
            reached = progress.reached
            if reached is not None:
                stands[place] = Stand(reached, self._taken_ms.get(place, 0))
        for topic in self._work.topics:
            lag = lag_of(topic, ends, stands, self._clock.now_ms())
            self._metrics.lag_records.labels(topic).set(lag.records)
            self._metrics.lag_seconds.labels(topic).set(lag.seconds)
