"""The extractor's stage: fetched bodies into links and documents."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TypeAlias

from trawl.compliance.decision import Decision, decide
from trawl.compliance.policy import uses_of
from trawl.compliance.statements import condensed, of_meta
from trawl.errors import WorkerDiedError
from trawl.extractor.extract import EXTRACTOR, Extraction
from trawl.extractor.work import UrlList, Worked, extract_page
from trawl.kinds import OutcomeClass, Purpose, RenderMode, Stage, Use
from trawl.ports import BlobStore, Clock
from trawl.records import (
    DiscoveredLinks,
    Evidence,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    Header,
    Payload,
    Record,
    StaticRender,
    Validators,
)
from trawl.robots import product_token
from trawl.settings import ExtractSettings
from trawl.url import document_key

Run: TypeAlias = Callable[[FetchedPage], Awaitable[Worked]]
"""Runs `extract_page`: in this process, or in a pool of workers."""


class ExtractorStage:
    """FetchedPage in; links first, then the document, its withdrawal, or the outcome that ends the visit."""

    def __init__(
        self,
        settings: ExtractSettings,
        clock: Clock,
        *,
        agent: str,
        require: Sequence[str] = (),
        run: Run | None = None,
        blobs: BlobStore | None = None,
        renders: bool = False,
    ) -> None:
        """The function does the work; the blob store is needed where bodies travel by reference.

        `agent` is the User-Agent of the fetches: statements that name its product token are for us. A page that forbids
        a use that is required is not indexed; raises SettingsError for a use that there is not.

        With `renders` a page that is a shell is held back, and the outcome asks for a browser.
        """
        self._settings = settings
        self._agent = product_token(agent)
        self._require = uses_of("compliance.require", require)
        self._clock = clock
        self._run: Run = run or partial(_in_process, settings=settings)
        self._blobs = blobs
        self._renders = renders

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
        metas = () if isinstance(found, UrlList) else found.metas
        evidence = condensed(chain(record.evidence, of_meta(metas, self._agent, record.fetched_at_ms)))
        decided = decide(evidence)
        discovered = worked.discovered
        if decided[Use.FOLLOW].allowed is False and record.purpose is not Purpose.SITEMAP:  # those are there for us
            discovered = tuple(_unfollowed(links) for links in discovered)
        if isinstance(found, UrlList):
            return [*discovered, self._listed(record, found)]
        return [*discovered, self._document(record, worked, evidence, decided)]

    async def _inlined(self, record: FetchedPage) -> FetchedPage:
        """The record with its bodies inline."""
        static = record.static_render
        if static is not None:
            record = replace(record, static_render=replace(static, body=await self._payload(static.body)))
        return replace(record, body=await self._payload(record.body))

    async def _payload(self, body: Payload) -> Payload:
        if not body.ref or body.inline or self._blobs is None:
            return body
        return replace(body, inline=await self._blobs.get(body.ref), ref="")

    def _document(
        self, record: FetchedPage, worked: Worked, evidence: tuple[Evidence, ...], decided: Mapping[Use, Decision]
    ) -> Record:
        found = worked.found
        assert isinstance(found, Extraction)
        if found.reason:
            return replace(self._failed(record, found.reason, found.detail), hydrated=worked.hydrated)
        lacks = any(decided[use].allowed is False for use in self._require)
        reason = "noindex" if decided[Use.INDEX].allowed is False else "use_forbidden" if lacks else ""
        if reason:
            return replace(_withdrawal(record, evidence, reason), hydrated=worked.hydrated)
        if worked.shell and self._may_ask(record):
            return self._held_back(record, worked.shell, found)
        return _published(record, worked, document(record, found, evidence))

    def _may_ask(self, record: FetchedPage) -> bool:
        """Whether a browser was not asked for the page yet, and may be."""
        return self._renders and record.render_mode is RenderMode.STATIC and not record.rendering

    def _held_back(self, record: FetchedPage, shell: str, found: Extraction) -> FetchOutcome:
        """The page is not published before a browser was asked."""
        detail = f"{record.url} has {len(found.text)} characters of text without its scripts; a browser is asked"
        outcome = self._outcome(record, OutcomeClass.NEEDS_RENDER, shell, detail)
        static = StaticRender(text_sha256=found.content_sha256, fetched_at_ms=record.fetched_at_ms)
        return replace(outcome, terminal=False, needs_render=static)

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


def _published(record: FetchedPage, worked: Worked, made: ExtractedDocument) -> ExtractedDocument:
    """The document with what a browser had to do with it.

    No validators are kept with one: that the static page has not changed says nothing of what its scripts show.
    """
    if worked.hydrated is None:
        nothing_ran = record.rendering == "no_scripts"
        made = replace(made, rendering=record.rendering, hydrated=0.0 if nothing_ran else None)
        asked = record.rendering not in {"", "no_scripts", "not_html"}
        return replace(made, validators=Validators()) if worked.shell or asked else made
    rendering = "added_nothing" if worked.as_fetched else "rendered"
    made = replace(made, rendering=rendering, hydrated=worked.hydrated)
    if not worked.as_fetched:
        return replace(made, validators=Validators())
    static = record.static_render
    assert static is not None
    return replace(made, render_mode=RenderMode.STATIC, html=static.body)


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


def _unfollowed(links: DiscoveredLinks) -> DiscoveredLinks:
    """The links of a page that is not to be followed: that holds for each of them."""
    return replace(links, links=tuple(replace(link, rel=(*link.rel, "nofollow")) for link in links.links))


def _validators(headers: tuple[Header, ...]) -> Validators:
    values = {header.name: header.value for header in headers}
    return Validators(etag=values.get("etag", ""), last_modified=values.get("last-modified", ""))
