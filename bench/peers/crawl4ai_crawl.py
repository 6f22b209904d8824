"""Crawl4AI's HTTP strategy: `python -m bench.peers.crawl4ai_crawl URL FOLDER default|lxml`, the pruning filter."""

import asyncio
import sys
from pathlib import Path

from crawl4ai import AsyncWebCrawler, CacheMode, CrawlerRunConfig, HTTPCrawlerConfig
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy
from crawl4ai.content_filter_strategy import PruningContentFilter
from crawl4ai.content_filter_strategy_lxml import PruningContentFilterLXML
from crawl4ai.deep_crawling import BFSDeepCrawlStrategy
from crawl4ai.markdown_generation_strategy import DefaultMarkdownGenerator

from bench.peers.output import save

_FILTERS = {"default": PruningContentFilter, "lxml": PruningContentFilterLXML}


async def crawl(url: str, folder: Path, pruning: str) -> None:
    """Crawl to the end."""
    strategy = AsyncHTTPCrawlerStrategy(
        browser_config=HTTPCrawlerConfig(method="GET", follow_redirects=True), max_connections=16
    )
    config = CrawlerRunConfig(
        cache_mode=CacheMode.BYPASS,
        check_robots_txt=True,
        stream=True,
        semaphore_count=16,
        mean_delay=0,
        max_range=0,
        verbose=False,
        deep_crawl_strategy=BFSDeepCrawlStrategy(max_depth=10, include_external=False),
        markdown_generator=DefaultMarkdownGenerator(content_filter=_FILTERS[pruning]()),
    )
    async with AsyncWebCrawler(crawler_strategy=strategy, verbose=False) as crawler:
        async for result in await crawler.arun(url, config=config):
            if result.success:
                save(folder, result.url, result.markdown.fit_markdown)
            else:
                sys.stderr.write(f"{result.url}: {result.status_code} {result.error_message}\n")


if __name__ == "__main__":
    asyncio.run(crawl(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
