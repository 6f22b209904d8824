"""Releasing fetches: as many as are due, while not too many are out without an outcome."""

import asyncio
import logging
from contextlib import suppress

from services.common.run import Context
from trawl.errors import StaleEpochError
from trawl.frontier.stage import FrontierStage
from trawl.ports import FrontierStore
from trawl.records import FetchTask, Millis

_LOG = logging.getLogger(__name__)
_TURN_SECONDS = 0.02
"""From one turn to the next: what comes meanwhile is taken together."""


class Releasing:
    """The loop that time moves: what is due becomes tasks, sent and acknowledged."""

    def __init__(self, stage: FrontierStage, store: FrontierStore, context: Context) -> None:
        self._stage = stage
        self._store = store
        self._context = context
        self._out: dict[int, Millis] = {}  # fetch id to the end of its lease, in the order of release
        self._wake = asyncio.Event()

    def ended(self, fetch_id: int) -> None:
        """An outcome came."""
        self._out.pop(fetch_id, None)

    def wake(self) -> None:
        """Something changed: look whether more is due."""
        self._wake.set()

    async def run(self) -> None:
        """Release until cancelled."""
        while True:
            self._wake.clear()
            if not await self._turn():
                await self._woken()
            await asyncio.sleep(_TURN_SECONDS)

    async def _turn(self) -> int:
        """Release what is due; how many records were sent."""
        settings, now_ms = self._context.settings.service, self._context.clock.now_ms()
        self._forget_expired(now_ms)
        limit = min(settings.release_max, settings.outstanding_max - len(self._out))
        if limit <= 0:
            return 0
        patience = self._context.patience
        try:
            records = await patience.until_done("Redis", lambda: self._stage.due(now_ms, limit))
        except StaleEpochError as error:
            _LOG.warning("nothing is released: %s", error)  # the group's next assignment says whose shard it is
            return 0
        if not records:
            return 0
        for record in records:
            if isinstance(record, FetchTask):
                self._out[record.fetch_id] = record.expires_at_ms
        await patience.until_done("Kafka", lambda: self._context.producer.send(records))
        for record in records:
            self._context.metrics.see(record)
        self._context.metrics.outstanding.set(len(self._out))
        return len(records)

    def _forget_expired(self, now_ms: Millis) -> None:
        while self._out and next(iter(self._out.values())) <= now_ms:
            self._out.pop(next(iter(self._out)))

    async def _woken(self) -> None:
        now_ms = self._context.clock.now_ms()
        with suppress(StaleEpochError):
            next_ms = await self._context.patience.until_done("Redis", lambda: self._store.next_event_ms(now_ms))
            longest = self._context.settings.service.tick_seconds
            wait = longest if next_ms is None else min(max((next_ms - now_ms) / 1000, _TURN_SECONDS), longest)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            return
        await asyncio.sleep(self._context.settings.service.tick_seconds)
