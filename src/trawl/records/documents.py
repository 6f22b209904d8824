"""Documents on their way into the index, and what is told of them."""

from dataclasses import dataclass

from trawl.kinds import ChangeKind, DedupScope, Novelty, PageType, RenderMode
from trawl.records.parts import Block, Evidence, Header, Hop, Key, Millis, Payload, Validators


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
    rendering: str = ""
    """What a browser had to do with it: empty, rendered, or why the static page stands although one was asked."""
    hydrated: float | None = None
    """The share of a rendered page's text, from 0 to 1, that only its scripts brought; none without a browser."""
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
