"""A process that owns half of a frontier's shards in Redis and works off what is in them, until it is killed.

    python -m tests.integration.redis_frontier_worker URL PREFIX SHARDS

Its standard output has a line per step, written only after the step: `leased KEY`, `done KEY`. It says `ready` first.
"""

import asyncio
import os
import sys
from dataclasses import replace

from tests.contract.requests import completion
from trawl.adapters.redis import RedisFrontierStore, ShardLeases, connect
from trawl.settings import Settings

SHARDS = 8
LEASE_MS = 60_000


def tell(line: str) -> None:
    """One line to whoever watches, at once."""
    os.write(1, f"{line}\n".encode())


async def work(url: str, prefix: str, shards: list[int]) -> None:
    """Lease and complete until killed."""
    client = connect(replace(Settings().redis, url=url, prefix=prefix))
    store = RedisFrontierStore(client, shards=SHARDS)
    store.own(await ShardLeases(client).acquire(shards))
    tell("ready")
    now_ms = 1_000_000
    while True:
        now_ms += 10
        leased = list(await store.lease(now_ms, 5, LEASE_MS, origins_max=100))
        for one in leased:
            tell(f"leased {one.request_key}")
        for one in leased[:-1]:  # one stays out
            if await store.complete(completion(one)):
                tell(f"done {one.request_key}")


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], [int(shard) for shard in sys.argv[3].split(",")]))
