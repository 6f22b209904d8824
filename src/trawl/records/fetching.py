"""What came of a fetch."""

from dataclasses import dataclass

from trawl.kinds import DedupScope, Found, Novelty, OutcomeClass, Purpose, RenderMode, Stage
from trawl.records.parts import (
    Evidence,
    Header,
    Hop,
    Key,
    Millis,
    Payload,
    RobotsNews,
    StaticRender,
    Timings,
    Validators,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """A body that was fetched."""

    fetch_id: Key
    """The fetch that brought it."""
    crawl_id: str
    """The crawl that asked."""
    request_key: Key
    """The request that asked."""
    url: str
    """The URL as requested."""
    final_url: str
    """The canonical URL that answered after redirects on the same host."""
    status: int
    """The HTTP status of the last answer."""
    fetched_at_ms: Millis
    """When the last answer began."""
    purpose: Purpose = Purpose.PAGE
    """Why it was fetched."""
    render_mode: RenderMode = RenderMode.STATIC
    """How the DOM was obtained."""
    depth: int = 0
    """Steps from the seed."""
    found: Found = Found.LINK
    """How the URL was discovered."""
    chain: tuple[Hop, ...] = ()
    """Every redirect on the way, those of other hosts included."""
    headers: tuple[Header, ...] = ()
    """The response headers in order."""
    content_type: str = ""
    """The Content-Type header as received."""
    body: Payload = Payload()
    """The body after content decoding."""
    http_version: str = ""
    """1.1, 2 or 3."""
    address: str = ""
    """The IP address that answered; empty through a proxy."""
    timings: Timings = Timings()
    """How long it took."""
    scheduled_at_ms: Millis = 0
    """When the visit was due."""
    released_at_ms: Millis = 0
    """When the frontier released the task."""
    evidence: tuple[Evidence, ...] = ()
    """What may be done with the page, as far as the fetch shows."""
    archive: str = ""
    """The locator of the archived response, or empty."""
    tags: tuple[str, ...] = ()
    """The seed's labels."""
    dedup_scope: DedupScope = DedupScope.CRAWL
    """Among which documents duplicates are looked for."""
    static_render: StaticRender | None = None
    """For a rendered page: what the static fetch gave."""
    nesting: int = 0
    """How many sitemaps, feeds and lists, one named by another, lead to it; pages between them do not count."""
    rendering: str = ""
    """Why a page for which a browser was asked is as it was fetched, for example render_timeout; else empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOutcome:
    """What became of a fetch, told to the frontier by the stage at which it ended."""

    url: str
    """The URL as requested."""
    crawl_id: str
    """The crawl that asked."""
    request_key: Key
    """The request that asked."""
    fetch_id: Key
    """The fetch."""
    stage: Stage
    """Where it ended."""
    outcome: OutcomeClass
    """What became of it."""
    reason: str = ""
    """The typed reason within the class, for example robots_disallowed."""
    terminal: bool = True
    """Whether this visit is over; if not, the frontier schedules it again."""
    purpose: Purpose = Purpose.PAGE
    """Why it was fetched."""
    status: int = 0
    """The HTTP status, 0 without an answer."""
    detail: str = ""
    """One line for people: what happened and what to do."""
    at_ms: Millis = 0
    """When it ended."""
    retry_after_ms: int | None = None
    """How long the server asked to be left alone, from `at_ms` on, for the whole host."""
    deferred_until_ms: Millis | None = None
    """When politeness allows the fetch, if it was put off."""
    redirect_target: str = ""
    """The URL on another host that the request was redirected to."""
    robots: RobotsNews | None = None
    """For a robots fetch: what was learned."""
    validators: Validators | None = None
    """What to send with the next conditional request."""
    address: str = ""
    """The IP address that answered."""
    elapsed_ms: float = 0.0
    """How long the fetch took, politeness waits excluded."""
    document_key: Key | None = None
    """The document that the request ended at."""
    duplicate_of: Key | None = None
    """The document key of the canonical document of which this is a duplicate."""
    duplicate_of_url: str = ""
    """Its URL."""
    content_sha256: str = ""
    """The hash of the normalised text."""
    simhash: Key | None = None
    """The near-duplicate fingerprint."""
    change: Novelty | None = None
    """How the document relates to what was indexed before."""
    needs_render: StaticRender | None = None
    """What the static fetch gave, if a browser should be asked."""
    gap_required_ms: int = 0
    """The politeness gap that was required."""
    gap_actual_ms: int | None = None
    """The politeness gap that was kept."""
    body_bytes: int = 0
    """The size of the decoded body."""
    hydrated: float | None = None
    """The share of a rendered page's text, from 0 to 1, that only its scripts brought; none without a browser."""
    price: str = ""
    """What the site asks for the page, as it says it, such as USD 0.01."""
