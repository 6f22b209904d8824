"""Asking now and then whether what a service needs serves as it must.

Records tell of a server that is away only when there are some, and never of a clock that drifts off or of a topic that
was deleted while nothing was sent on it. Readiness tells of both; nothing is stopped by it.
"""

import logging
from collections.abc import Awaitable, Callable

from services.common.connections import PASSING, wording
from services.common.health import Health
from trawl.ports import Clock

_LOG = logging.getLogger(__name__)

Check = Callable[[], Awaitable[None]]
"""Raises StoreError, KafkaError or EmbedderError while something is wrong."""


class Watch:
    """Asks each check again and again; readiness is false while one raises."""

    def __init__(self, health: Health, clock: Clock, seconds: float) -> None:
        self._health = health
        self._clock = clock
        self._seconds = seconds
        self._checks: dict[str, Check] = {}
        self._wrong: dict[str, str] = {}  # the wording that was logged last

    def add(self, what: str, check: Check) -> None:
        """From now on ask this, too."""
        self._checks[what] = check

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self._clock.sleep(self._seconds)
            for what, check in tuple(self._checks.items()):
                await self._look(f"a look at {what}", check)

    async def _look(self, what: str, check: Check) -> None:
        try:
            await check()
        except PASSING as error:
            self._health.failing(what, str(error))
            if self._wrong.get(what) != wording(error):
                self._wrong[what] = wording(error)
                _LOG.warning("%s: %s", what, error)
            return
        if what in self._wrong:
            del self._wrong[what]
            self._health.working(what)
            _LOG.info("%s finds nothing wrong any more", what)
