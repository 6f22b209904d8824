"""What crawls allow, in Redis: policies, scopes, refusals and budgets, shared by all replicas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from trawl.adapters.redis.client import Argument, RedisClient, Script
from trawl.adapters.transitions import merged
from trawl.plain import from_json, to_json
from trawl.ports import CrawlPolicy, SeedScope

_PUT: Final = Script("crawl_put")
_ALLOT: Final = Script("crawl_allot")
_CHANGED: Final = Script("crawl_changed")
_CHANGES_MAX: Final = 1000


@dataclass(frozen=True, slots=True)
class Allotment:
    """How a crawl's budget stands after some shards were given their parts."""

    before: int
    """Pages that were left."""
    left: int
    """Pages that are left."""
    parts: Mapping[int, int]
    """By shard how many pages it may have charged."""


class RedisCrawls:
    """The state of crawls that belongs to no shard of hosts. Not fenced: any replica may take a seed."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._serial = client.key("crawls", "serial")
        self._changes = client.key("crawls", "changes")

    def _key(self, crawl_id: str, name: str) -> str:
        return self._client.key(f"c:{crawl_id}", name)

    async def put(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None) -> bool:
        """Store or replace a policy and, if they are given, the scopes; whether the policy is another one now."""
        return await self._write(policy.crawl_id, policy, scopes or (), replaces=scopes is not None) > 0

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None) -> bool:
        """Add scopes that are new, and merge a policy into the known one; whether that is another one now."""
        while True:
            known: bytes | None = await self._client.ask("HGET", self._key(crawl_id, "crawl"), "policy")
            before = None if known is None else from_json(CrawlPolicy, known)
            after = None if policy is None else merged(before, policy)
            changed = await self._write(crawl_id, after, scopes, replaces=False, merged_with=known or b"")
            if changed >= 0:  # else somebody put another policy meanwhile, such as a pause: merge with that one
                return bool(changed)

    async def _write(
        self,
        crawl_id: str,
        policy: CrawlPolicy | None,
        scopes: Sequence[SeedScope],
        *,
        replaces: bool,
        merged_with: bytes | None = None,
    ) -> int:
        keys = [self._key(crawl_id, name) for name in ("crawl", "scopes", "members")]
        arguments: list[Argument] = [b"" if policy is None else to_json(policy), int(replaces)]
        arguments += [int(merged_with is not None), merged_with or b""]
        arguments += [to_json(scope) for scope in scopes]
        return int(await self._client.run(_PUT, keys, arguments))

    async def policy(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        return (await self.policies([crawl_id]))[0]

    async def policies(self, crawl_ids: Sequence[str]) -> list[CrawlPolicy | None]:
        """The policies of several crawls."""
        found = await self._client.ask_all([("HGET", self._key(name, "crawl"), "policy") for name in crawl_ids])
        return [None if policy is None else from_json(CrawlPolicy, policy) for policy in found]

    async def scopes(self, crawl_id: str, version: int, known: int) -> tuple[int, Sequence[SeedScope]]:
        """The version of a crawl's scopes, and the scopes without the first `known` of that version."""
        stored = int(await self._client.ask("HGET", self._key(crawl_id, "crawl"), "version") or 0)
        start = known if version == stored else 0
        found = await self._client.ask("LRANGE", self._key(crawl_id, "scopes"), start, -1)
        return stored, tuple(from_json(SeedScope, text) for text in found)

    async def refuse(self, crawl_id: str, reason: str, count: int) -> None:
        """Add to a crawl's refusals by reason."""
        await self._client.ask("HINCRBY", self._key(crawl_id, "refusals"), reason, count)

    async def refusals(self, crawl_id: str) -> tuple[tuple[str, int], ...]:
        """A crawl's refusals by reason."""
        found = await pairs(self._client, self._key(crawl_id, "refusals"))
        return tuple(sorted((name.decode(), int(value)) for name, value in found.items() if int(value) > 0))

    async def allot(self, asked: Mapping[str, tuple[int, Sequence[tuple[int, int, int]]]]) -> dict[str, Allotment]:
        """For each crawl its budget of pages, and by shard the number, the pages charged, and how many more it wants.

        The parts of all shards never add up to more than the budget, unless more is charged already.
        """
        calls = [
            ((self._key(crawl_id, "budget"),), (pages_max, *(word for shard in shards for word in shard)))
            for crawl_id, (pages_max, shards) in asked.items()
        ]
        found = {}
        answers = await self._client.run_all(_ALLOT, calls)
        for (crawl_id, (_, shards)), (before, left, *parts) in zip(asked.items(), answers, strict=True):
            numbers = [shard[0] for shard in shards]
            found[crawl_id] = Allotment(before, left, dict(zip(numbers, parts, strict=True)))
        return found

    async def changed(self, crawl_id: str) -> None:
        """Tell all replicas that a policy is another one, or that pages of a budget are left again."""
        await self._client.run(_CHANGED, (self._serial, self._changes), (crawl_id,))

    async def serial(self) -> int:
        """The number of the last change."""
        return int(await self._client.ask("GET", self._serial) or 0)

    async def changes(self, since: int) -> tuple[int, list[str]]:
        """The number of the last change, and the crawls that have changed since one, as many as are told at a time."""
        words = ("ZRANGE", self._changes, f"({since}", "+inf", "BYSCORE", "LIMIT", 0, _CHANGES_MAX, "WITHSCORES")
        found = [(name, int(float(serial))) for name, serial in scored(await self._client.ask(*words))]
        return max((serial for _, serial in found), default=since), [name.decode() for name, _ in found]


async def pairs(client: RedisClient, key: str) -> dict[bytes, bytes]:
    """A whole hash."""
    return mapping(await client.ask("HGETALL", key))


def mapping(found: Any) -> dict[bytes, bytes]:
    """A whole hash in either form that a client gives it."""
    return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))


def scored(found: Sequence[Any]) -> list[tuple[bytes, Any]]:
    """Members of a sorted set with their scores, in either form that a client gives them."""
    if found and isinstance(found[0], list | tuple):
        return [(member, score) for member, score in found]
    return list(zip(found[::2], found[1::2], strict=True))
