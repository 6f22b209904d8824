"""A worker process: `main` reads calls from standard input and answers on standard output.

A message is its length in eight bytes, then a pickle; both ends are ours. The first names the function and its limits.
The process ends when its standard input does, so a parent that was killed leaves nobody behind.
"""

import dataclasses
import os
import pickle
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from operator import attrgetter
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


class _Pickler(pickle.Pickler):
    """Pickles records twice as fast as their own methods do, which ask for the fields of each record anew."""

    def reducer_override(self, obj: Any) -> Any:
        """A record as its class and the values of its fields; anything else as ever."""
        cls: Any = type(obj)
        values = _values_of(cls)
        return NotImplemented if values is None else (_restored, (cls, *values(obj)))


@cache
def _values_of(cls: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """For a slotted dataclass what gives the values of its fields; None for any other class."""
    if not dataclasses.is_dataclass(cls) or "__slots__" not in vars(cls):
        return None
    names = tuple(field.name for field in dataclasses.fields(cls))
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


@cache
def _setters(cls: type) -> tuple[Callable[[Any, Any], None], ...]:
    return tuple(getattr(cls, field.name).__set__ for field in dataclasses.fields(cls))


def _restored(cls: type, *values: Any) -> Any:
    """The record of which `_Pickler` took the values; frozen records are set through their slots."""
    record: Any = object.__new__(cls)
    for setter, value in zip(_setters(cls), values, strict=True):
        setter(record, value)
    return record


def packed(message: object) -> bytes:
    """A message as bytes."""
    file = BytesIO(bytes(LENGTH_BYTES))
    file.seek(LENGTH_BYTES)
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(message)
    file.getbuffer()[:LENGTH_BYTES] = (file.tell() - LENGTH_BYTES).to_bytes(LENGTH_BYTES, "big")
    return file.getvalue()


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
