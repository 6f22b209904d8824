"""Names to addresses, and one HTTP request."""

from dataclasses import dataclass
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
    headers: tuple[tuple[str, str], ...] = ()
    address: str = ""
    """The checked address to connect to; empty only through a proxy."""
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


class HttpClient(Protocol):
    """One HTTP request at a time, with every cap enforced while it streams."""

    async def fetch(self, request: HttpRequest) -> HttpResponse | HttpFailure:
        """The answer, or a typed failure; never raises for what a server does."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
