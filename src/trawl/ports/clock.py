"""Time."""

from typing import Protocol

from trawl.records import Millis


class Clock(Protocol):
    """Time, so that tests and simulations can own it."""

    def now_ms(self) -> Millis:
        """Milliseconds since the epoch, UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        ...
