"""The frontier in Redis at size: bytes a URL, queued, only seen and under recrawl, and how fast it admits and leases.

    python -m bench.frontier_redis [--urls 2000000] [--recrawled 500000] [--hosts 1000] [--rated 20000]

In a server of its own, over 256 shards with one owner. URLs of 80 bytes are admitted (bytes_per_queued_url,
admits_per_s), some of them are leased and completed (lease_complete_per_s), and all others dismissed, so that only the
keys of all are left (bytes_per_seen_url). Then others are admitted to a crawl with recrawls, and ended with an ETag of
36 characters and a Last-Modified (bytes_per_recrawl_url). The last line is one JSON object.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from devstack.process import free_port
from devstack.servers import RedisServer
from trawl.adapters.redis import RedisFrontierStore, ShardLeases, connect
from trawl.kinds import OutcomeClass, RecrawlKind, RobotsState
from trawl.ports import Completion, CrawlPolicy, OriginUpdate, Request
from trawl.records import RecrawlPolicy, Validators
from trawl.settings import Settings
from trawl.url import document_key, request_key, template_key

SHARDS = 256
URL_BYTES = 80
BATCH = 100
"""Links of one page to one host, as a record brings them."""
IN_FLIGHT = 16
LEASED = 256
PAGES_A_TEMPLATE = 200
NOW_MS = 1_700_000_000_000
FAR_MS = 4_000_000_000_000
VALIDATORS = Validators(etag='"0123456789abcdef0123456789abcdef01"', last_modified="Wed, 21 Oct 2015 07:28:00 GMT")


def batches(crawl_id: str, urls: int, hosts: int) -> Iterator[list[Request]]:
    """So many URLs in batches of one host each."""
    for number in range(0, urls, BATCH):
        origin = f"https://www.host{number // BATCH % hosts:06d}.example"
        yield [_request(crawl_id, origin, one) for one in range(number, min(number + BATCH, urls))]


def _request(crawl_id: str, origin: str, number: int) -> Request:
    path = f"/articles/{number // PAGES_A_TEMPLATE:08d}/"
    url = f"{origin}{path}".ljust(URL_BYTES - 8, "x") + f"{number:08d}"
    return Request(
        request_key=request_key(crawl_id, url),
        crawl_id=crawl_id,
        url=url,
        origin=origin,
        template=template_key(f"{origin}{path}"),
        depth=number % 7,
        score=(number * 7919 % 1000) / 1000,
        scheduled_at_ms=NOW_MS,
        due_at_ms=NOW_MS,
    )


def _ended(one: Request, validators: Validators | None, at_ms: int) -> Completion:
    return Completion(
        request_key=one.request_key,
        url=one.url,
        fetch_id=one.fetch_id,
        outcome=OutcomeClass.INDEXED,
        status=200,
        at_ms=at_ms,
        validators=validators,
        document_key=document_key(one.crawl_id, one.url),
        duplicate=False,
    )


class Bench:
    """One store, in one server."""

    def __init__(self, server: RedisServer, hosts: int) -> None:
        self._server = server
        self._hosts = hosts
        self._client = connect(replace(Settings().redis, url=server.url))
        self._store = RedisFrontierStore(self._client, shards=SHARDS, forgets_done=True)
        self._now_ms = NOW_MS

    async def open(self) -> None:
        """Own all shards, and know all hosts."""
        self._store.own(await ShardLeases(self._client).acquire(range(SHARDS)))
        update = OriginUpdate(robots=RobotsState.RULES, robots_expires_ms=FAR_MS, concurrency_max=1_000_000)
        for number in range(self._hosts):
            await self._store.update_origin(f"https://www.host{number:06d}.example", update)
        await self._store.next_event_ms(self._now_ms)  # tells the time: what is admitted is due

    async def admit(self, crawl_id: str, urls: int) -> float:
        """Queue so many; the seconds that it took."""
        source, began = batches(crawl_id, urls, self._hosts), time.perf_counter()

        async def worker() -> None:
            for batch in source:
                await self._store.admit(batch, queue_urls_max=10**9, host_urls_max=10**9)

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return time.perf_counter() - began

    async def work(self, urls: int) -> float:
        """Lease and complete so many; the seconds that it took."""
        began, done = time.perf_counter(), 0
        while done < urls:
            self._now_ms += 1
            leased = await self._store.lease(self._now_ms, min(LEASED, urls - done), 60_000, origins_max=1000)
            if not leased:
                raise SystemExit(f"nothing is left to lease after {done} URLs")
            await self._complete(leased)
            done += len(leased)
        return time.perf_counter() - began

    async def _complete(self, leased: Sequence[Request]) -> None:
        source = iter(leased)

        async def worker() -> None:
            for one in source:
                await self._store.complete(_ended(one, None, self._now_ms))

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))

    async def end(self, crawl_id: str, urls: int, validators: Validators | None) -> float:
        """End all that is queued, without fetches; the seconds that it took."""
        source, began = batches(crawl_id, urls, self._hosts), time.perf_counter()

        async def worker() -> None:
            for batch in source:
                await self._store.dismiss([_ended(one, validators, self._now_ms) for one in batch])

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        return time.perf_counter() - began

    async def run(self, urls: int, recrawled: int, rated: int) -> dict[str, Any]:
        """All of it."""
        await self.open()
        await self._store.put_crawl(CrawlPolicy(crawl_id="once"))
        await self._store.put_crawl(CrawlPolicy(crawl_id="again", recrawl=RecrawlPolicy(kind=RecrawlKind.ADAPTIVE)))
        empty = self._memory()
        admitting = await self.admit("once", urls)
        queued = self._memory() - empty
        working = await self.work(rated)
        await self.end("once", urls, None)
        seen = self._memory() - empty
        empty += seen
        await self.admit("again", recrawled)
        await self.end("again", recrawled, VALIDATORS)
        again = self._memory() - empty
        await self._client.close()
        return {
            "urls": urls,
            "recrawled": recrawled,
            "hosts": self._hosts,
            "shards": SHARDS,
            "url_bytes": URL_BYTES,
            "bytes_per_queued_url": round(queued / urls, 1),
            "bytes_per_seen_url": round(seen / urls, 1),
            "bytes_per_recrawl_url": round(again / recrawled, 1),
            "admits_per_s": round(urls / admitting),
            "lease_complete_per_s": round(rated / working),
        }

    def _memory(self) -> int:
        told = dict(line.split(":", 1) for line in self._server.ask("INFO", "memory").splitlines() if ":" in line)
        return int(told["used_memory"]) - int(told["mem_clients_normal"]) - int(told["mem_aof_buffer"])


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=2_000_000)
    parser.add_argument("--recrawled", type=int, default=500_000)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--rated", type=int, default=20_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, RedisServer(Path(folder), free_port()) as server:
        bench = Bench(server, arguments.hosts)
        print(json.dumps(asyncio.run(bench.run(arguments.urls, arguments.recrawled, arguments.rated))))


if __name__ == "__main__":
    main()
