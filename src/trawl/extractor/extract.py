"""One page in, everything that is known of it out: the extractor without its stage (pure).

    body ── charset ── tree ─┬─ links
                             ├─ structured data ─ metadata ─ page type
                             └─ segments ─ scores ─ content tree ─ Markdown, text, blocks ─ fingerprints

There is one parse; every reader works on the same tree.
"""

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from trawl.extractor.blocks import content_blocks, plain_blocks
from trawl.extractor.charset import decode
from trawl.extractor.content import Segment, content_tree, segments
from trawl.extractor.links import PageLinks, Resolver, meta_statements, page_links
from trawl.extractor.markdown import Rendered, joined_markdown, joined_text, render
from trawl.extractor.media import Media, media_type, sniff_media
from trawl.extractor.metadata import Metadata, metadata
from trawl.extractor.page_type import hints, page_type
from trawl.extractor.quality import confidence
from trawl.extractor.scoring import Selection, select
from trawl.extractor.structured import structured_data
from trawl.extractor.tree import Page, parse
from trawl.fingerprint import SimHash, content_sha256, simhash64
from trawl.kinds import BlockKind, PageType
from trawl.records import Block
from trawl.settings import ExtractSettings

EXTRACTOR: Final = "trawl-extractor/1"
"""Name and version, stored with each document; it changes with anything that changes a document."""

_NO_SIMHASH: Final = SimHash(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one body gave. With a `reason` there is no content."""

    reason: str = ""
    """Empty, or why there is no document: empty_body, binary_body, unsupported_media_type."""
    detail: str = ""
    """For people: what happened, and what to do."""
    charset: str = ""
    metadata: Metadata = field(default_factory=Metadata)
    links: PageLinks = field(default_factory=PageLinks)
    metas: tuple[tuple[str, str], ...] = ()
    """Meta elements that may say something to a crawler, each a name in lower case and its content."""
    structured: str = "{}"
    """Structured data as JSON, by class."""
    page_type: PageType = PageType.OTHER
    page_type_confidence: float = 0.0
    confidence: float = 0.0
    """From 0 to 1: how sure the extractor is of the content."""
    text: str = ""
    markdown: str = ""
    blocks: tuple[Block, ...] = ()
    content_sha256: str = ""
    simhash: SimHash = _NO_SIMHASH
    truncated: bool = False
    """Whether a limit cut the page."""


def extract_html(
    html: bytes | str, url: str, content_type: str | None = None, settings: ExtractSettings | None = None
) -> Extraction:
    """Everything of one HTML page at its final URL; never raises for any input."""
    settings = settings or ExtractSettings()
    body, charset = _utf8(html, content_type)
    if not body.strip():
        return Extraction(reason="empty_body", detail=f"{url} answered with an empty body", charset=charset)
    with _uncollected():
        return _from_html(body, url, charset, settings)


def extract_body(
    body: bytes, url: str, content_type: str | None = None, settings: ExtractSettings | None = None
) -> Extraction:
    """The document of a body of any media type, decided by label and bytes."""
    settings = settings or ExtractSettings()
    media = sniff_media(body, content_type)
    if media is Media.HTML:
        return extract_html(body, url, content_type, settings)
    if media in (Media.TEXT, Media.MARKDOWN):
        return _from_text(body, url, content_type, settings, is_markdown=media is Media.MARKDOWN)
    kind = media_type(content_type) or "no media type"
    if media is Media.BINARY:
        return Extraction(reason="binary_body", detail=f"{url} is binary although it says {kind}")
    return Extraction(reason="unsupported_media_type", detail=f"{url} is {kind}, for which there is no reader")


def _utf8(html: bytes | str, content_type: str | None) -> tuple[bytes, str]:
    """The page as valid UTF-8, and the encoding that it came in; most pages are valid as they are."""
    if isinstance(html, str):
        return html.encode("utf-8", "replace"), "utf-8"
    text, charset, how = decode(html, content_type)
    if charset == "utf-8" and how != "bom" and "\ufffd" not in text:
        return html, charset
    return text.encode("utf-8", "replace"), charset


@contextmanager
def _uncollected() -> Iterator[None]:
    """No garbage collection meanwhile: among thousands of young objects it takes a fifth of the time, for nothing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _from_html(html: bytes, url: str, charset: str, settings: ExtractSettings) -> Extraction:
    """Parse and read; the tree is gone when this returns, so that no collection ever has to look at it."""
    page = parse(html, nodes_max=settings.nodes_max, depth_max=settings.depth_max)
    try:
        return _from_page(page, url, charset, settings)
    finally:
        page.release()


def _from_page(page: Page, url: str, charset: str, settings: ExtractSettings) -> Extraction:
    resolver = Resolver(url, page.all("base"))
    links = page_links(page, resolver, links_max=settings.links_max, anchor_chars_max=settings.anchor_chars_max)
    data = structured_data(page, settings.structured_bytes_max)
    about = metadata(page, data, resolver)
    found = segments(page.body)
    selection = select(found, hints(url, data))
    rendered = render(
        content_tree(page.body, selection.kept), resolver if settings.absolute_links else _as_written(resolver)
    )
    kind, kind_confidence = page_type(url, data, _facts(selection.kept))
    rendered, cut = _capped(rendered, settings.text_chars_max)
    return _finished(
        Extraction(
            charset=charset,
            metadata=about,
            links=links,
            metas=meta_statements(page),
            structured=json.dumps(data, ensure_ascii=False),
            page_type=kind,
            page_type_confidence=kind_confidence,
            confidence=_confidence(found, selection),
            truncated=cut or page.truncated or links.truncated,
        ),
        rendered,
    )


def _from_text(
    body: bytes, url: str, content_type: str | None, settings: ExtractSettings, *, is_markdown: bool
) -> Extraction:
    """Plain text and Markdown pass through, line ends unified."""
    text, charset, _ = decode(body, content_type)
    text = "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
    if not text.strip():
        return Extraction(reason="empty_body", detail=f"{url} answered with an empty body", charset=charset)
    cut = len(text) > settings.text_chars_max
    text = text[: settings.text_chars_max]
    paragraphs = plain_blocks(text, is_markdown=is_markdown)
    title = next((block.text for block in paragraphs if block.kind is BlockKind.HEADING), "")
    return _finished(
        Extraction(charset=charset, confidence=1.0, truncated=cut, metadata=Metadata(title=title)), paragraphs
    )


def _finished(extraction: Extraction, rendered: list[Rendered]) -> Extraction:
    text = joined_text(rendered)
    return replace(
        extraction,
        text=text,
        markdown=joined_markdown(rendered),
        blocks=content_blocks(rendered),
        content_sha256=content_sha256(text),
        simhash=simhash64(text),
    )


def _as_written(resolver: Resolver) -> Callable[[str], str]:
    """Links as the page writes them, those that lead nowhere still dropped."""
    return lambda href: href.strip() if resolver(href) else ""


def _capped(rendered: list[Rendered], chars_max: int) -> tuple[list[Rendered], bool]:
    """The blocks up to the cap; the one that crosses it is cut if it is running text, else left out."""
    left = chars_max
    for index, block in enumerate(rendered):
        size = max(len(block.text), len(block.markdown)) + 2
        if size > left:
            kept = rendered[:index]
            if block.kind is BlockKind.PARAGRAPH:
                kept.append(Rendered(block.kind, block.markdown[:left], block.text[:left]))
            return kept, True
        left -= size
    return rendered, False


def _facts(kept: list[Segment]) -> dict[str, float]:
    return {
        "paragraphs": sum(segment.chars > 120 and segment.kind == "p" for segment in kept),
        "code": sum(segment.kind == "pre" for segment in kept),
        "items": sum(segment.kind in ("li", "a", "h3") for segment in kept),
    }


def _confidence(found: list[Segment], selection: Selection) -> float:
    kept_chars = sum(segment.chars for segment in selection.kept)
    links = sum(segment.link_chars for segment in selection.kept)
    everything = sum(segment.chars for segment in found)
    return confidence(
        words=kept_chars // 6,
        link_share=min(links / kept_chars, 1.0) if kept_chars else 0.0,
        kept_share=kept_chars / everything if everything else 0.0,
        margin=selection.margin,
    )
