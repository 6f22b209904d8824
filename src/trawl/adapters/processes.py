"""Pure functions in worker processes: extraction uses every core, and a page that kills its worker kills no more."""

import asyncio
import fcntl
import os
import pickle
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar, cast

from trawl.adapters.worker import LENGTH_BYTES, Task, packed
from trawl.errors import WorkerDiedError

A = TypeVar("A")
R = TypeVar("R")

_DEPTH = 2
"""Calls at a worker: one that it works on, and one that waits there, so that it never has to wait for us."""
_GRACE_SECONDS = 5.0
"""A worker that does not answer in this time after a call's limit (it hangs outside Python) is killed."""
_PIPE_BYTES = 1_048_576
_DIED_MAX = 2
_ONE_CORE = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
"""Each worker has one core: the threads of a linear algebra library would spin on the others' for nothing."""


class _LostError(Exception):
    """The worker ended; `first` says whether this call was the one that it worked on."""

    def __init__(self, *, first: bool, hung: bool) -> None:
        super().__init__()
        self.first = first
        self.hung = hung


class ProcessPool(Generic[A, R]):
    """Calls of one picklable function in `workers` processes, each call at most `seconds_max` long.

    Workers are started by `start`, or by the first call, and do not import the program's main module. If one dies, the
    call that it worked on is tried once more in another; the calls that waited behind it are only sent again.
    """

    def __init__(self, function: Callable[[A], R], workers: int, seconds_max: float) -> None:
        self._task = Task(function, seconds_max)
        self._size = workers
        self._slots = asyncio.Semaphore(workers * _DEPTH)
        self._workers: list[_Worker] = []
        self._starting = asyncio.Lock()

    async def start(self) -> None:
        """Start the workers that are missing."""
        async with self._starting:
            for worker in [worker for worker in self._workers if worker.ended]:
                self._workers.remove(worker)
                await worker.close()
            while len(self._workers) < self._size:
                self._workers.append(await _Worker.started(self._task))

    async def __call__(self, argument: A) -> R:
        """The function's result; raises what it raises, TimeoutError, or WorkerDiedError."""
        message = packed((argument,))
        died = 0
        while True:
            try:
                async with self._slots:
                    worker = await self._least_busy()
                    return cast("R", await worker.call(message))
            except _LostError as lost:
                if lost.hung and lost.first:
                    raise TimeoutError from None
                died += lost.first
                if died == _DIED_MAX:
                    raise WorkerDiedError("the worker process died of this call, twice") from None

    async def close(self) -> None:
        """End the workers; calls under way are given up."""
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.close() for worker in workers))

    async def _least_busy(self) -> "_Worker":
        if len(self._workers) < self._size or any(worker.ended for worker in self._workers):
            await self.start()
        return min(self._workers, key=lambda worker: worker.calls)


class _Worker:
    """One process and the calls that it has not answered, oldest first."""

    def __init__(self, process: Process, task: Task) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._stdin, self._stdout = process, process.stdin, process.stdout
        self._seconds = task.seconds_max + _GRACE_SECONDS
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._hung = False
        self.ended = False
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def started(cls, task: Task) -> "_Worker":
        """A process that is ready to be called; in a session of its own, so that Ctrl-C is ours alone."""
        # -P: no module of the folder that the command was called in comes before the ones that are meant.
        command = (sys.executable, "-P", "-c", "from trawl.adapters.worker import main; main()")
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            limit=_PIPE_BYTES,
            start_new_session=True,
            env={**os.environ, **_ONE_CORE},
        )
        worker = cls(process, task)
        _widen(worker._stdin.get_extra_info("pipe"))
        worker._stdin.write(packed(task))
        return worker

    @property
    def calls(self) -> int:
        """Calls that it has not answered."""
        return len(self._waiting)

    async def call(self, message: bytes) -> Any:
        """The answer to a call; raises what the function raised, or _LostError."""
        if self.ended:
            raise _LostError(first=False, hung=False)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        if len(self._waiting) == 1:
            self._watch()
        self._stdin.write(message)
        return await answer

    async def close(self) -> None:
        """End the process and wait for it."""
        self._stdin.close()
        with suppress(ConnectionError):
            await self._stdin.wait_closed()
        try:
            async with asyncio.timeout(_GRACE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reader

    async def _read(self) -> None:
        try:
            while True:
                length = int.from_bytes(await self._stdout.readexactly(LENGTH_BYTES), "big")
                fine, value = pickle.loads(await self._stdout.readexactly(length))  # noqa: S301 - our own pickle
                answer = self._waiting.popleft()
                self._watch()
                if not answer.done():
                    answer.set_result(value) if fine else answer.set_exception(value)
        except (asyncio.IncompleteReadError, ConnectionError):
            self._lost()

    def _lost(self) -> None:
        self.ended = True
        if self._timer is not None:
            self._timer.cancel()
        for place, answer in enumerate(self._waiting):
            if not answer.done():
                answer.set_exception(_LostError(first=place == 0, hung=self._hung))
        self._waiting.clear()
        self._stdin.close()

    def _watch(self) -> None:
        """Give the oldest call its time from now on."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._waiting:
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._kill)

    def _kill(self) -> None:
        self._hung = True
        with suppress(ProcessLookupError):
            self._process.kill()


def _widen(pipe: Any) -> None:
    """Let a whole page fit into the pipe, where the system can."""
    if pipe is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
