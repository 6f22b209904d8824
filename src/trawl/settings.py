"""Every limit and policy of a crawl, each with its unit last, its default and its meaning.

A setting is read, in rising order of precedence, from its default, a TOML file (`[fetch] body_bytes_max = 1000000`),
a variable of the environment (`TRAWL_FETCH_BODY_BYTES_MAX=1000000`) and the command line. A list in a variable is
parted by commas, or by line breaks if it has any.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from trawl._version import __version__
from trawl.errors import SettingsError

FILE_VARIABLE: Final = "TRAWL_SETTINGS"
"""The variable that names the TOML file."""
DEFAULT_USER_AGENT = f"trawl/{__version__} (+https://github.com/trawl-project/trawl)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlSettings:
    """What a canonical URL is."""

    url_chars_max: int = 2048
    """A longer URL is refused."""
    sort_query: bool = False
    """Whether query parameters are sorted in the canonical form."""
    drop_parameters: tuple[str, ...] = ()
    """Query parameters dropped besides the built-in tracking and session ones."""
    name_chars_max: int = 150
    """A longer file name is shortened and gets a hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How one URL is fetched."""

    user_agent: str = DEFAULT_USER_AGENT
    """The User-Agent header; its first product token is the name looked for in robots.txt."""
    headers: tuple[str, ...] = ()
    """Extra request headers, each `HOST: NAME: VALUE`; sent to that host only."""
    proxy: str = ""
    """An HTTP, HTTPS or SOCKS5 proxy URL for all fetches."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    allow_networks: tuple[str, ...] = ()
    """Networks in CIDR form that may be fetched although they are private or loopback."""
    body_bytes_max: int = 20_000_000
    """A decoded body larger than this ends the fetch with body_too_large."""
    wire_bytes_max: int = 20_000_000
    """More bytes than this on the wire end the fetch with wire_too_large."""
    decode_ratio_max: float = 200.0
    """A body that unpacks to more than this times its wire bytes ends the fetch with decode_ratio."""
    decode_ratio_bytes_min: int = 1_000_000
    """Bodies up to this size are not judged by their ratio."""
    header_bytes_max: int = 65_536
    """More header bytes than this end the fetch with headers_too_large."""
    header_count_max: int = 256
    """More header fields than this end the fetch with headers_too_large."""
    redirects_max: int = 10
    """A longer redirect chain ends the fetch with too_many_redirects."""
    addresses_tried_max: int = 3
    """Addresses of a host that one fetch tries, each after a connection to the one before was not made."""
    connect_seconds_max: float = 10.0
    """Connecting, TLS included, may take this long."""
    first_byte_seconds_max: float = 30.0
    """The first byte of the answer may take this long."""
    idle_seconds_max: float = 20.0
    """The body may pause this long."""
    total_seconds_max: float = 120.0
    """One request may take this long in all."""
    robots_seconds_max: float = 30.0
    """One request for robots.txt may take this long in all."""
    encoding_layers_max: int = 2
    """More content codings around one body end the fetch with bad_encoding."""
    accept_language: str = "en,*;q=0.5"
    """The Accept-Language header."""
    connections_idle_max: int = 256
    """Connections kept open for the next request of their host."""
    dns_seconds_max: float = 10.0
    """Resolving a name may take this long."""
    dns_cache_seconds: float = 60.0
    """A resolved name is remembered this long."""
    dns_cache_names_max: int = 10_000
    """Names remembered."""
    dns_threads_max: int = 16
    """Names resolved at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolitenessSettings:
    """How gently a host is treated."""

    delay_seconds: float = 1.0
    """The least time between the starts of two fetches of one host."""
    crawl_delay_seconds_max: float = 60.0
    """A longer Crawl-delay or Request-rate of robots.txt is clamped to this, and the clamp is logged."""
    adaptive_factor: float = 2.0
    """The delay is at least this times the host's smoothed response time; 0 turns it off."""
    adaptive_seconds_max: float = 30.0
    """The adaptive delay is never longer than this."""
    per_host_concurrency: int = 1
    """Fetches of one host in flight at the same time."""
    address_delay_seconds: float = 0.1
    """The least time between the starts of two fetches of one IP address; not applied through a proxy."""
    retry_after_seconds_max: float = 86_400.0
    """A longer Retry-After ends the fetch for this cycle; it is never shortened."""
    backoff_seconds: float = 5.0
    """A host that answers 429 or 503 without Retry-After is left alone this long, doubling each time."""
    backoff_seconds_max: float = 3600.0
    """The longest such pause."""
    breaker_failures: int = 8
    """After this many failures in a row a host counts as dead."""
    breaker_seconds: float = 300.0
    """A dead host is tried again after this time, doubling each time."""
    horizon_seconds: float = 2.0
    """A fetcher waits for a slot at most this long; a later slot sends the task back as deferred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsSettings:
    """How robots.txt is obeyed (RFC 9309)."""

    body_bytes_max: int = 512_000
    """Rules beyond this many bytes are ignored (RFC 9309 asks for at least 500 KiB)."""
    cache_seconds: float = 86_400.0
    """Rules are fetched again after this time."""
    unavailable_retry_seconds: float = 600.0
    """After a 429, a 5xx or a timeout robots.txt is tried again after this time, doubling up to the cache time."""
    last_good_seconds_max: float = 2_592_000.0
    """A last good copy serves this long while robots.txt is unavailable."""
    after_last_good: str = "disallow"
    """What holds after that: disallow or allow."""
    parsed_bytes_max: int = 4_000_000
    """robots.txt kept in memory for verdicts, by their bytes (parsed rules take some eight times as much)."""
    redirects_max: int = 5
    """Redirects of robots.txt that are followed (RFC 9309 asks for at least five)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Where the services' records travel."""

    bootstrap_servers: tuple[str, ...] = ("127.0.0.1:9092",)
    """Brokers to ask first, each HOST:PORT."""
    registry_url: str = ""
    """A schema registry with Confluent's API; empty writes Avro's single-object encoding."""
    schemas_folder: str = ""
    """Without a registry: a folder of the schemas (*.avsc) of another version whose records are to be read too."""
    security_protocol: str = "PLAINTEXT"
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    sasl_mechanism: str = "PLAIN"
    """PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""
    username: str = ""
    """The name for SASL."""
    password: str = ""
    """The password for SASL."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    group_prefix: str = "trawl"
    """Consumer groups are named PREFIX-STAGE."""
    partitions: int = 16
    """Partitions of a topic that is made; a host's records stay on one."""
    replication_factor: int = 1
    """Copies of a topic that is made."""
    record_bytes_max: int = 2_000_000
    """The largest record that brokers take."""
    inline_bytes_max: int = 900_000
    """What is larger, compressed, travels by reference."""
    linger_seconds: float = 0.005
    """A producer waits this long for records to send together."""
    session_seconds: float = 10.0
    """A consumer that is not heard of for this long loses its partitions."""
    request_seconds_max: float = 30.0
    """One request to a broker may take this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """Where the services keep hot state."""

    url: str = "redis://127.0.0.1:6379/0"
    """The server, or with `cluster` one node of it; rediss:// for TLS; user and password stand in it."""
    cluster: bool = False
    """Whether it is a Redis Cluster."""
    prefix: str = "trawl"
    """What every key begins with."""
    timeout_seconds: float = 5.0
    """One command may take this long."""
    connections_max: int = 64
    """Connections of one process."""
    fingerprint_tables: int = 4
    """4: bands of 16 bits; 10: pairs of five blocks, for tens of millions of documents and at most 3 bits."""
    fetched_seconds: float = 3600.0
    """How long a fetch that is done is remembered, so that a task delivered again is not fetched again."""
    politeness_seconds: float = 604_800.0
    """What is known of a host's answers is forgotten after this long without a fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchSettings:
    """Where the services keep pages and chunks."""

    url: str = "http://127.0.0.1:9200"
    """One node, or a load balancer."""
    username: str = ""
    """The name for basic authentication."""
    password: str = ""
    """The password for basic authentication."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    prefix: str = "trawl"
    """What every index, alias and pipeline begins with."""
    shards: int = 1
    """Shards of an index that is made."""
    replicas: int = 0
    """Copies of each shard of an index that is made."""
    refresh_seconds: float = 1.0
    """What is written becomes searchable after this long."""
    hnsw_m: int = 16
    """Links of a vector in the HNSW graph."""
    hnsw_ef_construction: int = 100
    """Candidates looked at when a vector is added."""
    bulk_bytes_max: int = 1_000_000
    """The size of one bulk request."""
    timeout_seconds: float = 30.0
    """One request may take this long."""
    connections_max: int = 16
    """Connections of one process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobSettings:
    """Where what is too large for a record lies."""

    url: str = "file:blobs"
    """file:FOLDER, which all services share (a relative one lies where they were started), or s3://BUCKET/PREFIX."""
    s3_endpoint: str = ""
    """The URL of an S3-compatible server; empty is AWS."""
    s3_region: str = "us-east-1"
    """The bucket's region."""
    s3_access_key: str = ""
    """The access key; empty takes key and secret from the variables, or the role of the machine, of AWS."""
    s3_secret_key: str = ""
    """The secret of that key."""
    s3_ca_file: str = ""
    """A PEM file of certificate authorities to trust besides the system's."""
    s3_timeout_seconds: float = 30.0
    """One request may take this long; it is tried again for as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedSettings:
    """Which model makes the vectors."""

    url: str = ""
    """An endpoint of the form of OpenAI's, up to and with /v1; empty is the packaged model."""
    model: str = ""
    """The model's name at that endpoint."""
    api_key: str = ""
    """Sent to it as a bearer token."""
    dimensions: int = 0
    """The length of its vectors; needed with a url."""
    ca_file: str = ""
    """A PEM file of certificate authorities to trust instead of the system's."""
    batch_max: int = 128
    """Texts in one request."""
    timeout_seconds: float = 30.0
    """One request may take this long."""
    attempts_max: int = 5
    """Tries of one request that fails for a time."""
    retry_seconds_max: float = 30.0
    """The longest wait before another try; a longer Retry-After ends the tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """How one service process runs."""

    host: str = "127.0.0.1"
    """Where it answers /metrics, /healthz and /readyz."""
    port: int = 0
    """On this port; 0 is any free one, which the log names."""
    in_flight_max: int = 256
    """Records under way in one process."""
    batch_max: int = 64
    """Records taken together where a stage works on batches."""
    release_max: int = 256
    """Fetches that the frontier releases in one turn."""
    outstanding_max: int = 2_000
    """Fetches of one frontier process that are out without an outcome; no further ones are released then."""
    tick_seconds: float = 0.05
    """The longest time between two turns of an idle frontier."""
    retry_seconds: float = 0.5
    """The first wait after a server did not answer, doubling each time."""
    retry_seconds_max: float = 15.0
    """The longest such wait."""
    check_seconds: float = 15.0
    """Between two looks at whether topics, Redis and OpenSearch are as they must be, work or none."""
    stop_seconds_max: float = 20.0
    """What is under way when a process is asked to stop may take this long."""
    log_level: str = "info"
    """debug, info, warning or error."""


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


_POSITIVE: Final = {
    "url": ("url_chars_max", "name_chars_max"),
    "fetch": (
        "body_bytes_max", "wire_bytes_max", "header_bytes_max", "header_count_max", "decode_ratio_max",
        "connect_seconds_max", "first_byte_seconds_max", "idle_seconds_max", "total_seconds_max", "robots_seconds_max",
        "connections_idle_max", "dns_seconds_max", "dns_cache_names_max", "dns_threads_max",
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


def read(path: Path | None) -> dict[str, Any]:
    """A file of settings, parsed, for `load`; empty without a path. Raises SettingsError."""
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SettingsError(f"there is no settings file {path}") from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"the settings file {path} cannot be read: {error}") from error


def load(document: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Settings from a parsed TOML document and the environment; raises SettingsError naming what is wrong."""
    groups = {group.name: group for group in fields(Settings)}
    for name, value in document.items():
        if name not in groups or not isinstance(value, Mapping):
            raise SettingsError(f"there is no group of settings [{name}]; the groups are {', '.join(groups)}")
    defaults = Settings()
    _all_known(groups, environ)
    return Settings(**{name: _group(getattr(defaults, name), name, document.get(name, {}), environ) for name in groups})


def validate(settings: Settings) -> Settings:
    """The settings, if each number in them can be used; raises SettingsError naming the first that cannot."""
    for group in fields(settings):
        values = getattr(settings, group.name)
        for name, hint in get_type_hints(type(values)).items():
            _checked(f"{group.name}.{name}", getattr(values, name), hint)
    return settings


def _all_known(groups: Mapping[str, Any], environ: Mapping[str, str]) -> None:
    """Raise SettingsError for a variable that looks like a setting and is none: a slip of the pen must not pass."""
    known = {
        f"TRAWL_{group}_{name}".upper(): f"TRAWL_{group}_".upper()
        for group, found in groups.items()
        for name in get_type_hints(found.default_factory)
    }
    prefixes = tuple(set(known.values()))
    for variable in environ:
        if variable.startswith(prefixes) and variable not in known:
            close = get_close_matches(variable, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "see docs/settings.md"
            raise SettingsError(f"the variable {variable} names no setting; {hint}")


def _group(defaults: Any, group: str, values: Mapping[str, Any], environ: Mapping[str, str]) -> Any:
    hints = get_type_hints(type(defaults))
    for name in values:
        if name not in hints:
            raise SettingsError(f"there is no setting {group}.{name}; see docs/settings.md")
    changes = {name: _checked(f"{group}.{name}", value, hints[name]) for name, value in values.items()}
    for name, hint in hints.items():
        variable = f"TRAWL_{group}_{name}".upper()
        if variable in environ:
            try:
                changes[name] = _parsed(f"{group}.{name}", environ[variable], hint)
            except SettingsError as error:
                raise SettingsError(f"the variable {variable} says that {error}") from None
    return replace(defaults, **changes)


def _checked(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(item, get_args(hint)[0]) for item in value):
            return tuple(value)
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return _in_range(name, float(value))
    elif hint is int and isinstance(value, int) and not isinstance(value, bool):
        return _in_range(name, value)
    elif hint in {str, bool} and isinstance(value, hint):
        return value
    wanted = "a list of texts" if get_origin(hint) is tuple else hint.__name__
    raise SettingsError(f"{name} = {value!r} cannot be used; it takes {wanted}")


def _in_range(name: str, value: float) -> float:
    group, _, setting = name.partition(".")
    if not 0 <= value < float("inf"):
        raise SettingsError(f"{name} = {value} cannot be used; it takes a number that is not negative")
    if not value and setting in _POSITIVE.get(group, ()):
        raise SettingsError(f"{name} = {value} cannot be used; it takes a number above zero")
    return value


def _parsed(name: str, text: str, hint: Any) -> Any:
    if get_origin(hint) is tuple:
        return tuple(part.strip() for part in text.split("\n" if "\n" in text else ",") if part.strip())
    if hint is bool:
        if text.lower() in {"1", "true", "yes", "on"}:
            return True
        if text.lower() in {"0", "false", "no", "off"}:
            return False
    try:
        value = hint(text) if hint is not bool else text
    except ValueError:
        value = text
    return _checked(name, value, hint)
