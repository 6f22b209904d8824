"""RSS 2.0, RSS 1.0 and Atom (RFC 4287) feeds."""

from collections.abc import Sequence
from email.utils import formatdate
from html import escape

from tests.site.message import Reply, Request
from tests.site.model import Page
from tests.site.responders.pages import xml

_FIRST_SECONDS = 1_767_225_600  # 2026-01-01T00:00:00Z; each entry is a day older than the one before
_DAY_SECONDS = 86_400


def rss(*paths: str, cdata: bool = False, guid_only: bool = False) -> Page:
    """RSS 2.0 of paths of the host that is asked; `guid_only` gives permalinks in guid instead of link."""

    def responder(request: Request) -> Reply:
        items = "".join(
            f"<item><title>Entry {n}</title>{_link(url, cdata=cdata, guid_only=guid_only)}"
            f"<pubDate>{formatdate(_FIRST_SECONDS - n * _DAY_SECONDS)}</pubDate></item>\n"
            for n, url in enumerate(_absolute(request, paths))
        )
        return xml(
            f'<?xml version="1.0"?>\n<rss version="2.0"><channel><title>Feed of {request.host}</title>'
            f"<link>{request.origin}/</link><description>News</description>\n{items}</channel></rss>\n",
            "application/rss+xml",
        )

    return responder


def atom(*paths: str, relative: bool = False) -> Page:
    """Atom of paths; `relative` gives them against an xml:base."""

    def responder(request: Request) -> Reply:
        urls = list(paths) if relative else _absolute(request, paths)
        entries = "".join(
            f'<entry><title>Entry {n}</title><id>urn:entry:{n}</id><link rel="alternate" href="{escape(url)}"/>'
            f'<link rel="replies" href="{request.origin}/replies/{n}"/>'
            f"<updated>2026-01-{28 - n % 28:02d}T12:00:00Z</updated></entry>\n"
            for n, url in enumerate(urls)
        )
        return xml(
            f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" '
            f'xml:base="{request.origin}/"><title>Feed</title><id>{request.origin}/</id>'
            f'<link rel="self" href="{request.url}"/>\n{entries}</feed>\n',
            "application/atom+xml",
        )

    return responder


def rdf(*paths: str) -> Page:
    """RSS 1.0."""

    def responder(request: Request) -> Reply:
        items = "".join(
            f'<item rdf:about="{escape(url)}"><title>Entry</title><link>{escape(url)}</link></item>\n'
            for url in _absolute(request, paths)
        )
        return xml(
            '<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
            f'xmlns="http://purl.org/rss/1.0/"><channel rdf:about="{request.origin}/"><title>Feed</title></channel>\n'
            f"{items}</rdf:RDF>\n",
            "application/rdf+xml",
        )

    return responder


def _link(url: str, *, cdata: bool, guid_only: bool) -> str:
    text = f"<![CDATA[{url}]]>" if cdata else escape(url)
    return f'<guid isPermaLink="true">{text}</guid>' if guid_only else f"<link>{text}</link>"


def _absolute(request: Request, paths: Sequence[str]) -> list[str]:
    return [path if "://" in path else request.origin + path for path in paths]
