"""Memory over many requests (case 48)."""

import asyncio
import ctypes
import gc
import os
from pathlib import Path

from tests.fetching import Rig
from tests.site import FakeWeb
from tests.site.process import WebProcess

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
HOSTS = 200
GROWTH_BYTES_MAX = 600_000
"""Over 3,000 requests; one list of pinned names or headers that is never freed makes 1,500,000."""


def rss_bytes() -> int:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free but not returned is not growth
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


async def fetch_many(rig: Rig, port: int, requests: int) -> None:
    async def worker(first: int) -> None:
        for number in range(first, requests, 20):
            await rig.page(f"http://h{number % HOSTS}.test:{port}/n/{1 + number % 49}")

    await asyncio.gather(*(worker(first) for first in range(20)))


async def test_case_48_memory_stays_flat_over_thousands_of_pinned_requests(fake_web: FakeWeb) -> None:
    with WebProcess("tiny:127.0.0.1:50") as web:
        port = int(web.url.rpartition(":")[2])
        async with Rig(fake_web) as rig:
            await fetch_many(rig, port, 1000)
            before = rss_bytes()
            await fetch_many(rig, port, 3000)
            grown = rss_bytes() - before
    assert grown < GROWTH_BYTES_MAX, f"{grown} bytes over 3,000 requests, {before} before"
