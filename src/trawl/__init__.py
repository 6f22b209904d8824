"""Trawl: polite crawling, real extraction, near-duplicate removal and search.

async for page in trawl.crawl("https://docs.example.com", max_pages=100):
    print(page.url, page.title)

trawl.extract(html, url).markdown
await trawl.search("crawls/docs.example.com", "how do I log in")
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trawl._version import __version__

if TYPE_CHECKING:
    from trawl.api import Extracted, Page, crawl, extract, search
    from trawl.ports import Hit
    from trawl.settings import Settings

__all__ = ["Extracted", "Hit", "Page", "Settings", "__version__", "crawl", "extract", "search"]

_HOMES = {"Hit": "trawl.ports", "Settings": "trawl.settings"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for, so that a worker process does not load the whole library."""
    if name not in __all__:
        raise AttributeError(f"module 'trawl' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "trawl.api")), name)


def __dir__() -> list[str]:
    return __all__
