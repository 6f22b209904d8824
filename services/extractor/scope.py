"""Links of hosts that no seed's scope allows, most links of a page, are refused here: they need not travel."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Final

from trawl.errors import StoreError
from trawl.frontier.admission import Gate
from trawl.frontier.gates import learned
from trawl.kinds import Found
from trawl.ports import Clock, FrontierStore
from trawl.records import DiscoveredLinks, Millis, Record
from trawl.settings import Settings

CRAWLS_MAX: Final = 256
POLICY_MS: Final = 1000
"""What a crawl allows is read again after this time. A seed's scope is stored before its first page is fetched."""
FLUSH_SECONDS: Final = 1.0


class InScope:
    """Leaves out links that the frontier would refuse by their host, and tells it how many."""

    def __init__(self, store: FrontierStore, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._gates: OrderedDict[str, tuple[Gate, Millis]] = OrderedDict()
        self._refused: Counter[str] = Counter()

    async def keep(self, records: Sequence[Record]) -> list[Record]:
        """The records without links to hosts out of scope."""
        return [record for record in records if not await self._refuses(record)]

    async def _refuses(self, record: Record) -> bool:
        if not isinstance(record, DiscoveredLinks) or record.chain_request_key is not None:
            return False
        gate = await self._gate(record.crawl_id)
        if gate is None or gate.allows_host(record.target_host):
            return False
        if any(link.found is Found.SEED for link in record.links):
            return False
        self._refused[record.crawl_id] += len(record.links)
        return True

    async def _gate(self, crawl_id: str) -> Gate | None:
        now_ms = self._clock.now_ms()
        known = self._gates.get(crawl_id)
        if known is not None and now_ms - known[1] <= POLICY_MS:
            return known[0]
        policy = await self._store.crawl(crawl_id)
        if policy is None:
            return None
        known = self._gates.get(crawl_id)
        gate = known[0] if known is not None else Gate(policy, self._settings)
        await learned(gate, self._store, crawl_id)
        gate.policy = policy
        self._gates[crawl_id] = (gate, now_ms)
        self._gates.move_to_end(crawl_id)
        if len(self._gates) > CRAWLS_MAX:
            self._gates.popitem(last=False)
        return gate

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
