"""Well-behaved replies."""

from collections.abc import Iterable
from html import escape

from tests.site.encodings import ALL_CODINGS, encoded
from tests.site.message import Reply


def html(
    title: str, *paragraphs: str, links: Iterable[str] = (), head: str = "", language: str = "en", status: int = 200
) -> Reply:
    """A whole HTML page; `paragraphs` and `links` are escaped, `head` is markup for the head element."""
    body = "".join(f"<p>{escape(text)}</p>\n" for text in paragraphs)
    items = "".join(f'<li><a href="{escape(link)}">{escape(link)}</a></li>\n' for link in links)
    listing = f"<ul>\n{items}</ul>\n" if items else ""
    return Reply(
        status,
        (
            f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f"{head}</head>\n<body><main><h1>{escape(title)}</h1>\n{body}{listing}</main></body></html>\n"
        ).encode(),
    )


def text(body: str, content_type: str = "text/plain; charset=utf-8", status: int = 200) -> Reply:
    return Reply(status, body.encode(), content_type)


def xml(body: str | bytes, content_type: str = "application/xml") -> Reply:
    return Reply(200, body.encode() if isinstance(body, str) else body, content_type)


def content(body: bytes, content_type: str | None = "text/html; charset=utf-8") -> Reply:
    return Reply(200, body, content_type)


def empty(status: int = 200) -> Reply:
    return Reply(status, b"")


def negotiated(reply: Reply, *codings: str) -> Reply:
    """The reply in the first of `codings` (default: br, zstd, gzip, deflate) that the request accepts."""
    return Reply(reply.status, reply.body, reply.content_type, reply.headers, codings=codings or ALL_CODINGS)


def encoded_as(reply: Reply, *codings: str, declared: str | None = None) -> Reply:
    """The body encoded by all `codings` in turn, whatever the request accepts; `declared` lies about it ("" = none)."""
    body = reply.body
    for coding in codings:
        body = encoded(body, coding)
    label = ", ".join(codings) if declared is None else declared
    headers = (*reply.headers, ("Content-Encoding", label)) if label else reply.headers
    return Reply(reply.status, body, reply.content_type, headers)


def validated(reply: Reply, etag: str | None = None, last_modified: str | None = None) -> Reply:
    """The reply with validators; a conditional request with a matching one is answered 304."""
    return Reply(reply.status, reply.body, reply.content_type, reply.headers, etag=etag, last_modified=last_modified)
