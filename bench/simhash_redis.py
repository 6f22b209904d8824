"""The fingerprint index in Redis at size: check-and-adds a second, bytes a document, and no duplicate missed.

    python -m bench.simhash_redis --documents 1000000 [--tables 4|10]

Fills an index of its own, in a server of its own, with random fingerprints of documents with 80-byte URLs, then asks
with new ones, and compares the answers about fingerprints near to stored ones with those of brute force. The last line
is one JSON object. `bytes_per_document` is Redis's used memory with everything; `server_cpu_us` the server's CPU time
for one check-and-add, which says more than the clock where the cores are shared.
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

import numpy as np

from devstack.process import free_port
from devstack.servers import RedisServer
from trawl.adapters.redis import RedisFingerprintIndex, connect
from trawl.ports import Fingerprint
from trawl.settings import Settings

IN_FLIGHT = 64
ASKED = 20_000
COMPARED = 1_000
BITS_MAX = 3
URL_BYTES = 80
WORDS = (
    "about", "account", "archive", "article", "book", "building", "business", "camera", "city", "climate",
    "cooking", "council", "culture", "data", "design", "energy", "engine", "family", "festival", "finance",
    "football", "garden", "guide", "health", "history", "house", "industry", "island", "kitchen", "language",
    "library", "market", "medicine", "message", "mountain", "museum", "music", "network", "news", "ocean", "office",
    "opinion", "painting", "people", "planet", "policy", "project", "question", "record", "report", "review",
    "river", "school", "science", "season", "service", "software", "station", "story", "summer", "system",
    "technology", "theatre", "traffic", "travel", "university", "village", "water", "weather", "window", "winter",
    "world", "writing",
)  # fmt: skip


def fingerprint(number: int, simhash: int) -> Fingerprint:
    """A document that is like no other in its text's hash."""
    return Fingerprint(
        namespace="crawl:bench",
        document_key=_mixed(number, 1),
        request_key=_mixed(number, 2),
        fetch_id=_mixed(number, 3),
        fetched_at_ms=1_700_000_000_000 + number,
        url=_url(number),
        sha256=f"{number:064x}"[::-1],
        simhash=simhash,
        version=1,
    )


def _url(number: int) -> str:
    """80 bytes: a host, a folder, words and a number."""
    source = random.Random(number)
    words = "-".join(source.choices(WORDS, k=12))
    start = f"https://www.{source.choice(WORDS)}{number % 1000}.example/{source.choice(WORDS)}/"
    return (start + words)[: URL_BYTES - 9].rstrip("-").ljust(URL_BYTES - 9, "s") + f"-{number:08d}"


def _mixed(number: int, salt: int) -> int:
    return (number * 0x9E3779B97F4A7C15 + salt * 0xBF58476D1CE4E5B9) % 2**64 - 2**63


async def run(server: RedisServer, documents: int, tables: int) -> dict[str, Any]:
    """Fill, ask and measure."""
    settings = replace(Settings().redis, url=server.url, fingerprint_tables=tables)
    client = connect(settings)
    index = RedisFingerprintIndex(client, settings)
    source = random.Random(7)
    hashes = [source.getrandbits(64) - 2**63 for _ in range(documents + ASKED)]
    empty = _info(server, "used_memory")
    began = time.perf_counter()
    await _ask(index, (fingerprint(number, hashes[number]) for number in range(documents)))
    filled_s = time.perf_counter() - began
    used = _info(server, "used_memory") - empty
    new = [fingerprint(documents + number, hashes[documents + number]) for number in range(ASKED)]
    began, cpu_s = time.perf_counter(), _cpu_s(server)
    times = await _ask(index, new)
    asked_s, cpu_s = time.perf_counter() - began, _cpu_s(server) - cpu_s
    wrong = await _wrong(index, hashes)
    await client.close()
    times.sort()
    return {
        "documents": documents,
        "tables": tables,
        "bytes_per_document": round(used / documents, 1),
        "filled_per_s": round(documents / filled_s),
        "check_and_add_s": round(ASKED / asked_s),
        "server_cpu_us": round(1_000_000 * cpu_s / ASKED),
        "in_flight": IN_FLIGHT,
        "p50_ms": round(1000 * times[len(times) // 2], 2),
        "p99_ms": round(1000 * times[len(times) * 99 // 100], 2),
        "compared": COMPARED,
        "wrong": wrong,
    }


async def _ask(index: RedisFingerprintIndex, asked: Iterable[Fingerprint]) -> list[float]:
    source, times = iter(asked), list[float]()

    async def worker() -> None:
        for one in source:
            began = time.perf_counter()
            await index.check_and_add(one, hamming_max=BITS_MAX)
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return times


async def _wrong(index: RedisFingerprintIndex, hashes: list[int]) -> int:
    """Of fingerprints one to five bits from a stored one, those that are not judged as brute force does."""
    stored = np.array(hashes + [0] * COMPARED, np.int64)
    source, count, wrong = random.Random(11), len(hashes), 0
    for number in range(COMPARED):
        asked = hashes[source.randrange(len(hashes))]
        for bit in source.sample(range(63), 1 + number % 5):
            asked ^= 1 << bit
        nearest = int(np.bitwise_count((stored[:count] ^ asked).view(np.uint64)).min())
        verdict = await index.check_and_add(fingerprint(len(hashes) + number, asked), hamming_max=BITS_MAX)
        expected = ("near", nearest) if nearest <= BITS_MAX else ("new", 0)
        wrong += (verdict.kind, verdict.distance) != expected
        if verdict.kind == "new":
            stored[count] = asked
            count += 1
    return wrong


def _info(server: RedisServer, name: str) -> float:
    found = dict(line.split(":", 1) for line in server.ask("INFO", "everything").splitlines() if ":" in line)
    return float(found[name])


def _cpu_s(server: RedisServer) -> float:
    return _info(server, "used_cpu_user") + _info(server, "used_cpu_sys")


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
