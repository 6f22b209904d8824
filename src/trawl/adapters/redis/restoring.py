"""What Redis has lost, brought back from what others know of it."""

import re
from collections.abc import Sequence
from typing import Final

from trawl.adapters.redis import frontier_rows as rows
from trawl.adapters.redis.client import Argument, Call, RedisClient, Script
from trawl.adapters.redis.crawls import RedisCrawls
from trawl.adapters.redis.frontier_rows import DONE, Stored, key_bytes
from trawl.adapters.redis.shards import meta_key, prefix
from trawl.adapters.transitions import SETTLED, reason_of
from trawl.kinds import Found
from trawl.ports import CrawlPolicy, RequestRow
from trawl.records import Millis
from trawl.url import host_of, host_shard

_RESTORE: Final = Script("frontier_restore", "frontier")
_BATCH: Final = 500
"""Requests in one script, and keys deleted in one command."""
_PATTERN: Final = re.compile(r"([*?\[\]\\])")
_TAG: Final = "fp"
"""The hash tag of the fingerprint index."""
_DROPPED: Final = "dropped"
"""The layout of a fingerprint index that is being dropped: nothing else can use it."""


class FrontierRestoring:
    """Brings requests back as done.

    It owns no shard and takes none away: each request is one atomic step, and one that is known stays as it is. So it
    may be done twice, be cut off, and run beside a frontier that serves.
    """

    def __init__(self, client: RedisClient, *, shards: int) -> None:
        self._client = client
        self._shards = shards
        self._crawls = RedisCrawls(client)
        self._charged: dict[str, dict[int, int]] = {}

    async def policy(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if Redis has it."""
        return await self._crawls.policy(crawl_id)

    async def restore(self, crawl_id: str, ended: Sequence[RequestRow], *, only_seen: bool, now_ms: Millis) -> int:
        """Bring back requests of a crawl, each with the outcome of its last visit; how many were not known.

        With `only_seen` only their keys are kept, seeds apart, as the frontier does in a crawl without recrawls. Each
        counts against the crawl's budget, once `settle` is called. Raises StoreError.
        """
        groups: dict[int, list[RequestRow]] = {}
        for row in ended:
            groups.setdefault(host_shard(host_of(row.request.url), self._shards), []).append(row)
        parts = [
            (shard, found[first : first + _BATCH])
            for shard, found in groups.items()
            for first in range(0, len(found), _BATCH)
        ]
        calls = [self._call(shard, crawl_id, part, only_seen=only_seen, now_ms=now_ms) for shard, part in parts]
        restored = 0
        for (shard, _), (count, charged) in zip(parts, await self._client.run_all(_RESTORE, calls), strict=True):
            restored += int(count)
            self._charged.setdefault(crawl_id, {})[shard] = int(charged)
        return restored

    def _call(self, shard: int, crawl_id: str, part: Sequence[RequestRow], *, only_seen: bool, now_ms: Millis) -> Call:
        arguments: list[Argument] = [prefix(self._client, shard), "", now_ms, crawl_id]
        for row in part:
            request, counted = row.request, reason_of(row)
            known = Stored(b"", row, SETTLED, counted, None, 0, 0, 0, DONE)
            arguments += [
                key_bytes(request.request_key),
                request.request_key,
                request.origin,
                counted,
                int(only_seen and request.found is not Found.SEED),
                rows.changed(known, row, state=DONE, charge=SETTLED, ended=counted, staleness=None),
            ]
        return (meta_key(self._client, shard),), arguments

    async def settle(self, crawl_id: str) -> None:
        """Count what was brought back against the crawl's budget of pages, which its seeds may set later."""
        charged = self._charged.pop(crawl_id, {})
        if charged:
            await self._crawls.allot({crawl_id: (0, [(shard, pages, 0) for shard, pages in charged.items()])})


async def drop_fingerprints(client: RedisClient) -> int:
    """Delete the fingerprint index, whatever its layout; how many keys.

    Its layout goes last, and is none that can be used until then: an index that is half gone is told as such.
    """
    meta = client.key(_TAG, "meta")
    await client.ask("HSET", meta, "layout", _DROPPED)
    deleted, batch = 0, list[bytes]()
    pattern = _PATTERN.sub(r"\\\1", client.key(_TAG, "")) + "*"
    async for key in client.scan(pattern):
        if key != meta.encode():
            batch.append(key)
        if len(batch) == _BATCH:
            deleted += int(await client.ask("UNLINK", *batch))
            batch = []
    if batch:
        deleted += int(await client.ask("UNLINK", *batch))
    return deleted + int(await client.ask("UNLINK", meta))
