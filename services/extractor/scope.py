"""Links of hosts that no seed's scope allows, most links of a page, are refused here: they need not travel."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from trawl.errors import StoreError
from trawl.frontier.gates import Gates
from trawl.ports import Clock, FrontierStore
from trawl.records import DiscoveredLinks, Record
from trawl.settings import Settings

FLUSH_SECONDS: Final = 1.0


class InScope:
    """Leaves out links that the frontier would refuse by their host, and tells it how many.

    A seed's scope is stored before its first page is fetched, so its links find a gate that knows it.
    """

    def __init__(self, store: FrontierStore, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._gates = Gates(store, clock, settings)
        self._refused: Counter[str] = Counter()

    async def keep(self, records: Sequence[Record]) -> list[Record]:
        """The records without links to hosts out of scope."""
        return [record for record in records if not await self._refuses(record)]

    async def _refuses(self, record: Record) -> bool:
        if not isinstance(record, DiscoveredLinks) or record.chain_request_key is not None:
            return False
        gate = await self._gates.gate(record.crawl_id)
        if gate is None or not gate.refuses(record):
            return False
        self._refused[record.crawl_id] += len(record.links)
        return True

    async def run(self) -> None:
        """Write down the refusals, now and then, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            refused, self._refused = self._refused, Counter()
            for crawl_id, count in refused.items():
                try:
                    await self._store.count_refusals(crawl_id, "out_of_scope", count)
                except StoreError:
                    self._refused[crawl_id] += count  # told the next time
