"""The embedded shell with stages that do what the test wants: cycles, bugs, stops."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from trawl.adapters.clocks import SystemClock
from trawl.adapters.memory import MemoryFrontierStore, MemoryRobotsStore, MemorySpillQueue
from trawl.embedded import EmbeddedCrawl, Stages
from trawl.errors import StoreFullError
from trawl.frontier.stage import FrontierStage
from trawl.inbox import Inbox
from trawl.kinds import Novelty, OutcomeClass, Purpose, RobotsState, Stage
from trawl.plain import load
from trawl.ports import RobotsEntry
from trawl.records import (
    DeadLetter,
    DiscoveredLinks,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Link,
    Payload,
    Record,
    RobotsNews,
    Seed,
    UniqueDocument,
)
from trawl.rules import Rules
from trawl.settings import Settings
from trawl.url import host_of, origin_of

HOUR = 3_600_000


class World:
    """A web of numbered pages: page n links to 2n+1 … 2n+fan, and each stage may have a fault."""

    def __init__(
        self, pages: int, *, fan: int = 2, queue: int = 2, faults: dict[tuple[Stage, str], Exception] | None = None
    ) -> None:
        base = Settings()
        self.settings = replace(
            base,
            politeness=replace(base.politeness, delay_seconds=0.0, per_host_concurrency=4),
            embedded=replace(base.embedded, queue_records_max=queue, inbox_records_max=queue, fetch_workers=4),
        )
        self.pages, self.fan, self.faults = pages, fan, faults or {}
        self.clock, self.robots, self.store = SystemClock(), MemoryRobotsStore(), MemoryFrontierStore()
        self.letters: list[DeadLetter] = []
        self.indexed: list[str] = []
        rules = Rules(self.robots, self.clock, self.settings.robots, "trawl")
        stages = Stages(
            frontier=FrontierStage(self.store, rules, self.clock, self.settings),
            fetcher=_Step(self.fetch), extractor=_Step(self.extract), dedup=_Step(self.dedup),
            indexer=_Batch(self.index),
        )  # fmt: skip
        self.crawl = EmbeddedCrawl(
            stages, self.store, Inbox(MemorySpillQueue(), queue), self.clock, self.settings.embedded,
            extract_concurrency=2, on_letter=self.letters.append,
        )  # fmt: skip

    async def run(self, seconds: float = 30) -> None:
        await asyncio.wait_for(self.crawl.run([Seed(url="https://w.example/0")]), seconds)

    def _fault(self, stage: Stage, url: str) -> None:
        error = self.faults.get((stage, url.rpartition("/")[2]))
        if error is not None:
            raise error

    async def fetch(self, task: FetchTask) -> Sequence[Record]:
        now = self.clock.now_ms()
        if task.purpose is Purpose.ROBOTS:
            origin = origin_of(task.url)
            entry = RobotsEntry(origin=origin, state=RobotsState.ALLOW_ALL, expires_at_ms=now + HOUR, good_at_ms=now)
            await self.robots.put(entry)
            news = RobotsNews(origin=origin, state=RobotsState.ALLOW_ALL, expires_at_ms=now + HOUR)
            return [replace(_outcome(task, OutcomeClass.ROBOTS, now), purpose=Purpose.ROBOTS, robots=news)]
        self._fault(Stage.FETCHER, task.url)
        await asyncio.sleep(0)
        return [
            FetchedPage(
                fetch_id=task.fetch_id, crawl_id=task.crawl_id, request_key=task.request_key, url=task.url,
                final_url=task.url, status=200, fetched_at_ms=now, depth=task.depth,
            )
        ]  # fmt: skip

    async def extract(self, page: FetchedPage) -> Sequence[Record]:
        self._fault(Stage.EXTRACTOR, page.url)
        number = int(page.url.rpartition("/")[2])
        targets = [n for n in range(2 * number + 1, 2 * number + 1 + self.fan) if n < self.pages]
        links: list[Record] = [
            DiscoveredLinks(
                crawl_id=page.crawl_id, source_url=page.url, target_host=host_of(page.url),
                links=(Link(url=f"https://w.example/{n}", depth=page.depth + 1),),
            )
            for n in targets
        ]  # fmt: skip
        document = ExtractedDocument(
            document_key=number, crawl_id=page.crawl_id, request_key=page.request_key, fetch_id=page.fetch_id,
            url=page.url, final_url=page.url,
        )  # fmt: skip
        return [*links, document]

    async def dedup(self, document: ExtractedDocument) -> Sequence[Record]:
        self._fault(Stage.DEDUP, document.url)
        return [UniqueDocument(document=document, novelty=Novelty.NEW)]

    async def index(self, records: Sequence[UniqueDocument]) -> Sequence[Sequence[Record]]:
        for record in records:
            self._fault(Stage.INDEXER, record.document.url)
        await asyncio.sleep(0.001)
        self.indexed.extend(record.document.url for record in records)
        return [[_outcome(record.document, OutcomeClass.INDEXED, self.clock.now_ms())] for record in records]

    async def states(self) -> dict[str, str]:
        """What became of each page: `class:reason`."""
        rows = [row async for row in self.store.rows("default")]
        return {row.request.url.rpartition("/")[2]: f"{row.outcome}:{row.reason}" for row in rows}


async def test_large_bodies_wait_up_to_a_limit_of_bytes() -> None:
    world, held = World(60, queue=64), []
    small = replace(world.settings.embedded, queue_bytes_max=3_000_000)
    world.crawl = EmbeddedCrawl(
        world.crawl._stages, world.store, Inbox(MemorySpillQueue(), 64), world.clock, small, extract_concurrency=1,
        on_letter=world.letters.append,
    )  # fmt: skip
    fetch, extract = world.fetch, world.extract

    async def large(task: FetchTask) -> Sequence[Record]:
        body = Payload(inline=bytes(1_000_000), size_bytes=1_000_000)
        records = await fetch(task)
        return [replace(record, body=body) if isinstance(record, FetchedPage) else record for record in records]

    async def slow(page: FetchedPage) -> Sequence[Record]:
        await asyncio.sleep(0.01)
        held.append(world.crawl._bodies.held)
        return await extract(page)

    world.crawl._stages.fetcher.step = large  # type: ignore[method-assign,assignment]
    world.crawl._stages.extractor.step = slow  # type: ignore[method-assign,assignment]
    await world.run()
    assert len(world.indexed) == 60
    assert 3_000_000 < max(held) <= 3_000_000 + world.settings.embedded.fetch_workers * 1_000_000
    assert world.crawl._bodies.held == 0


def _outcome(visit: Any, outcome: OutcomeClass, now_ms: int) -> FetchOutcome:
    return FetchOutcome(
        url=visit.url, crawl_id=visit.crawl_id, request_key=visit.request_key, fetch_id=visit.fetch_id,
        stage=Stage.FETCHER, outcome=outcome, at_ms=now_ms,
    )  # fmt: skip


class _Step:
    def __init__(self, step: Any) -> None:
        self.step = step


class _Batch:
    def __init__(self, step_batch: Any) -> None:
        self.step_batch = step_batch


@pytest.mark.parametrize(("fan", "queue"), [(2, 1), (40, 1), (40, 3), (3, 500)])
async def test_the_cycle_of_links_never_deadlocks_however_small_the_queues(fan: int, queue: int) -> None:
    world = World(120, fan=fan, queue=queue)
    await world.run()
    assert sorted(world.indexed) == sorted({f"https://w.example/{n}" for n in range(120)})
    assert world.crawl.in_flight == 0
    assert world.letters == []


@pytest.mark.parametrize("stage", [Stage.FETCHER, Stage.EXTRACTOR, Stage.DEDUP, Stage.INDEXER])
async def test_a_stage_that_raises_costs_one_page_and_leaves_a_whole_dead_letter(stage: Stage) -> None:
    world = World(60, faults={(stage, "41"): ValueError("a bug"), (stage, "42"): KeyError("another")})
    await world.run()
    states = await world.states()
    assert {name for name, state in states.items() if state != "indexed:"} == {"41", "42"}
    assert states["41"] == f"failed:{stage}_error"
    assert len(world.indexed) == 58
    assert sorted(letter.reason for letter in world.letters) == ["KeyError", "ValueError"]
    kept = load(world.letters[0].payload.inline)
    assert getattr(kept, "url", None) or kept.document.url  # type: ignore[union-attr]


@pytest.mark.parametrize("stage", [Stage.FETCHER, Stage.EXTRACTOR, Stage.DEDUP, Stage.INDEXER])
async def test_a_store_that_cannot_serve_stops_the_crawl_with_its_own_error(stage: Stage) -> None:
    world = World(60, faults={(stage, "20"): StoreFullError("no space left; free some and run the same command again")})
    with pytest.raises(StoreFullError, match="free some"):
        await world.run()
    assert world.letters == []


async def test_a_stop_finishes_what_is_in_flight_and_releases_nothing_more() -> None:
    world = World(1500)
    task = asyncio.create_task(world.run())
    while len(world.indexed) < 50:  # noqa: ASYNC110 - the stage has no event to wait for
        await asyncio.sleep(0.005)
    world.crawl.stop()
    await asyncio.wait_for(task, 10)
    assert world.crawl.in_flight == 0
    assert 50 <= len(world.indexed) < 1000
    states = await world.states()
    assert sum(state == "indexed:" for state in states.values()) == len(world.indexed)
