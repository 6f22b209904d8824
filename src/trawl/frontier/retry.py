"""When a visit that failed is tried again, by the class of its failure: pure."""

from dataclasses import dataclass

from trawl.kinds import OutcomeClass
from trawl.records import FetchOutcome, Millis
from trawl.settings import FrontierSettings

HOST_FAILURES = frozenset(
    {
        "connect_failed",
        "connection_lost",
        "connect_timeout",
        "first_byte_timeout",
        "dns_failed",
        "dns_not_found",
        "tls_failed",
    }
)
"""Reasons that speak of the host rather than of the URL; the breaker counts them."""

_FEWER_ATTEMPTS = {"tls_failed": 2, "dns_not_found": 2, "truncated": 3, "lease_expired": 3}
_NOT_COUNTED = frozenset({"robots_unknown", "expired"})


@dataclass(frozen=True, slots=True)
class Retry:
    """Another try: when, and which one it is."""

    at_ms: Millis
    attempt: int


def next_try(outcome: FetchOutcome, attempt: int, settings: FrontierSettings) -> Retry | None:
    """When to try again after a non-terminal outcome of try number `attempt`; None gives the visit up.

    A deferral, a fetch that never started and a page that waits for a browser do not count as a try. A failure waits
    `retry_seconds`, doubling, with a jitter of up to a half that is fixed by the fetch id; never less than the
    server's Retry-After.
    """
    if outcome.outcome is OutcomeClass.DEFERRED:
        return Retry(max(outcome.deferred_until_ms or 0, outcome.at_ms), attempt)
    if outcome.outcome is OutcomeClass.NEEDS_RENDER:
        return Retry(outcome.at_ms, attempt)
    if outcome.reason in _NOT_COUNTED:
        return Retry(outcome.at_ms + 1000, attempt)
    if attempt >= min(settings.attempts_max, _FEWER_ATTEMPTS.get(outcome.reason, settings.attempts_max)):
        return None
    wait_ms = backoff_ms(attempt, settings.retry_seconds, settings.retry_seconds_max)
    wait_ms += int(wait_ms * 0.5 * (outcome.fetch_id & 0xFFFF) / 0x10000)
    return Retry(outcome.at_ms + max(wait_ms, outcome.retry_after_ms or 0), attempt + 1)


def backoff_ms(step: int, seconds: float, seconds_max: float) -> int:
    """The wait before step `step` + 1, in milliseconds: `seconds` for step 1, doubling, up to `seconds_max`."""
    return int(1000 * min(seconds * 2.0 ** min(max(step - 1, 0), 60), seconds_max))
