"""The embedded shell: the five stages of `trawl.pipeline` in one process, over bounded queues.

    seeds ─> frontier ─> fetcher ─> extractor ─> dedup ─> indexer
               ▲  inbox     │           │          │         │
               └────────────┴───────────┴──────────┴─────────┘   links and outcomes

Every queue but the frontier's inbox is bounded, so a slow stage slows those before it. The inbox is never full (it
spills to its store), so nothing that flows back to the frontier waits, and the cycle cannot deadlock. The links of a
page enter the inbox before the page's terminal outcome can, so a crash between the two loses neither: the frontier's
lease ends only with the outcome. Records in memory at a crash are fetched again when their leases return.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from trawl.bodies import BodyBytes
from trawl.errors import StoreError
from trawl.failures import failure, url_of
from trawl.inbox import Inbox
from trawl.kinds import OutcomeClass, Purpose, Stage
from trawl.pipeline import route
from trawl.ports import Clock, FrontierStore, OriginState
from trawl.records import (
    DeadLetter,
    DiscoveredLinks,
    FetchedPage,
    FetchOutcome,
    IndexedDocument,
    Millis,
    Record,
    Seed,
    UniqueDocument,
)
from trawl.settings import EmbeddedSettings

_LOG = logging.getLogger(__name__)
_INBOX_BATCH = 200
_PAGES = frozenset({Purpose.PAGE, Purpose.AUTO})
_LOOK_MS = 500
_TURN_SECONDS = 0.002
"""Between two turns of the frontier that moved something: what comes meanwhile is taken together."""
_ORIGINS_LOOKED_AT = 1000
_PACING_MARGIN_MS = 1000


class Step(Protocol):
    """A stage: one record in, a bounded sequence of records out."""

    async def step(self, record: Any) -> Sequence[Record]:
        """Take one record in."""
        ...


class FrontierStep(Step, Protocol):
    """The frontier, which time moves as well."""

    async def due(self, now_ms: Millis, limit: int) -> Sequence[Record]:
        """The fetches that may start now."""
        ...

    def refuses(self, record: Record) -> bool:
        """Whether the record can be dropped at once, and is counted as refused."""
        ...

    async def flush(self) -> None:
        """Write down what is only noted."""
        ...


class BatchStep(Protocol):
    """A stage that takes several records at once."""

    async def step_batch(self, records: Sequence[UniqueDocument]) -> Sequence[Sequence[Record]]:
        """The results of each record, in order."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The stages of one crawl, wired to their adapters."""

    frontier: FrontierStep
    fetcher: Step
    extractor: Step
    dedup: Step
    indexer: BatchStep


@dataclass(slots=True)
class Counts:
    """What passed through the shell in this run, for progress and summaries."""

    fetched: int = 0
    indexed: int = 0
    chunks: int = 0
    links: int = 0
    bytes: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    """Terminal outcomes of this run's pages by class."""
    reasons: Counter[str] = field(default_factory=Counter)
    """Outcomes of this run by `class:reason`, retries included."""
    rendered: int = 0
    """Pages that a browser showed."""
    render_ms: float = 0.0
    """How long it took for that, over all pages."""
    not_rendered: Counter[str] = field(default_factory=Counter)
    """Pages for which a browser was asked in vain, by reason."""
    shells: Counter[str] = field(default_factory=Counter)
    """Pages that were held back for a browser, by reason."""
    dead_letters: int = 0
    violations: int = 0
    """Fetches whose politeness gap was shorter than required."""

    def see(self, record: Record) -> None:
        """Count one record."""
        match record:
            case FetchedPage():
                self.fetched += 1
                self.bytes += record.body.size_bytes
                gap = record.timings.gap_actual_ms
                self.violations += gap is not None and gap < record.timings.gap_required_ms
                self.rendered += record.static_render is not None
                self.render_ms += record.timings.render_ms
                if record.rendering:
                    self.not_rendered[record.rendering] += 1
            case IndexedDocument():
                self.indexed += 1
                self.chunks += len(record.chunks_added)
            case FetchOutcome():
                if record.outcome is not OutcomeClass.ROBOTS:
                    self.reasons[f"{record.outcome}:{record.reason}" if record.reason else str(record.outcome)] += 1
                if record.outcome is OutcomeClass.NEEDS_RENDER:
                    self.shells[record.reason] += 1
                if record.terminal and record.purpose in _PAGES:
                    self.outcomes[record.outcome] += 1
            case DeadLetter():
                self.dead_letters += 1
            case _:
                pass


class EmbeddedCrawl:
    """Runs seeds to the end of their crawl.

    `run` returns when nothing is queued, leased or in flight, when what is left waits for longer than
    `patience_seconds`, or after `stop`. It raises StoreError when a store cannot serve; nothing is lost then.
    """

    def __init__(
        self,
        stages: Stages,
        store: FrontierStore,
        inbox: Inbox,
        clock: Clock,
        settings: EmbeddedSettings,
        *,
        extract_concurrency: int,
        on_letter: Callable[[DeadLetter], None],
        on_record: Callable[[Record], None] | None = None,
    ) -> None:
        self._stages = stages
        self._store = store
        self._inbox = inbox
        self._clock = clock
        self._settings = settings
        self._extract_concurrency = extract_concurrency
        self._on_letter = on_letter
        self._on_record = on_record
        size = settings.queue_records_max
        self._queues: dict[Stage, asyncio.Queue[Record]] = {
            Stage.FETCHER: asyncio.Queue(settings.fetch_workers),
            Stage.EXTRACTOR: asyncio.Queue(size),
            Stage.DEDUP: asyncio.Queue(size),
        }
        self._index_queues = [asyncio.Queue[Record](size) for _ in range(max(settings.index_workers, 1))]
        self._bodies = BodyBytes(settings.queue_bytes_max)
        self._pending = 0
        self._wake = asyncio.Event()
        self._stopping = False
        self._crawl_id = "default"
        self._queued = 0
        self._looked_ms = 0
        self.counts = Counts()

    @property
    def in_flight(self) -> int:
        """Records between the stages or inside them."""
        return self._pending

    @property
    def queued(self) -> int:
        """URLs that wait in the frontier, as of about a second ago."""
        return self._queued

    def stop(self) -> None:
        """Release nothing more; `run` returns when what is in flight is done."""
        self._stopping = True
        self._wake.set()

    async def run(self, seeds: Sequence[Seed]) -> None:
        """Crawl from the seeds and from what an earlier run left."""
        await self._inbox.open()
        await self._inbox.put(seeds)
        self._crawl_id = seeds[0].crawl_id if seeds else self._crawl_id
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(worker) for worker in self._workers()]
                await self._frontier()
                await self._drained()
                for worker in workers:
                    worker.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    # The frontier

    async def _frontier(self) -> None:
        while not self._stopping:
            self._wake.clear()
            await self._look()
            moved = await self._take_inbox()
            released = await self._release()
            if moved or released:
                await asyncio.sleep(_TURN_SECONDS)
            elif await self._finished_or_waited():
                return

    async def _look(self) -> None:
        """Note the length of the queue, now and then."""
        now_ms = self._clock.now_ms()
        if now_ms - self._looked_ms > _LOOK_MS:
            self._looked_ms = now_ms
            self._queued = (await self._store.progress(self._crawl_id)).queued

    async def _take_inbox(self) -> int:
        records = await self._inbox.take(_INBOX_BATCH)
        for record in records:
            await self._work(Stage.FRONTIER, record, self._stages.frontier.step)
            if isinstance(record, DiscoveredLinks):
                await asyncio.sleep(0)  # five hundred links take 20 ms, in which nothing else is served
        return len(records)

    async def _release(self) -> int:
        queue = self._queues[Stage.FETCHER]
        free = queue.maxsize - queue.qsize()
        if 2 * free < queue.maxsize:
            return 0
        records = await self._stages.frontier.due(self._clock.now_ms(), free)
        await self._deliver(records)
        return len(records)

    async def _finished_or_waited(self) -> bool:
        """Whether nothing is left to do; else wait until something may be."""
        now_ms = self._clock.now_ms()
        next_ms = await self._store.next_event_ms(now_ms)
        idle = self._pending == 0 and not len(self._inbox)
        if idle and (next_ms is None or await self._is_too_late(next_ms - now_ms)):
            return True
        wait = 1.0 if next_ms is None else min(max(next_ms - now_ms, 5) / 1000, 1.0)
        await self._woken(wait)
        return False

    async def _is_too_late(self, wait_ms: int) -> bool:
        """Whether the next thing to do is too far away to wait for; a host's own delay never is."""
        if wait_ms <= 1000 * self._settings.patience_seconds:
            return False
        delay_ms = longest_delay_ms(await waiting_origins(self._store))
        return wait_ms > delay_ms + _PACING_MARGIN_MS

    async def _woken(self, seconds: float) -> None:
        """Wait until something moved, at most that long. Not by wait_for, which may lose a cancellation."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _drained(self) -> None:
        """Finish what is in flight; tasks that no fetcher took yet stay leased and return to the queue next time."""
        queue = self._queues[Stage.FETCHER]
        while not queue.empty():
            queue.get_nowait()
            self._pending -= 1
        while self._pending or len(self._inbox):
            self._wake.clear()
            if not await self._take_inbox():
                await self._woken(0.2)
        await self._stages.frontier.flush()

    # The other stages

    def _workers(self) -> list[Coroutine[Any, Any, None]]:
        stages = self._stages
        return [
            *(self._loop(Stage.FETCHER, stages.fetcher.step) for _ in range(self._settings.fetch_workers)),
            *(self._loop(Stage.EXTRACTOR, stages.extractor.step) for _ in range(self._extract_concurrency)),
            self._loop(Stage.DEDUP, stages.dedup.step),
            *(self._index_loop(queue) for queue in self._index_queues),
        ]

    async def _loop(self, stage: Stage, step: Callable[[Any], Awaitable[Sequence[Record]]]) -> None:
        queue = self._queues[stage]
        while True:
            if stage is Stage.FETCHER:
                await self._bodies.room()
            record = await queue.get()
            self._wake.set()
            await self._work(stage, record, step)
            self._done(record)

    async def _index_loop(self, queue: asyncio.Queue[Record]) -> None:
        while True:
            batch = [await queue.get()]
            while not queue.empty() and len(batch) < self._settings.index_documents_max:
                batch.append(queue.get_nowait())
            await self._index(batch)
            self._done(*batch)

    async def _index(self, batch: Sequence[Record]) -> None:
        documents = [record for record in batch if isinstance(record, UniqueDocument)]
        try:
            for records in await self._stages.indexer.step_batch(documents):
                await self._deliver(records)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the shell turns a stage's bug into dead letters, one by one
            if len(documents) == 1:
                await self._failed(Stage.INDEXER, documents[0], error)
                return
            for document in documents:
                await self._index([document])

    # Records

    async def _work(self, stage: Stage, record: Record, step: Callable[[Any], Awaitable[Sequence[Record]]]) -> None:
        try:
            records = await step(record)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - the shell turns a stage's bug into a dead letter
            await self._failed(stage, record, error)
        else:
            await self._deliver(records)

    async def _deliver(self, records: Sequence[Record]) -> None:
        for record in records:
            self.counts.see(record)
            if self._on_record is not None:
                self._on_record(record)
            if isinstance(record, DeadLetter):
                self._on_letter(record)
            for stage in route(record).consumers:
                if stage == Stage.FRONTIER:
                    if self._stages.frontier.refuses(record):
                        continue
                    await self._inbox.put((record,))
                    self._wake.set()
                elif isinstance(stage, Stage):
                    self._pending += 1
                    self._bodies.add(record)
                    await self._queue(stage, record).put(record)

    def _queue(self, stage: Stage, record: Record) -> asyncio.Queue[Record]:
        """The stage's queue; the indexer has one per worker, so that one document is never in two batches."""
        if isinstance(record, UniqueDocument):
            return self._index_queues[record.document.document_key % len(self._index_queues)]
        return self._queues[stage]

    def _done(self, *records: Record) -> None:
        self._pending -= len(records)
        for record in records:
            self._bodies.remove(record)
        self._wake.set()

    async def _failed(self, stage: Stage, record: Record, error: Exception) -> None:
        """Keep a record that a stage could not handle as a dead letter, and end its visit."""
        _LOG.error("%s failed on %s %s: %s", stage, type(record).__name__, url_of(record), error)
        await self._deliver(failure(stage, record, error, self._clock.now_ms()))


async def waiting_origins(store: FrontierStore) -> list[OriginState]:
    """The origins with the most queued URLs."""
    return [origin for origin in await store.origins(_ORIGINS_LOOKED_AT) if origin.queued]


def longest_delay_ms(origins: Iterable[OriginState]) -> int:
    """The longest time between two releases of any of them."""
    return max((origin.delay_ms for origin in origins), default=0)
