"""One site for benchmarks: all archived pages, or generated ones of the same sizes, held compressed in memory."""

import gzip
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.site.message import Reply, Request
from tests.site.model import Page, Site
from tests.site.responders.prose import paragraph, sentences, title
from tests.site.sites.archive import DATA_SET

LINKS_PER_PAGE = 10
_ROBOTS = Reply(body=b"User-agent: *\nAllow: /\n", content_type="text/plain; charset=utf-8")
_BASE = re.compile(rb"<base\b[^>]*>", re.IGNORECASE)
_BODY = re.compile(rb"<body\b[^>]*>", re.IGNORECASE)
_LINK = re.compile(
    rb"""(<(?:a|area|link|iframe|frame|form)\b[^>]*?\s(?:href|src|action)\s*=\s*)("[^"]*"|'[^']*'|[^\s"'>]+)""",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(rb"\s*(?:[a-z][a-z0-9+.-]*:|//|#|$)", re.IGNORECASE)


def onesite(data: Path, host: str = "onesite.test", *, pages_max: int | None = None) -> Site:
    """The 1,497 archived pages (mean 278 kB) as `/` and `/p/0001` to `/p/1496`.

    Their own links are made to lead off the site, so that what is crawled are the ten links that each page gets after
    its body tag, which reach all pages from `/`. Takes about 10 seconds and 100 MB: compressed bodies are kept.
    """
    files = sorted((data / DATA_SET / "html").glob("*.html.gz"))[:pages_max]
    if not files:
        raise FileNotFoundError(f"no archived pages in {data / DATA_SET}; set TRAWL_DATA, or use onesite_generated")
    return _site(host, (_off_site(gzip.decompress(file.read_bytes()), n) for n, file in enumerate(files)), len(files))


def onesite_generated(n: int = 2_000, host: str = "onesite.test") -> Site:
    """`n` generated pages, the sizes spread as the archived ones' (median 180 kB, mean 278 kB): an article in heavy
    boilerplate (scripts, styles, menus, related items), linked in the same way."""
    return _site(host, (_generated(number) for number in range(n)), n)


def path_of(number: int) -> str:
    return f"/p/{number:04d}" if number else "/"


def _site(host: str, bodies: Iterable[bytes], count: int) -> Site:
    pages: dict[str, Page] = {"/robots.txt": _ROBOTS}
    for number, body in enumerate(bodies):
        pages[path_of(number)] = _page(gzip.compress(_with_links(body, number, count), 6, mtime=0))
    return Site(host, pages)


def _page(compressed: bytes) -> Page:
    """Compressed as it is kept to those who accept gzip, which is the fast path; decompressed to others."""
    reply = Reply(variants={"gzip": compressed})

    def responder(request: Request) -> Reply:
        if b"gzip" in request.head:
            return reply
        return Reply(body=gzip.decompress(compressed))

    return responder


def _with_links(body: bytes, number: int, count: int) -> bytes:
    """The page with links to ten others just after its body tag, or at its end if it has none."""
    targets = [(number * LINKS_PER_PAGE + step) % count for step in range(1, LINKS_PER_PAGE + 1)]
    items = "".join(f'<li><a href="{path_of(target)}">Page {target}</a></li>' for target in targets)
    menu = f'<nav class="bench-nav"><ul>{items}</ul></nav>'.encode()
    found = _BODY.search(body)
    at = found.end() if found else len(body)
    return body[:at] + menu + body[at:]


def _off_site(body: bytes, number: int) -> bytes:
    """The page with every relative link made absolute on a host of its own, and no base that moves the new ones."""
    origin = b"https://origin-%04d.example/" % number

    def rewritten(match: re.Match[bytes]) -> bytes:
        value = match[2]
        quote = value[:1] if value[:1] in b"\"'" else b""
        link = value.strip(quote) if quote else value
        if _ABSOLUTE.match(link):
            return match[0]
        return match[1] + (quote or b'"') + origin + link.strip().lstrip(b"/") + (quote or b'"')

    return _LINK.sub(rewritten, _BASE.sub(b"", body))


def _generated(number: int) -> bytes:
    pick = random.Random(number)
    size = min(int(pick.lognormvariate(12.1, 0.95)), 3_000_000)
    article = "".join(f"<p>{paragraph(f'{number}/{part}')}</p>\n" for part in range(pick.randint(5, 40)))
    heading = title(number)
    start = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{heading} | The Daily Generator</title>'
        f'<meta name="description" content="{next(sentences(number))}">'
    )
    middle = f'<main><article><h1>{heading}</h1><p class="byline">By a machine</p>\n{article}</article></main>'
    filler = _boilerplate(pick, max(0, size - len(start) - len(middle)))
    return f"{start}{next(filler)}</head><body>{next(filler)}{middle}{next(filler)}</body></html>\n".encode()


def _boilerplate(pick: random.Random, characters: int) -> Iterator[str]:
    """Half of it in styles and scripts of the head, a tenth in menus before, the rest in related items after."""
    yield "".join(_rules(pick, characters // 2))
    yield "<header><nav><ul>" + "".join(_menu(pick, characters // 10)) + "</ul></nav></header>"
    related = "".join(_related(pick, characters * 4 // 10))
    yield f"<aside>{related}</aside><footer><p>All rights reserved.</p></footer>"


def _rules(pick: random.Random, characters: int) -> Iterator[str]:
    while characters > 0:
        names = [f"c{pick.randrange(1 << 30):x}" for _ in range(40)]
        style = "".join(f".{name}{{margin:0 {pick.randrange(40)}px;display:flex}}" for name in names)
        script = "".join(f'window["{name}"]=function(a){{return a+{pick.randrange(9999)}}};' for name in names)
        text = f"<style>{style}</style><script>{script}</script>"
        characters -= len(text)
        yield text


def _menu(pick: random.Random, characters: int) -> Iterator[str]:
    while characters > 0:
        name = f"section-{pick.randrange(1 << 20)}"
        text = f'<li class="menu-item"><a href="https://elsewhere.example/{name}">{name}</a></li>'
        characters -= len(text)
        yield text


def _related(pick: random.Random, characters: int) -> Iterator[str]:
    while characters > 0:
        seed = pick.randrange(1 << 20)
        text = (
            f'<div class="card"><a href="https://elsewhere.example/story/{seed}"><img src="https://elsewhere.example/'
            f'{seed}.jpg" alt=""><h3>{title(seed)}</h3></a><span class="share">Share</span><svg viewBox="0 0 9 9">'
            f'<path d="M{pick.random():.9f} {pick.random():.9f}L{pick.random():.9f} {pick.random():.9f}"/></svg></div>'
        )
        characters -= len(text)
        yield text
