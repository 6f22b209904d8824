"""Whatever is done to it, every frontier store answers as the one in memory does."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests.contract.conftest import FRONTIERS, Open
from tests.contract.requests import completion, request
from trawl.kinds import OutcomeClass, Purpose, RobotsState
from trawl.ports import Admission, CrawlPolicy, FrontierStore, OriginUpdate, Request, RequestRow
from trawl.records import Validators

T = TypeVar("T")
ORIGINS = ("https://a.example", "https://b.example", "http://c.example:8080")
CRAWLS = ("c", "d")
KEYS = tuple((crawl, f"{origin}/{n}") for crawl in CRAWLS for origin in ORIGINS for n in range(5))
SPANS = st.sampled_from((0, 1, 10, 100, 1000))

requests = st.builds(
    lambda key, **fields: request(key[1], key[0], **fields),
    st.sampled_from(KEYS),
    template=st.integers(1, 3),
    purpose=st.sampled_from((Purpose.PAGE, Purpose.PAGE, Purpose.AUTO, Purpose.SITEMAP)),
    score=st.sampled_from((0.0, 0.25, 0.5, 0.75)),
    due_at_ms=st.sampled_from((0, 0, 0, 50, 500, 5000)),
    scheduled_at_ms=st.integers(0, 3),
)


class Differential(RuleBasedStateMachine):
    """The same calls on the store under test and on the model."""

    open_store: Open[FrontierStore]

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.opened = self.open_store(Path(self.folder.name))
        self.model = FRONTIERS["memory"](Path(self.folder.name)).store
        self.runner = asyncio.Runner()
        self.now_ms = 1
        self.leased: list[Request] = []

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.opened.close()
            self.runner.close()
            self.folder.cleanup()

    def both(self, call: Callable[[FrontierStore], Awaitable[T]]) -> T:
        """The answer of both, which is the same."""

        async def ask() -> tuple[T, T]:
            return await call(self.opened.store), await call(self.model)

        answer, expected = self.runner.run(ask())
        assert answer == expected
        return expected

    @rule(span=SPANS)
    def time_passes(self, span: int) -> None:
        self.now_ms += span

    @rule(
        crawl=st.sampled_from(CRAWLS),
        paused=st.sampled_from((False, False, False, True)),
        pages_max=st.sampled_from((0, 0, 1, 3)),
    )
    def put_crawl(self, crawl: str, paused: bool, pages_max: int) -> None:
        policy = CrawlPolicy(crawl_id=crawl, paused=paused, pages_max=pages_max)
        self.both(lambda store: store.put_crawl(policy))

    @rule(
        batch=st.lists(requests, min_size=1, max_size=6),
        queue_urls_max=st.sampled_from((100, 100, 100, 3, 8)),
        host_urls_max=st.sampled_from((100, 100, 4)),
    )
    def admit(self, batch: list[Request], queue_urls_max: int, host_urls_max: int) -> None:
        async def call(store: FrontierStore) -> list[Admission]:
            return list(await store.admit(batch, queue_urls_max=queue_urls_max, host_urls_max=host_urls_max))

        self.both(call)

    @rule(
        origin=st.sampled_from(ORIGINS),
        robots=st.sampled_from((RobotsState.RULES, RobotsState.ALLOW_ALL, RobotsState.UNAVAILABLE)),
        lasts=st.sampled_from((1, 100, 10**6, 10**6)),
        delay_ms=st.sampled_from((0, 0, 10, 100)),
        concurrency_max=st.sampled_from((1, 2, 9)),
    )
    def robots_arrive(self, origin: str, robots: RobotsState, lasts: int, delay_ms: int, concurrency_max: int) -> None:
        update = OriginUpdate(
            robots=robots,
            robots_expires_ms=self.now_ms + lasts,
            delay_ms=delay_ms,
            concurrency_max=concurrency_max,
        )
        self.both(lambda store: store.update_origin(origin, update))

    @rule(
        origin=st.sampled_from(ORIGINS),
        update=st.builds(
            OriginUpdate,
            robots=st.sampled_from((None, None, RobotsState.UNKNOWN)),
            blocked_until_ms=st.none() | st.integers(0, 2000),
            delay_ms=st.none() | SPANS,
            failures=st.none() | st.integers(0, 9),
            unblock=st.booleans(),
        ),
    )
    def update_origin(self, origin: str, update: OriginUpdate) -> None:
        self.both(lambda store: store.update_origin(origin, update))

    @rule(limit=st.integers(0, 3), lease_ms=SPANS)
    def lease_robots(self, limit: int, lease_ms: int) -> None:
        async def call(store: FrontierStore) -> list[str]:
            return list(await store.lease_robots(self.now_ms, limit, lease_ms))

        self.both(call)

    @rule(limit=st.integers(0, 6), lease_ms=SPANS, origins_max=st.sampled_from((1, 2, 100)))
    def lease(self, limit: int, lease_ms: int, origins_max: int) -> None:
        async def call(store: FrontierStore) -> list[Request]:
            return list(await store.lease(self.now_ms, limit, lease_ms, origins_max=origins_max))

        self.leased += self.both(call)

    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        if not self.leased:
            return
        leased = data.draw(st.sampled_from(self.leased))
        requeue_at_ms = data.draw(st.none() | SPANS.map(lambda span: self.now_ms + span))
        told = completion(
            leased,
            data.draw(st.sampled_from((OutcomeClass.INDEXED, OutcomeClass.UNCHANGED, OutcomeClass.FAILED))),
            requeue_at_ms=requeue_at_ms,
            attempt=data.draw(st.integers(1, 3)),
            charged=data.draw(st.booleans()),
            duplicate=data.draw(st.sampled_from((None, False, True))),
            validators=data.draw(st.sampled_from((None, Validators(etag="e")))),
            document_key=data.draw(st.sampled_from((None, 1))),
            duplicate_of=data.draw(st.sampled_from((None, 2))),
        )
        if data.draw(st.sampled_from((False,) * 9 + (True,))):
            told = replace(told, fetch_id=told.fetch_id + 1)
        self.both(lambda store: store.complete(told))

    @rule()
    def reap(self) -> None:
        async def call(store: FrontierStore) -> list[Request]:
            return list(await store.reap(self.now_ms))

        self.both(call)

    @rule(crawl=st.sampled_from(CRAWLS))
    def readmit(self, crawl: str) -> None:
        self.both(lambda store: store.readmit(crawl, self.now_ms))

    @rule()
    def restart(self) -> None:
        self.both(lambda store: store.release_leases())

    @rule(crawl=st.sampled_from(CRAWLS), count=st.integers(0, 2))
    def refuse(self, crawl: str, count: int) -> None:
        self.both(lambda store: store.count_refusals(crawl, "trap", count))

    @rule()
    def next_event(self) -> None:
        event = self.both(lambda store: store.next_event_ms(self.now_ms))
        assert event is None or event >= self.now_ms

    @rule()
    def wake(self) -> None:
        """A caller that sleeps until the next event never wakes in vain."""

        async def call(store: FrontierStore) -> tuple[bool, list[str], list[Request]]:
            event = await store.next_event_ms(self.now_ms)
            robots = list(await store.lease_robots(self.now_ms, 1, 50))
            leased = list(await store.lease(self.now_ms, 1, 50, origins_max=100))
            return event == self.now_ms, robots, leased

        now, robots, leased = self.both(call)
        assert now == bool(robots or leased)
        self.leased += leased

    @invariant()
    def everything_shows_the_same(self) -> None:
        if not hasattr(self, "runner"):
            return

        async def shown(store: FrontierStore) -> dict[str, Any]:
            return {
                "progress": [await store.progress(crawl) for crawl in CRAWLS],
                "origins": list(await store.origins(10)),
                "templates": list(await store.templates((1, 2, 3))),
                "rows": [await _all(store.rows(crawl)) for crawl in CRAWLS],
            }

        self._agrees(self.both(shown))

    def _agrees(self, shown: dict[str, Any]) -> None:
        """The counters say what the rows say."""
        for progress, crawl_rows in zip(shown["progress"], shown["rows"], strict=True):
            states = [row.state for row in crawl_rows]
            assert (progress.queued, progress.leased) == (states.count("queued"), states.count("leased"))
        every = [row for crawl_rows in shown["rows"] for row in crawl_rows]
        for origin in shown["origins"]:
            states = [row.state for row in every if row.request.origin == origin.origin]
            assert (origin.queued, origin.leased) == (states.count("queued"), states.count("leased"))


async def _all(found: AsyncIterator[RequestRow]) -> list[RequestRow]:
    return [row async for row in found]


@pytest.mark.parametrize("name", [name for name in FRONTIERS if name != "memory"])
def test_answers_as_the_store_in_memory(name: str) -> None:
    machine = type("Machine", (Differential,), {"open_store": staticmethod(FRONTIERS[name])})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
