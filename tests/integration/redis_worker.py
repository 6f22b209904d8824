"""One of several processes that share Redis; a test starts and kills it. Its answers are lines of JSON."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from tests.contract.test_fingerprint_index import fingerprint
from trawl.adapters.redis import RedisFingerprintIndex, RedisPolitenessStore, connect
from trawl.settings import RedisSettings, Settings

HOST = "host:a.example"
INTERVAL_MS = 20
RESERVATIONS = 60
PERMIT_MS = 1500
TEXTS = 80


async def reserve(settings: RedisSettings, skew_ms: int) -> AsyncIterator[Any]:
    """Take slots as fast as they are given, by a clock that is wrong by so much."""
    client = connect(settings)
    store = RedisPolitenessStore(client, settings)
    for _ in range(RESERVATIONS):
        slot = await store.reserve(
            HOST,
            round(1000 * time.time()) + skew_ms,
            interval_ms=INTERVAL_MS,
            horizon_ms=600_000,
            concurrency_max=0,
            permit_ms=1,
        )
        yield [slot.granted, slot.at_ms, slot.gap_actual_ms]
    await client.close()


async def hold(settings: RedisSettings, _: int) -> AsyncIterator[Any]:
    """Take the only permit and never give it back."""
    client = connect(settings)
    slot = await RedisPolitenessStore(client, settings).reserve(
        HOST, round(1000 * time.time()), interval_ms=0, horizon_ms=0, concurrency_max=1, permit_ms=PERMIT_MS
    )
    yield [slot.granted, slot.at_ms]
    await asyncio.sleep(60)


async def check(settings: RedisSettings, worker: int) -> AsyncIterator[Any]:
    """Bring texts that the other workers bring too, half of them with one other bit in the fingerprint."""
    client = connect(settings)
    index = RedisFingerprintIndex(client, settings)
    spread = [fingerprint(number).simhash for number in range(TEXTS)]

    async def one(number: int) -> list[Any]:
        is_near = number % 2 == 1
        text = f"text {number} of {worker if is_near else 'all'}"
        simhash = spread[number] ^ (1 << worker if is_near else 0)
        asked = fingerprint(1000 * (worker + 1) + number, text, simhash)
        verdict = await index.check_and_add(asked, hamming_max=3)
        return [number, asked.document_key, verdict.kind, verdict.duplicate_of]

    for answer in await asyncio.gather(*map(one, range(TEXTS))):
        yield answer
    await client.close()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main(kind: str, url: str, cluster: str, prefix: str, number: str) -> None:
    """Do one of them, once the parent says go."""
    settings = replace(Settings().redis, url=url, cluster=cluster == "cluster", prefix=prefix)
    _say("ready")
    sys.stdin.readline()
    async for answer in {"reserve": reserve, "hold": hold, "check": check}[kind](settings, int(number)):
        _say(json.dumps(answer))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
