"""Worker processes, for real: they die, hang and raise."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator

import pytest

from trawl.adapters.processes import ProcessPool
from trawl.errors import WorkerDiedError


def work(order: str) -> str:
    """Do what the order says; picklable."""
    match order.partition(" "):
        case ("die", _, _):
            os.kill(os.getpid(), signal.SIGKILL)
        case ("sleep", _, seconds):
            time.sleep(float(seconds))
        case ("raise", _, text):
            raise ValueError(text)
        case _:
            pass
    return order


@pytest.fixture
def pool() -> Iterator[ProcessPool[str, str]]:
    """Two workers with a limit of one second a call."""
    pool = ProcessPool(work, 2, 1.0)
    yield pool
    pool.close()


async def test_results_and_errors_come_back(pool: ProcessPool[str, str]) -> None:
    assert await asyncio.gather(*(pool(f"n{n}") for n in range(20))) == [f"n{n}" for n in range(20)]
    with pytest.raises(ValueError, match="bad page"):
        await pool("raise bad page")


async def test_a_call_over_its_time_is_ended_and_the_worker_goes_on(pool: ProcessPool[str, str]) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        await pool("sleep 30")
    assert time.monotonic() - began < 10
    assert await pool("next") == "next"


async def test_only_the_call_that_kills_its_worker_fails(pool: ProcessPool[str, str]) -> None:
    orders = [f"n{n}" for n in range(12)]
    orders.insert(5, "die")
    results = await asyncio.gather(*(pool(order) for order in orders), return_exceptions=True)
    died = [order for order, result in zip(orders, results, strict=True) if isinstance(result, WorkerDiedError)]
    assert died == ["die"]
    assert [result for result in results if isinstance(result, str)] == [order for order in orders if order != "die"]
    assert await pool("after") == "after"
