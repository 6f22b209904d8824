"""Clocks: the system's, and one that tests and simulations move by hand."""

import asyncio
import time

from trawl.records import Millis


class SystemClock:
    """The system's clock."""

    def now_ms(self) -> Millis:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait that long; other tasks run meanwhile."""
        await asyncio.sleep(max(0.0, seconds))


class ManualClock:
    """A clock that stands still until it is moved.

    With `auto` a sleep moves the clock itself to its end, so that one task runs through hours at once; without, a
    sleeper waits until `advance` or `set` has moved the clock there.
    """

    def __init__(self, now_ms: Millis = 0, *, auto: bool = True) -> None:
        self._now_ms: float = now_ms
        self._auto = auto
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now_ms(self) -> Millis:
        """The time that was set, in milliseconds."""
        return int(self._now_ms)

    def set(self, now_ms: Millis) -> None:
        """Move the clock; wakes the sleepers whose time has come."""
        self._move(now_ms)

    def advance(self, seconds: float) -> None:
        """Move the clock on; wakes the sleepers whose time has come."""
        self._move(self._now_ms + seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has moved that far."""
        until = self._now_ms + max(0.0, seconds) * 1000
        if self._auto:
            await asyncio.sleep(0)
            self._move(max(until, self._now_ms))
        elif until > self._now_ms:
            event = asyncio.Event()
            self._sleepers.append((until, event))
            await event.wait()
        else:
            await asyncio.sleep(0)

    def _move(self, now_ms: float) -> None:
        self._now_ms = now_ms
        for until, event in self._sleepers:
            if until <= now_ms:
                event.set()
        self._sleepers = [(until, event) for until, event in self._sleepers if until > now_ms]
