"""XML read element by element, in memory that does not grow with the document (pure).

No entity is resolved and nothing is loaded; libxml2's own limits on entity expansion and depth stay on. Broken XML is
recovered as far as it goes.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

_DEPTH_MAX: Final = 50
_ENTITY_BYTES_MAX: Final = 12
_BEGUN: Final = re.compile(rb"[&<\]]")
_BARE: Final = re.compile(rb"&(?!#?[A-Za-z0-9]{1,10};)")


def elements(chunks: Iterable[bytes], names: frozenset[str]) -> Iterator[etree._Element]:
    """Each finished element whose local name (in lower case) is among the names; it is emptied after its turn."""
    parser = etree.XMLPullParser(events=("start", "end"), recover=True, resolve_entities=False, no_network=True)
    depth = 0
    for _ in _fed(parser, chunks):
        for event, element in parser.read_events():
            depth += 1 if event == "start" else -1
            if event == "end" and local_name(element) in names:
                yield element
                _forget(element)
            elif event == "end" and depth <= 1:
                _forget(element)
            if depth > _DEPTH_MAX:
                return


def _fed(parser: etree.XMLPullParser, chunks: Iterable[bytes]) -> Iterator[None]:
    """Feed the parser; yields whenever there may be events, after damage and at the end too."""
    try:
        for chunk in _mended(chunks):
            parser.feed(chunk)
            yield
        parser.close()
    except etree.XMLSyntaxError:
        pass  # what was read before the damage counts
    yield


def _mended(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Bare ampersands escaped, outside CDATA: the commonest damage, of which recovery would make wrong URLs."""
    rest, inside = b"", False
    for chunk in chunks:
        data = rest + chunk
        begun = _BEGUN.search(data, max(len(data) - _ENTITY_BYTES_MAX, 0))
        cut = begun.start() if begun else len(data)
        data, rest = data[:cut], data[cut:]
        has_cdata = inside or b"<![CDATA[" in data
        if has_cdata:
            inside = data.rfind(b"<![CDATA[") > data.rfind(b"]]>") or (inside and b"]]>" not in data)
        yield data if has_cdata else _BARE.sub(b"&amp;", data)
    yield rest if inside else _BARE.sub(b"&amp;", rest)


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
