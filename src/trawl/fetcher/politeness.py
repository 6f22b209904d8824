"""How gently a host is treated (pure): the interval, the back-off, the breaker."""

from typing import Final

from trawl.ports import PolitenessState
from trawl.rules import delay_seconds
from trawl.settings import PolitenessSettings

_DOUBLINGS_MAX: Final = 30


def interval_ms(state: PolitenessState, crawl_delay_seconds: float, settings: PolitenessSettings) -> int:
    """The least time between the starts of two fetches of a host, in milliseconds.

    The longest of the configured delay, the host's Crawl-delay (clamped) and a multiple of its response time (capped);
    doubled for each 429 or 503 that has not been recovered from, up to the longest back-off.
    """
    adaptive = min(settings.adaptive_factor * state.response_ms / 1000, settings.adaptive_seconds_max)
    seconds = max(delay_seconds(crawl_delay_seconds, settings), adaptive)
    widened = doubled(seconds, state.backoffs, max(seconds, settings.backoff_seconds_max))
    return round(1000 * widened)


def backoff_ms(state: PolitenessState, settings: PolitenessSettings) -> int:
    """How long a host is left alone after a 429 or 503 without Retry-After; `state` has counted it already."""
    return round(1000 * doubled(settings.backoff_seconds, state.backoffs - 1, settings.backoff_seconds_max))


def breaker_ms(state: PolitenessState, settings: PolitenessSettings) -> int:
    """How long a host that failed `breaker_failures` times in a row or more is left alone; 0 while it is not dead."""
    beyond = state.failures - settings.breaker_failures
    if beyond < 0 or not settings.breaker_failures:
        return 0
    return round(1000 * doubled(settings.breaker_seconds, beyond, settings.retry_after_seconds_max))


def doubled(seconds: float, times: int, seconds_max: float) -> float:
    """A time doubled so many times, up to a maximum."""
    return min(seconds * 2.0 ** min(max(times, 0), _DOUBLINGS_MAX), seconds_max)
