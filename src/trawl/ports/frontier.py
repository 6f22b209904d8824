"""What the frontier keeps: requests, queues, leases, budgets."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from trawl.kinds import DedupScope, Found, OutcomeClass, Purpose, RobotsState, ScopeKind
from trawl.records import Hop, Key, Millis, RecrawlPolicy, Validators


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedScope:
    """What one seed allows."""

    url: str
    """The canonical seed URL."""
    kind: ScopeKind
    """The scope relative to it."""
    allowed_domains: tuple[str, ...] = ()
    """Domains allowed besides."""
    seed_url: str = ""
    """The seed that redirected to `url`, if that is not itself a seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPolicy:
    """What a crawl allows besides the scopes of its seeds; stored when its first seed arrives."""

    crawl_id: str
    depth_max: int = 16
    pages_max: int = 0
    priority: float = 0.5
    recrawl: RecrawlPolicy = RecrawlPolicy()
    dedup_scope: DedupScope = DedupScope.CRAWL
    tags: tuple[str, ...] = ()
    paused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One URL of one crawl as the frontier knows it."""

    request_key: Key
    crawl_id: str
    url: str
    """Canonical."""
    origin: str
    """Scheme, host and port: the queue that it waits in."""
    template: Key
    """The hash of its host and URL template."""
    purpose: Purpose = Purpose.PAGE
    found: Found = Found.LINK
    depth: int = 0
    score: float = 0.0
    """Higher is sooner."""
    attempt: int = 1
    scheduled_at_ms: Millis = 0
    due_at_ms: Millis = 0
    """Not released earlier (retries and deferrals)."""
    validators: Validators = Validators()
    chain: tuple[Hop, ...] = ()
    chain_request_key: Key | None = None
    lastmod_ms: Millis | None = None
    nesting: int = 0
    """How many sitemaps, feeds and lists, one named by another, lead to it."""
    last_outcome: OutcomeClass | None = None
    """What its last visit that ended came to."""
    fetch_id: Key = 0
    """The fetch that holds the lease; 0 while queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What admitting one request did."""

    admitted: bool
    reason: str = ""
    """Why not: seen, queue_full, host_budget, sitemap_budget."""
    evicted_url: str = ""
    """The request that had to leave for it, if the queue was full."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """How a lease ends: for good, or back into the queue."""

    request_key: Key
    url: str
    """The request's, whose host says where its state lies."""
    fetch_id: Key
    outcome: OutcomeClass
    reason: str = ""
    status: int = 0
    detail: str = ""
    at_ms: Millis = 0
    requeue_at_ms: Millis | None = None
    """Back into the queue, due then; None ends the visit."""
    attempt: int = 1
    """The number of the next try, if requeued."""
    validators: Validators | None = None
    document_key: Key | None = None
    duplicate_of: Key | None = None
    content_sha256: str = ""
    charged: bool = True
    """Whether the visit counts against the crawl's budget of pages."""
    duplicate: bool | None = None
    """What the URL template learns: a duplicate, a page of its own, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginState:
    """One origin's queue and what is known of it."""

    origin: str
    robots: RobotsState = RobotsState.UNKNOWN
    robots_expires_ms: Millis = 0
    next_at_ms: Millis = 0
    """The pacing of releases: not before this."""
    blocked_until_ms: Millis = 0
    """Retry-After, back-off or breaker: not before this."""
    delay_ms: int = 0
    """The time between two releases."""
    concurrency_max: int = 1
    """Leases at the same time."""
    leased: int = 0
    queued: int = 0
    admitted: int = 0
    """URLs ever admitted."""
    failures: int = 0
    """Failures in a row, for the breaker."""
    last_served_ms: Millis = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginUpdate:
    """Fields of an origin to set; None leaves a field as it is."""

    robots: RobotsState | None = None
    robots_expires_ms: Millis | None = None
    blocked_until_ms: Millis | None = None
    """Only ever moves forward in time, unless `unblock` is set."""
    delay_ms: int | None = None
    """Counts from the last release."""
    concurrency_max: int | None = None
    failures: int | None = None
    unblock: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateCounts:
    """What is known of one host's URL template."""

    admitted: int = 0
    results: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlProgress:
    """How far a crawl is."""

    queued: int = 0
    leased: int = 0
    charged: int = 0
    """Pages counted against the budget."""
    outcomes: tuple[tuple[str, int], ...] = ()
    """Requests by the class of their last terminal outcome."""
    reasons: tuple[tuple[str, int], ...] = ()
    """Requests by `class:reason` of their last terminal outcome; the class alone where there is no reason."""
    refusals: tuple[tuple[str, int], ...] = ()
    """URLs refused at admission, by reason."""
    next_due_ms: Millis | None = None
    """When the first queued request is due; 0 if one is due already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request with its state, for people and tests."""

    request: Request
    state: str
    """queued, leased or done."""
    outcome: OutcomeClass | None = None
    reason: str = ""
    status: int = 0
    detail: str = ""
    at_ms: Millis = 0
    document_key: Key | None = None
    duplicate_of: Key | None = None
    visits: int = 0


class FrontierStore(Protocol):
    """Request state, queues, leases and budgets. One owner per shard of hosts; every method is atomic for each shard.

    What names a request names its URL too: the host in it says which shard holds its state.
    The times that its methods are told never go back; what is due is due as of the latest of them.
    """

    async def put_crawl(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None = None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        ...

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None = None) -> None:
        """Add to a crawl's scopes those that it does not have; each at the same cost, however many there are.

        A policy, which may be the crawl's first, replaces the stored one, but tags add up, and `paused` stays.
        """
        ...

    async def scopes(self, crawl_id: str, *, version: int = 0, known: int = 0) -> tuple[int, Sequence[SeedScope]]:
        """The version of a crawl's scopes, and the scopes in the order of their addition.

        Without the first `known`, if the version is still that one: it changes when the scopes are replaced.
        """
        ...

    async def crawl(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        ...

    async def seen(self, requests: Sequence[Request]) -> Sequence[bool]:
        """For each request whether it was ever admitted (and not evicted)."""
        ...

    async def admit(
        self, requests: Sequence[Request], *, queue_urls_max: int, host_urls_max: int, sitemaps_max: int = 5_000
    ) -> Sequence[Admission]:
        """Queue each request that was never seen; at the cap the lowest score of all leaves, or the request itself.

        At most `sitemaps_max` requests of a crawl and origin may be for no page. Of equal scores the youngest leaves. A
        request that was visited before is not forgotten: its next visit is called off.
        """
        ...

    async def readmit(self, crawl_id: str, now_ms: Millis, *, staleness: Callable[[float], float] | None = None) -> int:
        """Queue every finished request of a crawl for another visit, scheduled now; how many.

        `staleness` gives the part of a score that the seconds since the last outcome make; that of infinity, which a
        new request's score has, is exchanged for it. Without it scores stay.
        """
        ...

    async def count_refusals(self, crawl_id: str, reason: str, count: int) -> None:
        """Add to the crawl's refusals by reason."""
        ...

    async def templates(self, requests: Sequence[Request]) -> Sequence[TemplateCounts]:
        """What is known of the template of each request."""
        ...

    async def lease_robots(self, now_ms: Millis, limit: int, lease_ms: int) -> Sequence[str]:
        """Origins that have queued requests but no current robots.txt, each leased for one robots fetch.

        Only for crawls that are not paused and have budget left, and not while the origin is blocked, or before its
        `robots_expires_ms`. The lease ends when `update_origin` sets `robots`, or after `lease_ms`.
        """
        ...

    async def lease(self, now_ms: Millis, limit: int, lease_ms: int, *, origins_max: int) -> Sequence[Request]:
        """Up to `limit` due requests, best score first within an origin, least recently served origin first.

        Only origins whose robots.txt is known and current (any state but UNKNOWN: with UNAVAILABLE a last good copy may
        serve, and the caller ends or delays what none allows), that are not blocked, paced or at their concurrency, and
        crawls that are not paused and have budget left. Each result carries its new fetch id (`trawl.url.fetch_id`,
        of the request key, purpose, static render mode and scheduled time; a retry of a visit has the same). A request
        of purpose page, or auto, counts against the crawl's budget from here on, unless an earlier visit was counted.
        """
        ...

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False, and nothing is changed, if that fetch id does not hold it.

        Not `charged` takes back what the lease counted, never what an earlier visit did. A document key that is None
        leaves the one that is known; so does `duplicate_of`, if the outcome is UNCHANGED.
        """
        ...

    async def dismiss(self, endings: Sequence[Completion]) -> int:
        """End queued requests without a fetch, whatever their `fetch_id`; how many of them were queued.

        A request that was visited before stays as that visit left it: its next one is called off.
        """
        ...

    async def reap(self, now_ms: Millis) -> Sequence[Request]:
        """Return requests whose lease has expired to the queue, with one attempt more; which."""
        ...

    async def release_leases(self) -> int:
        """Return every leased request to the queue unchanged: for the one owner's start after a crash; how many."""
        ...

    async def origin(self, origin: str) -> OriginState | None:
        """What is known of an origin."""
        ...

    async def update_origin(self, origin: str, update: OriginUpdate) -> OriginState:
        """Set fields of an origin (created if new); its state afterwards."""
        ...

    async def origins(self, limit: int) -> Sequence[OriginState]:
        """Origins, most queued first."""
        ...

    async def progress(self, crawl_id: str) -> CrawlProgress:
        """How far a crawl is."""
        ...

    async def next_event_ms(self, now_ms: Millis) -> Millis | None:
        """The earliest time at which a lease or a robots fetch could become possible; None if nothing waits."""
        ...

    async def request(self, request_key: Key, url: str) -> RequestRow | None:
        """One request with its state, by its key and its URL, or another one of its host."""
        ...

    def rows(self, crawl_id: str) -> AsyncIterator[RequestRow]:
        """Every request of a crawl, in the order of admission."""
        ...


class SpillQueue(Protocol):
    """A first-in first-out queue of bytes that outgrew memory."""

    async def push(self, items: Sequence[bytes]) -> None:
        """Append in order."""
        ...

    async def pull(self, limit: int) -> Sequence[bytes]:
        """Remove and return the oldest."""
        ...

    async def size(self) -> int:
        """How many wait."""
        ...
