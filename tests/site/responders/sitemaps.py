"""Sitemaps (sitemaps.org 0.9), feeds' elder sister: plain, compressed in every confusing way, and very large."""

import gzip
from collections.abc import Iterable, Iterator
from html import escape

from tests.site.message import Reply, Request
from tests.site.model import Page
from tests.site.responders.pages import xml

URLS_PER_SITEMAP = 50_000
_NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


def urlset_text(
    urls: Iterable[str], *, lastmod: str | None = None, priority: float | None = None, cdata: bool = False
) -> str:
    """The text of a sitemap of absolute URLs, all with the same lastmod (W3C date) and priority (0 to 1)."""
    extra = "" if lastmod is None else f"<lastmod>{lastmod}</lastmod>"
    extra += "" if priority is None else f"<priority>{priority}</priority>"
    entries = "".join(f"<url><loc>{_loc(url, cdata=cdata)}</loc>{extra}</url>\n" for url in urls)
    return f"{_XML}<urlset {_NAMESPACE}>\n{entries}</urlset>\n"


def index_text(urls: Iterable[str], *, cdata: bool = False) -> str:
    entries = "".join(f"<sitemap><loc>{_loc(url, cdata=cdata)}</loc></sitemap>\n" for url in urls)
    return f"{_XML}<sitemapindex {_NAMESPACE}>\n{entries}</sitemapindex>\n"


def _loc(url: str, *, cdata: bool) -> str:
    return f"<![CDATA[\n  {url}\n]]>" if cdata else escape(url)


def urlset(*paths: str, lastmod: str | None = None, priority: float | None = None, cdata: bool = False) -> Page:
    """A sitemap of paths of the host that is asked (absolute URLs are left alone)."""
    return lambda request: xml(urlset_text(_absolute(request, paths), lastmod=lastmod, priority=priority, cdata=cdata))


def index(*paths: str, cdata: bool = False) -> Page:
    return lambda request: xml(index_text(_absolute(request, paths), cdata=cdata))


def text_list(*paths: str, content_type: str = "text/plain") -> Page:
    """A text sitemap, or a URL list file: a URL a line."""
    return lambda request: Reply(
        body="".join(f"{url}\n" for url in _absolute(request, paths)).encode(), content_type=content_type
    )


def gz_variants(*paths: str, stem: str = "/sitemap") -> dict[str, Page]:
    """The four ways in which compressed sitemaps arrive (case 21); all hold the same paths.

    A gz body without Content-Encoding; an XML body with Content-Encoding; both; and a gz of a text list.
    """
    labelled = (("Content-Encoding", "gzip"),)

    def octets(request: Request) -> bytes:
        return urlset_text(_absolute(request, paths)).encode()

    def urls(request: Request) -> bytes:
        return "".join(f"{url}\n" for url in _absolute(request, paths)).encode()

    return {
        f"{stem}-file.xml.gz": lambda r: Reply(body=_gz(octets(r)), content_type="application/x-gzip"),
        f"{stem}-coded.xml.gz": lambda r: Reply(body=_gz(octets(r)), content_type="application/xml", headers=labelled),
        f"{stem}-both.xml.gz": lambda r: Reply(
            body=_gz(_gz(octets(r))), content_type="application/x-gzip", headers=labelled
        ),
        f"{stem}-list.txt.gz": lambda r: Reply(body=_gz(urls(r)), content_type="application/gzip"),
    }


def large(prefix: str = "/page/", urls: int = URLS_PER_SITEMAP, *, first: int = 0, compressed: bool = False) -> Page:
    """A sitemap of `urls` generated URLs, made while it is sent (about 4.5 MB); `compressed` is made at once."""

    def responder(request: Request) -> Reply:
        def stream() -> Iterator[bytes]:
            yield f"{_XML}<urlset {_NAMESPACE}>\n".encode()
            for start in range(first, first + urls, 500):
                numbers = range(start, min(start + 500, first + urls))
                yield "".join(f"<url><loc>{request.origin}{prefix}{n}</loc></url>\n" for n in numbers).encode()
            yield b"</urlset>\n"

        if compressed:
            return Reply(body=_gz(b"".join(stream())), content_type="application/gzip")
        return Reply(content_type="application/xml", stream=stream)

    return responder


def large_index(sitemaps: int = 30, urls_each: int = URLS_PER_SITEMAP, *, stem: str = "/big/") -> dict[str, Page]:
    """An index at `stem`index.xml of `sitemaps` sitemaps of distinct URLs `/page/N` (case 24)."""
    paths = [f"{stem}{number}.xml" for number in range(sitemaps)]
    parts = {path: large(urls=urls_each, first=number * urls_each) for number, path in enumerate(paths)}
    return {f"{stem}index.xml": index(*paths), **parts}


def recursive(stem: str = "/loop/") -> dict[str, Page]:
    """Two indexes that name each other, and one that names itself."""
    first, second = f"{stem}a.xml", f"{stem}b.xml"
    return {first: index(first, second), second: index(first)}


def broken(*paths: str) -> Page:
    """A sitemap that ends in the middle of an element, after all its paths."""
    return lambda request: xml(urlset_text(_absolute(request, paths)).removesuffix("</urlset>\n") + "<url><loc>http")


def entity_bomb() -> Reply:
    """A billion laughs: entities that expand a thousand-millionfold."""
    levels = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">\n' for n in range(1, 10))
    return xml(
        f'<?xml version="1.0"?>\n<!DOCTYPE urlset [\n<!ENTITY l0 "ha">\n{levels}]>\n'
        f"<urlset {_NAMESPACE}><url><loc>http://x.test/&l9;</loc></url></urlset>\n"
    )


def external_entity(target: str = "file:///etc/hostname") -> Reply:
    """An external entity in a loc; a safe reader never opens it."""
    return xml(
        f'<?xml version="1.0"?>\n<!DOCTYPE urlset [<!ENTITY secret SYSTEM "{target}">]>\n'
        f"<urlset {_NAMESPACE}><url><loc>http://x.test/&secret;</loc></url></urlset>\n"
    )


def _absolute(request: Request, paths: Iterable[str]) -> list[str]:
    return [path if "://" in path else request.origin + path for path in paths]


def _gz(body: bytes) -> bytes:
    return gzip.compress(body, 6, mtime=0)
