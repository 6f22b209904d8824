"""The stage: links before documents, outcomes for the rest."""

import asyncio
from collections.abc import Sequence

import pytest

from trawl.adapters.clocks import SystemClock
from trawl.errors import WorkerDiedError
from trawl.extractor.stage import ExtractorStage
from trawl.extractor.work import Worked
from trawl.kinds import OutcomeClass, Purpose
from trawl.records import (
    DiscoveredLinks,
    Evidence,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    Header,
    Payload,
    Record,
)
from trawl.settings import ExtractSettings
from trawl.url import document_key

TEXT = "A sentence about the harbour that is long enough to be read as content, with commas, and an end. " * 5


def fetched(
    body: bytes,
    *,
    content_type: str = "text/html",
    purpose: Purpose = Purpose.PAGE,
    evidence: tuple[Evidence, ...] = (),
) -> FetchedPage:
    return FetchedPage(
        fetch_id=1,
        crawl_id="c",
        request_key=2,
        url="https://example.com/start",
        final_url="https://example.com/docs/a/",
        status=200,
        fetched_at_ms=7,
        purpose=purpose,
        depth=3,
        content_type=content_type,
        headers=(Header(name="etag", value='"v1"'),),
        body=Payload(inline=body, size_bytes=len(body)),
        evidence=evidence,
        tags=("t",),
    )


def step(page: FetchedPage, settings: ExtractSettings | None = None) -> Sequence[Record]:
    return asyncio.run(ExtractorStage(settings or ExtractSettings(), SystemClock(), agent="trawl/1").step(page))


def test_links_come_first_grouped_by_host_and_the_document_last() -> None:
    html = f"<title>T</title><p>{TEXT}</p><a href=b>b</a><a href='https://other.example:8443/x'>o</a><a href=c>c</a>"
    first, second, document = step(fetched(html.encode()))
    assert isinstance(first, DiscoveredLinks)
    assert isinstance(second, DiscoveredLinks)
    assert (first.target_host, [link.url for link in first.links]) == (
        "example.com",
        ["https://example.com/docs/a/b", "https://example.com/docs/a/c"],
    )
    assert second.target_host == "other.example:8443"
    assert {link.depth for link in (*first.links, *second.links)} == {4}
    assert isinstance(document, ExtractedDocument)
    assert document.document_key == document_key("c", "https://example.com/docs/a/")
    assert document.validators.etag == '"v1"'
    assert document.tags == ("t",)
    assert TEXT.strip() in document.text
    assert document.simhash_tokens > 50


def test_links_travel_in_batches_of_500() -> None:
    html = "".join(f"<a href=/{n}>x</a>" for n in range(1201))
    batches = [record for record in step(fetched(html.encode())) if isinstance(record, DiscoveredLinks)]
    assert [len(batch.links) for batch in batches] == [500, 500, 201]


def test_a_sitemap_gives_links_of_its_own_depth_and_one_terminal_outcome() -> None:
    body = b"<urlset><url><loc>https://example.com/p</loc></url></urlset>"
    links, outcome = step(fetched(body, content_type="text/xml", purpose=Purpose.SITEMAP))
    assert isinstance(links, DiscoveredLinks)
    assert links.links[0].depth == 3
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.terminal, outcome.detail) == (OutcomeClass.DISCOVERED, True, "1 URLs")


def test_a_body_that_cannot_be_read_is_a_failure_with_its_reason() -> None:
    (outcome,) = step(fetched(b"%PDF-1.4"))
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.reason, outcome.terminal) == (OutcomeClass.FAILED, "binary_body", True)


def test_meta_noindex_withdraws_the_page_and_its_links_are_still_followed() -> None:
    links, document = step(fetched(f"<meta name=robots content=noindex><p>{TEXT}</p><a href=/x>x</a>".encode()))
    assert isinstance(links, DiscoveredLinks)
    assert links.links[0].rel == ()
    assert isinstance(document, ExtractedDocument)
    assert (document.withdrawal, document.text, document.html) == ("noindex", "", Payload())


def test_a_header_that_forbids_indexing_counts_like_the_meta_element() -> None:
    evidence = Evidence(source="x-robots-tag", rule="noindex", purpose="index", allowed=False)
    (document,) = step(fetched(f"<p>{TEXT}</p>".encode(), evidence=(evidence,)))
    assert isinstance(document, ExtractedDocument)
    assert document.withdrawal == "noindex"


def test_meta_nofollow_marks_every_link() -> None:
    links, document = step(
        fetched(f"<meta name=robots content=nofollow><p>{TEXT}</p><a href=/x rel=author>x</a>".encode())
    )
    assert isinstance(links, DiscoveredLinks)
    assert links.links[0].rel == ("author", "nofollow")
    assert isinstance(document, ExtractedDocument)
    assert document.withdrawal == ""


def test_statements_for_other_crawlers_are_not_for_us_and_those_for_us_are() -> None:
    for name, withdrawn in (("googlebot", ""), ("trawlbot", ""), ("TRAWL", "noindex"), ("robots", "noindex")):
        (document,) = step(fetched(f"<meta name={name} content=noindex><p>{TEXT}</p>".encode()))
        assert isinstance(document, ExtractedDocument)
        assert document.withdrawal == withdrawn


@pytest.mark.parametrize(("purpose", "rel"), [(Purpose.FEED, ("nofollow",)), (Purpose.SITEMAP, ())])
def test_a_feed_may_say_not_to_follow_it_and_a_sitemap_is_there_to_be_followed(
    purpose: Purpose, rel: tuple[str, ...]
) -> None:
    evidence = Evidence(source="x-robots-tag", rule="none", purpose="follow", allowed=False)
    feed = b"<rss version='2.0'><channel><item><link>http://site.test/a</link></item></channel></rss>"
    sitemap = (
        b"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>http://site.test/a</loc></url></urlset>"
    )
    body = feed if purpose is Purpose.FEED else sitemap
    links, outcome = step(fetched(body, purpose=purpose, evidence=(evidence,), content_type="application/xml"))
    assert isinstance(links, DiscoveredLinks)
    assert [link.rel for link in links.links] == [rel]
    assert isinstance(outcome, FetchOutcome)
    assert outcome.outcome is OutcomeClass.DISCOVERED


def test_a_header_and_a_meta_element_are_judged_together() -> None:
    evidence = Evidence(source="x-robots-tag", rule="none", purpose="follow", allowed=False)
    html = f"<meta name=robots content=all><meta name=tdm-reservation content=1><p>{TEXT}</p><a href=/x>x</a>"
    links, document = step(fetched(html.encode(), evidence=(evidence,)))
    assert isinstance(links, DiscoveredLinks)
    assert links.links[0].rel == ("nofollow",)
    assert isinstance(document, ExtractedDocument)
    assert [(one.source, one.purpose, one.allowed) for one in document.evidence] == [
        ("x-robots-tag", "follow", False),
        ("meta", "index", True),
        ("meta", "follow", True),
        ("meta tdm-reservation", "ai-input", False),
        ("meta tdm-reservation", "ai-train", False),
    ]


@pytest.mark.parametrize(
    ("error", "reason"), [(TimeoutError(), "extraction_timeout"), (WorkerDiedError("died"), "extraction_died")]
)
def test_a_worker_that_fails_ends_the_visit_with_a_reason(error: Exception, reason: str) -> None:
    async def run(_page: FetchedPage) -> Worked:
        raise error

    stage = ExtractorStage(ExtractSettings(), SystemClock(), agent="trawl/1", run=run)
    (outcome,) = asyncio.run(stage.step(fetched(b"<p>x")))
    assert isinstance(outcome, FetchOutcome)
    assert outcome.reason == reason
