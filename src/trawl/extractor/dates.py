"""Dates as pages write them, in ISO 8601 (pure)."""

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_ISO: Final = re.compile(
    r"(\d{4})-?(\d{2})-?(\d{2})(?:[T ]+(\d{2}):?(\d{2})(?::?(\d{2})(?:[.,]\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
_YEAR_MONTH: Final = re.compile(r"(\d{4})-(\d{2})$")
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero", "february feb februar febrero", "march mar märz mars marzo",
            "april apr avril abril", "may mai mayo", "june jun juni juin junio", "july jul juli juillet julio",
            "august aug août agosto", "september sep sept septembre septiembre",
            "october oct oktober octobre octubre", "november nov novembre noviembre",
            "december dec dezember décembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH_FIRST: Final = re.compile(r"\b([^\W\d]{3,10})\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b")
_DAY_FIRST: Final = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:de\s+)?([^\W\d]{3,10})\.?,?\s+(?:de\s+)?(\d{4})\b")
_CLOCK: Final = re.compile(r"\d:\d\d")
_REFRESH: Final = re.compile(r"\s*[\d.]*\s*[;,]?\s*(?:url\s*=\s*)?[\"']?\s*([^\"']+)", re.IGNORECASE)


def iso_date(text: str) -> str:
    """A date or time as ISO 8601: `YYYY-MM-DD`, or `YYYY-MM-DDTHH:MM:SSZ` in UTC where a zone is given.

    A time without a zone loses its time, since the moment is unknown. Text that holds no date gives an empty string.
    """
    text = text.strip()[:200]
    match = _ISO.match(text)
    if match:
        return _from_iso(match)
    return _from_http(text) or _from_words(text) if _CLOCK.search(text) else _from_words(text)


def epoch_ms(text: str) -> int | None:
    """A date of a sitemap or feed as milliseconds since the epoch, midnight UTC where it holds no time; else None."""
    text = text.strip()[:200]
    short = _YEAR_MONTH.match(text)
    iso = iso_date(f"{text}-01" if short else text)
    if not iso:
        return None
    moment = datetime.fromisoformat(iso).replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000


def _from_iso(match: re.Match[str]) -> str:
    year, month, day, hour, minute, second, zone = match.groups()
    try:
        if hour is None or zone is None:
            return datetime(int(year), int(month), int(day), tzinfo=UTC).date().isoformat()
        zone = "+00:00" if zone in "Zz" else zone if ":" in zone else f"{zone[:3]}:{zone[3:]}"
        moment = datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{zone}")
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError):
        return ""


def _from_words(text: str) -> str:
    match = _MONTH_FIRST.search(text)
    if match and match[1].lower() in _MONTHS:
        return _day(int(match[3]), _MONTHS[match[1].lower()], int(match[2]))
    match = _DAY_FIRST.search(text)
    if match and match[2].lower() in _MONTHS:
        return _day(int(match[3]), _MONTHS[match[2].lower()], int(match[1]))
    return ""


def _from_http(text: str) -> str:
    try:
        moment = parsedate_to_datetime(text)
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment.tzinfo else moment.date().isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def _day(year: int, month: int, day: int) -> str:
    try:
        return datetime(year, month, day, tzinfo=UTC).date().isoformat()
    except ValueError:
        return ""


def http_refresh_target(content: str) -> str:
    """The URL of a refresh directive such as `0; url=/new` (HTML 4.2.5.3), or empty."""
    if not re.search(r"[;,]|url", content, re.IGNORECASE):
        return ""
    match = _REFRESH.match(content)
    return match[1].strip() if match else ""
