"""Ownership of the frontier's shards: an epoch that rises with each owner, checked by every script that writes."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from trawl.adapters.redis.client import Argument, Call, RedisClient, Script
from trawl.errors import StaleEpochError
from trawl.records import Millis

_LOG = logging.getLogger(__name__)
_TAKE: Final = Script("shard_take")
NEVER: Final = 1 << 62
_SHARDS_AT_ONCE: Final = 32
"""Scripts in one round trip: all together must not take as long as a command may."""


class ShardLeases:
    """Takes shards over. Who owns what is decided elsewhere (the consumer group); this makes it hold."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    async def acquire(self, shards: Iterable[int]) -> dict[int, int]:
        """Own these shards from now on, whoever had them before; their new epochs. Raises StoreError."""
        wanted = sorted(shards)
        calls = [((meta_key(self._client, shard),), ()) for shard in wanted]
        return dict(zip(wanted, await self._client.run_all(_TAKE, calls), strict=True))


def meta_key(client: RedisClient, shard: int) -> str:
    """The key of a shard that all its scripts name."""
    return client.key(f"f:{shard}", "meta")


def prefix(client: RedisClient, shard: int) -> str:
    """What the keys of a shard begin with."""
    return client.key(f"f:{shard}", "")


class Shard:
    """What the owner of a shard, which alone writes to it, keeps in memory."""

    def __init__(self, number: int, epoch: int) -> None:
        self.number = number
        self.epoch = epoch
        self.loaded = False
        self.dirty = True
        self.looked_ms: Millis = 0
        self.lease_ms: Millis = 0
        """When something may be leased, as far as time alone brings it."""
        self.robots_ms: Millis = 0
        self.lease_ends_ms: Millis = 0
        self.expires_ms: Millis = 0
        """When the first robots.txt expires."""
        self.limits: dict[str, tuple[int, int, int]] = {}
        """By crawl what the shard was told: paused, limit, open (see lua/frontier.lua)."""
        self.wants: dict[str, tuple[int, int]] = {}
        """By crawl with a limit the pages charged, and the requests queued that are not paid for."""
        self.refunds: set[str] = set()
        """Crawls of which a page charged was taken back."""


ShardCall: TypeAlias = tuple[Shard, Sequence[Argument]]
"""A shard and what a script is told besides its place, epoch and time."""


class OwnedShards:
    """The shards that a store serves, and the writes to them."""

    def __init__(self, client: RedisClient, count: int) -> None:
        self._client = client
        self._count = count
        self._owned: dict[int, Shard] | None = None
        self._lost: StaleEpochError | None = None
        self._taking = asyncio.Lock()
        self._turn = 0
        self.now_ms: Millis = 0

    def own(self, epochs: Mapping[int, int]) -> None:
        """Serve these shards, and no others, under these epochs."""
        self._owned = {number: Shard(number, epoch) for number, epoch in epochs.items()}

    def told(self, now_ms: Millis) -> Millis:
        """The time, which never goes back."""
        self.now_ms = max(self.now_ms, now_ms)
        return self.now_ms

    def known(self) -> list[Shard]:
        """The shards that are served, as far as anything said so."""
        return list((self._owned or {}).values())

    async def all(self) -> list[Shard]:
        """The shards that are served. The only shard of a store has no other owner, so it is taken."""
        if self._owned is None and self._count == 1:
            async with self._taking:
                if self._owned is None:
                    self.own(await ShardLeases(self._client).acquire(range(1)))
        return self.known()

    async def one(self, number: int) -> Shard:
        """A shard to write to; raises StaleEpochError if it is not served."""
        await self.all()
        if number not in (self._owned or {}):
            raise StaleEpochError(f"shard {number} of the frontier is not owned by this process")
        assert self._owned is not None
        return self._owned[number]

    async def in_turn(self, wanted: Callable[[Shard], bool]) -> list[Shard]:
        """Shards for which it holds; another one comes first each time."""
        shards = await self.all()
        self._turn += 1
        start = self._turn % len(shards) if shards else 0
        return [shard for shard in (*shards[start:], *shards[:start]) if wanted(shard)]

    async def write(self, script: Script, shard: Shard, arguments: Sequence[Argument]) -> Any:
        """Run a script on a shard; raises StaleEpochError if another owner has it."""
        (answer,) = await self.attempt_all(script, [(shard, arguments)])
        if isinstance(answer, StaleEpochError):
            raise answer
        return answer

    async def write_all(self, script: Script, calls: Sequence[ShardCall], *, changes: bool = True) -> list[Any]:
        """Run a script on several shards in few round trips; None for a shard that another owner has.

        `raise_lost` says so later, when what the others answered is safe.
        """
        answers = await self.attempt_all(script, calls, changes=changes)
        for answer in answers:
            if isinstance(answer, StaleEpochError):
                self._lost = answer
        return [None if isinstance(answer, StaleEpochError) else answer for answer in answers]

    async def attempt_all(self, script: Script, calls: Sequence[ShardCall], *, changes: bool = True) -> list[Any]:
        """The same, with a StaleEpochError in the place of its answer; such a shard is served no more.

        If the script changes something, it is not known from then on when the shard has something to do. Raises
        StoreError for all other errors.
        """
        answers: list[Any] = []
        try:
            for first in range(0, len(calls), _SHARDS_AT_ONCE):
                part = calls[first : first + _SHARDS_AT_ONCE]
                answers += await self._client.attempt_all(script, [self._call(*call) for call in part])
        finally:
            for shard, _ in calls:
                shard.dirty = shard.dirty or changes
        for (shard, _), answer in zip(calls, answers, strict=True):
            if isinstance(answer, StaleEpochError):
                self._drop(shard, answer)
        for answer in answers:
            if isinstance(answer, Exception) and not isinstance(answer, StaleEpochError):
                raise answer
        return answers

    def _call(self, shard: Shard, arguments: Sequence[Argument]) -> Call:
        head = (prefix(self._client, shard.number), shard.epoch, self.now_ms)
        return (meta_key(self._client, shard.number),), (*head, *arguments)

    def _drop(self, shard: Shard, error: StaleEpochError) -> None:
        if self._owned is not None and self._owned.get(shard.number) is shard:
            del self._owned[shard.number]
            _LOG.warning("shard %d of the frontier is served no more: %s", shard.number, error)

    def raise_lost(self) -> None:
        """Raise StaleEpochError if `write_all` found a shard to be another owner's; once."""
        lost, self._lost = self._lost, None
        if lost is not None:
            raise lost
