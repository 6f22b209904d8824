"""What a crawl fetches, and what becomes of the pages."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierSettings:
    """What is fetched, when, and how often it is tried."""

    queue_urls_max: int = 10_000_000
    """At this many queued URLs the one with the lowest score is evicted."""
    host_urls_max: int = 1_000_000
    """URLs admitted per host."""
    sitemaps_per_host_max: int = 5_000
    """Sitemaps, feeds and lists of URLs admitted per crawl and host; they do not count as pages."""
    sitemap_depth_max: int = 3
    """Levels of sitemaps below the first that are read (sitemaps.org allows one, real sites have up to three)."""
    path_segments_max: int = 24
    """A deeper path is refused as a trap."""
    query_parameters_max: int = 16
    """More query parameters are refused as a trap."""
    query_chars_max: int = 512
    """A longer query is refused as a trap."""
    segment_repeats_max: int = 3
    """A path segment (or run of segments) repeated more often is refused as a trap."""
    template_urls_max: int = 500_000
    """URLs admitted per host and URL template."""
    facet_template_urls_max: int = 1_000
    """URLs admitted per host and URL template with two or more query parameters."""
    template_results_min: int = 20
    """Results of a template before its duplicate share is judged."""
    template_throttle_share: float = 0.8
    """From this share of duplicates on, only one in ten URLs of a template is admitted."""
    template_close_share: float = 0.95
    """From this share of duplicates on, after 50 results, a template is closed."""
    attempts_max: int = 4
    """Tries of one visit before it is given up."""
    retry_seconds: float = 10.0
    """The wait before the second try, doubling each time, with jitter."""
    retry_seconds_max: float = 3600.0
    """The longest wait before another try."""
    lease_seconds: float = 600.0
    """A released task without an outcome returns to the queue after this time."""
    hosts_ready_max: int = 1000
    """Hosts looked at in one release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractSettings:
    """What is taken from a page."""

    links_max: int = 5_000
    """Links taken from one page."""
    anchor_chars_max: int = 200
    """A longer link text is shortened."""
    nodes_max: int = 100_000
    """A page is cut after this many elements (real pages: median 850, largest seen 10,000)."""
    depth_max: int = 150
    """Elements nested deeper are flattened into text (real pages: median 18, largest seen 55); at most 200."""
    text_chars_max: int = 5_000_000
    """Longer content is cut."""
    structured_bytes_max: int = 500_000
    """Structured data beyond this size is dropped."""
    absolute_links: bool = True
    """Whether links in Markdown are made absolute."""
    sitemap_bytes_max: int = 52_428_800
    """A sitemap is read up to this many unpacked bytes (sitemaps.org allows 50 MB)."""
    sitemap_urls_max: int = 50_000
    """URLs taken from one sitemap (sitemaps.org allows 50,000)."""
    unpack_layers_max: int = 2
    """Layers of gzip around a sitemap."""
    seconds_max: float = 20.0
    """Extraction of one page may take this long."""
    shell_chars_max: int = 400
    """A page with scripts and less main text than this may be a shell, which a browser is asked for."""
    added_share: float = 0.01
    """Where less of a rendered page's text than this came from its scripts, the page stands as it was fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupSettings:
    """When two documents are the same."""

    hamming_max: int = 3
    """Fingerprints that differ in at most this many bits are near-duplicates; 2 is the strict `< 3`."""
    tokens_min: int = 40
    """Shorter texts are compared exactly only, so that consent and error pages never collapse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """How documents become chunks, and chunks are found."""

    chunk_chars_target: int = 1_000
    """The size of a chunk that is aimed at."""
    chunk_chars_max: int = 2_000
    """No chunk is longer."""
    chunk_overlap_chars: int = 150
    """Text repeated from the chunk before, within a section."""
    embed_batch_max: int = 256
    """Chunks embedded in one call."""
    search_candidates: int = 100
    """Candidates taken from each of full text and vectors before fusion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """How the stages run in one process."""

    fetch_workers: int = 16
    """Fetches in flight."""
    extract_workers: int = 0
    """Extraction processes; 0 is one per core, 1 at the least."""
    index_workers: int = 1
    """Batches of documents indexed at the same time."""
    index_documents_max: int = 16
    """Documents embedded and indexed in one batch."""
    patience_seconds: float = 30.0
    """A crawl of which all that is left has to wait for longer than this ends; a host's own delay is waited for."""
    commit_seconds: float = 0.02
    """What is written in this time is committed together; a crash can cost that much work, never consistency."""
    queue_records_max: int = 64
    """Records waiting before each stage."""
    inbox_records_max: int = 2_000
    """Records waiting before the frontier in memory; more are spilled to its store."""
    queue_bytes_max: int = 64_000_000
    """While bodies of more bytes than this wait between the stages, no further fetch is begun."""
