"""What a body is, by its media type and its first bytes (pure).

A label alone is not believed: servers send archives and images as text/html, and sitemaps as text/plain. The first
bytes are looked at as the WHATWG MIME Sniffing standard does (sections 6.1 and 7.1).
"""

import re
from enum import StrEnum
from typing import Final

_HEAD_BYTES: Final = 2048
_MAGIC: Final = (
    (b"%PDF-", "pdf"), (b"\x89PNG", "image"), (b"GIF8", "image"), (b"\xff\xd8\xff", "image"), (b"RIFF", "image"),
    (b"PK\x03\x04", "archive"), (b"\x1f\x8b", "gzip"), (b"Rar!", "archive"), (b"7z\xbc\xaf", "archive"),
    (b"\x00\x00\x01\x00", "image"),
    (b"OggS", "media"), (b"ID3", "media"), (b"\x1aE\xdf\xa3", "media"), (b"wOF", "font"),
    (b"\x7fELF", "program"), (b"MZ\x90", "program"), (b"BZh", "archive"), (b"\xfd7zXZ", "archive"),
)  # fmt: skip
_BINARY: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_ROOT: Final = re.compile(
    rb"^(?:\s|\xef\xbb\xbf|<\?[^>]*>|<!--.*?-->|<!DOCTYPE[^>\[]*(?:\[.*?\])?[^>]*>)*<([A-Za-z_][\w.:-]*)", re.DOTALL
)
_HTML_TYPES: Final = frozenset(
    {"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml", "text/x-server-parsed-html"}
)
_XML_TYPE: Final = re.compile(r"^(?:text|application)/(?:.+\+)?xml$")
_URL_LINE: Final = re.compile(rb"\s*https?://\S+\s*$")


class Media(StrEnum):
    """The readers of bodies."""

    HTML = "html"
    TEXT = "text"
    MARKDOWN = "markdown"
    SITEMAP = "sitemap"
    FEED = "feed"
    URL_LIST = "url_list"
    BINARY = "binary"
    UNSUPPORTED = "unsupported"


_PACKED_TYPES: Final = frozenset({"application/gzip", "application/x-gzip", "application/x-gunzip"})


def media_type(content_type: str | None) -> str:
    """The media type of a Content-Type header in lower case, without parameters."""
    return (content_type or "").partition(";")[0].strip().lower()


def sniff_media(body: bytes, content_type: str | None) -> Media:
    """The reader for a body; gzip around it must have been taken off."""
    kind = media_type(content_type)
    if kind in _PACKED_TYPES:
        kind = ""  # it names what was around the body
    head = body[:_HEAD_BYTES]
    if _is_binary(head):
        return Media.BINARY
    root = root_element(head)
    if root in ("urlset", "sitemapindex"):
        return Media.SITEMAP
    if root in ("rss", "feed", "rdf"):
        return Media.FEED
    if kind in _HTML_TYPES or root == "html":
        return Media.HTML
    if kind in ("text/markdown", "text/x-markdown"):
        return Media.MARKDOWN
    if kind == "text/plain":
        return Media.HTML if head.lstrip()[:14].lower().startswith(b"<!doctype html") else Media.TEXT
    if kind in ("", "application/octet-stream", "unknown/unknown") or _XML_TYPE.match(kind):
        return Media.HTML if root else Media.UNSUPPORTED if kind else Media.TEXT
    return Media.UNSUPPORTED


def root_element(head: bytes) -> str:
    """The local name of the first element in lower case, prolog skipped; empty if the text does not begin with one."""
    match = _ROOT.match(head)
    return match[1].rpartition(b":")[2].decode("latin_1").lower() if match else ""


def is_url_list(body: bytes) -> bool:
    """Whether each of the first lines is a URL (or a comment)."""
    lines = [line for line in body[:8192].splitlines()[:50] if line.strip() and not line.lstrip().startswith(b"#")]
    if len(body) > 8192 and len(lines) > 1:
        lines.pop()  # it may be cut
    return bool(lines) and all(_URL_LINE.match(line) for line in lines)


def _is_binary(head: bytes) -> bool:
    if head[:2] in (b"\xfe\xff", b"\xff\xfe"):
        return False  # UTF-16 with a byte order mark
    return head.startswith(tuple(magic for magic, _ in _MAGIC)) or len(_BINARY.findall(head)) > 0.01 * len(head)
