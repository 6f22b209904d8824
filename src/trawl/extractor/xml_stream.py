"""XML read element by element, in memory that does not grow with the document (pure).

No entity is resolved and nothing is loaded; libxml2's own limits on entity expansion and depth stay on. Broken XML is
recovered as far as it goes.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

_DEPTH_MAX: Final = 50


def elements(chunks: Iterable[bytes], names: frozenset[str]) -> Iterator[etree._Element]:
    """Each finished element whose local name (in lower case) is among the names; it is emptied after its turn."""
    parser = etree.XMLPullParser(events=("start", "end"), recover=True, resolve_entities=False, no_network=True)
    depth = 0
    try:
        for chunk in chunks:
            parser.feed(chunk)
            for event, element in parser.read_events():
                depth += 1 if event == "start" else -1
                if event == "end" and local_name(element) in names:
                    yield element
                    _forget(element)
                elif event == "end" and depth <= 1:
                    _forget(element)
                if depth > _DEPTH_MAX:
                    return
    except etree.XMLSyntaxError:
        return  # what was read before the damage has been yielded


def _forget(element: etree._Element) -> None:
    """Free the element and what stands before it in its parent."""
    element.clear()
    parent = element.getparent()
    if parent is not None:
        while element.getprevious() is not None:
            del parent[0]


def local_name(element: etree._Element) -> str:
    """The element's name without namespace, in lower case; comments and entities have none."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def texts(element: etree._Element, chars_max: int = 4096) -> dict[str, str]:
    """The stripped text of each child by local name; the first of equal names counts, CDATA is text like any other."""
    found: dict[str, str] = {}
    for child in element:
        name = local_name(child)
        if name and name not in found:
            found[name] = "".join(child.itertext()).strip()[:chars_max]
    return found
