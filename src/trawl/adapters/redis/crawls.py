"""What crawls allow, in Redis: policies, scopes, refusals and budgets, shared by all replicas."""

from collections.abc import Sequence
from typing import Any, Final

from trawl.adapters.redis.client import Argument, RedisClient, Script
from trawl.adapters.transitions import merged
from trawl.plain import from_json, to_json
from trawl.ports import CrawlPolicy, SeedScope

_PUT: Final = Script("crawl_put")
_ALLOT: Final = Script("crawl_allot")


class RedisCrawls:
    """The state of crawls that belongs to no shard of hosts. Not fenced: any replica may take a seed."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client

    def _key(self, crawl_id: str, name: str) -> str:
        return self._client.key(f"c:{crawl_id}", name)

    async def put(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        await self._write(policy.crawl_id, policy, scopes or (), replaces=scopes is not None)

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None) -> None:
        """Add scopes that are new; a policy is merged into the one that is known."""
        after = None if policy is None else merged(await self.policy(crawl_id), policy)
        await self._write(crawl_id, after, scopes, replaces=False)

    async def _write(
        self, crawl_id: str, policy: CrawlPolicy | None, scopes: Sequence[SeedScope], *, replaces: bool
    ) -> None:
        keys = [self._key(crawl_id, name) for name in ("crawl", "scopes", "members")]
        arguments: list[Argument] = [b"" if policy is None else to_json(policy), int(replaces)]
        arguments += [to_json(scope) for scope in scopes]
        await self._client.run(_PUT, keys, arguments)

    async def policy(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        found = await self._client.ask("HGET", self._key(crawl_id, "crawl"), "policy")
        return None if found is None else from_json(CrawlPolicy, found)

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
        return await counts(self._client, self._key(crawl_id, "refusals"))

    async def allot(self, crawl_id: str, shard: int, charged: int, wanted: int, pages_max: int) -> int:
        """How many pages a shard may have charged, if it wants so many more; the parts of all add up to the budget."""
        arguments = (shard, charged, wanted, pages_max)
        return int(await self._client.run(_ALLOT, (self._key(crawl_id, "budget"),), arguments))


async def counts(client: RedisClient, key: str) -> tuple[tuple[str, int], ...]:
    """A hash of counts, in the order of names, without zeros."""
    found = await pairs(client, key)
    return tuple(sorted((name.decode(), int(value)) for name, value in found.items() if int(value) > 0))


async def pairs(client: RedisClient, key: str) -> dict[bytes, bytes]:
    """A whole hash."""
    return mapping(await client.ask("HGETALL", key))


def mapping(found: Any) -> dict[bytes, bytes]:
    """A whole hash in either form that a client gives it."""
    return found if isinstance(found, dict) else dict(zip(found[::2], found[1::2], strict=True))
