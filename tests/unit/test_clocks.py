import asyncio
import time

import pytest

from trawl.adapters.clocks import ManualClock, SystemClock


async def test_the_system_clock_tells_milliseconds_and_sleeps() -> None:
    clock = SystemClock()
    assert abs(clock.now_ms() - time.time() * 1000) < 1000
    start = time.monotonic()
    await clock.sleep(0.02)
    assert time.monotonic() - start >= 0.019
    await clock.sleep(-1)


async def test_a_manual_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(1000)
    assert clock.now_ms() == clock.now_ms() == 1000
    clock.advance(1.5)
    assert clock.now_ms() == 2500
    clock.set(7)
    assert clock.now_ms() == 7


async def test_a_sleep_moves_a_manual_clock() -> None:
    clock = ManualClock(1000)
    await clock.sleep(3600)
    assert clock.now_ms() == 3_601_000


async def test_sleepers_side_by_side_do_not_add_up() -> None:
    clock = ManualClock(0)
    await asyncio.gather(clock.sleep(1), clock.sleep(2), clock.sleep(2))
    assert clock.now_ms() == 2000


async def test_a_sleeper_waits_until_the_clock_is_there() -> None:
    clock = ManualClock(0, auto=False)
    sleeper = asyncio.create_task(clock.sleep(2))
    await asyncio.sleep(0)
    clock.advance(1.999)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(sleeper), 0.01)
    clock.advance(0.001)
    await asyncio.wait_for(sleeper, 1)
    await clock.sleep(0)
