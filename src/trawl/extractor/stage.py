"""The extractor's stage: fetched bodies into links and documents."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from trawl.errors import WorkerDiedError
from trawl.extractor.extract import EXTRACTOR, Extraction
from trawl.extractor.work import UrlList, Worked, extract_page
from trawl.kinds import OutcomeClass, Stage
from trawl.ports import BlobStore, Clock
from trawl.records import (
    Evidence,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    Header,
    Millis,
    Payload,
    Record,
    Validators,
)
from trawl.settings import ExtractSettings
from trawl.url import document_key

Run: TypeAlias = Callable[[FetchedPage], Awaitable[Worked]]
"""Runs `extract_page`: in this process, or in a pool of workers."""

_EVIDENCE_CHARS_MAX: Final = 200
_DIRECTIVES: Final = {
    "noindex": "index",
    "nofollow": "follow",
    "noarchive": "archive",
    "nosnippet": "snippet",
    "noai": "ai-train",
    "noimageai": "ai-train",
}


class ExtractorStage:
    """FetchedPage in; links first, then the document, its withdrawal, or the outcome that ends the visit."""

    def __init__(
        self, settings: ExtractSettings, clock: Clock, *, run: Run | None = None, blobs: BlobStore | None = None
    ) -> None:
        """The function does the work; the blob store is needed where bodies travel by reference."""
        self._settings = settings
        self._clock = clock
        self._run: Run = run or partial(_in_process, settings=settings)
        self._blobs = blobs

    async def step(self, record: FetchedPage) -> Sequence[Record]:
        """The records that follow from one body; links come first, so that a crash between repeats only them."""
        try:
            worked = await self._run(await self._inlined(record))
        except TimeoutError:
            seconds = self._settings.seconds_max
            return [self._failed(record, "extraction_timeout", f"{record.url} took over {seconds:g} s to read")]
        except WorkerDiedError as error:
            return [self._failed(record, "extraction_died", f"{record.url}: {error}")]
        found = worked.found
        end = self._listed(record, found) if isinstance(found, UrlList) else self._document(record, found)
        return [*worked.discovered, end]

    async def _inlined(self, record: FetchedPage) -> FetchedPage:
        """The record with its body inline."""
        body = record.body
        if not body.ref or body.inline or self._blobs is None:
            return record
        return replace(record, body=replace(body, inline=await self._blobs.get(body.ref), ref=""))

    def _document(self, record: FetchedPage, found: Extraction) -> Record:
        if found.reason:
            return self._failed(record, found.reason, found.detail)
        evidence = (*record.evidence, *_meta_evidence(found.robots, record.fetched_at_ms))
        if any(item.purpose == "index" and not item.allowed for item in evidence):
            return _withdrawal(record, evidence, "noindex")
        return document(record, found, evidence)

    def _listed(self, record: FetchedPage, result: UrlList) -> FetchOutcome:
        if result.reason:
            return self._failed(record, result.reason, result.detail)
        cut = ", cut at a limit" if result.truncated else ""
        detail = f"{result.count} URLs{cut}"
        return self._outcome(record, OutcomeClass.DISCOVERED, "truncated" if result.truncated else "", detail)

    def _failed(self, record: FetchedPage, reason: str, detail: str) -> FetchOutcome:
        return self._outcome(record, OutcomeClass.FAILED, reason, detail)

    def _outcome(self, record: FetchedPage, outcome: OutcomeClass, reason: str, detail: str) -> FetchOutcome:
        return FetchOutcome(
            url=record.url,
            crawl_id=record.crawl_id,
            request_key=record.request_key,
            fetch_id=record.fetch_id,
            stage=Stage.EXTRACTOR,
            outcome=outcome,
            reason=reason,
            purpose=record.purpose,
            status=record.status,
            detail=detail,
            at_ms=self._clock.now_ms(),
            validators=_validators(record.headers) if outcome is OutcomeClass.DISCOVERED else None,
            body_bytes=record.body.size_bytes,
        )


async def _in_process(page: FetchedPage, settings: ExtractSettings) -> Worked:
    return extract_page(page, settings)


def document(record: FetchedPage, found: Extraction, evidence: tuple[Evidence, ...]) -> ExtractedDocument:
    """The document that a fetched page and its extraction make."""
    about = found.metadata
    return replace(
        _bare(record, evidence),
        url_canonical=found.links.canonical or record.final_url,
        html=record.body,
        charset=found.charset,
        extracted=found.structured,
        title=about.title,
        author=about.author,
        published=about.published,
        modified=about.modified,
        language=about.language,
        site_name=about.site_name,
        description=about.description,
        images=about.images,
        keywords=about.keywords,
        page_type=found.page_type,
        confidence=found.confidence,
        text=found.text,
        markdown=found.markdown,
        blocks=found.blocks,
        content_sha256=found.content_sha256,
        simhash=found.simhash.value,
        simhash_tokens=found.simhash.tokens,
        fingerprint_version=found.simhash.version,
    )


def _bare(record: FetchedPage, evidence: tuple[Evidence, ...]) -> ExtractedDocument:
    """The document without its content."""
    return ExtractedDocument(
        document_key=document_key(record.crawl_id, record.final_url),
        crawl_id=record.crawl_id,
        request_key=record.request_key,
        fetch_id=record.fetch_id,
        url=record.url,
        final_url=record.final_url,
        url_canonical=record.final_url,
        fetched_at_ms=record.fetched_at_ms,
        status=record.status,
        content_type=record.content_type,
        render_mode=record.render_mode,
        response_headers=record.headers,
        chain=record.chain,
        evidence=evidence,
        crawl_source=str(record.found),
        depth=record.depth,
        tags=record.tags,
        dedup_scope=record.dedup_scope,
        extractor=EXTRACTOR,
        validators=_validators(record.headers),
        scheduled_at_ms=record.scheduled_at_ms,
        released_at_ms=record.released_at_ms,
    )


def _withdrawal(record: FetchedPage, evidence: tuple[Evidence, ...], reason: str) -> ExtractedDocument:
    """A page that may not be indexed: whatever was indexed of it before goes."""
    return replace(_bare(record, evidence), html=Payload(), withdrawal=reason)


def _meta_evidence(directives: tuple[str, ...], seen_at_ms: Millis) -> Iterator[Evidence]:
    """What meta robots says; `none` is noindex and nofollow."""
    expanded = [part for rule in directives for part in (("noindex", "nofollow") if rule == "none" else (rule,))]
    for rule in dict.fromkeys(expanded):
        purpose = _DIRECTIVES.get(rule)
        if purpose is not None:
            yield Evidence(
                source="meta", rule=rule[:_EVIDENCE_CHARS_MAX], purpose=purpose, allowed=False, seen_at_ms=seen_at_ms
            )


def _validators(headers: tuple[Header, ...]) -> Validators:
    values = {header.name: header.value for header in headers}
    return Validators(etag=values.get("etag", ""), last_modified=values.get("last-modified", ""))
