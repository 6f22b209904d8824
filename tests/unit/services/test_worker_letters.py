"""What the worker does with a record that cannot be sent on, and with servers that are full for a time."""

from collections.abc import Sequence
from pathlib import Path

from services.common.connections import Patience
from services.common.health import Health
from services.common.telemetry import Metrics
from services.common.worker import Message, Work, Worker
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.clocks import ManualClock
from trawl.adapters.kafka import RecordCodec, open_codec
from trawl.errors import RecordTooLargeError, StaleEpochError, StoreFullError
from trawl.kinds import OutcomeClass, Stage
from trawl.pipeline import TOPIC, route
from trawl.records import DeadLetter, FetchedPage, FetchOutcome, FetchTask, Header, Record
from trawl.settings import KafkaSettings, ServiceSettings

TASKS = TOPIC["trawl.fetch-tasks"]
LIMIT_BYTES = 4_000
LARGE = "http://large.example/"


class Broker:
    """Takes what is encoded, up to a size, as a broker does."""

    def __init__(self, codec: RecordCodec) -> None:
        self._codec = codec
        self.taken: list[tuple[str, bytes]] = []

    async def send(self, records: Sequence[Record]) -> None:
        """Refuse all, if one is too large."""
        encoded = [(route(record).name, await self._codec.encode(record)) for record in records]
        largest = max(len(data) for _, data in encoded)
        if largest > LIMIT_BYTES:
            raise RecordTooLargeError(f"a record of {largest} bytes is over kafka.record_bytes_max")
        self.taken += encoded

    async def records(self, topic: str) -> list[Record]:
        return [record for name, data in self.taken if name == topic for record in await self._codec.decode(
            TOPIC[topic], data
        )]  # fmt: skip


def task(number: int, url: str) -> FetchTask:
    return FetchTask(fetch_id=number, crawl_id="c", request_key=number, url=url)


async def fetch(records: Sequence[Record]) -> list[Sequence[Record]]:
    """A page for each task; of one the headers alone are over the limit."""
    found: list[Sequence[Record]] = []
    for record in records:
        assert isinstance(record, FetchTask)
        size = LIMIT_BYTES if record.url == LARGE else 10
        found.append([
            FetchedPage(
                fetch_id=record.fetch_id, crawl_id="c", request_key=record.request_key, url=record.url,
                final_url=record.url, status=200, headers=(Header(name="x-large", value="x" * size),), fetched_at_ms=1,
            )
        ])  # fmt: skip
    return found


class Running:
    """A worker with a codec and files for blobs, and no server."""

    def __init__(self, codec: RecordCodec, work: Work) -> None:
        self.codec, self.broker, self.health = codec, Broker(codec), Health()
        self.health.begun()
        clock = ManualClock()
        patience = Patience(self.health, clock, ServiceSettings())
        self.metrics = Metrics(work.stage)
        self.worker = Worker(work, codec, self.broker, patience, self.metrics, clock)

    async def take(self, *tasks: FetchTask) -> None:
        """Deliver the tasks on one partition, and wait until they have ended."""
        for offset, one in enumerate(tasks):
            await self.worker.take(
                Message(TASKS.name, partition=3, offset=offset, key=b"k", value=await self.codec.encode(one))
            )
        assert await self.worker.idle(10)


def one_lane(message: Message) -> int:
    return message.partition


async def test_a_record_over_the_limit_is_one_dead_letter_and_its_partition_goes_on(tmp_path: Path) -> None:
    codec = await open_codec(KafkaSettings(), blobs=FileBlobStore(tmp_path))
    work = Work(stage=Stage.FETCHER, topics=(TASKS.name,), step=fetch, lane_of=one_lane, batch_max=8)
    running = Running(codec, work)
    tasks = [task(1, "http://small.example/"), task(2, LARGE), task(3, "http://small.example/3")]

    await running.take(*tasks)

    letters = await running.broker.records("trawl.dead-letters")
    assert [
        (one.reason, one.topic, one.partition, one.offset, one.key) for one in letters if isinstance(one, DeadLetter)
    ] == [("RecordTooLargeError", TASKS.name, 3, 1, b"k")]
    assert isinstance(letters[0], DeadLetter)
    assert list(await codec.decode(TASKS, letters[0].payload.inline)) == [tasks[1]]
    assert "kafka.record_bytes_max" in letters[0].error
    (ending,) = await running.broker.records("trawl.outcomes")
    assert isinstance(ending, FetchOutcome)
    assert (ending.url, ending.outcome, ending.reason, ending.terminal) == (
        LARGE, OutcomeClass.FAILED, "fetcher_error", True,
    )  # fmt: skip
    pages = await running.broker.records("trawl.fetched")
    assert [page.fetch_id for page in pages if isinstance(page, FetchedPage)] == [1, 3]
    assert running.worker.committable() == {(TASKS.name, 3): 3}
    assert running.health.ready == (True, "ok")


async def test_what_is_to_be_remembered_of_a_record_waits_while_the_store_is_full(tmp_path: Path) -> None:
    told: list[tuple[bool, str]] = []

    async def done(records: Sequence[Record]) -> None:
        assert records == [task(1, "http://small.example/")]
        told.append(running.health.ready)
        if len(told) < 4:
            raise StoreFullError("Redis is full; raise its maxmemory")

    codec = await open_codec(KafkaSettings(), blobs=FileBlobStore(tmp_path))
    work = Work(stage=Stage.FETCHER, topics=(TASKS.name,), step=fetch, lane_of=one_lane, done=done)
    running = Running(codec, work)

    await running.take(task(1, "http://small.example/"))

    waiting = (False, "the stage's stores: Redis is full; raise its maxmemory")
    assert told == [(True, "ok"), waiting, waiting, waiting]
    assert running.health.ready == (True, "ok")
    assert [topic for topic, _ in running.broker.taken] == ["trawl.fetched"]
    assert running.worker.committable() == {(TASKS.name, 3): 1}


async def test_records_that_are_left_to_a_shards_new_owner_give_their_room_back_once(tmp_path: Path) -> None:
    async def step(records: Sequence[Record]) -> list[Sequence[Record]]:
        if len(records) > 1:
            raise ZeroDivisionError("a bug that the batch brings out")
        (record,) = records
        if isinstance(record, FetchTask) and record.fetch_id == 2:
            raise StaleEpochError("another owner has taken over shard 7")
        return [()]

    codec = await open_codec(KafkaSettings(), blobs=FileBlobStore(tmp_path))
    work = Work(stage=Stage.FETCHER, topics=(TASKS.name,), step=step, lane_of=one_lane, batch_max=8, in_flight_max=4)
    running = Running(codec, work)

    await running.take(*(task(number, "http://small.example/") for number in range(4)))

    assert running.worker.committable() == {(TASKS.name, 3): 2}
    assert running.metrics.registry.get_sample_value("trawl_in_flight_records") == 0
