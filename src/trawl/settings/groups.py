"""All settings together, and which of them may not be zero."""

from dataclasses import dataclass, field
from typing import Final

from trawl.settings.crawling import DedupSettings, EmbeddedSettings, ExtractSettings, FrontierSettings, IndexSettings
from trawl.settings.fetching import ComplianceSettings, FetchSettings, PolitenessSettings, RobotsSettings, UrlSettings
from trawl.settings.rendering import BrowserSettings
from trawl.settings.serving import (
    BlobSettings,
    EmbedSettings,
    KafkaSettings,
    OpenSearchSettings,
    RedisSettings,
    ServiceSettings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of a crawl."""

    url: UrlSettings = field(default_factory=UrlSettings)
    """What a canonical URL is."""
    fetch: FetchSettings = field(default_factory=FetchSettings)
    """How one URL is fetched."""
    politeness: PolitenessSettings = field(default_factory=PolitenessSettings)
    """How gently a host is treated."""
    robots: RobotsSettings = field(default_factory=RobotsSettings)
    """How robots.txt is obeyed."""
    compliance: ComplianceSettings = field(default_factory=ComplianceSettings)
    """What may be done with what was fetched."""
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    """When a page is shown in a browser, and what it may do there."""
    frontier: FrontierSettings = field(default_factory=FrontierSettings)
    """What is fetched, when."""
    extract: ExtractSettings = field(default_factory=ExtractSettings)
    """What is taken from a page."""
    dedup: DedupSettings = field(default_factory=DedupSettings)
    """When two documents are the same."""
    index: IndexSettings = field(default_factory=IndexSettings)
    """How documents become chunks."""
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    """How the stages run in one process."""
    kafka: KafkaSettings = field(default_factory=KafkaSettings)
    """Where the services' records travel."""
    redis: RedisSettings = field(default_factory=RedisSettings)
    """Where the services keep hot state."""
    opensearch: OpenSearchSettings = field(default_factory=OpenSearchSettings)
    """Where the services keep pages and chunks."""
    blobs: BlobSettings = field(default_factory=BlobSettings)
    """Where what is too large for a record lies."""
    embed: EmbedSettings = field(default_factory=EmbedSettings)
    """Which model makes the vectors."""
    service: ServiceSettings = field(default_factory=ServiceSettings)
    """How one service process runs."""


POSITIVE: Final = {
    "url": ("url_chars_max", "name_chars_max"),
    "fetch": (
        "body_bytes_max", "wire_bytes_max", "header_bytes_max", "header_count_max", "decode_ratio_max",
        "connect_seconds_max", "first_byte_seconds_max", "idle_seconds_max", "total_seconds_max", "robots_seconds_max",
        "connections_idle_max", "botauth_valid_seconds", "dns_seconds_max", "dns_cache_names_max", "dns_threads_max",
    ),
    "browser": (
        "pages_max", "pages_per_context_max", "seconds_max", "requests_max", "wire_bytes_max", "html_bytes_max",
        "memory_bytes_max", "sample_pages_min", "sample_pages_max",
    ),
    "politeness": ("per_host_concurrency", "breaker_failures"),
    "robots": ("body_bytes_max", "cache_seconds", "unavailable_retry_seconds"),
    "frontier": (
        "queue_urls_max", "host_urls_max", "path_segments_max", "segment_repeats_max", "attempts_max", "lease_seconds",
        "hosts_ready_max",
    ),
    "extract": ("nodes_max", "depth_max", "text_chars_max", "sitemap_bytes_max", "sitemap_urls_max", "seconds_max"),
    "index": ("chunk_chars_target", "chunk_chars_max", "embed_batch_max", "search_candidates"),
    "embedded": (
        "fetch_workers", "index_workers", "index_documents_max", "queue_records_max", "queue_bytes_max",
        "inbox_records_max",
    ),
    "kafka": (
        "partitions", "replication_factor", "record_bytes_max", "inline_bytes_max", "session_seconds",
        "request_seconds_max",
    ),
    "redis": ("timeout_seconds", "connections_max", "fingerprint_tables", "fetched_seconds", "politeness_seconds"),
    "opensearch": (
        "shards", "refresh_seconds", "hnsw_m", "hnsw_ef_construction", "bulk_bytes_max", "timeout_seconds",
        "connections_max",
    ),
    "blobs": ("s3_timeout_seconds",),
    "embed": ("batch_max", "timeout_seconds", "attempts_max", "retry_seconds_max"),
    "service": (
        "in_flight_max", "batch_max", "release_max", "outstanding_max", "tick_seconds", "retry_seconds",
        "retry_seconds_max", "check_seconds", "stop_seconds_max",
    ),
}  # fmt: skip
"""Settings of which zero would let nothing through, wait for ever, or mean no limit at all."""
