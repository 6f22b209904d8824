"""What several records are made of."""

from dataclasses import dataclass
from typing import TypeAlias

from trawl.kinds import BlockKind, Found, Purpose, RecrawlKind, RobotsState

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
    render_ms: float = 0.0
    """How long the browser worked on the page; not part of the total."""


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
class RobotsNews:
    """What a fetch of robots.txt learned about one origin."""

    origin: str
    """Scheme, host and port."""
    state: RobotsState
    """What holds from now on."""
    expires_at_ms: Millis
    """When robots.txt is to be fetched again."""


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
