"""What `trawl rebuild` does: reads the page store and tells Redis what it held of the pages.

Every step may be done twice, so a rebuild that was cut off is done by the next one, and one that was not needed changes
nothing. Of a page little is held at a time, however many there are.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from trawl.adapters.clocks import SystemClock
from trawl.cli.options import needs
from trawl.dedup.stage import DedupStage
from trawl.errors import SettingsError
from trawl.frontier.score import score
from trawl.kinds import Found, OutcomeClass, Purpose, RecrawlKind
from trawl.pipeline import HOST_SHARDS
from trawl.ports import CrawlPolicy, FingerprintIndex, PageStore, Request, RequestRow, StoredPage
from trawl.records import ExtractedDocument, FetchOutcome, Key, Record, UniqueDocument
from trawl.settings import Settings
from trawl.url import fetch_id, origin_of, template, template_key

if TYPE_CHECKING:
    from trawl.adapters.opensearch.listing import PageListing
    from trawl.adapters.redis.restoring import FrontierRestoring

_BATCH: Final = 500
"""Pages between two writes of what the frontier is told."""
_PURPOSES: Final = (Purpose.PAGE, Purpose.AUTO)
_DEFAULT_POLICY: Final = CrawlPolicy(crawl_id="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be restored."""

    crawl_id: str | None = None
    """Only this crawl; None is all."""
    anew: bool = False
    """Whether the fingerprint index is dropped first."""
    only_fingerprints: bool = False
    """Whether the frontier is told nothing, so that every page is fetched again, and its links are found again."""
    only_seen: bool = False
    """Whether of requests only that they were seen is kept, in crawls whose policy Redis has lost."""


@dataclass(slots=True)
class Rebuilt:
    """What was found and restored so far."""

    pages: int = 0
    """Pages read."""
    fingerprints: int = 0
    """Fingerprints that were not there."""
    requests: int = 0
    """Requests that the frontier did not know."""
    withdrawn: int = 0
    """Withdrawn documents that are remembered."""
    repeated: int = 0
    """Pages that have the text of another page, under the settings as they are now."""
    superseded: int = 0
    """Pages of which Redis knew a newer fetch, or another owner."""
    crawls: dict[str, int] = field(default_factory=dict)
    """Pages by crawl."""
    without_policy: list[str] = field(default_factory=list)
    """Crawls of which Redis has lost what they allow."""
    seconds: float = 0.0


class Rebuild:
    """One rebuild, and how far it is."""

    def __init__(
        self,
        plan: Plan,
        *,
        pages: PageStore,
        listing: "PageListing",
        fingerprints: FingerprintIndex,
        frontier: "FrontierRestoring",
        settings: Settings,
    ) -> None:
        self._plan = plan
        self._pages = pages
        self._listing = listing
        self._fingerprints = fingerprints
        self._frontier = frontier
        self._clock = SystemClock()
        self._gate = DedupStage(fingerprints, settings.dedup, self._clock)
        self.done = Rebuilt()

    async def run(self, seen: Callable[[Rebuilt], None]) -> None:
        """Restore all that the plan names; `seen` is told after each batch. Raises StoreError."""
        began, before = time.monotonic(), await self._fingerprints.size()
        async for crawl_id in self._crawl_ids():
            policy = await self._frontier.policy(crawl_id)
            async for ended in self._restored(crawl_id, policy or _DEFAULT_POLICY):
                await self._remember(crawl_id, policy, ended)
                self.done.fingerprints = await self._fingerprints.size() - before
                self.done.seconds = time.monotonic() - began
                seen(self.done)
            await self._frontier.settle(crawl_id)
            if policy is None and crawl_id in self.done.crawls:
                self.done.without_policy.append(crawl_id)
        await self._forget_withdrawn()
        self.done.fingerprints = await self._fingerprints.size() - before
        self.done.seconds = time.monotonic() - began

    async def _forget_withdrawn(self) -> None:
        """Let older fetches of what was withdrawn be stale; the same fetch is judged again, as that of a duplicate is.

        The page store takes no fetch that is not newer, whatever its fingerprint.
        """
        async with aclosing(self._listing.withdrawn()) as withdrawn:
            async for document_key, fetched_at_ms in withdrawn:
                self.done.withdrawn += await self._fingerprints.forget(document_key, fetched_at_ms=fetched_at_ms - 1)

    async def _crawl_ids(self) -> AsyncIterator[str]:
        if self._plan.crawl_id is not None:
            yield self._plan.crawl_id
            return
        async for crawl_id in self._listing.crawl_ids():
            yield crawl_id

    async def _restored(self, crawl_id: str, policy: CrawlPolicy) -> AsyncIterator[list[RequestRow]]:
        """Restore the fingerprints of a crawl; the requests that led to its pages, so many at a time."""
        ended: list[RequestRow] = []
        async for page in self._pages.pages(crawl_id):
            await self._judge(page.document)
            ended.append(ended_request(page, policy.priority))
            self.done.pages += 1
            self.done.crawls[crawl_id] = self.done.crawls.get(crawl_id, 0) + 1
            if len(ended) == _BATCH:
                yield ended
                ended = []
        if ended:
            yield ended

    async def _judge(self, document: ExtractedDocument) -> None:
        """Let the duplicate gate see a document again: it stores the fingerprint, which then is as if just indexed."""
        for record in await self._gate.step(document):
            if isinstance(record, UniqueDocument) and not record.document.withdrawal:
                await self._fingerprints.commit(document.document_key, document.fetch_id)
            self._count(record)

    def _count(self, record: Record) -> None:
        if isinstance(record, FetchOutcome):
            self.done.repeated += record.outcome is OutcomeClass.DUPLICATE
            self.done.superseded += record.outcome is OutcomeClass.ALIAS or record.reason == "superseded"

    async def _remember(self, crawl_id: str, policy: CrawlPolicy | None, ended: list[RequestRow]) -> None:
        if self._plan.only_fingerprints:
            return
        once = self._plan.only_seen if policy is None else policy.recrawl.kind is RecrawlKind.ONCE
        now_ms = self._clock.now_ms()
        self.done.requests += await self._frontier.restore(crawl_id, ended, only_seen=once, now_ms=now_ms)


def ended_request(page: StoredPage, priority: float) -> RequestRow:
    """The request that led to a page, as the frontier had it after its visit (pure).

    What the page does not tell is as for a request of which nothing special is known: what a sitemap said of its
    importance, how often it was visited, and the redirects from other hosts.
    """
    document = page.document
    request = Request(
        request_key=document.request_key,
        crawl_id=document.crawl_id,
        url=document.url,
        origin=origin_of(document.url),
        template=template_key(template(document.url)),
        purpose=_purpose_of(document),
        found=_found(document.crawl_source),
        depth=document.depth,
        score=score(depth=document.depth, seed_priority=priority),
        scheduled_at_ms=document.scheduled_at_ms,
        due_at_ms=document.scheduled_at_ms,
        validators=document.validators,
        last_outcome=OutcomeClass.INDEXED,
    )
    return RequestRow(
        request=request,
        state="done",
        outcome=OutcomeClass.INDEXED,
        status=document.status,
        at_ms=page.indexed_at_ms or document.fetched_at_ms,
        document_key=document.document_key,
        visits=1,
    )


def _purpose_of(document: ExtractedDocument) -> Purpose:
    """Why it was fetched: the fetch id tells, which is made of that."""

    def made_of(purpose: Purpose) -> Key:
        return fetch_id(document.request_key, purpose, document.render_mode, document.scheduled_at_ms)

    return next((purpose for purpose in _PURPOSES if made_of(purpose) == document.fetch_id), Purpose.PAGE)


def _found(source: str) -> Found:
    with suppress(ValueError):
        return Found(source)
    return Found.UNKNOWN


async def rebuild(settings: Settings, plan: Plan, seen: Callable[[Rebuilt], None]) -> Rebuilt:
    """Restore in the Redis of these settings what their OpenSearch knows. Raises SettingsError, StoreError."""
    if plan.anew and plan.crawl_id is not None:
        raise SettingsError("--anew drops the fingerprints of all crawls, so it cannot go with --crawl; leave one out")
    if plan.only_seen and plan.only_fingerprints:
        raise SettingsError("--only-fingerprints restores no request, so --only-seen means nothing; leave one out")
    with needs("redis"):
        from trawl.adapters.redis import RedisFingerprintIndex  # noqa: PLC0415 - an extra
        from trawl.adapters.redis import connect as connect_redis  # noqa: PLC0415 - an extra
        from trawl.adapters.redis.restoring import FrontierRestoring, drop_fingerprints  # noqa: PLC0415 - an extra
    with needs("opensearch"):
        from trawl.adapters.opensearch import OpenSearchPageStore  # noqa: PLC0415 - an extra
        from trawl.adapters.opensearch import connect as connect_opensearch  # noqa: PLC0415 - an extra
        from trawl.adapters.opensearch.listing import PageListing  # noqa: PLC0415 - an extra
    async with AsyncExitStack() as stack:
        redis, opensearch = connect_redis(settings.redis), connect_opensearch(settings.opensearch)
        stack.push_async_callback(redis.close)
        stack.push_async_callback(opensearch.close)
        await redis.check()
        listing = PageListing(opensearch, settings.opensearch)
        await listing.check()
        if plan.anew:
            await drop_fingerprints(redis)
        running = Rebuild(
            plan,
            pages=OpenSearchPageStore(opensearch, settings.opensearch),
            listing=listing,
            fingerprints=RedisFingerprintIndex(redis, settings.redis),
            frontier=FrontierRestoring(redis, shards=HOST_SHARDS),
            settings=settings,
        )
        await running.run(seen)
        return running.done


def plain(done: Rebuilt) -> dict[str, object]:
    """The same for JSON."""
    return {**asdict(done), "seconds": round(done.seconds, 3)}
