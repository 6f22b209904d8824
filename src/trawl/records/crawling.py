"""What is to be crawled: seeds, links, tasks, orders."""

from dataclasses import dataclass

from trawl.kinds import ControlAction, DedupScope, Found, OutcomeClass, Purpose, RenderMode, ScopeKind, SeedKind
from trawl.records.parts import Hop, Key, Link, Millis, RecrawlPolicy, StaticRender, Validators


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A URL that a person asks to be crawled, and what the crawl allows."""

    url: str
    """The absolute URL to start from."""
    kind: SeedKind = SeedKind.AUTO
    """What the URL points at; `auto` decides by the body."""
    crawl_id: str = "default"
    """The namespace of the crawl: tenant, project or site."""
    scope: ScopeKind = ScopeKind.HOST
    """Which URLs may be visited, relative to this seed."""
    allowed_domains: tuple[str, ...] = ()
    """Registrable domains or hosts that are in scope besides the seed's."""
    depth_max: int = 16
    """Links further than this many steps from a seed are refused."""
    pages_max: int = 0
    """The crawl's budget in pages; 0 is no limit."""
    priority: float = 0.5
    """From 0 (last) to 1 (first), weighed into the score of every URL found through this seed."""
    recrawl: RecrawlPolicy = RecrawlPolicy()
    """When pages are visited again."""
    dedup_scope: DedupScope = DedupScope.CRAWL
    """Among which documents duplicates are looked for."""
    tags: tuple[str, ...] = ()
    """Free labels that travel to the indexed documents."""
    submitted_at_ms: Millis = 0
    """When the seed was published; 0 if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredLinks:
    """Up to 500 URLs of one host, found in one place."""

    crawl_id: str
    """The crawl that the links belong to."""
    source_url: str
    """Where the links were found; the seed itself for seeds."""
    target_host: str
    """The host and port, canonical, that all links share; the key of the topic."""
    links: tuple[Link, ...] = ()
    """The links."""
    chain: tuple[Hop, ...] = ()
    """The redirects so far, if a redirect to another host was found."""
    chain_request_key: Key | None = None
    """The request that began the chain and becomes an alias of its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchTask:
    """Fetch this URL now."""

    fetch_id: Key
    """The identity of this fetch: request, purpose, render mode and scheduled time."""
    crawl_id: str
    """The crawl that asks."""
    request_key: Key
    """The identity of the request: crawl and canonical URL as requested."""
    url: str
    """The canonical URL to request."""
    purpose: Purpose = Purpose.PAGE
    """Why it is fetched."""
    render_mode: RenderMode = RenderMode.STATIC
    """Whether a browser is asked."""
    depth: int = 0
    """Steps from the seed."""
    found: Found = Found.LINK
    """How the URL was discovered."""
    validators: Validators = Validators()
    """What a conditional request sends."""
    attempt: int = 1
    """1 for the first try of this visit."""
    scheduled_at_ms: Millis = 0
    """When the visit was due; part of the fetch id."""
    released_at_ms: Millis = 0
    """When the frontier released the task."""
    not_before_ms: Millis = 0
    """The fetch must not start earlier."""
    expires_at_ms: Millis = 0
    """The fetcher drops the task after this; the frontier has leased it until then. 0 is never."""
    chain: tuple[Hop, ...] = ()
    """Redirects that led here from another host."""
    chain_request_key: Key | None = None
    """The request that began that chain."""
    tags: tuple[str, ...] = ()
    """The seed's labels."""
    dedup_scope: DedupScope = DedupScope.CRAWL
    """Among which documents duplicates are looked for."""
    static_render: StaticRender | None = None
    """For a render task: what the static fetch gave."""
    nesting: int = 0
    """How many sitemaps, feeds and lists, one named by another, lead to it; pages between them do not count."""
    last_outcome: OutcomeClass | None = None
    """What the visit before this one ended as; it still holds if nothing has changed."""
    path_scoped: bool = False
    """Whether only some paths of the host are in scope: the frontier then judges the target of every redirect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlControl:
    """An operator's order about a crawl; the latest one holds."""

    crawl_id: str
    """The crawl."""
    action: ControlAction
    """What to do."""
    target: str = ""
    """A URL or host for a takedown."""
    pages_max: int = 0
    """The new budget in pages for `limit`; 0 is no limit."""
    issued_at_ms: Millis = 0
    """When it was ordered."""
