"""The arithmetic of politeness slots and of what is learned from answers (pure), shared by the stores."""

from dataclasses import replace
from typing import Final

from trawl.ports import PolitenessState, Reservation
from trawl.records import Millis

PERMIT_RETRY_MS: Final = 100
"""With all permits out, ask again after the interval, but not sooner than this."""
SMOOTHING: Final = 0.3
"""The weight of the newest response time."""


def slot_ms(now_ms: Millis, last_ms: Millis | None, blocked_until_ms: Millis, interval_ms: int) -> Millis:
    """The earliest start that the interval and the block allow."""
    after_last = now_ms if last_ms is None else last_ms + interval_ms
    return max(now_ms, blocked_until_ms, after_last)


def permits_out(now_ms: Millis, slot: Millis, interval_ms: int, first_expiry_ms: Millis) -> Reservation:
    """The refusal while all permits are out: ask again when one may be back, at the latest when the first expires."""
    again = max(slot, now_ms + max(interval_ms, PERMIT_RETRY_MS))
    return Reservation(granted=False, at_ms=max(now_ms + 1, min(again, first_expiry_ms)), gap_required_ms=interval_ms)


def observed(state: PolitenessState, *, response_ms: float | None, failed: bool, throttled: bool) -> PolitenessState:
    """What is known after one more answer.

    A failure adds one to the failures in a row, anything else ends the row. A 429 or 503 doubles the back-off once
    more; an answer that is neither that nor a failure takes one doubling back.
    """
    smoothed = state.response_ms
    if response_ms is not None:
        smoothed = response_ms if smoothed <= 0 else (1 - SMOOTHING) * smoothed + SMOOTHING * response_ms
    recovered = max(0, state.backoffs - 1) if not failed else state.backoffs
    return replace(
        state,
        response_ms=smoothed,
        failures=state.failures + 1 if failed else 0,
        backoffs=state.backoffs + 1 if throttled else recovered,
    )
