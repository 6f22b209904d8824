"""Trawl: polite crawling, real extraction, near-duplicate removal and search.

async for page in trawl.crawl("https://docs.example.com", max_pages=100):
print(page.url, page.title)

trawl.extract(html, url).markdown
await trawl.search("crawls/docs.example.com", "how do I log in")
"""

from trawl._version import __version__
from trawl.api import Extracted, Page, crawl, extract, search
from trawl.ports import Hit
from trawl.settings import Settings

__all__ = ["Extracted", "Hit", "Page", "Settings", "__version__", "crawl", "extract", "search"]
