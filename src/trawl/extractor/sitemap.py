"""XML sitemaps and sitemap indexes (sitemaps.org 0.9), and sitemaps that are plain text (pure)."""

from collections.abc import Iterable, Iterator
from typing import Final

from trawl.extractor.dates import epoch_ms
from trawl.extractor.xml_stream import elements, local_name, texts
from trawl.kinds import Found, Purpose
from trawl.records import Link

_ENTRIES: Final = frozenset({"url", "sitemap"})


def read_sitemap(chunks: Iterable[bytes]) -> Iterator[Link]:
    """The entries in document order, URLs as written; those of an index are sitemaps themselves."""
    for element in elements(chunks, _ENTRIES):
        values = texts(element)
        url = values.get("loc", "")
        if url:
            yield Link(
                url=url,
                purpose=Purpose.SITEMAP if local_name(element) == "sitemap" else Purpose.PAGE,
                found=Found.SITEMAP,
                lastmod_ms=epoch_ms(values["lastmod"]) if values.get("lastmod") else None,
                priority=_priority(values.get("priority", "")),
            )


def _priority(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value <= 1.0 else None
