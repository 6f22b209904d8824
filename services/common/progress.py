"""How far one partition is done (pure): the offset up to which everything has ended, whatever the order it ended in.

Records are delivered in the order of their offsets and end in any. Only the contiguous prefix of what has ended may be
committed, else a crash loses what was still under way. Delivered again, after a rebalance, a record that is under way
or has ended is known again and is not done twice by this process.
"""

import heapq
from enum import StrEnum
from typing import TypeAlias

Place: TypeAlias = tuple[str, int]
"""A topic's name and a partition."""


class Delivery(StrEnum):
    """What a delivered offset is to this process."""

    NEW = "new"
    UNDER_WAY = "under_way"
    """Delivered again while it is being worked on."""
    ENDED = "ended"
    """Delivered again although it has ended; only the commit is missing."""


class PartitionProgress:
    """The offsets of one partition that were delivered, until they are committed."""

    def __init__(self) -> None:
        self._under_way: set[int] = set()
        self._first: list[int] = []  # a heap of them, with some that have ended
        self._ended: set[int] = set()  # and not committed
        self._left: set[int] = set()  # under way for whoever has the partition next
        self._next: int | None = None  # one more than the offset delivered last
        self._committed: int | None = None
        self._rejoined = False

    @property
    def under_way(self) -> int:
        """Records that were delivered and have not ended."""
        return len(self._under_way)

    @property
    def span(self) -> int:
        """Offsets from the first that is not committed to the last one delivered: what a crash would deliver again."""
        first = self._first_under_way()
        return 0 if first is None or self._next is None else max(self._next - first, 0)

    def deliver(self, offset: int) -> Delivery:
        """Note that a record was delivered; within one assignment offsets only rise."""
        if self._rejoined:
            self._stand_at(offset)
        self._next = offset + 1
        if offset in self._left:
            self._left.discard(offset)
            return Delivery.NEW
        if offset in self._under_way:
            return Delivery.UNDER_WAY
        if offset in self._ended:
            return Delivery.ENDED
        self._under_way.add(offset)
        heapq.heappush(self._first, offset)
        return Delivery.NEW

    def end(self, offset: int) -> None:
        """Note that a record has ended; harmless if it has before, or is not known any more."""
        if offset in self._under_way:
            self._under_way.discard(offset)
            self._ended.add(offset)

    def leave(self, offset: int) -> None:
        """Note that a record was not done here: nothing behind it is committed, and delivered again it is new."""
        if offset in self._under_way:
            self._left.add(offset)

    @property
    def reached(self) -> int | None:
        """The first offset that has not ended; None while nothing of this assignment was delivered."""
        if self._rejoined or self._next is None:
            return None
        first = self._first_under_way()
        return self._next if first is None else min(first, self._next)

    def committable(self) -> int | None:
        """The offset to commit, which is the one reached; None if there is no progress since the last commit."""
        reached = self.reached
        if reached is None:
            return None
        return reached if self._committed is None or reached > self._committed else None

    def commit(self, offset: int) -> None:
        """Note that the broker has this offset."""
        self._committed = max(offset, self._committed or 0)
        self._ended = {ended for ended in self._ended if ended >= self._committed}

    def rejoin(self) -> None:
        """The partition was assigned anew: what is delivered next tells where the group stands.

        It may be ahead of what is under way here, if another process had the partition in between; committing that
        would set the group back.
        """
        self._rejoined = True

    def _stand_at(self, offset: int) -> None:
        """The group stands at this offset: what is before has ended, here or elsewhere."""
        self._rejoined = False
        self._committed = offset
        self._under_way = {known for known in self._under_way if known >= offset}
        self._ended = {known for known in self._ended if known >= offset}
        self._left = {known for known in self._left if known >= offset}

    def _first_under_way(self) -> int | None:
        while self._first and self._first[0] not in self._under_way:
            heapq.heappop(self._first)
        return self._first[0] if self._first else None
