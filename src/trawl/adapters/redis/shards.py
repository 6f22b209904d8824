"""Ownership of the frontier's shards: an epoch that rises with each owner, checked by every script that writes."""

from collections.abc import Iterable
from typing import Final

from trawl.adapters.redis.client import RedisClient, Script

_TAKE: Final = Script("shard_take")


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
