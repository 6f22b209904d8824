"""The records that stages exchange: frozen, slotted, one Avro schema each in `schemas/`.

Commands are imperative (FetchTask), facts are nouns or past tense (FetchOutcome). Every field has a default where a
reader of older bytes would need one, so that schemas evolve backward-compatibly. Times are integers: milliseconds
since the Unix epoch, UTC. Keys are 64-bit hashes as signed integers (see
`trawl.url`); people see them as 16 hex digits. The enumerations are in `trawl.kinds`.
"""

from dataclasses import dataclass
from typing import TypeAlias

from trawl.kinds import (
    BlockKind,
    ChangeKind,
    ControlAction,
    DedupScope,
    Found,
    Novelty,
    OutcomeClass,
    PageType,
    Purpose,
    RecrawlKind,
    RenderMode,
    RobotsState,
    ScopeKind,
    SeedKind,
    Stage,
)

Millis: TypeAlias = int
Key: TypeAlias = int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecrawlPolicy:
    """When a page of a crawl is visited again."""

    kind: RecrawlKind = RecrawlKind.ONCE
    """The rule that sets the next visit."""
    min_seconds: float = 3600.0
    """Never sooner than this after the last visit."""
    max_seconds: float = 2_592_000.0
    """Never later than this; the interval itself for `interval`, the promised age for `deadline`."""


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
class Hop:
    """One step of a redirect chain."""

    url: str
    """The URL that answered with a redirect."""
    status: int
    """Its HTTP status: 301, 302, 303, 307 or 308, or 200 for a meta refresh."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One discovered URL."""

    url: str
    """The absolute URL, resolved but not yet canonical."""
    depth: int = 0
    """Steps from the seed."""
    purpose: Purpose = Purpose.PAGE
    """What the URL is believed to point at."""
    found: Found = Found.LINK
    """How the URL was discovered."""
    anchor: str = ""
    """The link's text, shortened."""
    rel: tuple[str, ...] = ()
    """The link's rel tokens in lower case, for example nofollow."""
    lastmod_ms: Millis | None = None
    """The last modification that a sitemap or feed claims."""
    priority: float | None = None
    """The priority from 0 to 1 that a sitemap claims."""
    nesting: int = 0
    """How many sitemaps, feeds and lists, one named by another, lead to it; pages between them do not count."""


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
class Validators:
    """What a conditional request sends back (RFC 9110, section 13)."""

    etag: str = ""
    """The ETag as received, or empty."""
    last_modified: str = ""
    """The Last-Modified header as received, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """Bytes that travel inline up to a size, and by reference beyond it."""

    inline: bytes = b""
    """The bytes, if they travel inline."""
    ref: str = ""
    """The blob's reference, if they do not."""
    encoding: str = "identity"
    """How the bytes are compressed: identity or zstd."""
    size_bytes: int = 0
    """The size of the bytes before that compression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticRender:
    """What the static fetch of a page gave before a browser was asked."""

    body: Payload = Payload()
    """The static body."""
    text_sha256: str = ""
    """The hash of the text that the static body gave."""
    fetched_at_ms: Millis = 0
    """When the static body was fetched."""


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
class Header:
    """One response header field."""

    name: str
    """The field name in lower case."""
    value: str
    """The field value, decoded as ISO-8859-1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """How long the parts of a fetch took, in milliseconds, and how politely it came."""

    resolve_ms: float = 0.0
    """Name resolution."""
    connect_ms: float = 0.0
    """Connecting, TLS included."""
    first_byte_ms: float = 0.0
    """From sending the request to the first byte of the answer."""
    total_ms: float = 0.0
    """The whole fetch, redirects included, politeness waits excluded."""
    gap_required_ms: int = 0
    """The gap to the previous fetch of the same host that politeness required."""
    gap_actual_ms: int | None = None
    """The gap that was kept; none for a host's first fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One statement about what may be done with a page, and where it was made."""

    source: str
    """Where it stands, such as robots.txt, x-robots-tag, meta, content-usage, tdm-reservation or policy."""
    rule: str
    """The statement as written, shortened."""
    purpose: str
    """What it speaks of: fetch, follow, index, snippet, ai-input, ai-train."""
    allowed: bool
    """What it says."""
    seen_at_ms: Millis = 0
    """When it was seen."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsNews:
    """What a fetch of robots.txt learned about one origin."""

    origin: str
    """Scheme, host and port."""
    state: RobotsState
    """What holds from now on."""
    expires_at_ms: Millis
    """When robots.txt is to be fetched again."""


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
    price: str = ""
    """What the site asks for the page, as it says it, such as USD 0.01."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of main content."""

    kind: BlockKind
    """What it is."""
    text: str
    """Its text without markup."""
    markdown: str = ""
    """Its Markdown."""
    heading_path: tuple[str, ...] = ()
    """The headings above it, outermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The main content of a document: what travels as one payload where it is large."""

    text: str = ""
    """As plain text."""
    markdown: str = ""
    """As Markdown."""
    blocks: tuple[Block, ...] = ()
    """By blocks."""
    extracted: str = ""
    """The structured data, as in the document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedDocument:
    """The content of one page, or its withdrawal.

    Holds the minimum record of the extraction requirement: url, url_canonical, fetched_at, status, content_type,
    content_sha256, simhash, render_mode, final_url, response_headers, extracted, text, html_compressed, crawl_source.
    """

    document_key: Key
    """The identity of the document: crawl and canonical final URL."""
    crawl_id: str
    """The crawl that asked."""
    request_key: Key
    """The request that ended at this document."""
    fetch_id: Key
    """The fetch that brought it."""
    url: str
    """The URL as requested."""
    final_url: str
    """The URL that answered."""
    url_canonical: str = ""
    """The canonical URL that the page claims (rel=canonical), else its final URL."""
    fetched_at_ms: Millis = 0
    """When it was fetched."""
    status: int = 0
    """The HTTP status."""
    content_type: str = ""
    """The Content-Type header as received."""
    render_mode: RenderMode = RenderMode.STATIC
    """How the DOM was obtained."""
    response_headers: tuple[Header, ...] = ()
    """The response headers in order."""
    chain: tuple[Hop, ...] = ()
    """Every redirect on the way."""
    html: Payload = Payload()
    """The raw body, normally by reference (html_compressed of the requirement)."""
    charset: str = ""
    """The character encoding that the text was decoded with."""
    extracted: str = ""
    """Structured data as JSON, by class, for example schema.org/Product; empty is an empty object."""
    title: str = ""
    """The page's title."""
    author: str = ""
    """Who wrote it."""
    published: str = ""
    """When it was published, ISO 8601."""
    modified: str = ""
    """When it was last modified, ISO 8601."""
    language: str = ""
    """BCP 47 language tag."""
    site_name: str = ""
    """The site's name."""
    description: str = ""
    """The page's own summary."""
    images: tuple[str, ...] = ()
    """The main images' URLs."""
    keywords: tuple[str, ...] = ()
    """The page's own tags."""
    page_type: PageType = PageType.OTHER
    """What kind of page it is."""
    confidence: float = 0.0
    """From 0 to 1: how sure the extractor is of the content."""
    text: str = ""
    """The main content as plain text."""
    markdown: str = ""
    """The main content as Markdown."""
    blocks: tuple[Block, ...] = ()
    """The main content by blocks."""
    content_sha256: str = ""
    """SHA-256, in hex, of the normalised text."""
    simhash: Key = 0
    """SimHash-64 of the text, as a signed integer."""
    simhash_tokens: int = 0
    """How many tokens the fingerprint was made of."""
    fingerprint_version: int = 0
    """The version of the fingerprint algorithms."""
    evidence: tuple[Evidence, ...] = ()
    """What may be done with the page."""
    crawl_source: str = ""
    """Where the URL came from: how it was found."""
    depth: int = 0
    """Steps from the seed."""
    tags: tuple[str, ...] = ()
    """The seed's labels."""
    dedup_scope: DedupScope = DedupScope.CRAWL
    """Among which documents duplicates are looked for."""
    extractor: str = ""
    """The name and version of the extractor and of its learned artefacts."""
    validators: Validators = Validators()
    """Stored with the terminal outcome for the next conditional request."""
    withdrawal: str = ""
    """Empty, or the reason why the document is withdrawn (then there is no content)."""
    scheduled_at_ms: Millis = 0
    """When the visit was due."""
    released_at_ms: Millis = 0
    """When the frontier released the task."""
    content: Payload | None = None
    """On the wire: text, Markdown and blocks as one payload of JSON, where they are large; they are empty then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UniqueDocument:
    """A document that passed the duplicate gate, or left it."""

    document: ExtractedDocument
    """The document."""
    novelty: Novelty
    """New, changed or withdrawn."""
    previous_sha256: str = ""
    """The hash of the text that was indexed before."""
    previous_simhash: Key | None = None
    """The fingerprint of the text that was indexed before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedDocument:
    """A document whose chunks are searchable, or gone."""

    document_key: Key
    """The document."""
    crawl_id: str
    """The crawl."""
    url: str
    """Its final URL."""
    fetch_id: Key
    """The fetch that brought it."""
    chunks_added: tuple[Key, ...] = ()
    """The ids of chunks that were written."""
    chunks_kept: tuple[Key, ...] = ()
    """The ids of chunks that were there already."""
    chunks_removed: tuple[Key, ...] = ()
    """The ids of chunks that were deleted."""
    at_ms: Millis = 0
    """When it became searchable."""
    latency_ms: int = 0
    """The time since the frontier released the fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """Something that a person may want to be told."""

    event_id: Key
    """Deterministic, so that a repeated delivery is recognised."""
    kind: ChangeKind
    """What happened."""
    crawl_id: str
    """The crawl."""
    document_key: Key | None = None
    """The document, if the event is about one."""
    url: str = ""
    """Its URL."""
    sections: tuple[str, ...] = ()
    """The heading paths of the sections that changed."""
    summary: str = ""
    """One line, or a bounded Markdown diff."""
    old_sha256: str = ""
    """The text's hash before."""
    new_sha256: str = ""
    """The text's hash now."""
    old_simhash: Key | None = None
    """The fingerprint before."""
    new_simhash: Key | None = None
    """The fingerprint now."""
    at_ms: Millis = 0
    """When it was noticed."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that a stage could not handle, kept whole for inspection and replay."""

    stage: Stage
    """The stage that gave up."""
    reason: str
    """The typed reason."""
    topic: str
    """The topic that the record came from."""
    partition: int = -1
    """Its partition; -1 outside Kafka."""
    offset: int = -1
    """Its offset; -1 outside Kafka."""
    key: bytes = b""
    """Its key."""
    payload: Payload = Payload()
    """Its bytes."""
    error: str = ""
    """The exception's text and traceback, bounded."""
    at_ms: Millis = 0
    """When it happened."""


Record: TypeAlias = (
    Seed
    | DiscoveredLinks
    | FetchTask
    | FetchedPage
    | FetchOutcome
    | ExtractedDocument
    | UniqueDocument
    | IndexedDocument
    | ChangeEvent
    | CrawlControl
    | DeadLetter
)
"""Anything that travels on a topic."""
