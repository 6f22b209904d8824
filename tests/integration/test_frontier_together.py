"""The frontier stage when several things happen at once, and when a store fails in the middle."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.test_frontier_stage import Frontier
from tests.servers import RedisServer
from trawl.adapters.memory import MemoryFrontierStore, MemoryRobotsStore
from trawl.adapters.redis import RedisFrontierStore, connect
from trawl.errors import StaleEpochError, StoreError
from trawl.frontier.stage import FrontierStage
from trawl.kinds import Found, ScopeKind, SeedKind
from trawl.ports import CrawlPolicy, RobotsEntry, SeedScope
from trawl.records import DeadLetter, DiscoveredLinks, FetchTask, Link, Record, Seed
from trawl.rules import Rules
from trawl.settings import Settings


class Distant(MemoryFrontierStore):
    """Answers about scopes after others had their turn, as a server does."""

    async def scopes(self, crawl_id: str, *, version: int = 0, known: int = 0) -> tuple[int, Sequence[SeedScope]]:
        found = await super().scopes(crawl_id, version=version, known=known)
        for _ in range(3):
            await asyncio.sleep(0)
        return found


class Failing(MemoryRobotsStore):
    """Raises when it is asked for the number of times that is set."""

    def __init__(self) -> None:
        super().__init__()
        self.error: Exception = StoreError("Redis does not answer")
        self.good = 1 << 30

    async def get(self, origin: str) -> RobotsEntry | None:
        self.good -= 1
        if self.good < 0:
            raise self.error
        return await super().get(origin)


def links(host: str) -> DiscoveredLinks:
    url = f"https://{host}/"
    link = Link(url=url, depth=0, found=Found.SEED)
    return DiscoveredLinks(crawl_id="default", source_url=url, target_host=host, links=(link,))


async def test_seeds_that_come_while_others_are_read_are_all_in_scope() -> None:
    frontier = Frontier(store=Distant())
    hosts = [f"h{number}.example" for number in range(12)]
    for first in range(0, len(hosts), 3):
        group = hosts[first : first + 3]
        await asyncio.gather(*(frontier.stage.step(Seed(url=f"https://{host}/", kind=SeedKind.PAGE)) for host in group))
        await asyncio.gather(*(frontier.stage.step(links(host)) for host in group for _ in range(3)))
        frontier.clock.advance(2000)
    await frontier.stage.flush()
    assert (await frontier.store.progress("default")).queued == len(hosts)


async def opened(robots: Failing, hosts: int) -> Frontier:
    """A frontier in which a page of each host is due."""
    frontier = Frontier()
    frontier.robots = robots
    rules = Rules(robots, frontier.clock, frontier.settings.robots, "trawl/0")
    frontier.stage = FrontierStage(frontier.store, rules, frontier.clock, frontier.settings)
    await frontier.put(*(Seed(url=f"https://h{number}.example/", kind=SeedKind.PAGE) for number in range(hosts)))
    for task in await frontier.due():
        await frontier.answer_robots(task, f"Sitemap: {task.url[:-10]}map.xml".encode())
    for number in range(hosts):
        rules.forget(f"https://h{number}.example")
    return frontier


@pytest.mark.parametrize("good", range(5))
async def test_a_store_that_fails_in_the_middle_of_a_release_loses_no_lease_and_no_sitemap(good: int) -> None:
    robots = Failing()
    frontier = await opened(robots, 4)
    robots.good = good
    found: list[Record] = []
    try:
        found += await frontier.stage.due(frontier.clock.now_ms(), 100)
    except StoreError:
        assert good == 0
    assert robots.good < 0 or good >= 4
    robots.good = 1 << 30
    found += await frontier.stage.due(frontier.clock.now_ms(), 100)
    tasks = [record.url for record in found if isinstance(record, FetchTask)]
    sitemaps = [link.url for record in found if isinstance(record, DiscoveredLinks) for link in record.links]
    assert sorted(tasks) == [f"https://h{number}.example/" for number in range(4)]
    assert sorted(sitemaps) == [f"https://h{number}.example/map.xml" for number in range(4)]


async def test_a_request_of_a_shard_that_is_lost_does_not_hold_up_the_others() -> None:
    robots = Failing()
    frontier = await opened(robots, 3)
    robots.good, robots.error = 0, StaleEpochError("shard 1 has another owner")
    with pytest.raises(StaleEpochError):
        await frontier.stage.due(frontier.clock.now_ms(), 100)
    robots.good = 1 << 30
    found = await frontier.stage.due(frontier.clock.now_ms(), 100)
    assert len([record for record in found if isinstance(record, FetchTask)]) == 2


async def test_half_a_character_in_a_seed_is_one_dead_letter() -> None:
    frontier = Frontier()
    (letter,) = await frontier.put(Seed(url="no address \ud800", kind=SeedKind.PAGE))
    assert isinstance(letter, DeadLetter)
    assert (letter.reason, letter.payload.inline) == ("invalid_url", b"no address ?")


async def test_a_pause_is_not_undone_by_seeds_that_come_at_the_same_time(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    settings = replace(Settings().redis, url=redis_server.url, prefix=tmp_path.name)
    clients = [connect(settings) for _ in range(2)]
    stores = [RedisFrontierStore(client) for client in clients]
    for number in range(40):
        policy = CrawlPolicy(crawl_id=f"c{number}")
        await stores[0].put_crawl(policy)
        scopes = [SeedScope(url=f"https://h{at}.example/", kind=ScopeKind.HOST) for at in range(8)]
        adding = [stores[0].add_scopes(policy.crawl_id, (scope,), policy) for scope in scopes]
        pausing = stores[1].put_crawl(replace(policy, paused=True))
        await asyncio.gather(*adding[:4], pausing, *adding[4:])
        found = await stores[0].crawl(policy.crawl_id)
        assert found is not None
        assert found.paused
        _, known = await stores[0].scopes(policy.crawl_id)
        assert {scope.url for scope in known} == {scope.url for scope in scopes}
    for client in clients:
        await client.close()
