"""One site through the whole stack and through the embedded crawl: what Kafka, Redis and OpenSearch cost a page.

    python -m bench.services [--pages N] [--idle N] [--generated] [--setting NAME=VALUE]

The site is that of bench.crawl, served from memory by a process of its own. It is crawled embedded, then by the five
services over real servers, each a process on this machine; then single pages of hosts never seen before are published
one after another to the idle stack. The last line is one JSON object; bench/README.md says what it means.
"""

import argparse
import asyncio
import json
import random
import shutil
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, Self

from bench.measure import WORK
from bench.services_embedded import EmbeddedCrawl, crawl_embedded
from bench.services_stack import REST_SECONDS, Cpu, Stack, spent
from tests.data import DATA
from tests.outside import outside
from tests.site.process import WebProcess
from tests.site.responders.prose import title
from trawl.adapters.kafka import Topics
from trawl.ports import CrawlProgress, SearchQuery
from trawl.records import Seed

PAGES: Final = 500
IDLE: Final = 40
IDLE_SECONDS: Final = 5.0
"""For so long the CPU time of an idle stack is measured."""
FAST: Final = {
    "TRAWL_POLITENESS_DELAY_SECONDS": "0",
    "TRAWL_POLITENESS_ADAPTIVE_FACTOR": "0",
    "TRAWL_POLITENESS_ADDRESS_DELAY_SECONDS": "0",
    "TRAWL_POLITENESS_PER_HOST_CONCURRENCY": "16",
    "TRAWL_FETCH_ALLOW_NETWORKS": "127.0.0.0/8",
}
"""As fast as bench.crawl lets every crawler be; for the services and the embedded crawl alike."""
_LOOK_SECONDS: Final = 0.2
_LOOKS: Final = 5
"""A crawl has ended when nothing of it was left at so many looks in a row; the first of them is its end."""
_SEARCH_SECONDS: Final = 0.02
_FOUND_SECONDS_MAX: Final = 60.0
_PAGES: Final = ("indexed", "duplicate", "unchanged")
"""What a page can end as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesCrawl:
    """What a crawl brought and cost."""

    progress: CrawlProgress
    documents: int
    chunks: int
    seconds: float
    services: Mapping[str, Cpu]
    servers: Mapping[str, Cpu]
    kafka_bytes: Mapping[str, int]
    redis_bytes: int

    @property
    def pages(self) -> int:
        """Requests that ended with a page."""
        outcomes = dict(self.progress.outcomes)
        return sum(outcomes.get(name, 0) for name in _PAGES)

    @property
    def urls(self) -> int:
        """Requests that Redis knows of."""
        return sum(count for _, count in self.progress.outcomes)


class Client:
    """Publishes seeds to a stack, and sees what becomes of them."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._exit = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Make the topics, start the services, and connect."""
        settings = self._stack.settings
        topics = Topics(settings.kafka)
        await topics.create()
        await topics.close()
        await asyncio.to_thread(self._stack.start)
        connected = await self._exit.enter_async_context(outside(settings))
        self._producer, self._frontier = connected.producer, connected.frontier
        self._pages, self._index = connected.pages, connected.index
        await asyncio.sleep(REST_SECONDS)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit.aclose()

    async def crawl(self, url: str, seconds_max: float) -> ServicesCrawl:
        """Crawl a site from one seed; raises RuntimeError if it takes too long."""
        stack, before = self._stack, self._sample()
        began, held = time.monotonic(), stack.redis_bytes()
        await self._producer.send([Seed(url=url)])
        progress, ended, after = await self._end_of_crawl(began + seconds_max)
        return ServicesCrawl(
            progress=progress,
            documents=await self._pages.size(),
            chunks=await self._index.size(),
            seconds=ended - began,
            services=spent(before[0], after[0]),
            servers=spent(before[1], after[1]),
            kafka_bytes=stack.kafka_bytes(),
            redis_bytes=stack.redis_bytes() - held,
        )

    def _sample(self) -> tuple[dict[str, Cpu], dict[str, Cpu]]:
        return self._stack.services_cpu(), self._stack.servers_cpu()

    async def _end_of_crawl(self, until: float) -> tuple[CrawlProgress, float, tuple[dict[str, Cpu], dict[str, Cpu]]]:
        looks = 0
        while True:
            self._stack.check()
            progress = await self._frontier.progress("default")
            idle = progress.outcomes and not progress.queued and not progress.leased
            looks = looks + 1 if idle else 0
            if looks == 1:
                ended, sample = time.monotonic(), self._sample()
            if looks == _LOOKS:
                return progress, ended, sample
            if time.monotonic() > until:
                raise RuntimeError(f"the services do not end: {progress}")
            await asyncio.sleep(_LOOK_SECONDS)

    async def idle_cpu(self) -> tuple[Mapping[str, Cpu], Mapping[str, Cpu]]:
        """What services and servers use while nothing is to be done, for IDLE_SECONDS."""
        before = self._sample()
        await asyncio.sleep(IDLE_SECONDS)
        after = self._sample()
        return spent(before[0], after[0]), spent(before[1], after[1])

    async def single_page(self, number: int, host: str) -> tuple[float, float]:
        """Seconds from the release of one page until its chunks were written, and until a search found them."""
        # at any point of the interval at which OpenSearch refreshes, not just after it did
        await asyncio.sleep(random.uniform(0, self._stack.settings.opensearch.refresh_seconds))
        crawl_id = f"idle-{number}"
        await self._producer.send([Seed(url=f"http://{host}/", crawl_id=crawl_id, pages_max=1)])
        document_key = await self._found(SearchQuery(text=title(0), crawl_id=crawl_id))
        found_ms = 1000 * time.time()
        page = await self._pages.get(document_key)
        if page is None:
            raise RuntimeError(f"a search found a page of {host} that is not stored")
        released_ms = page.document.released_at_ms
        return (page.indexed_at_ms - released_ms) / 1000, (found_ms - released_ms) / 1000

    async def _found(self, query: SearchQuery) -> int:
        """The document of the first hit, once there is one."""
        until = time.monotonic() + _FOUND_SECONDS_MAX
        while not (hits := await self._index.search(query)):
            self._stack.check()
            if time.monotonic() > until:
                raise RuntimeError(f"no search finds {query} after {_FOUND_SECONDS_MAX:.0f} s")
            await asyncio.sleep(_SEARCH_SECONDS)
        return hits[0].chunk.document_key


async def run(
    web: WebProcess, hosts: Sequence[str], variables: Mapping[str, str], seconds_max: float
) -> dict[str, Any]:
    """Both crawls under these settings, then single pages; the line that tells of them."""
    folder = WORK / "services"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    embedded = await asyncio.to_thread(crawl_embedded, web.url + "/", folder, variables, seconds_max)
    _say(f"embedded: {embedded.summary['pages']} pages in {embedded.seconds:.1f} s")
    with Stack(variables) as stack:
        async with Client(stack) as client:
            _say("the stack serves")
            crawled = await client.crawl(web.url + "/", seconds_max)
            _say(f"services: {crawled.pages} pages in {crawled.seconds:.1f} s")
            resting = await client.idle_cpu()
            through = {"TRAWL_FETCH_PROXY": web.proxy, "TRAWL_FETCH_CA_FILE": str(web.ca_file)}
            await asyncio.to_thread(stack.restart, "fetcher", through)
            waits = [await client.single_page(number, host) for number, host in enumerate(hosts)]
    return {
        **_figures(embedded, crawled),
        "idle": _idle(waits[1:]),  # the first waits for the fetcher to join its group
        "idle_cpu_ms_s": {
            "services": _ms(sum(cpu.total for cpu in resting[0].values()), IDLE_SECONDS),
            "servers": _ms(sum(cpu.total for cpu in resting[1].values()), IDLE_SECONDS),
        },
    }


def _figures(embedded: EmbeddedCrawl, crawled: ServicesCrawl) -> dict[str, Any]:
    summary, pages = embedded.summary, crawled.pages
    python_ms = _ms(sum(cpu.total for cpu in crawled.services.values()), pages)
    embedded_ms = _ms(embedded.cpu.total, summary["pages"])
    extract_ms = {
        "services": _ms(crawled.services["extractor"].below, pages),
        "embedded": _ms(embedded.cpu.below, summary["pages"]),
    }
    pages_s, embedded_pages_s = pages / crawled.seconds, summary["pages"] / embedded.seconds
    return {
        "pages": pages,
        "documents": crawled.documents,
        "chunks": crawled.chunks,
        "pages_s": round(pages_s, 2),
        "embedded_pages_s": round(embedded_pages_s, 2),
        "ratio_to_embedded": round(pages_s / embedded_pages_s, 3),
        "python_cpu_ms_page": python_ms,
        "embedded_cpu_ms_page": embedded_ms,
        "extra_cpu_ms_page": round(python_ms - embedded_ms, 2),
        "stages_cpu": {name: round(cpu.total / pages, 6) for name, cpu in crawled.services.items()},
        "extract_cpu_ms_page": extract_ms,
        "extract_ratio": round(extract_ms["services"] / extract_ms["embedded"], 3),
        "servers_cpu_ms_page": {name: _ms(cpu.total, pages) for name, cpu in crawled.servers.items()},
        "kafka_bytes_page": {
            name.removeprefix("trawl."): round(size / pages) for name, size in crawled.kafka_bytes.items() if size
        },
        "kafka_bytes_page_all": round(sum(crawled.kafka_bytes.values()) / pages),
        "urls": crawled.urls,
        "redis_bytes_url": round(crawled.redis_bytes / crawled.urls, 1),
        **_differences(summary, crawled),
    }


def _differences(summary: Mapping[str, Any], crawled: ServicesCrawl) -> dict[str, Any]:
    """An `error` if the two crawls did not bring the same number of pages, documents and chunks."""
    found = {"pages": crawled.pages, "documents": crawled.documents, "chunks": crawled.chunks}
    wanted = {name: summary[name] for name in found}
    return {} if found == wanted else {"error": f"embedded brought {wanted}, the services {found}"}


def _idle(waits: Sequence[tuple[float, float]]) -> dict[str, Any]:
    written, found = ([pair[place] for pair in waits] for place in (0, 1))
    return {
        "hosts": len(waits),
        "searchable_p50_s": round(statistics.median(found), 3),
        "searchable_p95_s": round(statistics.quantiles(found, n=20)[-1], 3),
        "written_p50_s": round(statistics.median(written), 3),
        "written_p95_s": round(statistics.quantiles(written, n=20)[-1], 3),
    }


def _ms(seconds: float, count: float) -> float:
    return round(1000 * seconds / max(count, 1), 2)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Serve the site, run both, and print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=PAGES, help="take only so many pages")
    parser.add_argument("--idle", type=int, default=IDLE, help="so many single pages are published one after another")
    parser.add_argument("--generated", action="store_true", help="generated pages, even where real ones are present")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE", help="TRAWL_… for both crawls")
    parser.add_argument("--minutes-max", type=float, default=15.0, help="a crawl that takes longer is ended")
    options = parser.parse_args()
    real = (DATA / "wcxb-dev").is_dir() and not options.generated
    site = f"onesite::{options.pages}" if real else f"onesite-generated::{options.pages}"
    hosts = [f"idle-{number}.test" for number in range(max(options.idle, 2) + 1)]
    told = dict(setting.partition("=")[::2] for setting in options.setting)
    with WebProcess(site, *(f"tiny:{host}:1" for host in hosts), log=False) as web:
        line = asyncio.run(run(web, hosts, {**FAST, **told}, 60 * options.minutes_max))
    print(json.dumps({**line, **({"settings": told} if told else {})}))
    if "error" in line:
        sys.exit(1)


if __name__ == "__main__":
    main()
