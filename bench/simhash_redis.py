"""The fingerprint index in Redis at size: check-and-adds a second, bytes a document, and no duplicate missed.

    python -m bench.simhash_redis --documents 1000000 [--tables 4|10]

Fills an index of its own, in a server of its own, with random fingerprints of documents with 80-byte URLs, then asks
with new ones and with near-duplicates of stored ones. The last line is one JSON object.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from devstack.process import free_port
from devstack.servers import RedisServer
from trawl.adapters.redis import RedisFingerprintIndex, connect
from trawl.ports import Fingerprint
from trawl.settings import Settings

IN_FLIGHT = 64
ASKED = 20_000
NEAR = 2_000
URL_BYTES = 80


def fingerprint(number: int, simhash: int) -> Fingerprint:
    """A document that is like no other in its text's hash."""
    return Fingerprint(
        namespace="crawl:bench",
        document_key=_mixed(number, 1),
        request_key=_mixed(number, 2),
        fetch_id=_mixed(number, 3),
        fetched_at_ms=1_700_000_000_000 + number,
        url=f"https://host{number % 1000}.example/".ljust(URL_BYTES - 10, "x") + f"{number:010d}",
        sha256=f"{number:064x}"[::-1],
        simhash=simhash,
        version=1,
    )


def _mixed(number: int, salt: int) -> int:
    return (number * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) % 2**64 - 2**63


async def run(server: RedisServer, documents: int, tables: int) -> dict[str, Any]:
    """Fill, ask and measure."""
    settings = replace(Settings().redis, url=server.url, fingerprint_tables=tables)
    client = connect(settings)
    index = RedisFingerprintIndex(client, settings)
    source = random.Random(7)
    hashes = [source.getrandbits(64) - 2**63 for _ in range(documents + ASKED)]
    empty = _memory(server)
    await index.check_and_add(fingerprint(0, hashes[0]), hamming_max=3)
    began = time.perf_counter()
    await _ask(index, (fingerprint(number, hashes[number]) for number in range(1, documents)))
    filled_s = time.perf_counter() - began
    used = _memory(server) - empty
    new = [fingerprint(documents + number, hashes[documents + number]) for number in range(ASKED)]
    began = time.perf_counter()
    times = await _ask(index, new)
    asked_s = time.perf_counter() - began
    missed = await _missed(index, hashes, documents)
    await client.close()
    times.sort()
    return {
        "documents": documents,
        "tables": tables,
        "bytes_per_document": round(used / documents, 1),
        "filled_per_s": round(documents / filled_s),
        "check_and_add_s": round(ASKED / asked_s),
        "in_flight": IN_FLIGHT,
        "p50_ms": round(1000 * times[len(times) // 2], 2),
        "p99_ms": round(1000 * times[len(times) * 99 // 100], 2),
        "near_asked": NEAR,
        "near_missed": missed,
    }


async def _ask(index: RedisFingerprintIndex, asked: Iterable[Fingerprint]) -> list[float]:
    source, times = iter(asked), list[float]()

    async def worker() -> None:
        for one in source:
            began = time.perf_counter()
            await index.check_and_add(one, hamming_max=3)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return times


async def _missed(index: RedisFingerprintIndex, hashes: list[int], documents: int) -> int:
    """Of fingerprints one to three bits from a stored one, those that are not found."""
    source, missed = random.Random(11), 0
    for number in range(NEAR):
        stored = source.randrange(documents)
        simhash = hashes[stored]
        for bit in source.sample(range(63), 1 + number % 3):
            simhash ^= 1 << bit
        verdict = await index.check_and_add(fingerprint(2 * documents + ASKED + number, simhash), hamming_max=3)
        missed += verdict.kind != "near"
    return missed


def _memory(server: RedisServer) -> int:
    found = dict(line.split(":", 1) for line in server.ask("INFO", "memory").splitlines() if ":" in line)
    return int(found["used_memory"])


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--tables", type=int, default=4, choices=(4, 10))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder), free_port()) as server:
        print(json.dumps(asyncio.run(run(server, arguments.documents, arguments.tables))))


if __name__ == "__main__":
    main()
