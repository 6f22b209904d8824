"""Writes moves: those that come while others are on their way go together, one script for each shard."""

import asyncio
from collections.abc import Sequence
from typing import Final

from trawl.adapters.redis.client import Argument, Script
from trawl.adapters.redis.frontier_moves import Move
from trawl.adapters.redis.frontier_rows import key_bytes
from trawl.adapters.redis.shards import OwnedShards, Shard
from trawl.errors import StaleEpochError, TrawlError

_MOVE: Final = Script("frontier_move", "frontier")
_MOVES_MAX: Final = 500
"""Moves in one script."""

_Waiting = tuple[Shard, Move, "asyncio.Future[bool]"]


class Moving:
    """One round trip at a time for all that want to write a move."""

    def __init__(self, owned: OwnedShards) -> None:
        self._owned = owned
        self._waiting: list[_Waiting] = []
        self._running: asyncio.Task[None] | None = None

    async def move(self, shard: Shard, move: Move) -> bool:
        """Whether the row was still as it was, and is now as it is to be. Raises StoreError, StaleEpochError."""
        (moved,) = await self.move_all(shard, [move])
        return moved

    async def move_all(self, shard: Shard, moves: Sequence[Move]) -> list[bool]:
        """The same for several rows of a shard."""
        loop = asyncio.get_running_loop()
        waiting: list[_Waiting] = [(shard, move, loop.create_future()) for move in moves]
        self._waiting += waiting
        if self._running is None:
            self._running = loop.create_task(self._run())
        answers = await asyncio.gather(*(future for *_, future in waiting), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if isinstance(answer, bool)]

    async def _run(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                groups: dict[Shard, list[list[_Waiting]]] = {}
                for one in waiting:
                    parts = groups.setdefault(one[0], [[]])
                    if len(parts[-1]) == _MOVES_MAX:
                        parts.append([])
                    parts[-1].append(one)
                await self._write([part for parts in groups.values() for part in parts])
        finally:
            self._running = None

    async def _write(self, parts: Sequence[Sequence[_Waiting]]) -> None:
        calls = [(part[0][0], [word for _, move, _ in part for word in _words(move)]) for part in parts]
        try:
            answers = await self._owned.attempt_all(_MOVE, calls)
        except TrawlError as error:
            for *_, future in (one for part in parts for one in part):
                _end(future, error)
            return
        for part, answer in zip(parts, answers, strict=True):
            for number, (*_, future) in enumerate(part):
                _end(future, answer if isinstance(answer, StaleEpochError) else bool(answer[number]))


def _end(future: "asyncio.Future[bool]", answer: bool | TrawlError) -> None:
    if future.done():  # who asked was cancelled
        return
    if isinstance(answer, TrawlError):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _words(move: Move) -> tuple[Argument, ...]:
    key = key_bytes(move.known.row.request.request_key)
    return key, move.known.raw, move.after, move.known.ended, move.ended, move.duplicate, move.forgotten
