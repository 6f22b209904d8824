"""TDMRep, the reservation of rights to text and data mining (pure).

Source: TDM Reservation Protocol, Final Community Group Report of 10 May 2024: the file of an origin, the header of an
answer, the metadata of a page. What comes later supersedes what came before.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from trawl.robots import PathPattern, spelled_path

TDMREP_PATH: Final = "/.well-known/tdmrep.json"
RULES_MAX: Final = 2_000
"""Rules read of a file; the rest of it is ignored."""
_VALUES: Final = {"1": True, "0": False}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Whether rights are reserved, and where to ask for a licence."""

    reserved: bool
    policy: str = ""
    """The URL of a policy; empty without one."""

    def __str__(self) -> str:
        return f"tdm-reservation: {int(self.reserved)}{f'; tdm-policy: {self.policy}' if self.policy else ''}"


def reservation(value: str, policy: str = "") -> Reservation | None:
    """What the values of a header or of meta elements say; None for a value that is neither 0 nor 1, which is unset."""
    reserved = _VALUES.get(value.strip())
    return None if reserved is None else Reservation(reserved, policy.strip() if reserved else "")


@dataclass(frozen=True, slots=True)
class TdmFile:
    """The rules of an origin's `/.well-known/tdmrep.json`, in order."""

    rules: tuple[tuple[str, Reservation], ...] = ()
    """Patterns of paths, each with what it says."""
    _patterns: list[PathPattern] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def parse(cls, body: bytes) -> "TdmFile":
        """Parse the body of a successful answer; never fails, what is no rule is skipped."""
        try:
            found = json.loads(body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return cls()
        several = found if isinstance(found, list) else []
        return cls(tuple(rule for rule in map(_rule, several[:RULES_MAX]) if rule is not None))

    def reservation(self, url: str) -> tuple[str, Reservation] | None:
        """The first rule that matches a URL: its pattern, and what it says."""
        if len(self._patterns) < len(self.rules):
            self._patterns[:] = [PathPattern(location) for location, _ in self.rules]
        path = spelled_path(url)
        pairs = zip(self._patterns, self.rules, strict=True)
        return next((rule for pattern, rule in pairs if pattern.matches(path)), None)


def _rule(found: Any) -> tuple[str, Reservation] | None:
    if not isinstance(found, dict):
        return None
    location, value, policy = (found.get(name) for name in ("location", "tdm-reservation", "tdm-policy"))
    if not isinstance(location, str) or isinstance(value, bool) or not isinstance(value, int | str):
        return None
    said = reservation(str(value), policy if isinstance(policy, str) else "")
    return None if said is None else (location if location.startswith("/") else f"/{location}", said)
