"""What the operator's own policy says of the use of pages, such as by a licence (pure).

One statement a line: `https://host/path USE=allow: reason`. What a policy says of a use holds over all that the site
says of it; whether a URL may be fetched is no such use, robots.txt alone decides that.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from trawl.compliance.statements import own_evidence
from trawl.errors import InvalidUrlError, SettingsError
from trawl.kinds import Use
from trawl.records import Evidence, Millis
from trawl.robots import PathPattern, spelled_path
from trawl.url import canonical, origin_of

EVERYWHERE: Final = "*"
"""In the place of a URL: all sites."""
_FORM: Final = re.compile(r"(\S+)\s+([a-z-]+)\s*=\s*(allow|deny)\s*(?::\s*(.*))?", re.DOTALL)
_USES: Final = tuple(use for use in Use if use is not Use.FETCH)


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    origin: str
    """Empty for all sites."""
    pattern: PathPattern
    use: Use
    allowed: bool

    def rank(self) -> tuple[bool, int]:
        """How specific it is."""
        return bool(self.origin), self.pattern.chars


class OwnPolicy:
    """Statements of the operator; asked for each URL."""

    def __init__(self, lines: Iterable[str] = ()) -> None:
        """Raises SettingsError for a line that is no statement."""
        self._by_origin: dict[str, list[_Statement]] = {}
        for line in lines:
            statement = _read(line)
            self._by_origin.setdefault(statement.origin, []).append(statement)

    def of(self, url: str, now_ms: Millis) -> Iterator[Evidence]:
        """What it says of a canonical URL: of each use, by the most specific statements that match."""
        path = spelled_path(url) if self._by_origin else ""
        candidates = (*self._by_origin.get(origin_of(url), ()), *self._by_origin.get("", ())) if path else ()
        matching = [one for one in candidates if one.pattern.matches(path)]
        for use in _USES:
            about = [one for one in matching if one.use is use]
            best = max((one.rank() for one in about), default=None)
            yield from (own_evidence(one.text, use, one.allowed, now_ms) for one in about if one.rank() == best)


def uses_of(setting: str, names: Iterable[str]) -> tuple[Use, ...]:
    """The uses that a setting names; raises SettingsError for a name that is none."""
    named = {str(use): use for use in _USES}
    found = list(names)
    for name in found:
        if name not in named:
            raise SettingsError(f"{setting} names {name!r}, which is no use of a page; the uses are {', '.join(named)}")
    return tuple(named[name] for name in found)


def _read(line: str) -> _Statement:
    found = _FORM.fullmatch(line.strip())
    if found is None:
        raise SettingsError(
            f"compliance.statements has {line!r}; a statement is `https://host/path USE=allow: reason`, or deny, "
            f"with {EVERYWHERE} for all sites; the uses are {', '.join(_USES)}"
        )
    where, use, verdict = found[1], found[2], found[3]
    origin, path = ("", "/") if where == EVERYWHERE else _place(where)
    (used,) = uses_of("compliance.statements", [use])
    return _Statement(line.strip(), origin, PathPattern(path), used, verdict == "allow")


def _place(url: str) -> tuple[str, str]:
    """The origin, and the pattern of paths, which may have `*` and `$` as in robots.txt."""
    try:
        parts = urlsplit(url)
        origin = origin_of(canonical(f"{parts.scheme}://{parts.netloc}/"))
    except (InvalidUrlError, ValueError) as error:
        raise SettingsError(f"compliance.statements names {url!r}, which is no URL: {error}") from None
    return origin, f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
