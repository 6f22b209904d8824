"""Waiting for what a service cannot do without: a call that fails for a time is made again, and readiness says so."""

import logging
import random
import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from services.common.health import Health
from trawl.errors import EmbedderError, KafkaError, RecordRefusedError, StaleEpochError, StoreError
from trawl.ports import Clock
from trawl.settings import ServiceSettings

T = TypeVar("T")
_LOG = logging.getLogger(__name__)
_LOUD_EVERY: Final = 10

PASSING: Final = (StoreError, KafkaError, EmbedderError)
"""What passes by itself, or when an operator acts: the record waits, and nothing is lost."""


def wording(error: Exception) -> str:
    """What an error says, without its numbers: another wording is another reason, and worth a line of its own."""
    return re.sub(r"\d+", "", str(error))


class Patience:
    """Makes a call again until it succeeds, with a growing wait, and keeps readiness false meanwhile."""

    def __init__(self, health: Health, clock: Clock, settings: ServiceSettings) -> None:
        self._health = health
        self._clock = clock
        self._settings = settings

    async def until_done(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """The answer of the call; every error that does not pass is raised at once.

        So are StaleEpochError, since another replica has the shard, and RecordRefusedError: waiting would be in vain.
        """
        attempt, told = 0, ""
        while True:
            try:
                answer = await call()
            except (StaleEpochError, RecordRefusedError):
                raise
            except PASSING as error:
                attempt += 1
                self._health.failing(what, str(error))
                if attempt % _LOUD_EVERY == 1 or wording(error) != told:
                    told = wording(error)
                    _LOG.warning("%s: %s; trying again", what, error)
                await self._clock.sleep(self._wait(attempt))
            else:
                if attempt:
                    _LOG.info("%s is possible again after %d tries", what, attempt + 1)
                    self._health.working(what)
                return answer

    def _wait(self, attempt: int) -> float:
        longest: float = min(
            self._settings.retry_seconds * 2.0 ** min(attempt - 1, 30), self._settings.retry_seconds_max
        )
        return longest * random.uniform(0.5, 1.0)  # noqa: S311 - spread, not secrecy
