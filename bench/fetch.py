"""The fetcher stage against a local server: fetches a second and CPU per fetch, with every check on.

    python -m bench.fetch                       # 1 and 100 in flight, 80 kB bodies, 500 host names; one JSON line each
    python -m bench.fetch --in-flight 500 --coding gzip

`cpu_ms_fetch` is the CPU time of this process alone: robots verdict, address check, slots, request, body, records. The
server is a process of its own on the other core.
"""

import argparse
import asyncio
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tests.fetching import QUICK, Rig, task
from tests.site import FakeWeb
from trawl.ports import HttpRequest, HttpResponse
from trawl.records import FetchedPage
from trawl.settings import Settings

HOSTS: Final = 500
BODY_BYTES: Final = 80_000


class Server(asyncio.Protocol):
    """Answers every request with the same bytes."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request whose head is complete."""
        self._buffer += data
        count = self._buffer.count(b"\r\n\r\n")
        if count and self._transport is not None:
            self._buffer = self._buffer.rpartition(b"\r\n\r\n")[2]
            self._transport.write(self._answer * count)


async def serve(coding: str) -> None:
    """Print the port, then answer until the process is ended."""
    words = random.Random(1).choices(["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog"], k=20_000)
    body = f"<!doctype html><title>Page</title><p>{' '.join(words)}".encode()[:BODY_BYTES].ljust(BODY_BYTES)
    sent = gzip.compress(body, 6, mtime=0) if coding == "gzip" else body
    label = b"Content-Encoding: gzip\r\n" if coding == "gzip" else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n" % (label, len(sent))
    server = await asyncio.get_running_loop().create_server(lambda: Server(head + sent), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


async def run(fetch: Callable[[int], object], in_flight: int, fetches: int) -> tuple[float, float]:
    """Fetches a second, and milliseconds of CPU each, after a tenth of them to warm up."""

    async def worker(first: int, count: int) -> None:
        for number in range(first, count, in_flight):
            await fetch(number)  # type: ignore[misc]  # a coroutine

    await asyncio.gather(*(worker(first, fetches // 10) for first in range(in_flight)))
    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker(first, fetches) for first in range(in_flight)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return fetches / wall, 1000 * cpu / fetches


async def measure(port: int, in_flight: int, fetches: int, coding: str) -> dict[str, object]:
    """The stage and, for comparison, its HTTP client alone."""
    settings: Settings = replace(QUICK, politeness=replace(QUICK.politeness, per_host_concurrency=8))
    urls = [f"http://h{number % HOSTS}.test:{port}/page/{number}" for number in range(4 * HOSTS)]
    async with Rig(FakeWeb(), settings) as rig:
        for url in urls:
            await rig.rules(url, "User-agent: *\nDisallow: /private/\nDisallow: /*?sort=\n")
        tasks = [task(url) for url in urls]

        async def stage(number: int) -> None:
            records = await rig.stage.step(tasks[number % len(tasks)])
            assert isinstance(records[0], FetchedPage), records

        async def client(number: int) -> None:
            request = HttpRequest(url=urls[number % len(urls)], address="127.0.0.1")
            assert isinstance(await rig.http.fetch(request), HttpResponse)

        stage_rate, stage_cpu = await run(stage, in_flight, fetches)
        client_rate, client_cpu = await run(client, in_flight, fetches)
    return {
        "bench": "fetch",
        "in_flight": in_flight,
        "coding": coding,
        "fetches": fetches,
        "fetches_s": round(stage_rate),
        "cpu_ms_fetch": round(stage_cpu, 3),
        "client_fetches_s": round(client_rate),
        "client_cpu_ms_fetch": round(client_cpu, 3),
        "rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


def main() -> None:
    """Start the server and measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.fetch", description=__doc__)
    parser.add_argument("--in-flight", type=int, action="append", help="requests at the same time (default: 1 and 100)")
    parser.add_argument("--fetches", type=int, default=5_000)
    parser.add_argument("--coding", choices=("identity", "gzip"), default="identity")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.coding))
        return
    command = [sys.executable, "-m", "bench.fetch", "--serve", "--coding", options.coding]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            for in_flight in options.in_flight or (1, 100):
                print(json.dumps(asyncio.run(measure(port, in_flight, options.fetches, options.coding))), flush=True)
        finally:
            os.kill(server.pid, signal.SIGTERM)


if __name__ == "__main__":
    main()
