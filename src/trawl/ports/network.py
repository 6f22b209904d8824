"""Names to addresses, and one HTTP request."""

from dataclasses import dataclass, field
from typing import Protocol

from trawl.records import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What a host name resolves to."""

    addresses: tuple[str, ...] = ()
    """IPv4 and IPv6 addresses as text; empty on failure."""
    error: str = ""
    """Why there are none: dns_not_found, dns_failed."""
    detail: str = ""
    elapsed_ms: float = 0.0


class Resolver(Protocol):
    """Host names to addresses."""

    async def resolve(self, host: str) -> Resolution:
        """All addresses of a host; a literal address resolves to itself. Never raises for a bad name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One HTTP request, without following redirects."""

    url: str
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    address: str = ""
    """The checked address to connect to; empty only through a proxy."""
    proxy: str | None = field(default=None, repr=False)
    """The proxy's URL; empty for none, None for that of the settings."""
    impersonate: str = ""
    """The browser whose TLS and HTTP/2 handshake is spoken; empty for our own."""
    body_bytes_max: int = 20_000_000
    cut_body: bool = False
    """Whether a larger body is cut to `body_bytes_max` instead of failing."""
    total_seconds_max: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """One HTTP answer with its whole body."""

    status: int
    headers: tuple[Header, ...]
    body: bytes
    """After content decoding."""
    wire_bytes: int
    http_version: str
    address: str
    """The peer's address as the connection reports it."""
    connect_ms: float = 0.0
    first_byte_ms: float = 0.0
    total_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFailure:
    """A request that brought no usable answer."""

    reason: str
    """Typed, for example connect_failed, tls_failed, first_byte_timeout, body_too_large, decode_ratio, truncated."""
    detail: str
    """One line for people."""
    retryable: bool
    status: int = 0
    headers: tuple[Header, ...] = ()
    address: str = ""
    total_ms: float = 0.0


class Signer(Protocol):
    """Says who we are in a way that a server can check."""

    def fields(self, url: str) -> tuple[tuple[str, str], ...]:
        """The header fields for one request to a URL, made when it is sent."""
        ...


class HttpClient(Protocol):
    """One HTTP request at a time, with every cap enforced while it streams."""

    async def fetch(self, request: HttpRequest) -> HttpResponse | HttpFailure:
        """The answer, or a typed failure; never raises for what a server does."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
