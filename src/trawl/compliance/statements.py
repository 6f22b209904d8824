"""Statements about one URL, from each place where a site makes them, as evidence (pure)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from trawl.compliance.directives import directives
from trawl.compliance.preferences import READERS, Preferences
from trawl.compliance.tdmrep import Reservation, TdmFile, reservation
from trawl.kinds import Use
from trawl.records import Evidence, Millis
from trawl.robots import Robots

ALIKE_MAX: Final = 3
"""Statements of one source that say the same of one use."""
RULE_CHARS_MAX: Final = 200
"""A statement is quoted up to this length."""
ROBOTS_TXT: Final = "robots.txt"
ROBOTS_TAG: Final = "x-robots-tag"
META: Final = "meta"
TDM_FILE: Final = "tdmrep.json"
TDM_HEADER: Final = "tdm-reservation"
TDM_META: Final = "meta tdm-reservation"
POLICY: Final = "policy"
_TDM_USES: Final = (Use.AI_INPUT, Use.AI_TRAIN)


def of_robots(robots: Robots, preferences: Preferences, agent: str, url: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    """What robots.txt says of fetching a URL, and of the use of what is found there."""
    verdict = robots.verdict(agent, url)
    if verdict.rule is not None:
        yield _evidence(ROBOTS_TXT, f"line {verdict.line}: {verdict.rule}", Use.FETCH, verdict.allowed, seen_at_ms)
    if not verdict.allowed:
        return  # draft-ietf-aipref-attach, section 3.1: what may not be crawled has no preferences
    for line, said in preferences.lines_for(url):
        for use, allowed in said:
            yield _evidence(ROBOTS_TXT, f"line {line.line}: {line.name}: {line.value}", use, allowed, seen_at_ms)


def unavailable(why: str, seen_at_ms: Millis) -> Evidence:
    """That robots.txt cannot be had, which forbids all fetching (RFC 9309, section 2.3.1.4)."""
    return _evidence(ROBOTS_TXT, why, Use.FETCH, allowed=False, seen_at_ms=seen_at_ms)


def of_headers(headers: Iterable[tuple[str, str]], agent: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    """What the header fields of the last answer say; repeated fields are given one by one."""
    fields = [(name.lower(), value) for name, value in headers]
    for name, value in fields:
        if name == ROBOTS_TAG:
            yield from _of_directives(ROBOTS_TAG, value, agent, seen_at_ms)
    for name, read in READERS.items():
        joined = ", ".join(value for field, value in fields if field == name)
        for use, allowed in read(joined) if joined else ():
            yield _evidence(name, joined, use, allowed, seen_at_ms)
    said = _reservation(fields)
    yield from _of_reservation(TDM_HEADER, said, str(said), seen_at_ms)


def of_meta(metas: Iterable[tuple[str, str]], agent: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    """What meta elements say, each a name and its content."""
    fields = [(name.strip().lower(), content) for name, content in metas]
    for name, content in fields:
        if name in {"robots", agent.lower()}:
            yield from _of_directives(META, content, agent, seen_at_ms)
    said = _reservation(fields)
    yield from _of_reservation(TDM_META, said, str(said), seen_at_ms)


def of_tdm_file(file: TdmFile, url: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    """What the origin's TDM file says of a URL."""
    found = file.reservation(url)
    if found is not None:
        yield from _of_reservation(TDM_FILE, found[1], f"{found[0]}: {found[1]}", seen_at_ms)


def own_evidence(statement: str, use: Use, allowed: bool, now_ms: Millis) -> Evidence:
    """What the operator's own policy says of one use."""
    return _evidence(POLICY, statement, use, allowed, now_ms)


def condensed(evidence: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """The evidence without repetition, and of each source, use and verdict the first few: no decision changes by it.

    A page can hold tens of thousands of statements; what travels with it stays small.
    """
    counts: Counter[tuple[str, str, bool]] = Counter()
    kept = dict[Evidence, None]()
    for one in evidence:
        key = one.source, one.purpose, one.allowed
        if one not in kept and counts[key] < ALIKE_MAX:
            counts[key] += 1
            kept[one] = None
    return tuple(kept)


def _of_directives(source: str, field: str, agent: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    for directive in directives(field):
        if directive.binds(agent):
            for use, allowed in directive.says(seen_at_ms):
                yield _evidence(source, str(directive), use, allowed, seen_at_ms)


def _reservation(fields: Iterable[tuple[str, str]]) -> Reservation | None:
    """What one place says: a value that is none is unset, and of several that are, the one that reserves counts."""
    named = list(fields)
    policy = next((value for name, value in named if name == "tdm-policy"), "")
    values = [part for name, value in named if name == "tdm-reservation" for part in value.split(",")]
    said = [one for one in (reservation(value, policy) for value in values) if one is not None]
    return max(said, key=lambda one: one.reserved, default=None)


def _of_reservation(source: str, said: Reservation | None, rule: str, seen_at_ms: Millis) -> Iterator[Evidence]:
    for use in _TDM_USES if said is not None else ():
        yield _evidence(source, rule, use, said is not None and not said.reserved, seen_at_ms)


def _evidence(source: str, rule: str, use: Use, allowed: bool, seen_at_ms: Millis) -> Evidence:
    return Evidence(source=source, rule=rule[:RULE_CHARS_MAX], purpose=str(use), allowed=allowed, seen_at_ms=seen_at_ms)
