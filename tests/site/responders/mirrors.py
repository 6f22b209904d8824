"""The same text at other URLs and hosts, and nearly the same text."""

import random
from collections.abc import Iterable

from tests.site.message import Reply
from tests.site.model import Page, Site
from tests.site.responders.pages import html
from tests.site.responders.prose import paragraph, title


def article(seed: int | str, paragraphs: int = 6, *, links: Iterable[str] = (), head: str = "") -> Reply:
    """A page with a few hundred words that depend on the seed alone."""
    return html(title(seed), *(paragraph(f"{seed}/{part}") for part in range(paragraphs)), links=links, head=head)


def near_duplicate(seed: int | str, changed: float, paragraphs: int = 6, *, variant: int = 1) -> Reply:
    """The article with a share of its words replaced, the same ones for the same variant; at least one if over 0."""
    words = [paragraph(f"{seed}/{part}").split() for part in range(paragraphs)]
    places = [(row, column) for row, line in enumerate(words) for column in range(len(line))]
    count = max(1, round(changed * len(places))) if changed else 0
    for row, column in random.Random(f"{seed}/{variant}").sample(places, count):
        words[row][column] = f"word{row}x{column}v{variant}"
    return html(title(seed), *(" ".join(line) for line in words))


def same_text_elsewhere(seed: int | str = 1) -> dict[str, Page]:
    """One article at five paths, in other clothes: other case, a query, a print version, other markup around it."""
    text = article(seed)
    body = text.body.decode()
    dressed = body.replace("<main>", "<header>The Daily Mirror</header><nav><a href='/'>Home</a></nav><main>")
    return {
        "/article": text,
        "/ARTICLE": text,
        "/article?utm_source=mail": text,
        "/article/print": dressed.replace("</main>", "</main><footer>Printed for you</footer>"),
        "/article/spaced": body.replace(" ", "  \n"),
    }


def mirror_sites(*hosts: str, pages: int = 5) -> list[Site]:
    """Hosts with the same pages at the same paths, each linking to its own."""
    paths = [f"/text/{number}" for number in range(pages)]
    return [Site(host, {"/": html("Index", links=paths), **{path: article(path) for path in paths}}) for host in hosts]
