"""The frontier's service owns shards: what happens when Redis forgets that it does."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from services.common.connections import Patience
from services.common.health import Health
from services.common.progress import Place
from services.frontier.app import Owning
from services.frontier.releasing import Releasing
from tests.servers import RedisServer
from trawl.adapters.clocks import SystemClock
from trawl.adapters.redis import RedisClient, RedisFrontierStore, RedisRobotsStore, ShardLeases, connect
from trawl.frontier.stage import FrontierStage
from trawl.pipeline import HOST_SHARDS
from trawl.records import DiscoveredLinks, Seed
from trawl.rules import Rules
from trawl.settings import Settings

HOSTS = [f"h{number}.example" for number in range(8)]


class Counted(ShardLeases):
    """Leases that count how often shards were taken over."""

    taken = 0

    async def acquire(self, shards: Any) -> dict[int, int]:
        self.taken += 1
        await asyncio.sleep(0.01)  # so that all who lost their epoch ask before the first has a new one
        return await super().acquire(shards)


@pytest.fixture
async def client(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[RedisClient]:
    made = connect(replace(Settings().redis, url=redis_server.url, prefix=f"o{tmp_path.parent.name}{tmp_path.name}"))
    yield made
    await made.close()


async def test_records_that_lost_the_epoch_together_take_over_once(client: RedisClient) -> None:
    settings, clock = Settings(), SystemClock()
    store, leases = RedisFrontierStore(client, shards=HOST_SHARDS), Counted(client)
    rules = Rules(RedisRobotsStore(client, settings.robots), clock, settings.robots, settings.fetch.user_agent)
    stage = FrontierStage(store, rules, clock, settings)
    patience = Patience(Health(), clock, settings.service)
    context = cast("Any", SimpleNamespace(settings=settings, patience=patience))
    owning = Owning(stage, store, leases, Releasing(stage, store, context), context)
    places: frozenset[Place] = frozenset(
        ("trawl.discovered", partition) for partition in range(settings.kafka.partitions)
    )
    await owning.assigned(places)
    links = [found for host in HOSTS for found in await stage.step(Seed(url=f"https://{host}/"))]

    await ShardLeases(client).acquire(range(HOST_SHARDS))  # as if somebody else had them, and the group not said so
    await asyncio.gather(*(owning.step([found]) for found in links if isinstance(found, DiscoveredLinks)))

    assert leases.taken == 2
    assert (await store.progress("default")).queued == len(HOSTS)
