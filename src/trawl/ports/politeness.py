"""When hosts may be fetched, and what their robots.txt says."""

from dataclasses import dataclass
from typing import Protocol

from trawl.kinds import RobotsState
from trawl.records import Key, Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """An answer to a wish to fetch from a host or address."""

    granted: bool
    at_ms: Millis
    """Granted: start then, not earlier. Not granted: ask again then (later than now, perhaps in vain)."""
    permit: int = 0
    """Identifies the permit to give back; 0 if not granted."""
    gap_required_ms: int = 0
    gap_actual_ms: int | None = None
    """From the start before this to `at_ms`; None for the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolitenessState:
    """What is known of how a host or address answers."""

    last_start_ms: Millis = 0
    blocked_until_ms: Millis = 0
    response_ms: float = 0.0
    """Smoothed response time; 0 if unknown."""
    failures: int = 0
    """Failures in a row."""
    backoffs: int = 0
    """429 and 503 answers, less recoveries: how far the back-off has doubled."""
    in_flight: int = 0


class PolitenessStore(Protocol):
    """When hosts and addresses were and may be fetched; shared by all fetchers, global to all crawls."""

    async def reserve(
        self,
        key: str,
        now_ms: Millis,
        *,
        interval_ms: int,
        horizon_ms: int,
        concurrency_max: int,
        permit_ms: int,
    ) -> Reservation:
        """Take the next slot of a key, at least `interval_ms` after the one before, if it is within the horizon.

        Not granted while blocked beyond the horizon or while `concurrency_max` permits (0 is no limit) are out; a
        permit that is not given back expires after `permit_ms` from its start.
        """
        ...

    async def release(self, key: str, permit: int) -> None:
        """Give a permit back; giving it back twice, or after it expired, is harmless."""
        ...

    async def block(self, key: str, until_ms: Millis) -> None:
        """Grant nothing before that time; never shortens a block."""
        ...

    async def observe(self, key: str, *, response_ms: float | None, failed: bool, throttled: bool) -> PolitenessState:
        """Learn from an answer: its time (smoothed 0.7 old to 0.3 new), a failure, a 429 or 503; the new state."""
        ...

    async def state(self, key: str) -> PolitenessState:
        """What is known of a key; defaults if nothing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsEntry:
    """An origin's robots.txt."""

    origin: str
    state: RobotsState
    body: bytes = b""
    """The rules, for RULES."""
    status: int = 0
    fetched_at_ms: Millis = 0
    expires_at_ms: Millis = 0
    good_at_ms: Millis | None = None
    """When the rules were last confirmed by the host."""
    failures: int = 0
    """Unavailable answers in a row."""
    reason: str = ""
    """Typed, for UNAVAILABLE: http_503, first_byte_timeout, dns_not_found, ..."""
    detail: str = ""
    """One line for people."""


class RobotsStore(Protocol):
    """robots.txt by origin; kept over restarts."""

    async def get(self, origin: str) -> RobotsEntry | None:
        """The entry, expired or not."""
        ...

    async def put(self, entry: RobotsEntry) -> None:
        """Store or replace an entry."""
        ...


class FetchMarkers(Protocol):
    """Which fetches are done, so that a task that is delivered again is not fetched again."""

    async def done(self, fetch_id: Key) -> bool:
        """Whether the fetch was marked not long ago."""
        ...

    async def mark(self, fetch_id: Key) -> None:
        """Remember that it is done, for a time."""
        ...
