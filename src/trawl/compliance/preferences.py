"""Preferences on the use of content, as sites write them in HTTP fields and in robots.txt (pure).

- AIPREF: `Content-Usage: train-ai=n`, a dictionary of RFC 9651 (draft-ietf-aipref-attach, draft-ietf-aipref-vocab).
- Content Signals: `Content-Signal: search=yes, ai-train=no` (contentsignals.org).

In robots.txt both may begin with a path; of the paths that match a URL the most specific one holds.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Final, TypeAlias

import http_sf

from trawl.kinds import Use
from trawl.robots import ExtensionLine, PathPattern, spelled_path

Preference: TypeAlias = tuple[Use, bool]
"""A use, and whether it is allowed."""

CONTENT_USAGE: Final = "content-usage"
CONTENT_SIGNAL: Final = "content-signal"
_SEARCH: Final = (Use.INDEX, Use.SNIPPET)
_USAGE_CATEGORIES: Final = {"train-ai": (Use.AI_TRAIN,), "search": _SEARCH}
_SIGNALS: Final = {"ai-train": (Use.AI_TRAIN,), "ai-input": (Use.AI_INPUT,), "search": _SEARCH}
_SIGNAL: Final = re.compile(r"\s*([a-z-]+)\s*=\s*(yes|no)\s*", re.IGNORECASE)
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


class Preferences:
    """The lines of an agent's group in a robots.txt that speak of the use of content; read once, asked for each URL."""

    def __init__(self, lines: Iterable[ExtensionLine]) -> None:
        self._lines: list[_Line] = []
        for line in lines:
            if line.name in READERS:
                path, text = _parted(line.value)
                self._lines.append(_Line(line, PathPattern(path) if path else None, text))

    def lines_for(self, url: str) -> list[tuple[ExtensionLine, tuple[Preference, ...]]]:
        """The lines that hold for a URL, with what they say: those of the most specific path, by name.

        A line without a path holds for all paths, and is the least specific. What says nothing is no line.
        """
        path = spelled_path(url)
        matching = [line for line in self._lines if line.pattern is None or line.pattern.matches(path)]
        matching.sort(key=lambda line: line.name_and_chars)
        found: list[tuple[ExtensionLine, tuple[Preference, ...]]] = []
        for _, of_name in groupby(matching, key=lambda line: line.source.name):
            for _, alike in groupby(of_name, key=lambda line: line.name_and_chars):
                said = [(line.source, line.said()) for line in alike]
                telling = [one for one in said if one[1]]
                if telling:
                    found += telling
                    break
        return found


class _Line:
    """One line, whose value is read when it is first needed."""

    __slots__ = ("_said", "_text", "name_and_chars", "pattern", "source")

    def __init__(self, source: ExtensionLine, pattern: PathPattern | None, text: str) -> None:
        self.source = source
        self.pattern = pattern
        self.name_and_chars = source.name, -(pattern.chars if pattern is not None else 0)
        self._text = text
        self._said: tuple[Preference, ...] | None = None

    def said(self) -> tuple[Preference, ...]:
        """What it says."""
        if self._said is None:
            self._said = READERS[self.source.name](self._text)
        return self._said


def _parted(value: str) -> tuple[str, str]:
    """The path that a value begins with, if it does, and the rest."""
    if not value.startswith("/"):
        return "", value
    path, _, text = value.replace("\t", " ").partition(" ")
    return path, text.strip()
