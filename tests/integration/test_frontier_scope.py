"""What a crawl's seeds let in: many of them, a later run's others, redirects and sitemaps."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.test_frontier_stage import Frontier
from trawl.adapters.sqlite import Database, SqliteFrontierStore
from trawl.kinds import OutcomeClass, ScopeKind
from trawl.records import Link, Seed

# Seeds


async def _seconds_of_seeds(folder: Path, count: int) -> float:
    """The CPU time of admitting so many seeds, each of a host of its own."""
    with closing(Database(folder, group_seconds=0.02)) as database:
        frontier = Frontier(store=SqliteFrontierStore(database))
        seeds = [Seed(url=f"https://h{n}.example/docs/", scope=ScopeKind.PREFIX) for n in range(count)]
        began = time.process_time()
        await frontier.put(*seeds)
        seconds = time.process_time() - began
        assert (await frontier.store.progress("default")).queued == count
    return seconds


async def test_a_seed_costs_the_same_however_many_there_are(tmp_path_factory: pytest.TempPathFactory) -> None:
    few = await _seconds_of_seeds(tmp_path_factory.mktemp("few"), 250)
    many = await _seconds_of_seeds(tmp_path_factory.mktemp("many"), 2000)
    assert many < 3 * 8 * few  # a cost that grows with the seeds before would make it 64 times


async def test_a_seed_that_another_replica_took_is_admitted_at_once() -> None:
    frontier = Frontier()
    other = Frontier(frontier.settings, frontier.store)
    await frontier.put(Seed(url="https://a.example/"))
    (links,) = await other.stage.step(Seed(url="https://b.example/"))
    await frontier.stage.step(links)
    assert set(await frontier.rows()) == {"https://a.example/", "https://b.example/"}


# A later run


async def test_a_narrower_scope_calls_off_what_a_wider_one_had_queued() -> None:
    frontier = Frontier()
    await frontier.opened(scope=ScopeKind.ANY)
    await frontier.put(*frontier.links("https://a.example/near", "https://b.example/far"))
    again = await frontier.begun_again(Seed(url="https://a.example/", scope=ScopeKind.HOST))
    rows = await again.rows()
    far = rows["https://b.example/far"]
    assert (far.state, far.outcome, far.reason) == ("done", OutcomeClass.REFUSED, "out_of_scope")
    assert rows["https://a.example/"].outcome is OutcomeClass.INDEXED
    again.clock.advance(60)
    assert [task.url for task in await again.due()] == ["https://a.example/near"]
    assert (await again.store.progress("default")).charged == 2


async def test_a_smaller_depth_calls_off_what_lies_deeper() -> None:
    frontier = Frontier()
    await frontier.opened()
    deep = "https://a.example/deep"
    await frontier.put(*frontier.links(deep, links=(Link(url=deep, depth=3),)))
    again = await frontier.begun_again(Seed(url="https://a.example/", depth_max=2))
    row = (await again.rows())[deep]
    assert (row.state, row.outcome, row.reason) == ("done", OutcomeClass.REFUSED, "too_deep")


async def test_what_is_released_is_in_scope_even_if_nobody_looked_before() -> None:
    frontier = Frontier()
    await frontier.opened(scope=ScopeKind.ANY)
    await frontier.put(*frontier.links("https://a.example/blog/1"))
    again = Frontier(frontier.settings, frontier.store)
    again.clock, again.stage = frontier.clock, frontier.stage
    await frontier.stage.begin([Seed(url="https://a.example/docs/", scope=ScopeKind.PREFIX)])
    again.clock.advance(60)
    assert await again.due() == []
    row = (await again.rows())["https://a.example/blog/1"]
    assert (row.state, row.outcome, row.reason) == ("done", OutcomeClass.REFUSED, "out_of_scope")
    assert (await again.store.progress("default")).charged == 1


async def test_where_a_seed_had_redirected_to_stays_in_scope_as_long_as_the_seed() -> None:
    frontier = Frontier()
    task = await frontier.started()
    target = "https://www.a.example/"
    await frontier.moves(task, target)
    again = await frontier.begun_again(Seed(url="https://a.example/"))
    assert (await again.rows())[target].state == "queued"
    other = await again.begun_again(Seed(url="https://b.example/"))
    assert (await other.rows())[target].reason == "out_of_scope"


async def test_an_old_seed_that_still_waits_does_not_widen_a_run_that_has_begun() -> None:
    frontier = await Frontier().begun_again(Seed(url="https://a.example/"))
    await frontier.put(Seed(url="https://b.example/", scope=ScopeKind.ANY), *frontier.links("https://c.example/"))
    assert set(await frontier.rows()) == {"https://a.example/"}
    assert await frontier.refusals() == {"out_of_scope": 2}
