"""What a service cannot do without is looked at, work or none; each reason is logged once, and when it has passed."""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from services.common.connections import Patience
from services.common.health import Health
from services.common.watch import Watch
from trawl.adapters.clocks import ManualClock
from trawl.errors import StoreError, StoreFullError
from trawl.settings import ServiceSettings

REDIS = "a look at Redis"


class Server:
    """Answers its calls in turn: with an error, or well."""

    def __init__(self, answers: Sequence[Exception | None]) -> None:
        self._answers = list(answers)

    async def check(self) -> None:
        answer = self._answers.pop(0)
        if answer is not None:
            raise answer


async def looked(watch: Watch, clock: ManualClock, health: Health, times: int) -> list[tuple[bool, str]]:
    """What readiness says after each of so many looks."""
    found = []
    running = asyncio.create_task(watch.run())
    for _ in range(times):
        await asyncio.sleep(0)
        clock.advance(15)
        for _ in range(5):
            await asyncio.sleep(0)
        found.append(health.ready)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return found


async def test_readiness_follows_each_look(caplog: pytest.LogCaptureFixture) -> None:
    health, clock = Health(), ManualClock(auto=False)
    health.begun()
    watch = Watch(health, clock, 15.0)
    server = Server(
        [None, StoreError("its clock is 7 s off"), StoreError("its clock is 8 s off"), StoreError("no"), None]
    )
    watch.add("Redis", server.check)
    watch.add("OpenSearch", Server([None] * 5).check)
    caplog.set_level(logging.INFO)

    assert await looked(watch, clock, health, 5) == [
        (True, "ok"),
        (False, f"{REDIS}: its clock is 7 s off"),
        (False, f"{REDIS}: its clock is 8 s off"),
        (False, f"{REDIS}: no"),
        (True, "ok"),
    ]
    assert caplog.messages == [
        f"{REDIS}: its clock is 7 s off",
        f"{REDIS}: no",
        f"{REDIS} finds nothing wrong any more",
    ]


async def test_what_hides_behind_a_first_reason_is_logged_when_that_has_passed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = Health()
    patience = Patience(health, ManualClock(), ServiceSettings())
    server = Server([StoreError("away 1"), StoreError("away 2"), StoreFullError("full"), StoreFullError("full"), None])
    caplog.set_level(logging.INFO)

    await patience.until_done("Redis", server.check)

    assert caplog.messages == [
        "Redis: away 1; trying again",
        "Redis: full; trying again",
        "Redis is possible again after 5 tries",
    ]
