"""Retry-After (pure; RFC 9110, section 10.2.3)."""

from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

from trawl.records import Millis

SECONDS_MAX: Final = 10_000_000_000
"""About three centuries; longer is the same as for ever, and must fit a 64-bit time."""


def retry_after_ms(value: str, now_ms: Millis) -> int | None:
    """How long the server asks to be left alone, in milliseconds: 0 for a time past, None if it says nothing readable.

    Reads seconds (a decimal fraction is rounded up, as the next second is never too early) and the three forms of
    HTTP-date.
    """
    text = value.strip()
    whole, _, fraction = text.partition(".")
    if whole.isascii() and whole.isdigit() and (not fraction or (fraction.isascii() and fraction.isdigit())):
        seconds = int(whole[:20]) + (1 if fraction.strip("0") else 0)
        return 1000 * min(seconds, SECONDS_MAX)
    try:
        moment = parsedate_to_datetime(text)
        at_ms = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(0, at_ms - now_ms), 1000 * SECONDS_MAX)
