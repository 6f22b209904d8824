"""From bytes to text: byte order mark, header, meta prescan, XML declaration, then statistics (pure).

The order is the HTML standard's (13.2.3). Two departures serve text that is to be read rather than rendered: a page
whose bytes are UTF-8 throughout is UTF-8 whatever a single-byte label says, and a declaration that its bytes contradict
is only a hint. A page that declares nothing valid is decided by what its bytes decode to.
"""

import re
from typing import Final, NamedTuple

from trawl.extractor.charset_statistics import guess
from trawl.extractor.encodings import decoded, from_label
from trawl.extractor.prescan import PRESCAN_BYTES, prescan, xml_declaration

_HEADER: Final = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.IGNORECASE)
_META: Final = re.compile(rb"<meta([^>]{0,500})", re.IGNORECASE)
_WORD: Final = re.compile(rb"[A-Za-z][A-Za-z0-9_:.-]{2,20}")
_LENIENT_BYTES: Final = 65_536
_LATE_META_BYTES: Final = 16_384
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_MULTIBYTE: Final = frozenset({"gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr", "iso-2022-jp"})


class Decoded(NamedTuple):
    """Text, the name of the encoding it was read in, and what decided: bom, header, meta, xml, hint or statistics."""

    text: str
    charset: str
    how: str


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """The text of an HTML or plain text body; never fails, undecodable bytes become U+FFFD."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return Decoded(decoded(body[len(mark) :], name), name, "bom")
    if b"\x1b$" in body[:_LENIENT_BYTES] and body.isascii():
        return Decoded(decoded(body, "iso-2022-jp"), "iso-2022-jp", "statistics")
    utf8 = _utf8(body)
    name, how = declared(body, content_type)
    if utf8 is not None and (
        name in ("", "utf-8") or (name not in _MULTIBYTE and not _wide(name) and not body.isascii())
    ):
        return Decoded(utf8, "utf-8" if name == "utf-8" or not body.isascii() else "windows-1252", how or "statistics")
    if name and not (name == "utf-8" and _mostly_wrong(body)):
        return Decoded(decoded(body, name), name, how)
    name, how = undeclared(body)
    return Decoded(decoded(body, name), name, how)


def sniff(body: bytes, content_type: str | None = None) -> tuple[str, str]:
    """The encoding's name in lower case and what decided it; see `Decoded`."""
    found = decode(body, content_type)
    return found.charset, found.how


def declared(body: bytes, content_type: str | None) -> tuple[str, str]:
    """The encoding that the header, the meta elements or the XML declaration name, and which of them."""
    match = _HEADER.search(content_type) if content_type else None
    name = from_label(match[1]) if match else ""
    if name:
        return name, "header"
    name = prescan(body[:PRESCAN_BYTES])
    if name:
        return name, "meta"
    name = xml_declaration(body)
    if name:
        return name, "xml"
    name = prescan(body[:_LATE_META_BYTES])  # a later meta element changes the encoding during the parse (13.2.3.5)
    return (name, "meta") if name else ("", "")


def undeclared(body: bytes) -> tuple[str, str]:
    """The encoding by a broken or late meta element if the bytes agree, else by statistics."""
    hint = _lenient(body)
    if hint and not body.isascii() and _agrees(body, hint):
        return hint, "hint"
    return guess(body, _language(body)), "statistics"


def _lenient(body: bytes) -> str:
    """A label in any word of any meta element that speaks of content or charset, whatever is broken around it."""
    for match in _META.finditer(body[:_LENIENT_BYTES]):
        inside = match[1].lower()
        if b"charset" in inside or b"content" in inside:
            for word in reversed(_WORD.findall(inside)):
                name = from_label(word.rpartition(b"=")[2].decode("latin_1"))
                if name and (b"charset" in inside or name in _MULTIBYTE):
                    return "windows-1252" if name == "x-user-defined" else "utf-8" if _wide(name) else name
    return ""


def _agrees(body: bytes, name: str) -> bool:
    """Whether nearly all of the body's first bytes decode."""
    sample = body[:_LENIENT_BYTES]
    return decoded(sample, name).count("\ufffd") <= 1 + len(sample) // 1000


def _language(body: bytes) -> str:
    match = re.search(rb"<html[^>]{0,300}\slang\s*=\s*[\"']?([A-Za-z]{2,3})", body[:4096], re.IGNORECASE)
    return match[1].decode("ascii").lower() if match else ""


def _utf8(body: bytes) -> str | None:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data" and not body[: error.start].isascii()
        if cut:  # in the middle of a character
            return body.decode("utf-8", "replace")
        return None


def _mostly_wrong(body: bytes) -> bool:
    """Whether a body that claims to be UTF-8 is not: many errors among its non-ASCII characters."""
    text = body.decode("utf-8", "replace")
    wrong = text.count("\ufffd")
    return wrong > 3 and wrong > 0.2 * sum(1 for char in text[:200_000] if char > "\x7f")


def _wide(name: str) -> bool:
    return name.startswith("utf-16") or name == "replacement"
