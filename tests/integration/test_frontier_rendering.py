"""The frontier and browsers: which task is for one, through deferrals, retries and restarts."""

from dataclasses import replace
from typing import Any

import pytest

from tests.integration.test_frontier_stage import Frontier
from trawl.adapters.memory import MemoryHydrationStore
from trawl.frontier.stage import FrontierStage
from trawl.kinds import OutcomeClass, Purpose, RenderMode, SeedKind
from trawl.ports import HostHydration
from trawl.records import FetchTask, StaticRender, Validators
from trawl.rules import Rules
from trawl.settings import BrowserSettings, Settings

ORIGIN = "https://a.example"
NO_SAMPLES = BrowserSettings(render="auto", sample_share=0.0)


class Rendering(Frontier):
    """A frontier that may ask a browser."""

    def __init__(self, browser: BrowserSettings = NO_SAMPLES) -> None:
        super().__init__(Settings(browser=browser))
        self.hydration = MemoryHydrationStore()
        self.reopen()

    def reopen(self) -> None:
        """Another process takes over: all that is left is in the stores."""
        rules = Rules(self.robots, self.clock, self.settings.robots, "trawl/0")
        self.stage = FrontierStage(self.store, rules, self.clock, self.settings, hydration=self.hydration)

    async def next(self) -> FetchTask:
        """The next task, once its time has come."""
        self.clock.advance(60)
        (task,) = await self.due()
        return task

    async def shell(self, task: FetchTask) -> None:
        """The extractor holds the page of a task back."""
        needs = StaticRender(text_sha256="aa", fetched_at_ms=1)
        outcome = self.outcome(task, OutcomeClass.NEEDS_RENDER, reason="shell", terminal=False, needs_render=needs)
        await self.put(outcome)


async def test_a_shell_is_released_again_for_a_browser_in_the_same_visit() -> None:
    frontier = Rendering()
    task = await frontier.started()
    assert task.render_mode is RenderMode.STATIC
    await frontier.shell(task)
    rendered = await frontier.next()
    assert (rendered.url, rendered.render_mode, rendered.attempt) == (task.url, RenderMode.HEADLESS, 1)
    assert (rendered.fetch_id, rendered.scheduled_at_ms) == (task.fetch_id, task.scheduled_at_ms)
    await frontier.put(frontier.outcome(rendered, OutcomeClass.INDEXED, hydrated=1.0))
    assert not await frontier.due()
    progress = await frontier.store.progress("default")
    assert (progress.reasons, progress.charged) == ((("indexed", 1),), 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"outcome": OutcomeClass.DEFERRED, "reason": "politeness"},
        {"outcome": OutcomeClass.RETRY, "reason": "first_byte_timeout"},
        {"outcome": OutcomeClass.RETRY, "reason": "robots_unknown"},
    ],
)
async def test_what_delays_a_page_that_waits_for_a_browser_does_not_make_it_static_again(changes: Any) -> None:
    frontier = Rendering()
    await frontier.shell(await frontier.started())
    for _ in range(2):
        task = await frontier.next()
        assert task.render_mode is RenderMode.HEADLESS
        until = frontier.clock.now_ms() + 1000
        await frontier.put(
            frontier.outcome(
                task, changes["outcome"], reason=changes["reason"], terminal=False, deferred_until_ms=until
            )
        )
    frontier.clock.advance(300)
    assert (await frontier.next()).render_mode is RenderMode.HEADLESS


async def test_a_page_waits_for_its_browser_over_a_restart_and_a_lost_lease() -> None:
    frontier = Rendering()
    await frontier.shell(await frontier.started())
    await frontier.next()
    frontier.reopen()
    await frontier.store.release_leases()
    assert (await frontier.next()).render_mode is RenderMode.HEADLESS
    frontier.clock.advance(frontier.settings.frontier.lease_seconds + 60)
    (again,) = await frontier.due()
    assert (again.render_mode, again.attempt) == (RenderMode.HEADLESS, 2)


async def test_where_browsers_are_off_a_page_that_waited_for_one_is_fetched_as_it_is() -> None:
    frontier = Rendering()
    await frontier.shell(await frontier.started())
    frontier.settings = Settings()
    frontier.reopen()
    assert (await frontier.next()).render_mode is RenderMode.STATIC


async def test_a_host_whose_text_comes_with_scripts_is_switched_and_stays_so_over_a_restart() -> None:
    frontier = Rendering()
    task = await frontier.started()
    paths = [f"{ORIGIN}/{number}" for number in range(5)]
    await frontier.put(*frontier.links(*paths))
    for _ in range(3):
        await frontier.shell(task)
        rendered = await frontier.next()
        while rendered.url != task.url:  # others come between
            await frontier.put(frontier.outcome(rendered, OutcomeClass.FAILED, reason="http_404"))
            rendered = await frontier.next()
        await frontier.put(frontier.outcome(rendered, OutcomeClass.INDEXED, hydrated=0.9))
        host = await frontier.hydration.get(ORIGIN)
        assert host is not None
        if host.headless:
            break
        task = await frontier.next()
    assert host is not None
    assert host.headless
    frontier.reopen()
    left = await frontier.next()
    assert left.render_mode is RenderMode.HEADLESS


async def test_a_switched_host_is_asked_without_conditions_and_lists_without_a_browser() -> None:
    frontier = Rendering()
    await frontier.hydration.put(HostHydration(origin=ORIGIN, headless=True, decided_at_ms=1))
    task = await frontier.started()
    assert task.render_mode is RenderMode.HEADLESS
    kept = Validators(etag='"v1"')
    await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED, validators=kept))
    await frontier.store.readmit("default", frontier.clock.now_ms())
    again = await frontier.next()
    assert (again.render_mode, again.validators) == (RenderMode.HEADLESS, Validators())
    sitemap = replace(frontier.links(f"{ORIGIN}/map.xml")[0])
    link = replace(sitemap.links[0], purpose=Purpose.SITEMAP)
    await frontier.put(frontier.outcome(again, OutcomeClass.INDEXED), replace(sitemap, links=(link,)))
    assert (await frontier.next()).render_mode is RenderMode.STATIC


@pytest.mark.parametrize(("render", "mode"), [("never", RenderMode.STATIC), ("always", RenderMode.HEADLESS)])
async def test_never_and_always_ask_nobody(render: str, mode: RenderMode) -> None:
    frontier = Rendering(BrowserSettings(render=render))
    task = await frontier.started(kind=SeedKind.AUTO)
    assert task.render_mode is mode
    await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED, hydrated=1.0))
    assert not frontier.hydration.hosts


async def test_a_sample_of_an_undecided_host_is_rendered_until_it_is_decided() -> None:
    frontier = Rendering(BrowserSettings(render="auto", sample_share=1.0))
    task = await frontier.started()
    await frontier.put(*frontier.links(*(f"{ORIGIN}/{number}" for number in range(6))))
    modes = []
    for _ in range(6):
        modes.append(task.render_mode)
        rendered = task.render_mode is RenderMode.HEADLESS
        await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED, hydrated=0.1 if rendered else None))
        task = await frontier.next()
    assert modes == [RenderMode.HEADLESS] * 3 + [RenderMode.STATIC] * 3


async def test_a_late_outcome_teaches_nothing() -> None:
    frontier = Rendering(BrowserSettings(render="auto", sample_share=1.0))
    task = await frontier.started()
    outcome = frontier.outcome(task, OutcomeClass.INDEXED, hydrated=1.0)
    await frontier.put(outcome, outcome, outcome)
    host = await frontier.hydration.get(ORIGIN)
    assert host is not None
    assert host.shares == (1.0,)
