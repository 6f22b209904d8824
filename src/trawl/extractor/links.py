"""The links of a page: resolved as browsers do, deduplicated, with what each says about itself (pure).

URLs are joined by the WHATWG standard to the first `<base href>` (itself resolved against the final URL). Only http and
https are kept; fragments are dropped, and a link that is only a fragment is none.
"""

import re
from dataclasses import dataclass
from typing import Final

from trawl.errors import InvalidUrlError
from trawl.extractor.dates import http_refresh_target
from trawl.extractor.tree import Node, Page
from trawl.kinds import Found, Purpose
from trawl.records import Link
from trawl.url import URL_CHARS_MAX, join

_FEED_TYPES: Final = frozenset({"application/rss+xml", "application/atom+xml", "application/rdf+xml"})
_FOR_CRAWLERS: Final = frozenset({"robots", "tdm-reservation", "tdm-policy"})
_AGENT: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
"""What may be the name of a crawler in a meta element: scholarly pages have hundreds of others, as citation_author."""
_STATEMENTS_MAX: Final = 100
"""Meta elements for all crawlers that are looked at, and as many that may be for one."""
_STATEMENT_CHARS_MAX: Final = 2_000
"""So much of a meta element is read."""
_NOT_A_PAGE: Final = ("mailto:", "javascript:", "tel:", "data:", "sms:", "about:", "blob:", "whatsapp:", "callto:")
_FOLLOWED_RELS: Final = frozenset({"next", "prev", "alternate", "amphtml"})


class Resolver:
    """Resolves hrefs of one page and remembers them, since navigation repeats."""

    __slots__ = ("_known", "base")

    def __init__(self, final_url: str, bases: list[Node]) -> None:
        self._known: dict[str, str] = {}
        self.base = final_url
        for node in bases:
            href = node.get("href").strip()
            if href:  # only the first base with an href counts (HTML 4.2.3)
                self.base = self(href) or final_url
                self._known.clear()
                break

    def __call__(self, href: str) -> str:
        """The absolute http or https URL, fragment included; empty if there is none."""
        found = self._known.get(href)
        if found is None:
            found = self._known[href] = self._resolved(href)
        return found

    def _resolved(self, href: str) -> str:
        if len(href) > 4 * URL_CHARS_MAX or href.lstrip()[:12].lower().startswith(_NOT_A_PAGE):
            return ""
        try:
            url = join(self.base, href)
        except InvalidUrlError:
            return ""
        return url if url.startswith(("https://", "http://")) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLinks:
    """What a page points at."""

    links: tuple[Link, ...] = ()
    """Links in document order, each URL once, with the words of its first anchor; depth is not set."""
    canonical: str = ""
    """The page's own canonical URL, or empty."""
    feeds: tuple[str, ...] = ()
    """RSS and Atom feeds that the page names."""
    alternates: tuple[tuple[str, str], ...] = ()
    """hreflang and URL of each translation."""
    refresh: str = ""
    """The target of a meta refresh, or empty."""
    truncated: bool = False
    """Whether the cap on links was reached."""


def page_links(page: Page, resolver: Resolver, *, links_max: int, anchor_chars_max: int) -> PageLinks:
    """All links of a page: anchors and areas first, then those of the head."""
    found: dict[str, Link] = {}
    for tag in ("a", "area"):
        for node in page.all(tag):
            if len(found) >= links_max:
                break
            _add_anchor(node, resolver, anchor_chars_max, found)
    head = _Head(resolver)
    for node in page.all("link"):
        head.read(node, found, links_max)
    refresh = _refresh(page, resolver)
    if refresh:
        found.setdefault(refresh, Link(url=refresh, found=Found.REDIRECT))
    return PageLinks(
        links=tuple(found.values())[:links_max],
        canonical=head.canonical,
        feeds=tuple(head.feeds),
        alternates=tuple(head.alternates),
        refresh=refresh,
        truncated=len(found) >= links_max,
    )


def _add_anchor(node: Node, resolver: Resolver, anchor_chars_max: int, found: dict[str, Link]) -> None:
    href = node.attrs.get("href")
    if not href or href[0] == "#":
        return
    url = resolver(href)
    if not url:
        return
    if "#" in url:
        url = url[: url.index("#")]
    known = found.get(url)
    if known is not None and known.anchor:
        return
    text = (_anchor_text(node, anchor_chars_max) or node.get("title").strip())[:anchor_chars_max]
    if known is not None and not text:
        return
    rel = node.attrs.get("rel")
    found[url] = Link(url=url, anchor=text, rel=tuple(rel.lower().split()) if rel else ())


def _anchor_text(node: Node, chars_max: int) -> str:
    children = node.children
    if len(children) == 1 and type(children[0]) is str:
        return " ".join(children[0][: 8 * chars_max].split())
    text = " ".join(node.text().split())
    if text:
        return text
    for child in children:
        if type(child) is Node and child.tag == "img":
            return child.get("alt").strip()
    return ""


class _Head:
    """Reads the page's link elements."""

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.canonical = ""
        self.feeds: list[str] = []
        self.alternates: list[tuple[str, str]] = []

    def read(self, node: Node, found: dict[str, Link], links_max: int) -> None:
        rels = frozenset(node.get("rel").lower().split())
        href = node.get("href").strip()
        if not rels or not href or len(found) >= links_max:
            return
        if "canonical" in rels:
            self._canonical(href, found)
        elif not rels.isdisjoint(_FOLLOWED_RELS) and "stylesheet" not in rels:
            self._alternate(node, href, rels, found)

    def _canonical(self, href: str, found: dict[str, Link]) -> None:
        url = self.resolver(href).partition("#")[0]
        if url and not self.canonical:
            self.canonical = url
            found.setdefault(url, Link(url=url, found=Found.CANONICAL))

    def _alternate(self, node: Node, href: str, rels: frozenset[str], found: dict[str, Link]) -> None:
        url = self.resolver(href).partition("#")[0]
        if not url:
            return
        kind = node.get("type").lower().partition(";")[0].strip()
        language = node.get("hreflang").strip()
        if kind in _FEED_TYPES:
            self.feeds.append(url)
            found[url] = Link(url=url, purpose=Purpose.FEED, found=Found.FEED, rel=tuple(sorted(rels)))
        elif language and len(self.alternates) < 200:
            self.alternates.append((language, url))
            found.setdefault(url, Link(url=url, found=Found.ALTERNATE, rel=tuple(sorted(rels))))
        elif not kind and not rels.isdisjoint({"next", "prev"}):
            found.setdefault(url, Link(url=url, rel=tuple(sorted(rels))))


def _refresh(page: Page, resolver: Resolver) -> str:
    for node in page.all("meta"):
        if node.get("http-equiv").lower() == "refresh":
            target = http_refresh_target(node.get("content"))
            url = resolver(target).partition("#")[0] if target else ""
            if url and url != resolver.base.partition("#")[0]:
                return url
    return ""


def meta_statements(page: Page) -> tuple[tuple[str, str], ...]:
    """Meta elements that may say something to a crawler, each a name, which may be a crawler's own, and its content.

    Those for all crawlers come first, so that no number of others pushes one out.
    """
    named = [(node.get("name").strip().lower(), node.get("content").strip()) for node in page.all("meta")]
    found = [(name, content[:_STATEMENT_CHARS_MAX]) for name, content in named if name and content]
    ours = [pair for pair in found if pair[0] in _FOR_CRAWLERS]
    others = [pair for pair in found if pair[0] not in _FOR_CRAWLERS and _AGENT.fullmatch(pair[0])]
    return (*ours[:_STATEMENTS_MAX], *others[:_STATEMENTS_MAX])
