"""The HTML standard's prescan of a byte stream for its encoding (13.2.3.2), step by step (pure)."""

import re
from typing import Final

from trawl.extractor.encodings import from_label

PRESCAN_BYTES: Final = 1024
_SPACE: Final = b"\t\n\f\r "
_LETTER: Final = re.compile(rb"[A-Za-z]")
_META: Final = re.compile(rb"<meta[\t\n\f\r /]", re.IGNORECASE)
_CONTENT_CHARSET: Final = re.compile(rb"charset[\t\n\f\r ]*", re.IGNORECASE)
_XML: Final = re.compile(rb"<\?xml[^>]*?\bencoding\s*=\s*[\"']([^\"'>]+)[\"']")


def prescan(head: bytes) -> str:  # noqa: C901 - the standard's algorithm, branch by branch
    """The encoding that the first complete meta element with one declares, or empty."""
    at = 0
    while (at := head.find(b"<", at)) >= 0:
        if head.startswith(b"<!--", at):
            end = head.find(b"-->", at + 2)
            if end < 0:
                return ""
            at = end + 3
        elif _META.match(head, at):
            found, at = _meta(head, at + 5)
            if found:
                return found
        elif _LETTER.match(head, at + 1) or (head.startswith(b"</", at) and _LETTER.match(head, at + 2)):
            at = _past_tag_name(head, at)
            while True:
                attribute, at = _attribute(head, at)
                if attribute is None:
                    break
        elif head[at + 1 : at + 2] in (b"!", b"/", b"?"):
            end = head.find(b">", at)
            if end < 0:
                return ""
            at = end + 1
        else:
            at += 1
    return ""


def xml_declaration(head: bytes) -> str:
    """The encoding of an XML declaration at the very start, or empty."""
    match = _XML.match(head[:PRESCAN_BYTES])
    name = from_label(match[1].decode("latin_1")) if match else ""
    return "utf-8" if name.startswith("utf-16") else name


def _past_tag_name(head: bytes, at: int) -> int:
    while at < len(head) and head[at] not in _SPACE and head[at] != ord(">"):
        at += 1
    return at


def _meta(head: bytes, at: int) -> tuple[str, int]:
    """The encoding of one meta element, and where the scan goes on."""
    seen: set[bytes] = set()
    pragma, need_pragma, charset = False, None, ""
    while True:
        attribute, at = _attribute(head, at)
        if attribute is None:
            break
        name, value = attribute
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            pragma = value == b"content-type"
        elif name == b"content" and not charset:
            charset = from_label(_from_content(value))
            need_pragma = True if charset else need_pragma
        elif name == b"charset":
            charset, need_pragma = from_label(value.decode("latin_1")), False
    if at >= len(head) or need_pragma is None or (need_pragma and not pragma) or not charset:
        return "", at
    if charset.startswith("utf-16"):
        return "utf-8", at
    return ("windows-1252" if charset == "x-user-defined" else charset), at


def _from_content(value: bytes) -> str:
    """The charset parameter of a content attribute (HTML 2.6.6)."""
    at = 0
    while match := _CONTENT_CHARSET.search(value, at):
        at = match.end()
        if value[at : at + 1] != b"=":
            continue
        rest = value[at + 1 :].lstrip(_SPACE)
        if rest[:1] in (b'"', b"'"):
            end = rest.find(rest[:1], 1)
            return rest[1:end].decode("latin_1") if end > 0 else ""
        return re.split(rb"[\t\n\f\r ;]", rest, maxsplit=1)[0].decode("latin_1")
    return ""


def _attribute(head: bytes, at: int) -> tuple[tuple[bytes, bytes] | None, int]:
    """The next attribute in lower case, or None at the end of the tag (13.2.3.2, get an attribute)."""
    while at < len(head) and (head[at] in _SPACE or head[at] == ord("/")):
        at += 1
    if at >= len(head) or head[at] == ord(">"):
        return None, at
    start = at
    while at < len(head) and not (head[at] == ord("=") and at > start) and head[at] not in b"\t\n\f\r />":
        at += 1
    name = head[start:at].lower()
    while at < len(head) and head[at] in _SPACE:
        at += 1
    if head[at : at + 1] != b"=":
        return (name, b""), at
    at += 1
    while at < len(head) and head[at] in _SPACE:
        at += 1
    return _value(head, at, name)


def _value(head: bytes, at: int, name: bytes) -> tuple[tuple[bytes, bytes] | None, int]:
    quote = head[at : at + 1]
    if quote in (b'"', b"'"):
        end = head.find(quote, at + 1)
        if end < 0:
            return None, len(head)
        return (name, head[at + 1 : end].lower()), end + 1
    start = at
    while at < len(head) and head[at] not in b"\t\n\f\r >":
        at += 1
    return (name, head[start:at].lower()), at
