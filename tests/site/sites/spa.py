"""Sites whose text comes with scripts: whole, by half, and not at all; and one whose scripts get no answer."""

from random import Random

from tests.site.model import Site
from tests.site.responders.pages import html

WORDS = "The harbour of the small town opens early, boats leave before dawn, and the market follows at eight. "
PAGES = 12
_NOUNS = (
    WORDS + "A river, some hills, two bridges and an old mill of grey stone stand where roads cross below trees"
).split()
_APP = "<script>/* the application */</script>"


def paragraph(host: str, number: int, part: str) -> str:
    """Text of one page that no other page has."""
    draw = Random(f"{host} {number} {part}")
    sentences = [" ".join(draw.choices(_NOUNS, k=9)) for _ in range(12)]
    return " ".join(f"{sentence.capitalize()}." for sentence in sentences)


def spa(host: str, pages: int = PAGES) -> Site:
    """Every page is the same shell; an application would fill it by its path, with links to the others."""
    shell = f'<!doctype html><html lang=en><title>App</title><body><div id="root"></div>{_APP}</body></html>'
    return Site(host, {"/": shell, **{f"/{number}": shell for number in range(pages)}})


def half(host: str, pages: int = PAGES) -> Site:
    """Pages with half of their text; an application adds the other half below."""
    made = {
        f"/{number}": f"<!doctype html><html lang=en><title>Half {number}</title><body><main>"
        f'<p>{paragraph(host, number, "static")}</p><div id="root"></div></main>{_APP}</body></html>'
        for number in range(pages)
    }
    links = "".join(f'<a href="/{number}">page {number}</a> ' for number in range(pages))
    return Site(host, {"/": f"<!doctype html><title>Half</title><p>{WORDS * 6}</p>{links}{_APP}", **made})


def scripted(host: str, pages: int = PAGES) -> Site:
    """Pages with all of their text, and scripts that add nothing."""
    made = {
        f"/{number}": html(f"Page {number}", paragraph(host, number, "whole"), head=_APP) for number in range(pages)
    }
    return Site(host, {"/": html("Start", WORDS * 6, head=_APP, links=list(made)), **made})
