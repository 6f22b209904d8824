"""RSS 2.0, RSS 1.0 (RDF) and Atom feeds (pure)."""

from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

from trawl.extractor.dates import epoch_ms
from trawl.extractor.xml_stream import elements, local_name, texts
from trawl.kinds import Found
from trawl.records import Link

_ENTRIES: Final = frozenset({"item", "entry"})
_DATES: Final = ("updated", "modified", "pubdate", "published", "date", "issued")


def read_feed(chunks: Iterable[bytes], anchor_chars_max: int) -> Iterator[Link]:
    """The entries in document order, URLs as written (they may be relative), with their title as anchor."""
    for element in elements(chunks, _ENTRIES):
        values = texts(element)
        url = _link(element, values)
        if url:
            dates = (epoch_ms(values[name]) for name in _DATES if values.get(name))
            yield Link(
                url=url,
                found=Found.FEED,
                anchor=" ".join(values.get("title", "").split())[:anchor_chars_max],
                lastmod_ms=next((date for date in dates if date is not None), None),
            )


def _link(entry: etree._Element, values: dict[str, str]) -> str:
    """RSS: the link's text, else a guid that is a URL. Atom: the link with rel alternate, or without rel."""
    for child in entry:
        if local_name(child) == "link":
            href = (child.get("href") or "").strip()
            if href and child.get("rel", "alternate") == "alternate":
                return href
            text = "".join(child.itertext()).strip()
            if text:
                return text
    guid = values.get("guid", "")
    return guid if guid.startswith(("http://", "https://")) else ""
