"""Who may lease what: the policies and budgets of crawls, told to the shards that hold their requests.

A crawl's budget of pages is one for all shards. A shard asks for a part before it leases, and gives back what it did
not use; the parts together never exceed the budget. Nothing of this happens for a crawl without a limit, nor in a store
that has one shard only, which counts by itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from trawl.adapters.redis.client import Argument, Script
from trawl.adapters.redis.crawls import RedisCrawls
from trawl.adapters.redis.shards import OwnedShards, Shard
from trawl.ports import CrawlPolicy
from trawl.records import Millis

_CONFIGURE: Final = Script("frontier_configure", "frontier")
_LOAD: Final = Script("frontier_load", "frontier")
_CHANGES_MS: Final = 1000
"""What other replicas change is found within this time."""
_POLICIES_MS: Final = 30_000
"""All policies are read again after this time: who has changed one may have died before telling so."""
_NO_LIMIT: Final = -1

Limit = tuple[int, int, int]
Grants = Mapping[str, tuple[int, int]]
"""By crawl the pages charged in a shard, and how many it may have charged."""


class Budgets:
    """What the shards of one owner know of the crawls that are theirs."""

    def __init__(self, crawls: RedisCrawls, owned: OwnedShards, *, shared: bool) -> None:
        self._crawls = crawls
        self._owned = owned
        self._shared = shared
        self._policies: dict[str, CrawlPolicy | None] = {}
        self._serial: int | None = None
        self._changes_ms: Millis = 0
        self._policies_ms: Millis = 0

    # Policies

    async def policy(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, as it was a second ago at the most."""
        if crawl_id not in self._policies:
            await self._know([crawl_id])
        return self._policies[crawl_id]

    async def _know(self, crawl_ids: Iterable[str], *, again: bool = False) -> None:
        if self._serial is None:
            self._serial = await self._crawls.serial()
        names = [name for name in dict.fromkeys(crawl_ids) if again or name not in self._policies]
        self._policies |= dict(zip(names, await self._crawls.policies(names), strict=True))

    async def changed(self, crawl_id: str) -> None:
        """A crawl's policy was changed here: its shards of this owner know at once."""
        await self._crawls.changed(crawl_id)
        await self._know([crawl_id], again=True)
        await self._tell_again([crawl_id])

    async def refresh(self, now_ms: Millis) -> None:
        """Learn what other replicas have changed, and what a new owner has to know."""
        await self._load()
        if now_ms - self._changes_ms < _CHANGES_MS:
            return
        self._changes_ms = now_ms
        if now_ms - self._policies_ms >= _POLICIES_MS:
            self._policies_ms = now_ms
            before = dict(self._policies)
            await self._know(before, again=True)
            await self._tell_again([name for name, policy in before.items() if policy != self._policies[name]])
        if self._serial is None:
            return
        self._serial, names = await self._crawls.changes(self._serial)
        known = [name for name in names if name in self._policies]
        if known:
            await self._know(known, again=True)
            await self._tell_again(known)

    async def _load(self) -> None:
        """Find out what crawls a shard that was taken over has; its part of their budgets is what was charged."""
        new = [shard for shard in await self._owned.all() if not shard.loaded]
        answers = await self._owned.write_all(_LOAD, [(shard, ()) for shard in new])
        found = {
            shard: {name.decode(): int(charged) for name, charged in answer}
            for shard, answer in zip(new, answers, strict=True)
            if answer is not None
        }
        names = {name for charged in found.values() for name in charged}
        await self._know(names)
        await self._give_back(
            {name: {shard: charged[name] for shard, charged in found.items() if name in charged} for name in names}
        )
        await self._tell({shard: list(charged) for shard, charged in found.items()})
        for shard in found:
            shard.loaded = True

    def _limit(self, crawl_id: str) -> Limit:
        policy = self._policies[crawl_id]
        if policy is None:
            return 0, _NO_LIMIT, 0
        if not policy.pages_max:
            return int(policy.paused), _NO_LIMIT, 0
        return (int(policy.paused), 0, 1) if self._shared else (int(policy.paused), policy.pages_max, 0)

    async def untold(self, shard: Shard, crawl_ids: Iterable[str]) -> dict[str, Limit]:
        """The limits of these crawls of which a shard was told nothing yet."""
        names = [name for name in dict.fromkeys(crawl_ids) if name not in shard.limits]
        await self._know(names)
        return {name: self._limit(name) for name in names}

    async def _tell_again(self, crawl_ids: Sequence[str]) -> None:
        """Tell shards that know them what these crawls may spend; that pages may be left is found out by asking."""
        shards = self._owned.known()
        await self._tell({shard: [name for name in crawl_ids if name in shard.limits] for shard in shards})

    async def _tell(self, told: Mapping[Shard, Sequence[str]], *, closed: bool = False) -> dict[Shard, dict[str, int]]:
        """Tell shards what crawls may spend; how many pages each has charged there."""
        limits = {
            shard: {name: (*self._limit(name)[:2], 0) if closed else self._limit(name) for name in names}
            for shard, names in told.items()
            if names
        }
        calls: list[tuple[Shard, list[Argument]]] = [
            (shard, [word for name, limit in named.items() for word in (name, *limit)])
            for shard, named in limits.items()
        ]
        charged = {}
        answers = await self._owned.write_all(_CONFIGURE, calls)
        for (shard, named), answer in zip(limits.items(), answers, strict=True):
            if answer is not None:
                shard.limits |= named
                charged[shard] = dict(zip(named, map(int, answer), strict=True))
        return charged

    # Budgets

    async def grant(self, parts: Mapping[Shard, int]) -> Mapping[Shard, Grants]:
        """Ask for what shards need to lease so many requests each."""
        wanted: dict[str, list[tuple[Shard, int, int]]] = {}
        for shard, part in parts.items():
            for name, (charged, unpaid) in shard.wants.items() if self._shared else ():
                wanted.setdefault(name, []).append((shard, charged, min(part, unpaid)))
        found = await self._crawls.allot(
            {
                name: (self._pages_max(name), [(shard.number, charged, more) for shard, charged, more in shards])
                for name, shards in wanted.items()
                if self._pages_max(name)
            }
        )
        grants: dict[Shard, dict[str, tuple[int, int]]] = {shard: {} for shard in parts}
        for name, allotment in found.items():
            for shard, charged, _ in wanted[name]:
                grants[shard][name] = (charged, allotment.parts[shard.number])
        return grants

    async def spent(self, grants: Mapping[Shard, Grants], charged: Mapping[Shard, Mapping[str, int]]) -> None:
        """Give back what was granted and not used; a shard is not woken any more for a crawl with nothing left."""
        named: dict[str, dict[Shard, int]] = {}
        for shard, now in charged.items():
            for name, pages in now.items():
                before, unpaid = shard.wants[name]
                shard.wants[name] = (pages, max(0, unpaid - max(0, pages - before)))
                named.setdefault(name, {})[shard] = pages
        left = await self._give_back(named)
        empty = [name for name, pages in left.items() if not pages]
        closing = {shard: [name for name in empty if name in granted] for shard, granted in grants.items()}
        await self._tell(closing, closed=True)

    async def refund(self) -> None:
        """Give back what outcomes have taken back."""
        owed = {shard: list(shard.refunds) for shard in self._owned.known() if shard.refunds}
        if not owed:
            return
        await self._know(name for names in owed.values() for name in names)
        charged = await self._tell(owed)
        named: dict[str, dict[Shard, int]] = {}
        for shard, pages in charged.items():
            for name, count in pages.items():
                named.setdefault(name, {})[shard] = count
        await self._give_back(named)
        for shard, names in owed.items():
            shard.refunds.difference_update(names)

    async def _give_back(self, charged: Mapping[str, Mapping[Shard, int]]) -> dict[str, int]:
        """Set the parts of shards to what is charged; how many pages of each limited crawl are left for others."""
        found = await self._crawls.allot(
            {
                name: (self._pages_max(name), [(shard.number, pages, 0) for shard, pages in shards.items()])
                for name, shards in charged.items()
                if self._shared and self._pages_max(name)
            }
        )
        for name, allotment in found.items():
            if allotment.left and not allotment.before:
                await self._crawls.changed(name)  # who found nothing left may ask again
        return {name: allotment.left for name, allotment in found.items()}

    def _pages_max(self, crawl_id: str) -> int:
        policy = self._policies.get(crawl_id)
        return policy.pages_max if policy is not None else 0
