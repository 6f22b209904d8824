"""The bundled demo site: some 25 pages about an imaginary product, so that `trawl crawl` works without a network.

It has what a crawl should meet: a sitemap, a feed, robots.txt with a closed path, a redirect, a dead link, a link to
another host, an exact duplicate (a print version), a page in German and one in Latin-1 that only its meta element
declares. The texts are in `demo_site/`, one file a page; everything else about it is here.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from importlib import resources
from types import TracebackType
from typing import Self, cast

_FOLDERS = frozenset({"docs", "news", "de", "admin"})
"""Files of these names are the index page of a folder; `docs_api.html` is `/docs/api`."""

_FIELD = re.compile(r"^<!-- (\w+): (.*?) -->\n", re.MULTILINE)
_REQUEST_HEAD_BYTES_MAX = 16 * 1024
_IDLE_SECONDS_MAX = 60.0
_NEWS = (
    ("/news/first-winter", 1_775_865_600),
    ("/news/release-2-1", 1_772_409_600),
    ("/news/why-gaps", 1_763_596_800),
)
"""Paths with the time of publication, newest first, in seconds since 1970."""

_MOVED = {"/docs/getting-started": "/docs/quickstart", "/docs": "/docs/"}
_REASONS = {200: "OK", 301: "Moved Permanently", 304: "Not Modified", 404: "Not Found", 405: "Method Not Allowed"}


@dataclass(frozen=True, slots=True)
class DemoReply:
    """One response of the demo site, before it is put on a wire."""

    status: int
    body: bytes
    content_type: str = "text/html; charset=utf-8"
    location: str | None = None

    @property
    def etag(self) -> str:
        """A strong validator of the body."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:16]}"'


@dataclass(frozen=True, slots=True)
class _Article:
    title: str
    description: str
    language: str
    charset: str
    content: str


def demo_reply(path: str, origin: str) -> DemoReply:
    """What the demo site answers to a GET of `path` (without query); `origin` is its own, as `http://127.0.0.1:8000`."""
    if path in _MOVED:
        return DemoReply(301, b"<h1>Moved</h1>", location=_MOVED[path])
    if path == "/robots.txt":
        rules = f"User-agent: *\nDisallow: /admin/\n\nSitemap: {origin}/sitemap.xml\n"
        return DemoReply(200, rules.encode(), "text/plain; charset=utf-8")
    if path == "/sitemap.xml":
        return DemoReply(200, _sitemap(origin).encode(), "application/xml")
    if path == "/feed.xml":
        return DemoReply(200, _feed(origin).encode(), "application/rss+xml")
    article = _articles().get(path)
    if article is None:
        return DemoReply(404, b"<!doctype html><title>Not found</title><h1>There is no such page</h1>")
    # The page in Latin-1 says so in its markup only, as many old pages do.
    content_type = "text/html; charset=utf-8" if article.charset == "utf-8" else "text/html"
    return DemoReply(200, _markup(article).encode(article.charset), content_type)


def demo_paths() -> list[str]:
    """The paths of all HTML pages, the closed one included."""
    return sorted(_articles())


class DemoSite:
    """Serves the demo site on loopback: `async with DemoSite() as site: site.url`.

    On the given port, so that a second crawl finds the same pages again; if that is taken, or 0, on any free one.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await self._bound(self._port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None, "the demo site was never entered"
        self._server.close()
        serving = dict(self._connections)
        for writer in serving.values():
            writer.close()
        await asyncio.gather(*serving)
        await self._server.wait_closed()

    async def _bound(self, port: int) -> asyncio.Server:
        try:
            return await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_REQUEST_HEAD_BYTES_MAX)
        except OSError:
            if not port:
                raise
            return await self._bound(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, request after request, until the client leaves, idles or sends what is not HTTP."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._connections[task] = writer
        try:
            while not writer.is_closing():
                async with asyncio.timeout(_IDLE_SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_respond(head, self.url))
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, TimeoutError, ValueError):
            pass  # the end of a connection is no event for a demo
        finally:
            del self._connections[task]
            writer.close()


def _respond(head: bytes, origin: str) -> bytes:
    """The bytes of a response to the head of a request.

    Raises ValueError if it is not one.
    """
    request_line, *lines = head.decode("latin-1").split("\r\n")
    method, target, _version = request_line.split(" ")
    fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    reply = demo_reply(target.partition("?")[0], origin) if method in {"GET", "HEAD"} else DemoReply(405, b"")
    if reply.status == 200 and fields.get("if-none-match") == reply.etag:
        return _head(reply, 304)
    return _head(reply, reply.status) + (b"" if method == "HEAD" else reply.body)


def _head(reply: DemoReply, status: int) -> bytes:
    lines = [f"HTTP/1.1 {status} {_REASONS[status]}"]
    if status != 304:
        lines += [f"Content-Type: {reply.content_type}", f"Content-Length: {len(reply.body)}"]
    if reply.status == 200:
        lines.append(f"ETag: {reply.etag}")
    if reply.location is not None:
        lines.append(f"Location: {reply.location}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


@cache
def _articles() -> Mapping[str, _Article]:
    """All pages by path; the print version is the quick start once more, byte by byte."""
    folder = resources.files("trawl") / "demo_site"
    names = (file.name for file in folder.iterdir() if file.name.endswith(".html") and not file.name.startswith("_"))
    found = {_path(name): _read((folder / name).read_text("utf-8")) for name in names}
    found["/docs/quickstart/print"] = found["/docs/quickstart"]
    return found


def _path(name: str) -> str:
    stem = name.removesuffix(".html")
    if stem == "index":
        return "/"
    return f"/{stem}/" if stem in _FOLDERS else "/" + stem.replace("_", "/", 1)


def _read(text: str) -> _Article:
    fields = dict(_FIELD.findall(text))
    return _Article(
        title=fields["title"],
        description=fields["description"],
        language=fields.get("language", "en"),
        charset=fields.get("charset", "utf-8"),
        content=_FIELD.sub("", text).strip(),
    )


@cache
def _layout() -> str:
    return (resources.files("trawl") / "demo_site" / "_layout.html").read_text("utf-8")


def _markup(article: _Article) -> str:
    return _layout().format(
        title=article.title,
        description=article.description,
        language=article.language,
        charset=article.charset,
        content=article.content,
    )


def _sitemap(origin: str) -> str:
    listed = [path for path in demo_paths() if not path.startswith("/admin/")]
    entries = "".join(f"<url><loc>{origin}{path}</loc><lastmod>2026-04-11</lastmod></url>\n" for path in listed)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    )


def _feed(origin: str) -> str:
    items = "".join(
        f"<item><title>{_articles()[path].title}</title><link>{origin}{path}</link>"
        f"<description>{_articles()[path].description}</description>"
        f"<pubDate>{formatdate(seconds, usegmt=True)}</pubDate></item>\n"
        for path, seconds in _NEWS
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0"><channel><title>News of Heron</title>'
        f"<link>{origin}/news/</link><description>A logbook for water</description>\n{items}</channel></rss>\n"
    )
