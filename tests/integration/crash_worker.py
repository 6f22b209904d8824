"""A process that works on a folder's stores until it is killed, and tells of each step when it has returned.

    python -m tests.integration.crash_worker FOLDER SEED GROUP_SECONDS

Its standard output has a line per step, written only after the step: `admitted KEY`, `done KEY`, `leased KEY`,
`stored KEY`. Whenever it dies, what it tells must be in the database; but for the last moments, if commits are grouped.
"""

import asyncio
import os
import random
import sys
from pathlib import Path

import numpy as np

from tests.contract.requests import admit, completion, lease, open_origin, request
from trawl.adapters.sqlite import (
    Database,
    SqliteFingerprintIndex,
    SqliteFrontierStore,
    SqlitePageStore,
    SqliteSearchIndex,
    SqliteSpillQueue,
)
from trawl.kinds import OutcomeClass
from trawl.ports import Chunk, CrawlPolicy, Fingerprint, Request, StoredPage
from trawl.records import ExtractedDocument

ORIGINS = tuple(f"https://h{n}.example" for n in range(5))
PAGES_MAX = 100_000


def tell(line: str) -> None:
    """One line to whoever watches, at once."""
    os.write(1, f"{line}\n".encode())


class Worker:
    """Random steps over every store."""

    def __init__(self, folder: Path, seed: int, group_seconds: float) -> None:
        self.database = Database(folder, group_seconds=group_seconds)
        self.frontier = SqliteFrontierStore(self.database)
        self.spill = SqliteSpillQueue(self.database)
        self.fingerprints = SqliteFingerprintIndex(self.database)
        self.pages = SqlitePageStore(self.database)
        self.index = SqliteSearchIndex(self.database)
        self.random = random.Random(seed)
        self.now_ms = 1000 * seed
        self.leased: list[Request] = []

    async def run(self) -> None:
        """Step until killed."""
        await self.frontier.release_leases()
        await self.frontier.put_crawl(CrawlPolicy(crawl_id="c", pages_max=PAGES_MAX))
        await self.index.open("model", 8)
        for origin in ORIGINS:
            await open_origin(self.frontier, origin, concurrency_max=50)
        tell("ready")
        steps = (self.admit, self.lease, self.lease, self.complete, self.complete, self.store, self.overflow)
        while True:
            self.now_ms += 1
            await self.random.choice(steps)()
            await asyncio.sleep(0)

    async def admit(self) -> None:
        urls = [f"{self.random.choice(ORIGINS)}/{self.random.getrandbits(40)}" for _ in range(10)]
        requests = [request(url, score=self.random.random(), template=self.random.randrange(9)) for url in urls]
        await admit(self.frontier, *requests, queue_urls_max=500)
        for admitted in requests[-1:]:
            if (await self.frontier.seen([admitted]))[0]:
                tell(f"admitted {admitted.request_key}")

    async def lease(self) -> None:
        for leased in await lease(self.frontier, self.now_ms, limit=3):
            self.leased.append(leased)
            tell(f"leased {leased.request_key}")

    async def complete(self) -> None:
        if not self.leased:
            return
        leased = self.leased.pop(self.random.randrange(len(self.leased)))
        if self.random.random() < 0.3:
            charged = self.random.random() < 0.5
            later = completion(leased, OutcomeClass.RETRY, requeue_at_ms=self.now_ms + 20, charged=charged)
            await self.frontier.complete(later)
            return
        outcome = self.random.choice((OutcomeClass.INDEXED, OutcomeClass.DUPLICATE, OutcomeClass.FAILED))
        if await self.frontier.complete(completion(leased, outcome, duplicate=outcome is OutcomeClass.DUPLICATE)):
            tell(f"done {leased.request_key}")

    async def store(self) -> None:
        key, fetch_id = self.random.randrange(200), self.random.getrandbits(60)
        fingerprint = Fingerprint(
            namespace="c",
            document_key=key,
            request_key=key,
            fetch_id=fetch_id,
            fetched_at_ms=self.now_ms,
            url="https://h0.example/",
            sha256=f"{self.random.getrandbits(256):064x}",
            simhash=self.random.getrandbits(63),
            version=1,
        )
        await self.fingerprints.check_and_add(fingerprint, hamming_max=3)
        document = ExtractedDocument(
            document_key=key,
            crawl_id="c",
            request_key=key,
            fetch_id=fetch_id,
            url="https://h0.example/",
            final_url="https://h0.example/",
            fetched_at_ms=self.now_ms,
            text=f"text {fetch_id}",
        )
        old = await self.pages.get(key)
        chunks = [self.chunk(key, n) for n in range(5)]
        await self.index.upsert(chunks, np.full((5, 8), 8**-0.5, dtype=np.float32))
        await self.index.delete(old.chunks if old is not None else ())
        await self.pages.put(StoredPage(document=document, chunks=tuple(chunk.chunk_id for chunk in chunks)))
        await self.fingerprints.commit(key, fetch_id)
        tell(f"stored {key}")

    def chunk(self, key: int, position: int) -> Chunk:
        return Chunk(
            chunk_id=self.random.getrandbits(62),
            document_key=key,
            crawl_id="c",
            url="https://h0.example/",
            title=f"page {key}",
            heading_path=(),
            text=f"words {self.random.getrandbits(60)} 検索",
            position=position,
            fetched_at_ms=self.now_ms,
        )

    async def overflow(self) -> None:
        await self.spill.push([b"x" * self.random.randrange(5000) for _ in range(3)])
        await self.spill.pull(self.random.randrange(5))


if __name__ == "__main__":
    asyncio.run(Worker(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])).run())
