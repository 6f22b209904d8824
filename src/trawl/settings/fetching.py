"""How URLs are fetched: limits, politeness, robots.txt."""

from dataclasses import dataclass
from typing import Final

from trawl._version import __version__

DEFAULT_USER_AGENT: Final = f"trawl/{__version__} (+https://github.com/trawl-project/trawl)"


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
    access_file: str = ""
    """A TOML file of credentials, proxies and TLS profiles by host (access.md)."""
    botauth_key_file: str = ""
    """The Ed25519 key (PEM) that signs each request, so that sites can check who asks (Web Bot Auth)."""
    botauth_agent_url: str = ""
    """Where that key's directory is served, https://HOST."""
    botauth_valid_seconds: float = 60.0
    """A signature holds for this long."""
    http3: bool = True
    """Whether a host that offers HTTP/3 (Alt-Svc) is asked over it from then on; never through a proxy."""
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
class ComplianceSettings:
    """What may be done with what was fetched (policy.md)."""

    statements: tuple[str, ...] = ()
    """The operator's own policy, such as a licence: each `https://host/path USE=allow: reason`, or deny (policy.md)."""
    require: tuple[str, ...] = ()
    """Uses that must not be forbidden, such as `ai-input`; a page that forbids one is not indexed."""
