"""Pure functions in worker processes: extraction uses every core, and a page that kills its worker kills no more."""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import FrameType
from typing import Generic, TypeVar

from trawl.errors import WorkerDiedError

A = TypeVar("A")
R = TypeVar("R")


class WorkerTimeoutError(TimeoutError):
    """A call took longer than its limit; raised in the worker, which goes on with the next call."""


class ProcessPool(Generic[A, R]):
    """Calls of one picklable function in `workers` processes, each call at most `seconds_max` long.

    A worker that dies takes the calls of its fellows with it; each of them is tried once more, alone, so that only the
    call that kills raises WorkerDiedError.
    """

    def __init__(self, function: Callable[[A], R], workers: int, seconds_max: float) -> None:
        self._function = function
        self._workers = workers
        self._seconds_max = seconds_max
        self._executor = self._started()
        self._alone = asyncio.Lock()

    async def __call__(self, argument: A) -> R:
        """The function's result; raises what it raises, WorkerTimeoutError, or WorkerDiedError."""
        executor = self._executor
        try:
            return await self._run(executor, argument)
        except BrokenProcessPool:
            async with self._alone:
                if self._executor is executor:
                    self._renew()
                return await self._last_try(argument)

    def close(self) -> None:
        """End the processes."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def _last_try(self, argument: A) -> R:
        """Run a call whose worker may have died of it in a process of its own."""
        alone = self._started(1)
        try:
            return await self._run(alone, argument)
        except BrokenProcessPool as error:
            raise WorkerDiedError("the extraction process died of this page, twice") from error
        finally:
            alone.shutdown(wait=False, cancel_futures=True)

    async def _run(self, executor: ProcessPoolExecutor, argument: A) -> R:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(executor, _limited, self._function, argument, self._seconds_max)

    def _renew(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._started()

    def _started(self, workers: int = 0) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers or self._workers, mp_context=context, initializer=_begin)


def _begin() -> None:
    """Ctrl-C is the parent's business; it lets its workers finish."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, _expired)
    threading.Thread(target=_end_with_parent, name="parent watch", daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers, and they would wait for its calls for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _limited(function: Callable[[A], R], argument: A, seconds: float) -> R:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return function(argument)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _expired(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise WorkerTimeoutError
