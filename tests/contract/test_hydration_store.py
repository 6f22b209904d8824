from dataclasses import replace
from typing import Any

from trawl.ports import HostHydration, HydrationStore

HOST = HostHydration(
    origin="https://a.example", headless=True, decided_at_ms=9, shares=(0.5, 1.0), sampled=3, shells=2, plain=1
)


async def test_what_is_known_comes_back_whole(hydration: HydrationStore) -> None:
    assert await hydration.get(HOST.origin) is None
    await hydration.put(HOST)
    assert await hydration.get(HOST.origin) == HOST
    assert await hydration.get("http://a.example") is None


async def test_it_is_replaced(hydration: HydrationStore) -> None:
    await hydration.put(HOST)
    await hydration.put(replace(HOST, headless=False, shares=()))
    assert await hydration.get(HOST.origin) == replace(HOST, headless=False, shares=())


async def test_it_outlives_the_process(durable_hydration: Any) -> None:
    await durable_hydration.store.put(HOST)
    assert await durable_hydration.reopen().get(HOST.origin) == HOST
