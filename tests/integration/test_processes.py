"""Worker processes, for real: they die, hang and raise."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

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
        case ("hang", _, _):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(60)
        case ("print", _, text):
            sys.stdout.write(text)
            sys.stdout.flush()
        case ("big", _, count):
            return "x" * int(count)
        case _:
            pass
    return order


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers find this module, which is not installed."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture
async def pool() -> AsyncIterator[ProcessPool[str, str]]:
    """Two workers with a limit of one second a call."""
    pool = ProcessPool(work, 2, 1.0)
    yield pool
    await pool.close()


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


async def test_a_worker_that_hangs_outside_python_is_killed(pool: ProcessPool[str, str]) -> None:
    began = time.monotonic()
    results = await asyncio.gather(pool("hang"), *(pool(f"n{n}") for n in range(6)), return_exceptions=True)
    assert isinstance(results[0], TimeoutError)
    assert results[1:] == [f"n{n}" for n in range(6)]
    assert time.monotonic() - began < 20


async def test_what_a_library_prints_does_not_disturb_the_answers(pool: ProcessPool[str, str]) -> None:
    assert await asyncio.gather(*(pool("print noise") for _ in range(9))) == ["print noise"] * 9


async def test_large_arguments_and_results_pass(pool: ProcessPool[str, str]) -> None:
    argument = "y" * 20_000_000
    assert await pool(argument) == argument
    assert len(await pool("big 30000000")) == 30_000_000


async def test_workers_end_with_a_parent_that_is_killed() -> None:
    code = (
        "import asyncio, os, sys\n"
        "from trawl.adapters.processes import ProcessPool\n"
        "async def main():\n"
        "    pool = ProcessPool(len, 2, 1.0)\n"
        "    await pool.start()\n"
        "    assert await pool('abc') == 3\n"
        "    print(*[worker._process.pid for worker in pool._workers], flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await parent.stdout.readline()).split()]
    assert len(pids) == 2
    parent.kill()
    await parent.wait()
    for _ in range(200):
        if not any(alive(pid) for pid in pids):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("workers outlived their parent")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_no_module_of_the_current_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pickle", "random", "struct", "trawl"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    pool: ProcessPool[str, str] = ProcessPool(work, 1, 5.0)
    try:
        assert await pool("fine") == "fine"
    finally:
        await pool.close()
