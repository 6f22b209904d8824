"""Preferences on the use of content, as sites write them in HTTP fields and in robots.txt (pure).

- AIPREF: `Content-Usage: train-ai=n`, a dictionary of RFC 9651 (draft-ietf-aipref-attach, draft-ietf-aipref-vocab).
- Content Signals: `Content-Signal: search=yes, ai-train=no` (contentsignals.org).

In robots.txt both may begin with a path; of the paths that match a URL the most specific one holds.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final, TypeAlias

import http_sf

from trawl.kinds import Use
from trawl.robots import ExtensionLine, specificity

Preference: TypeAlias = tuple[Use, bool]
"""A use, and whether it is allowed."""

CONTENT_USAGE: Final = "content-usage"
CONTENT_SIGNAL: Final = "content-signal"
_SEARCH: Final = (Use.INDEX, Use.SNIPPET)
_USAGE_CATEGORIES: Final = {"train-ai": (Use.AI_TRAIN,), "search": _SEARCH}
_SIGNALS: Final = {"ai-train": (Use.AI_TRAIN,), "ai-input": (Use.AI_INPUT,), "search": _SEARCH}
_SIGNAL: Final = re.compile(r"\s*([a-z-]+)\s*=\s*(yes|no)\s*", re.IGNORECASE)
_LINES_MAX: Final = 100
"""Lines of a group that are looked at; the rest of them is ignored."""
_PARTS_MAX: Final = 100
"""Signals read of one line; the rest of it is ignored."""


def content_usage(value: str) -> tuple[Preference, ...]:
    """What a statement of AIPREF says; nothing if it is no dictionary (draft-ietf-aipref-vocab, section 6.5)."""
    try:
        found = http_sf.parse(value.encode("ascii"), tltype="dictionary")
    except (http_sf.StructuredFieldError, UnicodeEncodeError, RecursionError):
        return ()
    members: Mapping[str, object] = found if isinstance(found, Mapping) else {}
    said = ((uses, _label(members.get(name))) for name, uses in _USAGE_CATEGORIES.items())
    return tuple((use, label == "y") for uses, label in said if label in {"y", "n"} for use in uses)


def _label(member: object) -> str:
    """The token of a dictionary's member; empty for anything else, such as a string or an inner list."""
    value = member[0] if isinstance(member, tuple) else None
    return str(value) if isinstance(value, http_sf.Token) else ""


def content_signal(value: str) -> tuple[Preference, ...]:
    """What a line of content signals says; of a signal that is given twice, the stricter holds."""
    parts = (_SIGNAL.fullmatch(part) for part in value.split(",")[:_PARTS_MAX])
    said = [(part[1].lower(), part[2].lower() == "yes") for part in parts if part is not None]
    return tuple((use, allowed) for name, allowed in said for use in _SIGNALS.get(name, ()))


READERS: Final[Mapping[str, Callable[[str], tuple[Preference, ...]]]] = {
    CONTENT_USAGE: content_usage,
    CONTENT_SIGNAL: content_signal,
}
"""By the name of the field, in lower case, how its value is read."""


def lines_for(lines: Iterable[ExtensionLine], url: str) -> list[tuple[ExtensionLine, tuple[Preference, ...]]]:
    """The lines of an agent's group that hold for a URL, with what they say: those of the most specific path, by name.

    A line without a path holds for all paths, and is the least specific.
    """
    best: dict[str, tuple[int, list[tuple[ExtensionLine, tuple[Preference, ...]]]]] = {}
    for line in islice((line for line in lines if line.name in READERS), _LINES_MAX):
        path, text = _parted(line.value)
        weight = specificity(path, url) if path else 0
        preferences = READERS[line.name](text)
        if weight is None or not preferences:
            continue
        known, found = best.get(line.name, (-1, []))
        if weight > known:
            best[line.name] = weight, [(line, preferences)]
        elif weight == known:
            found.append((line, preferences))
    return [one for _, found in best.values() for one in found]


def _parted(value: str) -> tuple[str, str]:
    """The path that a value begins with, if it does, and the rest."""
    if not value.startswith("/"):
        return "", value
    path, _, text = value.replace("\t", " ").partition(" ")
    return path, text.strip()
