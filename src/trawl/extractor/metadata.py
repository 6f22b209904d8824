"""What a page says about itself: title, author, dates, language, site, description, images, tags, licence (pure).

For each field the sources are asked in the order of their reliability: structured data, then OpenGraph and meta
elements, then the page's own elements.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from trawl.extractor.dates import iso_date
from trawl.extractor.tree import Page

_ARTICLES: Final = (
    "Article", "NewsArticle", "BlogPosting", "TechArticle", "ScholarlyArticle", "Report", "DiscussionForumPosting",
    "Product", "Recipe", "Event", "JobPosting", "HowTo", "QAPage", "Question", "Book", "Movie", "VideoObject",
    "Course", "SoftwareApplication", "Review", "WebPage", "ItemPage", "AboutPage", "FAQPage", "CollectionPage",
)  # fmt: skip
_LANGUAGE: Final = re.compile(r"^([A-Za-z]{2,3})(?:[-_]([A-Za-z]{4}))?(?:[-_]([A-Za-z]{2}|\d{3}))?\b")
_TITLE_SPLIT: Final = re.compile(r"\s+[|\u2013—·•»\u203a:-]\s+|\s*[|»]\s*")
_TITLE_CHARS_MAX: Final = 500
_TEXT_CHARS_MAX: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """The fields, each empty where the page says nothing."""

    title: str = ""
    author: str = ""
    published: str = ""
    modified: str = ""
    language: str = ""
    site_name: str = ""
    description: str = ""
    images: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    licence: str = ""


def metadata(page: Page, data: dict[str, Any], resolve: Callable[[str], str]) -> Metadata:
    """The metadata of a page, given its structured data and a resolver of its URLs."""
    sources = _Sources(page, data)
    site = _first((sources.meta("og:site_name", "application-name"), *sources.named("publisher"), *_site_names(data)))
    return Metadata(
        title=_title(page, sources, site),
        author=_author(page, sources),
        published=_date(page, sources, ("datePublished", "uploadDate", "dateCreated"), _PUBLISHED, "published"),
        modified=_date(page, sources, ("dateModified",), _MODIFIED, ""),
        language=_language(page, sources),
        site_name=site[:_TITLE_CHARS_MAX],
        description=_first(
            (sources.meta("og:description", "description", "twitter:description"), *sources.values("description"))
        )[:_TEXT_CHARS_MAX],
        images=_images(sources, resolve),
        keywords=_keywords(sources),
        licence=_licence(page, sources, resolve),
    )


_PUBLISHED: Final = (
    "article:published_time", "datepublished", "dc.date.issued", "dcterms.issued", "dc.date", "dcterms.created",
    "date", "pubdate", "publish-date", "publication_date", "parsely-pub-date", "sailthru.date",
    "citation_publication_date", "citation_date", "og:published_time", "dc.date.created",
)  # fmt: skip
_MODIFIED: Final = (
    "article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "dc.date.modified", "last-modified",
    "lastmod",
)  # fmt: skip


class _Sources:
    """Meta elements by name, and the page's main structured items."""

    def __init__(self, page: Page, data: dict[str, Any]) -> None:
        self._meta: dict[str, list[str]] = {}
        for node in page.all("meta"):
            name = node.get("property") or node.get("name") or node.get("itemprop") or node.get("http-equiv")
            content = node.get("content").strip()
            if name and content:
                self._meta.setdefault(name.strip().lower(), []).append(content)
        self.items: list[dict[str, Any]] = [
            item for name in _ARTICLES for item in data.get(f"schema.org/{name}", ()) if isinstance(item, dict)
        ][:20]

    def meta(self, *names: str) -> str:
        """The first value of the first of the names that has one."""
        for name in names:
            if name in self._meta:
                return self._meta[name][0]
        return ""

    def metas(self, *names: str) -> list[str]:
        """All values of all the names."""
        return [value for name in names for value in self._meta.get(name, ())]

    def values(self, name: str) -> Iterator[str]:
        """The texts of a property of the main items."""
        for item in self.items:
            yield from _texts(item.get(name))

    def named(self, name: str) -> Iterator[str]:
        """The names of a property that is a person or an organisation."""
        for item in self.items:
            yield from _names(item.get(name))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield " ".join(value.split())
    elif isinstance(value, list):
        for inner in value[:50]:
            yield from _texts(inner)
    elif isinstance(value, dict) and isinstance(value.get("@value"), str):
        yield value["@value"]


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _texts(value.get("name"))
    elif isinstance(value, list):
        for inner in value[:20]:
            yield from _names(inner)
    else:
        yield from _texts(value)


def _first(values: Iterable[str]) -> str:
    return next((value.strip() for value in values if value and value.strip()), "")


def _site_names(data: dict[str, Any]) -> Iterator[str]:
    for item in data.get("schema.org/WebSite", ()):
        if isinstance(item, dict):
            yield from _texts(item.get("name"))


def _title(page: Page, sources: _Sources, site: str) -> str:
    """The title of the content, the site's name taken off; a lone h1 that the title repeats is the best source."""
    document = " ".join(page.all("title")[0].text().split()) if page.all("title") else ""
    headings = [" ".join(node.text().split()) for node in page.all("h1")[:5]]
    shared = sources.meta("og:title", "twitter:title") or _first(sources.values("headline"))
    for heading in headings:
        if len(heading) > 5 and heading.lower() in f"{document} {shared}".lower():
            return heading[:_TITLE_CHARS_MAX]
    title = shared or document or _first(headings)
    return _without_site(title, site)[:_TITLE_CHARS_MAX]


def _without_site(title: str, site: str) -> str:
    parts = _TITLE_SPLIT.split(title)
    if len(parts) > 1 and site and parts[-1].strip().lower() == site.lower():
        return title[: title.rindex(parts[-1])].rstrip(" |\u2013—·•»\u203a:-")
    return title


def _author(page: Page, sources: _Sources) -> str:
    named = [name for name in sources.named("author") if name and not name.startswith("http")]
    if not named:
        named = [
            value
            for value in sources.metas("author", "article:author", "dc.creator", "citation_author", "parsely-author")
            if not value.startswith("http")
        ]
    if not named:
        rels = (node for node in page.all("a") if "author" in node.get("rel").lower().split())
        named = [" ".join(node.text().split()) for node in rels][:1]
    return ", ".join(dict.fromkeys(name[:200] for name in named[:10] if name))


def _date(page: Page, sources: _Sources, properties: tuple[str, ...], metas: tuple[str, ...], element: str) -> str:
    for name in properties:
        for value in sources.values(name):
            if iso := iso_date(value):
                return iso
    for value in sources.metas(*metas):
        if iso := iso_date(value):
            return iso
    if element:
        for node in page.all("time")[:3]:
            if iso := iso_date(node.get("datetime") or node.text()):
                return iso
    return ""


def _language(page: Page, sources: _Sources) -> str:
    html = page.all("html")
    candidates = [
        html[0].get("lang") or html[0].get("xml:lang") if html else "",
        sources.meta("content-language", "language", "dc.language", "og:locale"),
        _first(sources.values("inLanguage")),
    ]
    return next((tag for tag in map(language_tag, candidates) if tag), "")


def language_tag(text: str) -> str:
    """A language as a BCP 47 tag in its usual case (`en`, `pt-BR`, `zh-Hant-TW`); empty if it is none."""
    match = _LANGUAGE.match(text.strip())
    if not match:
        return ""
    parts = [match[1].lower(), match[2].title() if match[2] else "", match[3].upper() if match[3] else ""]
    return "-".join(filter(None, parts))


def _images(sources: _Sources, resolve: Callable[[str], str]) -> tuple[str, ...]:
    found = sources.metas("og:image", "og:image:url", "twitter:image", "twitter:image:src")
    for item in sources.items[:5]:
        found.extend(_image_urls(item.get("image")))
    return tuple(filter(None, dict.fromkeys(map(resolve, found[:30]))))[:10]


def _image_urls(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value[:10]:
            yield from _image_urls(inner)
    elif isinstance(value, dict):
        yield from _texts(value.get("url") or value.get("contentUrl"))


def _keywords(sources: _Sources) -> tuple[str, ...]:
    tags = sources.metas("article:tag", "og:article:tag")
    for text in (*sources.metas("keywords", "news_keywords", "parsely-tags"), *sources.values("keywords")):
        tags.extend(text.split(","))
    return tuple(filter(None, dict.fromkeys(tag.strip()[:100] for tag in tags[:200])))[:50]


def _licence(page: Page, sources: _Sources, resolve: Callable[[str], str]) -> str:
    for tag in ("link", "a"):
        for node in page.all(tag):
            rel = node.attrs.get("rel")
            if rel and "license" in rel.lower().split():
                return resolve(node.get("href"))
    return _first((sources.meta("dcterms.license", "dc.rights", "dcterms.rights"), *sources.values("license")))[:500]
