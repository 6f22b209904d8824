"""Scrapy with trafilatura: `python -m bench.peers.scrapy_crawl URL FOLDER PROCESSES`.

With 0 processes pages are extracted in the spider's own; else in a pool of so many.
"""

import asyncio
import multiprocessing
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.http import TextResponse
from scrapy.linkextractors import LinkExtractor

from bench.peers.extraction import extract_and_save

_SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "LOG_LEVEL": "INFO",
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
}


class OneSite(scrapy.Spider):
    """Follows every link of one site and extracts every page."""

    name = "onesite"

    def __init__(self, url: str, folder: Path, pool: ProcessPoolExecutor | None) -> None:
        super().__init__()
        self.start_urls = [url]
        self._folder = folder
        self._pool = pool
        self._links = LinkExtractor(allow=f"^{url}")

    async def parse(self, response: TextResponse) -> AsyncIterator[scrapy.Request]:
        """Links first, so that the queue is never empty while pages are extracted."""
        for link in self._links.extract_links(response):
            yield scrapy.Request(link.url)
        if self._pool is None:
            extract_and_save(self._folder, response.url, response.text)
        else:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._pool, extract_and_save, self._folder, response.url, response.text)


def main(url: str, folder: str, processes: str) -> None:
    """Crawl to the end."""
    count = int(processes)
    pool = ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) if count else None
    process = CrawlerProcess(_SETTINGS)
    process.crawl(OneSite, url=url, folder=Path(folder), pool=pool)
    process.start()
    if pool is not None:
        pool.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
