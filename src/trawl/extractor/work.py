"""The part of the extractor that costs CPU, as one picklable function: it runs in worker processes (pure)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import zstandard

from trawl.errors import InvalidUrlError
from trawl.extractor.extract import Extraction, extract_body
from trawl.extractor.feed import read_feed
from trawl.extractor.hydration import hydrated_share
from trawl.extractor.media import Media, is_url_list, sniff_media
from trawl.extractor.shell import shell_reason
from trawl.extractor.sitemap import read_sitemap
from trawl.extractor.unpack import Unpacked, unpacked
from trawl.extractor.urllist import read_url_list
from trawl.kinds import Found, Purpose, RenderMode
from trawl.records import DiscoveredLinks, FetchedPage, Link, Payload
from trawl.settings import ExtractSettings
from trawl.url import host_of, join

_HEAD_BYTES: Final = 8192
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlList:
    """The URLs of a sitemap, feed or list. With a `reason` the body was none."""

    count: int = 0
    """How many URLs, each counted once."""
    truncated: bool = False
    """Whether a limit cut the list."""
    reason: str = ""
    """Empty, or not_a_sitemap, not_a_feed, empty_body."""
    detail: str = ""
    """For people: what happened, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What the work on one body gave."""

    discovered: tuple[DiscoveredLinks, ...] = ()
    """Its links by the host that they point at, ready to be sent."""
    found: Extraction | UrlList
    """The document (whose own list of links is left out), or what became of a list of URLs."""
    shell: str = ""
    """For a page as it was fetched: why a browser should be asked, or empty."""
    hydrated: float | None = None
    """For a rendered page: the share of its text that only its scripts brought."""
    as_fetched: bool = True
    """Whether the document is what was fetched; false if it is what a browser made of it."""


def extract_page(page: FetchedPage, settings: ExtractSettings | None = None) -> Worked:
    """What a fetched body gives: URLs for sitemaps, feeds and lists, a document for everything else.

    The body must be inline. What the URL was fetched for and what the body is decide together: a page that turns out
    to be a sitemap or feed is read as one, and a sitemap that is a page of HTML is reported.
    """
    settings = settings or ExtractSettings()
    body = raw_body(page.body)
    head, _ = unpacked(body, bytes_max=_HEAD_BYTES, layers_max=settings.unpack_layers_max)
    media = sniff_media(head, page.content_type)
    listed = _listed_as(page.purpose, media, head)
    if listed is not None:
        return _url_list(body, page, listed, settings)
    if page.purpose in (Purpose.SITEMAP, Purpose.FEED):
        wanted = str(page.purpose)
        detail = f"{page.url} was to be a {wanted} but is {media}; check the address"
        return Worked(found=UrlList(reason=f"not_a_{wanted}", detail=detail))
    if body.startswith(b"\x1f\x8b"):
        body, _ = unpacked(body, bytes_max=settings.sitemap_bytes_max, layers_max=settings.unpack_layers_max)
    if page.static_render is not None and page.render_mode is RenderMode.HEADLESS:
        return _hydrated(page, body, raw_body(page.static_render.body), settings)
    found = extract_body(body, page.final_url, page.content_type, settings)
    shell = shell_reason(body, found, settings) if media is Media.HTML else ""
    return _document(page, found, found.links.links, shell=shell)


def _hydrated(page: FetchedPage, rendered: bytes, static: bytes, settings: ExtractSettings) -> Worked:
    """A rendered page beside the page as it was fetched, which stands if rendering added nothing.

    What either of them says of its use holds, and the links of both are followed.
    """
    before = extract_body(static, page.final_url, page.content_type, settings)
    after = extract_body(rendered, page.final_url, "text/html; charset=utf-8", settings)
    share = hydrated_share(before.text, after.text)
    as_fetched = share < settings.added_share and not before.reason
    found = replace(before if as_fetched else after, metas=tuple(dict.fromkeys((*before.metas, *after.metas))))
    links = {link.url: link for link in (*after.links.links, *before.links.links)}
    chosen = list(links.values())[: settings.links_max]
    return _document(page, found, chosen, hydrated=share, as_fetched=as_fetched)


def _document(
    page: FetchedPage,
    found: Extraction,
    links: Iterable[Link],
    *,
    shell: str = "",
    hydrated: float | None = None,
    as_fetched: bool = True,
) -> Worked:
    return Worked(
        discovered=tuple(grouped(page, links, page.depth + 1)),
        found=replace(found, links=replace(found.links, links=())),
        shell=shell,
        hydrated=hydrated,
        as_fetched=as_fetched,
    )


def raw_body(payload: Payload) -> bytes:
    """The bytes of an inline payload, its own compression taken off."""
    if payload.encoding == "zstd":
        return zstandard.ZstdDecompressor().decompress(payload.inline, max_output_size=payload.size_bytes)
    return payload.inline


def _listed_as(purpose: Purpose, media: Media, head: bytes) -> Media | None:
    """The reader of URLs that fits, or None if the body is a document."""
    if media in (Media.SITEMAP, Media.FEED):
        return media
    if purpose is Purpose.URL_LIST:
        return Media.URL_LIST
    unlabelled = media in (Media.TEXT, Media.UNSUPPORTED)
    if unlabelled and purpose in (Purpose.SITEMAP, Purpose.AUTO) and is_url_list(head):
        return Media.URL_LIST
    return None


def _url_list(body: bytes, page: FetchedPage, media: Media, settings: ExtractSettings) -> Worked:
    chunks = Unpacked(body, bytes_max=settings.sitemap_bytes_max, layers_max=settings.unpack_layers_max)
    if media is Media.SITEMAP:
        entries = read_sitemap(chunks)
    elif media is Media.FEED:
        entries = read_feed(chunks, settings.anchor_chars_max)
    else:
        entries = read_url_list(chunks, Found.URL_LIST)
    limit = settings.sitemap_urls_max
    nesting = page.nesting + 1
    absolute = (replace(link, nesting=nesting) for link in _absolute(entries, page.final_url))
    found = {link.url: link for link in islice(absolute, limit)}
    full = next(entries, None) is not None if len(found) >= limit else False
    listed = UrlList(count=len(found), truncated=chunks.truncated or full)
    return Worked(discovered=tuple(grouped(page, found.values(), page.depth)), found=listed)


def grouped(page: FetchedPage, links: Iterable[Link], depth: int) -> Iterator[DiscoveredLinks]:
    """Links by the host that they point at, in batches of at most 500."""
    groups: dict[str, list[Link]] = {}
    for link in links:
        groups.setdefault(host_of(link.url), []).append(replace(link, depth=depth))
    for host, group in groups.items():
        for at in range(0, len(group), _BATCH):
            yield DiscoveredLinks(
                crawl_id=page.crawl_id,
                source_url=page.final_url,
                target_host=host,
                links=tuple(group[at : at + _BATCH]),
            )


def _absolute(entries: Iterator[Link], base: str) -> Iterator[Link]:
    for link in entries:
        try:
            url = join(base, link.url).partition("#")[0]
        except InvalidUrlError:
            continue
        if url.startswith(("http://", "https://")):
            yield link if url == link.url else replace(link, url=url)
