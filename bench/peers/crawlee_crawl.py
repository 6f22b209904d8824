"""crawlee-python with trafilatura: `python -m bench.peers.crawlee_crawl URL FOLDER`."""

import asyncio
import sys
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.storage_clients import MemoryStorageClient

from bench.peers.extraction import extract_and_save


async def crawl(url: str, folder: Path) -> None:
    """Crawl to the end."""
    crawler = ParselCrawler(
        respect_robots_txt_file=True,
        concurrency_settings=ConcurrencySettings(min_concurrency=16, desired_concurrency=16, max_concurrency=16),
        storage_client=MemoryStorageClient(),
        max_request_retries=1,
    )

    @crawler.router.default_handler
    async def handle(context: ParselCrawlingContext) -> None:
        await context.enqueue_links(strategy="same-hostname")
        body = await context.http_response.read()
        extract_and_save(folder, context.request.url, body.decode("utf-8", "replace"))

    await crawler.run([url])


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], Path(sys.argv[2])))
