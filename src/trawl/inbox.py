"""The frontier's inbox in one process: never full, so that the cycle of links cannot deadlock."""

from collections import deque
from collections.abc import Sequence

from trawl.plain import dump, load
from trawl.ports import SpillQueue
from trawl.records import Record

_PULL_RECORDS = 500


class Inbox:
    """Records in the order of arrival: a bounded part in memory, the rest spilled to a store."""

    def __init__(self, spill: SpillQueue, records_max: int) -> None:
        self._spill = spill
        self._records_max = records_max
        self._memory: deque[Record] = deque()
        self._spilled = 0

    def __len__(self) -> int:
        """How many records wait."""
        return len(self._memory) + self._spilled

    async def open(self) -> int:
        """Count what an earlier run left in the spill; how many."""
        self._spilled = await self._spill.size()
        return self._spilled

    async def put(self, records: Sequence[Record]) -> None:
        """Append; goes to the spill while anything is there, so that the order holds."""
        fits = 0 if self._spilled else max(self._records_max - len(self._memory), 0)
        self._memory.extend(records[:fits])
        rest = records[fits:]
        if rest:
            await self._spill.push([dump(record) for record in rest])
            self._spilled += len(rest)

    async def take(self, limit: int) -> Sequence[Record]:
        """Remove and return up to `limit` of the oldest records."""
        if not self._memory and self._spilled:
            pulled = await self._spill.pull(min(_PULL_RECORDS, self._records_max))
            self._spilled = self._spilled - len(pulled) if pulled else 0
            self._memory.extend(load(item) for item in pulled)
        return [self._memory.popleft() for _ in range(min(limit, len(self._memory)))]
