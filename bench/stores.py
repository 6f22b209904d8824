"""What the SQLite stores cost a page: one JSON line.

    python -m bench.stores [--pages N] [--origins N] [--folder DIR] [--searches N] [--group SECONDS]

Per page: admit 10 links, lease 1, complete 1, two politeness slots (reserve, release, observe), check_and_add and
commit, put the page (5 kB of text with Markdown and blocks), upsert 5 chunks of 1,000 characters with vectors of 256
dimensions. Commits are grouped as in a crawl, and counted under `group`; `--group 0` commits each call. `cpu_us` is the
process's CPU time per page and step, `wall_us` the elapsed time; `pages_s` is of one core. The words follow Zipf's law
over 50,000, so that the full-text index meets what it meets in life.
"""

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np

from trawl.adapters.sqlite import (
    Database,
    SqliteFingerprintIndex,
    SqliteFrontierStore,
    SqlitePageStore,
    SqlitePolitenessStore,
    SqliteSearchIndex,
)
from trawl.fingerprint import content_sha256, simhash64
from trawl.kinds import BlockKind, OutcomeClass, RobotsState
from trawl.ports import Chunk, Completion, CrawlPolicy, Fingerprint, OriginUpdate, Request, SearchQuery, StoredPage
from trawl.records import Block, ExtractedDocument
from trawl.settings import EmbeddedSettings
from trawl.url import document_key, request_key, template_key

T = TypeVar("T")
VOCABULARY = 50_000
CHUNKS = 5
CHUNK_WORDS = 160
DIMENSIONS = 256


class Costs:
    """CPU and wall time by step."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = defaultdict(float)
        self.wall: dict[str, float] = defaultdict(float)

    @contextmanager
    def of(self, step: str) -> Iterator[None]:
        """Count a block's time to a step."""
        cpu, wall = time.process_time(), time.perf_counter()
        yield
        self.cpu[step] += time.process_time() - cpu
        self.wall[step] += time.perf_counter() - wall

    async def timed(self, step: str, call: Awaitable[T]) -> T:
        """Count a call's time to a step."""
        with self.of(step):
            return await call


class Bench:
    """The steps of a page, over one folder."""

    def __init__(self, folder: Path, origins: int, group_seconds: float = 0.0) -> None:
        self.database = Database(folder, group_seconds=group_seconds)
        self.frontier = SqliteFrontierStore(self.database)
        self.politeness = SqlitePolitenessStore(self.database)
        self.fingerprints = SqliteFingerprintIndex(self.database)
        self.pages = SqlitePageStore(self.database)
        self.index = SqliteSearchIndex(self.database)
        self.random = np.random.default_rng(1)
        weights = 1 / np.arange(1, VOCABULARY + 1)
        self.weights = weights / weights.sum()
        self.words = np.array([f"w{n:x}" for n in range(VOCABULARY)])
        self.origins = [f"https://h{n}.example" for n in range(origins)]
        self.costs = Costs()
        self.urls = 0

    async def start(self) -> None:
        """The first link of each origin, and its robots.txt."""
        await self.frontier.put_crawl(CrawlPolicy(crawl_id="c"))
        await self.index.open("bench", DIMENSIONS)
        for origin in self.origins:
            update = OriginUpdate(robots=RobotsState.RULES, robots_expires_ms=10**15, concurrency_max=16)
            await self.frontier.update_origin(origin, update)
        await self.frontier.admit(self.links(len(self.origins)), queue_urls_max=10**7, host_urls_max=10**7)

    def links(self, count: int) -> list[Request]:
        """New URLs of the origins in turn; a page's links go to one host, as most do."""
        found = []
        for _ in range(count):
            origin = self.origins[self.urls // 10 % len(self.origins)]
            url = f"{origin}/section-{self.urls % 97}/page-{self.urls}.html"
            self.urls += 1
            found.append(
                Request(
                    request_key=request_key("c", url),
                    crawl_id="c",
                    url=url,
                    origin=origin,
                    template=template_key(f"{origin}/section"),
                    depth=3,
                    score=float(self.random.random()),
                )
            )
        return found

    async def page(self, now_ms: int) -> None:
        """All steps of one page."""
        timed = self.costs.timed
        links, texts = self.links(10), self.texts()
        document = self.document(links[0], "\n\n".join(texts))
        chunks = self.chunks(document, texts)
        await timed("admit_10", self.frontier.admit(links, queue_urls_max=10**7, host_urls_max=10**7))
        (leased,) = await timed("lease", self.frontier.lease(now_ms, 1, 600_000, origins_max=1000))
        for key in (leased.origin, "192.0.2.1"):
            await timed("politeness", self.polite(key, now_ms))
        fingerprint = self.fingerprint(document)
        await timed("check_and_add", self.fingerprints.check_and_add(fingerprint, hamming_max=3))
        await timed("put_page", self.pages.put(StoredPage(document=document, chunks=tuple(c.chunk_id for c in chunks))))
        vectors = self.random.standard_normal((len(chunks), DIMENSIONS)).astype(np.float32)
        await timed("upsert_5", self.index.upsert(chunks, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)))
        await timed("commit", self.fingerprints.commit(document.document_key, document.fetch_id))
        completion = Completion(
            request_key=leased.request_key,
            url=leased.url,
            fetch_id=leased.fetch_id,
            outcome=OutcomeClass.INDEXED,
            status=200,
            at_ms=now_ms,
            document_key=document.document_key,
            duplicate=False,
        )
        assert await timed("complete", self.frontier.complete(completion))

    async def polite(self, key: str, now_ms: int) -> None:
        """One slot, and what is learned."""
        slot = await self.politeness.reserve(
            key, now_ms, interval_ms=0, horizon_ms=1000, concurrency_max=0, permit_ms=1000
        )
        await self.politeness.release(key, slot.permit)
        await self.politeness.observe(key, response_ms=50.0 + now_ms % 7, failed=False, throttled=False)

    def texts(self) -> list[str]:
        """The chunks' texts."""
        numbers = self.random.choice(VOCABULARY, size=(CHUNKS, CHUNK_WORDS), p=self.weights)
        return [" ".join(self.words[row]) for row in numbers]

    def document(self, link: Request, text: str) -> ExtractedDocument:
        """A page with that text."""
        paragraphs = [text[at : at + 250] for at in range(0, len(text), 250)]
        simhash = simhash64(text)
        return ExtractedDocument(
            document_key=document_key("c", link.url),
            crawl_id="c",
            request_key=link.request_key,
            fetch_id=link.request_key ^ 1,
            url=link.url,
            final_url=link.url,
            title="A page of the benchmark",
            text=text,
            markdown=f"# A page\n\n{text}",
            blocks=tuple(Block(kind=BlockKind.PARAGRAPH, text=part, markdown=part) for part in paragraphs),
            content_sha256=content_sha256(text),
            simhash=simhash.value,
            simhash_tokens=simhash.tokens,
            fingerprint_version=simhash.version,
        )

    def fingerprint(self, document: ExtractedDocument) -> Fingerprint:
        """What the duplicate gate is asked with."""
        return Fingerprint(
            namespace="crawl:c",
            document_key=document.document_key,
            request_key=document.request_key,
            fetch_id=document.fetch_id,
            fetched_at_ms=1,
            url=document.url,
            sha256=document.content_sha256,
            simhash=document.simhash,
            version=document.fingerprint_version,
        )

    def chunks(self, document: ExtractedDocument, texts: list[str]) -> list[Chunk]:
        """The chunks of a document."""
        return [
            Chunk(
                chunk_id=document.document_key ^ position,
                document_key=document.document_key,
                crawl_id="c",
                url=document.url,
                title=document.title,
                heading_path=("A page", "A section"),
                text=text,
                position=position,
                fetched_at_ms=1,
            )
            for position, text in enumerate(texts)
        ]

    async def search(self, times: int) -> dict[str, float]:
        """Milliseconds of a search, median: the words of a chunk, with a vector and without."""
        found: dict[str, list[float]] = defaultdict(list)
        for _ in range(times):
            words = " ".join(self.texts()[0].split()[:6])
            vector = self.random.standard_normal((1, DIMENSIONS)).astype(np.float32)
            for name, query in {
                "text": SearchQuery(text=words),
                "vector": SearchQuery(text="", vector=vector),
                "hybrid": SearchQuery(text=words, vector=vector),
            }.items():
                start = time.perf_counter()
                await self.index.search(query)
                found[name].append(1000 * (time.perf_counter() - start))
        return {name: round(float(np.median(values)), 1) for name, values in found.items()}


async def main(pages: int, origins: int, folder: Path, searches: int, group_seconds: float) -> None:
    """Run and print."""
    bench = Bench(folder, origins, group_seconds)
    await bench.start()
    for page in range(pages):
        await bench.page(page + 1)
        with bench.costs.of("group"):
            await asyncio.sleep(0)  # the loop's turn, in which a group is committed
    result = {
        "bench": "stores",
        "pages": pages,
        "origins": origins,
        "group_seconds": group_seconds,
        "pages_s": round(pages / sum(bench.costs.cpu.values())),
        "cpu_us_page": round(1e6 * sum(bench.costs.cpu.values()) / pages),
        "cpu_us": {step: round(1e6 * spent / pages) for step, spent in bench.costs.cpu.items()},
        "wall_us": {step: round(1e6 * spent / pages) for step, spent in bench.costs.wall.items()},
        "database_kb_page": round(bench.database.path.stat().st_size / 1000 / pages, 1),
        "search_ms": await bench.search(searches) if searches else {},
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    bench.database.close()
    print(json.dumps(result))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--origins", type=int, default=50)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--searches", type=int, default=20)
    parser.add_argument("--group", type=float, default=EmbeddedSettings().commit_seconds)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        asyncio.run(main(options.pages, options.origins, folder, options.searches, options.group))
