"""Whatever is done to it, every frontier store answers as the one in memory, and its counters say what its rows say.

Steps are drawn with weights, so that requests are admitted, leased and ended most of the time and limits are met often.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.contract.conftest import FRONTIERS
from tests.contract.requests import completion, request
from trawl.frontier.score import staleness
from trawl.kinds import OutcomeClass, Purpose, RobotsState
from trawl.ports import CrawlPolicy, FrontierStore, OriginUpdate, Request, RequestRow
from trawl.records import Validators

T = TypeVar("T")
Step = tuple[Any, ...]
ORIGINS = ("https://a.example", "https://b.example", "http://c.example:8080")
CRAWLS = ("c", "d")
SPANS = st.sampled_from((0, 1, 10, 100, 1000))
ALWAYS = 10**9
CHECKED_EVERY = 4

origins, crawls = st.sampled_from(ORIGINS), st.sampled_from(CRAWLS)
urls = st.builds(lambda origin, n: f"{origin}/{n}", origins, st.integers(0, 5))
requests = st.builds(
    request,
    urls,
    crawls,
    template=st.integers(1, 3),
    purpose=st.sampled_from((Purpose.PAGE, Purpose.PAGE, Purpose.AUTO, Purpose.SITEMAP)),
    score=st.sampled_from((0.0, 0.25, 0.5, 0.75)),
    due_at_ms=st.sampled_from((0, 0, 0, 50, 500, 5000)),
    scheduled_at_ms=st.integers(0, 3),
)
admit = st.tuples(
    st.just("admit"),
    st.lists(requests, min_size=1, max_size=6),
    st.sampled_from((100, 100, 100, 3, 8)),
    st.sampled_from((100, 100, 4)),
)
robots = st.tuples(
    st.just("robots"),
    origins,
    st.sampled_from((RobotsState.RULES, RobotsState.ALLOW_ALL, RobotsState.UNAVAILABLE)),
    st.sampled_from((ALWAYS, ALWAYS, ALWAYS, 100, 1)),
    st.sampled_from((0, 0, 10, 100)),
    st.sampled_from((1, 2, 9)),
)
update = st.tuples(
    st.just("update"),
    origins,
    st.builds(
        OriginUpdate,
        robots=st.sampled_from((None, None, None, RobotsState.UNKNOWN)),
        blocked_until_ms=st.none() | st.integers(0, 2000),
        delay_ms=st.none() | SPANS,
        failures=st.none() | st.integers(0, 9),
        unblock=st.booleans(),
    ),
)
lease = st.tuples(
    st.just("lease"), st.integers(1, 6), st.sampled_from((10, 1000, 100_000)), st.sampled_from((1, 2, 100))
)
complete = st.tuples(
    st.just("complete"),
    st.integers(0, 50),
    st.sampled_from((OutcomeClass.INDEXED, OutcomeClass.UNCHANGED, OutcomeClass.FAILED)),
    st.none() | SPANS,
    st.fixed_dictionaries(
        {
            "reason": st.sampled_from(("", "timeout")),
            "attempt": st.integers(1, 3),
            "charged": st.booleans(),
            "duplicate": st.sampled_from((None, False, True)),
            "validators": st.sampled_from((None, Validators(etag="e"))),
            "document_key": st.sampled_from((None, 1)),
            "duplicate_of": st.sampled_from((None, 2)),
        }
    ),
)
policy = st.tuples(st.just("policy"), crawls, st.sampled_from((False, False, True)), st.sampled_from((0, 0, 1, 3)))
others = st.one_of(
    update,
    policy,
    st.tuples(st.just("lease_robots"), st.integers(0, 3), SPANS),
    st.tuples(st.just("reap")),
    st.tuples(st.just("readmit"), crawls),
    st.tuples(st.just("restart")),
    st.tuples(st.just("refuse"), crawls, st.integers(0, 2)),
    st.tuples(st.just("wake")),
    st.tuples(st.just("stale"), st.integers(0, 50)),
    st.tuples(st.just("dismiss"), st.lists(requests, max_size=3), st.booleans()),
)
passing = st.tuples(st.just("time"), SPANS)
steps = st.one_of(admit, admit, robots, lease, lease, complete, complete, passing, others, others)


class Differential:
    """The same calls on the store under test and on the model, which answer the same."""

    def __init__(self, store: FrontierStore, model: FrontierStore) -> None:
        self.stores = (store, model)
        self.now_ms = 1
        self.leased: list[Request] = []

    async def run(self, done: Sequence[Step]) -> None:
        """Do all steps; what is shown is compared now and then, and in the end."""
        for number, (name, *arguments) in enumerate(done):
            await getattr(self, name)(*arguments)
            if number % CHECKED_EVERY == 0:
                await self.shows_the_same()
        await self.shows_the_same()

    async def both(self, call: Callable[[FrontierStore], Awaitable[T]]) -> T:
        answer, expected = [await call(store) for store in self.stores]
        assert answer == expected
        return expected

    async def listed(self, call: Callable[[FrontierStore], Awaitable[Sequence[T]]]) -> list[T]:
        async def as_list(store: FrontierStore) -> list[T]:
            return list(await call(store))

        return await self.both(as_list)

    async def time(self, span: int) -> None:
        self.now_ms += span

    async def policy(self, crawl: str, paused: bool, pages_max: int) -> None:
        stored = CrawlPolicy(crawl_id=crawl, paused=paused, pages_max=pages_max)
        await self.both(lambda store: store.put_crawl(stored))

    async def admit(self, batch: list[Request], queue_urls_max: int, host_urls_max: int) -> None:
        await self.listed(
            lambda store: store.admit(batch, queue_urls_max=queue_urls_max, host_urls_max=host_urls_max, sitemaps_max=2)
        )

    async def robots(self, origin: str, state: RobotsState, lasts: int, delay_ms: int, concurrency_max: int) -> None:
        told = OriginUpdate(
            robots=state,
            robots_expires_ms=self.now_ms + lasts,
            delay_ms=delay_ms,
            concurrency_max=concurrency_max,
        )
        await self.update(origin, told)

    async def update(self, origin: str, told: OriginUpdate) -> None:
        await self.both(lambda store: store.update_origin(origin, told))

    async def lease_robots(self, limit: int, lease_ms: int) -> None:
        await self.listed(lambda store: store.lease_robots(self.now_ms, limit, lease_ms))

    async def lease(self, limit: int, lease_ms: int, origins_max: int) -> None:
        self.leased += await self.listed(
            lambda store: store.lease(self.now_ms, limit, lease_ms, origins_max=origins_max)
        )

    async def complete(self, which: int, outcome: OutcomeClass, requeue: int | None, fields: dict[str, Any]) -> None:
        if self.leased:
            leased = self.leased.pop(which % len(self.leased))
            requeue_at_ms = None if requeue is None else self.now_ms + requeue
            told = completion(leased, outcome, requeue_at_ms=requeue_at_ms, **fields)
            await self.both(lambda store: store.complete(told))

    async def stale(self, which: int) -> None:
        """An outcome of a fetch that does not hold the lease."""
        if self.leased:
            told = completion(self.leased[which % len(self.leased)])
            told = replace(told, fetch_id=told.fetch_id + 1)
            assert not await self.both(lambda store: store.complete(told))

    async def dismiss(self, some: list[Request], charged: bool) -> None:
        told = [completion(one, OutcomeClass.REFUSED, reason="too_deep", charged=charged) for one in some]
        await self.both(lambda store: store.dismiss(told))

    async def reap(self) -> None:
        await self.listed(lambda store: store.reap(self.now_ms))

    async def readmit(self, crawl: str) -> None:
        await self.both(lambda store: store.readmit(crawl, self.now_ms, staleness=staleness))

    async def restart(self) -> None:
        await self.both(lambda store: store.release_leases())

    async def refuse(self, crawl: str, count: int) -> None:
        await self.both(lambda store: store.count_refusals(crawl, "trap", count))

    async def wake(self) -> None:
        """A caller that sleeps until the next event never wakes in vain."""
        event = await self.both(lambda store: store.next_event_ms(self.now_ms))
        assert event is None or event >= self.now_ms
        robots_due = await self.listed(lambda store: store.lease_robots(self.now_ms, 1, 50))
        leased = await self.listed(lambda store: store.lease(self.now_ms, 1, 50, origins_max=100))
        assert (event == self.now_ms) == bool(robots_due or leased)
        self.leased += leased

    async def shows_the_same(self) -> None:
        await self.both(lambda store: store.next_event_ms(self.now_ms))
        shown = await self.both(_shown)
        for progress, rows in zip(shown["progress"], shown["rows"], strict=True):
            states = [row.state for row in rows]
            assert (progress.queued, progress.leased) == (states.count("queued"), states.count("leased"))
        every = [row for rows in shown["rows"] for row in rows]
        for origin in shown["origins"]:
            states = [row.state for row in every if row.request.origin == origin.origin]
            assert (origin.queued, origin.leased) == (states.count("queued"), states.count("leased"))


async def _shown(store: FrontierStore) -> dict[str, Any]:
    return {
        "progress": [await store.progress(crawl) for crawl in CRAWLS],
        "origins": list(await store.origins(10)),
        "templates": list(await store.templates([request(template=number) for number in (1, 2, 3)])),
        "rows": [await _all(store.rows(crawl)) for crawl in CRAWLS],
    }


async def _all(found: AsyncIterator[RequestRow]) -> list[RequestRow]:
    return [row async for row in found]


@pytest.mark.timeout(600)  # a failure takes long to shrink
@pytest.mark.parametrize("served", [name for name in FRONTIERS if name != "memory"], indirect=True)
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[phase for phase in Phase if phase is not Phase.explain],  # it takes minutes over a failure
)
@given(done=st.lists(steps, min_size=30, max_size=60))
def test_answers_as_the_store_in_memory(served: str, done: list[Step]) -> None:
    async def run(folder: Path) -> None:
        opened = FRONTIERS[served](folder)
        try:
            await Differential(opened.store, FRONTIERS["memory"](folder).store).run(done)
        finally:
            await opened.aclose()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
