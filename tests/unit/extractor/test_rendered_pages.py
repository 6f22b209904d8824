"""Pages and browsers: which are held back for one, and what is published after it was asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from trawl.adapters.clocks import SystemClock
from trawl.extractor.stage import ExtractorStage
from trawl.fingerprint import content_sha256
from trawl.kinds import OutcomeClass, RenderMode
from trawl.records import DiscoveredLinks, ExtractedDocument, FetchedPage, FetchOutcome, Header, Payload, StaticRender
from trawl.records import Record as AnyRecord
from trawl.settings import ExtractSettings
from trawl.url import document_key

TEXT = "A sentence about the harbour that is long enough to be read as content, with commas, and an end. " * 5
SHELL = "<title>Shop</title><body><div id=root>Loading</div><a href=/static>s</a><script src=/main.js></script>"
FULL = f"<title>Shop</title><body><div id=root><p>{TEXT}</p><a href=/made>m</a></div>"


def body(html: str) -> Payload:
    return Payload(inline=html.encode(), size_bytes=len(html))


def page(html: str) -> FetchedPage:
    return FetchedPage(
        fetch_id=1,
        crawl_id="c",
        request_key=2,
        url="https://example.com/",
        final_url="https://example.com/",
        status=200,
        fetched_at_ms=7,
        content_type="text/html",
        headers=(Header(name="etag", value='"v1"'),),
        body=body(html),
    )


def rendered(html: str, static: str) -> FetchedPage:
    before = StaticRender(body=body(static), fetched_at_ms=7)
    return replace(page(html), render_mode=RenderMode.HEADLESS, static_render=before)


def step(fetched: FetchedPage, *, renders: bool = True) -> Sequence[AnyRecord]:
    stage = ExtractorStage(ExtractSettings(), SystemClock(), agent="trawl/1", renders=renders)
    return asyncio.run(stage.step(fetched))


def last_document(records: Sequence[AnyRecord]) -> ExtractedDocument:
    document = records[-1]
    assert isinstance(document, ExtractedDocument)
    return document


def links_of(records: Sequence[AnyRecord]) -> set[str]:
    return {link.url for record in records if isinstance(record, DiscoveredLinks) for link in record.links}


def test_a_shell_is_held_back_with_its_links_sent_and_the_hash_of_its_text() -> None:
    records = step(page(SHELL))
    outcome = records[-1]
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.reason, outcome.terminal) == (OutcomeClass.NEEDS_RENDER, "shell", False)
    assert outcome.needs_render is not None
    assert (outcome.needs_render.text_sha256, outcome.needs_render.fetched_at_ms) == (content_sha256("Loading"), 7)
    assert links_of(records) == {"https://example.com/static"}


def test_without_a_browser_a_shell_is_published_but_a_304_will_not_hide_it_later() -> None:
    document = last_document(step(page(SHELL), renders=False))
    assert (document.render_mode, document.rendering, document.validators.etag) == (RenderMode.STATIC, "", "")


def test_a_page_with_its_text_is_published_at_once() -> None:
    document = last_document(step(page(FULL + "<script src=/main.js></script>")))
    assert (document.rendering, document.hydrated, document.validators.etag) == ("", None, '"v1"')


def test_a_rendered_page_is_published_with_what_scripts_brought_and_the_links_of_both() -> None:
    records = step(rendered(FULL, SHELL))
    document = last_document(records)
    assert (document.render_mode, document.rendering) == (RenderMode.HEADLESS, "rendered")
    assert document.hydrated is not None
    assert document.hydrated > 0.9
    assert TEXT.strip() in document.text
    assert document.document_key == document_key("c", "https://example.com/")
    assert document.html.inline == FULL.encode()
    assert document.validators.etag == ""
    assert links_of(records) == {"https://example.com/made", "https://example.com/static"}


def test_where_rendering_adds_nothing_the_page_stands_as_it_was_fetched() -> None:
    document = last_document(step(rendered(f"{FULL}<script></script>", FULL)))
    assert (document.render_mode, document.rendering, document.hydrated) == (RenderMode.STATIC, "added_nothing", 0.0)
    assert document.html.inline == FULL.encode()
    assert document.validators.etag == '"v1"'


def test_a_page_that_could_not_be_rendered_is_published_as_it_was_fetched_and_marked() -> None:
    failed = replace(page(SHELL), rendering="render_timeout")
    document = last_document(step(failed))
    assert (document.render_mode, document.rendering) == (RenderMode.STATIC, "render_timeout")
    assert document.validators.etag == ""


def test_a_script_cannot_take_back_the_noindex_of_its_page() -> None:
    records = step(rendered(FULL, f"<meta name=robots content=noindex>{SHELL}"))
    assert last_document(records).withdrawal == "noindex"


def test_a_script_may_forbid_indexing_too() -> None:
    records = step(rendered(f"<meta name=robots content=noindex>{FULL}", SHELL))
    assert last_document(records).withdrawal == "noindex"


def test_a_shell_that_may_not_be_indexed_is_withdrawn_without_a_browser() -> None:
    assert last_document(step(page(f"<meta name=robots content=noindex>{SHELL}"))).withdrawal == "noindex"
