"""The Python API: `crawl`, `extract` and `search`, on which the command line is built too."""

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, aclosing, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.folder import FORMATS
from trawl.adapters.sqlite import Database, SqliteSearchIndex
from trawl.assembly import CrawlPlan, CrawlRun, OnPage
from trawl.errors import FetchRefusedError, SettingsError, StoreInUseError
from trawl.extractor.extract import Extraction, extract_body, extract_html
from trawl.frontier.admission import canonical_rules
from trawl.kinds import ScopeKind, Use
from trawl.ports import Hit, SearchQuery
from trawl.records import ExtractedDocument, Seed
from trawl.settings import ExtractSettings, IndexSettings, Settings, validate
from trawl.url import canonical

_PAGES_WAITING_MAX = 100
_CLOSING_SECONDS = 0.05
_CLOSING_SECONDS_MAX = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One crawled page."""

    url: str
    """The URL as requested, canonical."""
    final_url: str
    """The URL that answered."""
    title: str
    markdown: str
    """The main content as Markdown."""
    text: str
    """The main content as plain text."""
    status: int
    """The HTTP status."""
    fetched_at_ms: int
    """Milliseconds since the epoch, UTC."""
    duplicate_of: str
    """The URL of the page that this one repeats, or empty."""
    document: ExtractedDocument = field(repr=False)
    """Everything else that is known of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What one page of HTML holds. With a `reason` there is no content."""

    url: str
    title: str
    author: str
    published: str
    """ISO 8601, or empty."""
    modified: str
    """ISO 8601, or empty."""
    language: str
    """BCP 47, or empty."""
    site_name: str
    description: str
    page_type: str
    confidence: float
    """From 0 to 1."""
    markdown: str
    text: str
    structured: dict[str, Any]
    """Structured data by class, for example schema.org/Product."""
    links: tuple[str, ...]
    """Absolute URLs in order, each once."""
    images: tuple[str, ...]
    charset: str
    content_sha256: str
    reason: str
    """Why nothing was extracted, or empty."""

    def plain(self) -> dict[str, Any]:
        """All fields as JSON-able values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


async def crawl(
    *urls: str,
    out: Path | str | None = None,
    max_pages: int = 0,
    max_depth: int = 16,
    scope: ScopeKind | str = ScopeKind.HOST,
    allowed_domains: Iterable[str] = (),
    formats: Iterable[str] = ("markdown", "html", "jsonl"),
    fresh: bool = False,
    settings: Settings | None = None,
) -> AsyncGenerator[Page, None]:
    """Crawl from the URLs and yield each page when it is written, duplicates included.

    `out` is the output folder, which can be searched, resumed and refreshed; without it the results are kept for the
    time of the crawl only. A crawl that was done is made again: pages that are new or have changed are yielded, those
    that are the same are not.

    Leaving the loop early stops the crawl; `contextlib.aclosing` waits for that on the spot, else it happens soon
    after. Raises InvalidUrlError, SettingsError, StoreError, and FetchRefusedError, with the reasons, if not one page
    could be fetched.
    """
    settings = validate(settings or Settings())
    wanted = frozenset(formats)
    if not wanted <= set(FORMATS):
        raise SettingsError(
            f"there is no format {', '.join(sorted(wanted - set(FORMATS)))}; the formats are {', '.join(FORMATS)}"
        )
    if not urls:
        raise SettingsError("there is no URL to crawl from")
    if max_pages < 0 or max_depth < 0:
        raise SettingsError(f"max_pages={max_pages} and max_depth={max_depth} cannot be negative; 0 pages is no limit")
    seed = Seed(
        url="",
        scope=_scope(scope),
        allowed_domains=tuple(allowed_domains),
        depth_max=max_depth,
        pages_max=max_pages,
    )
    rules = canonical_rules(settings)
    seeds = tuple(replace(seed, url=canonical(url, rules)) for url in urls)
    with TemporaryDirectory(prefix="trawl-") as temporary:
        folder = Path(out) if out is not None else Path(temporary)
        plan = CrawlPlan(folder=folder, seeds=seeds, settings=settings, formats=wanted, fresh=fresh)
        async with aclosing(_pages(plan)) as pages:
            async for page in pages:
                yield page


def _scope(scope: ScopeKind | str) -> ScopeKind:
    try:
        return ScopeKind(scope)
    except ValueError:
        kinds = ", ".join(kind.value for kind in ScopeKind)
        raise SettingsError(f"there is no scope {scope!r}; the scopes are {kinds}") from None


async def _pages(plan: CrawlPlan) -> AsyncGenerator[Page, None]:
    waiting: asyncio.Queue[Page | None] = asyncio.Queue()
    room = asyncio.Semaphore(_PAGES_WAITING_MAX)

    async def told(document: ExtractedDocument, duplicate_of: str) -> None:
        await room.acquire()  # who reads slowly is crawled for slowly
        waiting.put_nowait(_page(document, duplicate_of))

    async def run_all(run: CrawlRun) -> None:
        try:
            await run.run()
        finally:
            waiting.put_nowait(None)

    async with AsyncExitStack() as stack:
        run = await _opened(plan, told, stack)
        task = asyncio.create_task(run_all(run))
        try:
            while (page := await waiting.get()) is not None:
                room.release()
                yield page
            await task
            summary = await run.summary()
            if summary["details"] and not summary["documents"]:
                raise FetchRefusedError("; ".join(summary["details"]))
        finally:
            run.stop()
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def _opened(plan: CrawlPlan, told: OnPage, stack: AsyncExitStack) -> CrawlRun:
    """Open a run; waits for one of this process that is being closed, as a loop left early is by the event loop."""
    ends = time.monotonic() + _CLOSING_SECONDS_MAX
    while True:
        try:
            return await stack.enter_async_context(CrawlRun(plan, on_page=told))
        except StoreInUseError as error:
            if error.holder != os.getpid() or time.monotonic() > ends:
                raise
        await asyncio.sleep(_CLOSING_SECONDS)


def extract(
    html: bytes | str, url: str, *, content_type: str | None = None, settings: ExtractSettings | None = None
) -> Extracted:
    """The content and what is known of one page; never raises for bad HTML.

    Bytes are decoded as a browser would, and taken for HTML unless their beginning or `content_type` says otherwise.
    """
    if isinstance(html, str):
        return _extracted(extract_html(html, url, content_type, settings), url)
    return _extracted(extract_body(html, url, content_type or "text/html", settings), url)


async def search(
    folder: Path | str, query: str, *, limit: int = 10, use: Use | str | None = None, settings: Settings | None = None
) -> list[Hit]:
    """Hybrid search (full text and vectors) over the crawl in a folder, best first, also while it runs.

    With `use`, such as `ai-train`, only chunks whose site does not forbid it. Raises ValueError if that is no use,
    StoreError if there is no crawl, and EmbedderMismatchError if it was indexed with another model.
    """
    index_settings = settings.index if settings else IndexSettings()
    embedder = WordllamaEmbedder()
    with closing(Database(Path(folder), read_only=True)) as database:
        index = SqliteSearchIndex(database)
        await index.open(embedder.name, embedder.dimensions)
        vector = await embedder.embed([query])
        asked = SearchQuery(
            text=query,
            vector=vector,
            limit=limit,
            candidates=index_settings.search_candidates,
            use=None if use is None else Use(use),
        )
        return list(await index.search(asked))


def _page(document: ExtractedDocument, duplicate_of: str) -> Page:
    return Page(
        url=document.url,
        final_url=document.final_url,
        title=document.title,
        markdown=document.markdown,
        text=document.text,
        status=document.status,
        fetched_at_ms=document.fetched_at_ms,
        duplicate_of=duplicate_of,
        document=document,
    )


def _extracted(found: Extraction, url: str) -> Extracted:
    about = found.metadata
    return Extracted(
        url=found.links.canonical or url,
        title=about.title,
        author=about.author,
        published=about.published,
        modified=about.modified,
        language=about.language,
        site_name=about.site_name,
        description=about.description,
        page_type=str(found.page_type),
        confidence=found.confidence,
        markdown=found.markdown,
        text=found.text,
        structured=json.loads(found.structured),
        links=tuple(link.url for link in found.links.links),
        images=about.images,
        charset=found.charset,
        content_sha256=found.content_sha256,
        reason=found.reason,
    )
