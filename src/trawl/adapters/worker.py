"""A worker process: `main` reads calls from standard input and answers on standard output.

A message is its length in eight bytes, then a pickle; both ends are ours. The first names the function and its limits.
The process ends when its standard input does, so a parent that was killed leaves nobody behind.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, BinaryIO

LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker is for."""

    function: Callable[[Any], Any]
    """Called for each argument; picklable."""
    seconds_max: float
    """A call that takes longer ends with TimeoutError."""


def packed(message: object) -> bytes:
    """A message as bytes."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH_BYTES, "big") + data


def main() -> None:
    """Answer calls until there are no more."""
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    signal.signal(signal.SIGALRM, _expired)
    task = _read(calls)
    while isinstance(task, Task) and (call := _read(calls)) is not None:
        answers.write(_answer(task, call[0]))
        answers.flush()


def _read(calls: BinaryIO) -> Any:
    length = calls.read(LENGTH_BYTES)
    return pickle.loads(calls.read(int.from_bytes(length, "big"))) if length else None  # noqa: S301 - our own pickle


def _answer(task: Task, argument: Any) -> bytes:
    signal.setitimer(signal.ITIMER_REAL, task.seconds_max)
    try:
        return packed((True, task.function(argument)))
    except Exception as error:  # noqa: BLE001 - it is raised where the call was made
        return _failure(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _failure(error: Exception) -> bytes:
    try:
        return packed((False, error))
    except Exception:  # noqa: BLE001 - an error that cannot be pickled is told by its text
        return packed((False, RuntimeError(f"{type(error).__name__}: {error}")))


def _expired(signum: int, frame: FrameType | None) -> None:
    del signum, frame
    raise TimeoutError
