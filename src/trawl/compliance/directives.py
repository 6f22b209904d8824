"""Directives for robots in `X-Robots-Tag` fields and meta elements, and what they mean for each use (pure).

Sources: Google's "Robots meta tag, data-nosnippet, and X-Robots-Tag specifications"; for the uses in AI, Google's
statement that `nosnippet` and `max-snippet` also keep a text out of AI answers, Bing's that `noarchive` and `nocache`
keep it out of chat and training, and DeviantArt's `noai`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from trawl.kinds import Use
from trawl.records import Millis

_AI: Final = (Use.AI_INPUT, Use.AI_TRAIN)
_NO_SNIPPET: Final = (Use.SNIPPET, Use.AI_INPUT)
_DENIES: Final = {
    "noindex": (Use.INDEX,),
    "nofollow": (Use.FOLLOW,),
    "none": (Use.INDEX, Use.FOLLOW),
    "nosnippet": _NO_SNIPPET,
    "noarchive": _AI,
    "nocache": _AI,
    "noai": _AI,
}
_ALLOWS: Final = {"index": (Use.INDEX,), "follow": (Use.FOLLOW,), "all": (Use.INDEX, Use.FOLLOW)}
_UNTIL: Final = "unavailable_after"
_SNIPPET_MAX: Final = "max-snippet"
_WITH_VALUE: Final = frozenset({_UNTIL, _SNIPPET_MAX, "max-image-preview", "max-video-preview"})
_AGENT: Final = re.compile(r"\s*([A-Za-z0-9_.-]+)\s*:(.*)", re.DOTALL)
_PARTS_MAX: Final = 200
"""Directives read of one field; the rest of it is ignored."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive."""

    name: str
    """In lower case."""
    value: str = ""
    """What follows its colon."""
    agent: str = ""
    """Whom it binds, in lower case; empty for everybody."""

    def __str__(self) -> str:
        text = f"{self.name}: {self.value}" if self.value else self.name
        return f"{self.agent}: {text}" if self.agent else text

    def binds(self, agent: str) -> bool:
        """Whether it binds the crawler with this product token."""
        return self.agent in {"", "*", "robots", agent.lower()}

    def says(self, now_ms: Millis) -> tuple[tuple[Use, bool], ...]:
        """The uses that it speaks of, each with whether it allows it at that time."""
        if self.name == _UNTIL:
            ends_ms = date_ms(self.value)
            return () if ends_ms is None else ((Use.INDEX, now_ms < ends_ms),)
        if self.name == _SNIPPET_MAX and self.value == "0":
            return tuple((use, False) for use in _NO_SNIPPET)
        denied = tuple((use, False) for use in _DENIES.get(self.name, ()))
        return denied or tuple((use, True) for use in _ALLOWS.get(self.name, ()))


def directives(field: str) -> tuple[Directive, ...]:
    """The directives of one field or attribute; never fails, what makes no sense stands for nothing.

    The name of an agent holds for what follows it, up to the next name. So fields that came apart must be read apart:
    in one that was joined of two, a directive for everybody may seem to be for the agent that is named before it.
    """
    return tuple(_read(field.split(",")[:_PARTS_MAX]))


def _read(parts: list[str]) -> Iterator[Directive]:
    agent, at = "", 0
    while at < len(parts):
        text, at = parts[at], at + 1
        while (named := _AGENT.fullmatch(text)) is not None and named[1].lower() not in _WITH_VALUE:
            agent, text = named[1].lower(), named[2]
        if named is None:
            name = text.strip().lower()
            if name:
                yield Directive(name, agent=agent)
            continue
        name, value = named[1].lower(), named[2].strip()
        if name == _UNTIL and value.isalpha() and at < len(parts):  # the weekday of a date
            value, at = f"{value},{parts[at]}", at + 1
        yield Directive(name, value.strip(), agent)


def date_ms(text: str) -> Millis | None:
    """A date of RFC 822, RFC 850 or ISO 8601; without a zone it is in UTC. None if it is none."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        try:
            found = parsedate_to_datetime(text.strip())
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    try:
        return int(1000 * (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None
