"""The frontier's overflow in memory."""

from collections import deque
from collections.abc import Sequence


class MemorySpillQueue:
    """A first-in first-out queue of bytes."""

    def __init__(self) -> None:
        self._items: deque[bytes] = deque()

    async def push(self, items: Sequence[bytes]) -> None:
        """Append in order."""
        self._items.extend(items)

    async def pull(self, limit: int) -> Sequence[bytes]:
        """Remove and return the oldest, at most `limit`."""
        return [self._items.popleft() for _ in range(min(limit, len(self._items)))]

    async def size(self) -> int:
        """How many wait."""
        return len(self._items)
