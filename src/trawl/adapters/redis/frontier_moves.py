"""What outcomes and readmissions make of rows (pure): the row as it was, and as it is to be."""

import math
from collections.abc import Callable
from dataclasses import replace

from trawl.adapters.redis import frontier_rows as rows
from trawl.adapters.redis.frontier_rows import DONE, WAITING, Stored
from trawl.adapters.transitions import CHARGED, SETTLED, UNCHARGED, reason_of, told
from trawl.ports import Completion
from trawl.records import Millis


class Move:
    """A row as it was, and as it is to be."""

    def __init__(self, known: Stored, after: bytes, ended: str, duplicate: str = "", forgotten: str = "") -> None:
        self.known = known
        self.after = after
        self.ended = ended
        self.duplicate = duplicate
        self.forgotten = forgotten

    @property
    def charge(self) -> int:
        """Whether it counts against its crawl's budget, as it is to be."""
        return self.after[1]


def with_more(move: Move, *, duplicate: str = "", forgotten: str = "") -> Move:
    """The same move with more to it."""
    return Move(move.known, move.after, move.ended, duplicate or move.duplicate, forgotten or move.forgotten)


def ended(known: Stored, completion: Completion) -> Move:
    """What an outcome makes of a row."""
    charge = known.charge
    if charge == CHARGED and not completion.charged:
        charge = UNCHARGED
    row = told(known.row, completion)
    row = replace(row, request=replace(row.request, fetch_id=0))
    if completion.requeue_at_ms is not None:
        request = replace(row.request, attempt=completion.attempt, due_at_ms=completion.requeue_at_ms)
        row = replace(row, request=request)
        raw = rows.changed(known, row, state=WAITING, charge=charge, ended=known.ended, staleness=known.staleness)
        return Move(known, raw, known.ended)
    counted = reason_of(completion)
    row = replace(row, visits=row.visits + 1)
    settled = SETTLED if charge else UNCHARGED
    raw = rows.changed(known, row, state=DONE, charge=settled, ended=counted, staleness=known.staleness)
    return Move(known, raw, counted)


def readmitted(known: Stored, now_ms: Millis, staleness: Callable[[float], float] | None) -> Move:
    """What another visit makes of a row."""
    request, part = known.row.request, known.staleness
    if staleness is not None:
        before = staleness(math.inf) if part is None else part
        part = staleness((now_ms - known.row.at_ms) / 1000)
        request = replace(request, score=request.score - before + part)
    request = replace(request, attempt=1, scheduled_at_ms=now_ms, due_at_ms=now_ms)
    row = replace(known.row, request=request)
    raw = rows.changed(known, row, state=WAITING, charge=known.charge, ended=known.ended, staleness=part)
    return Move(known, raw, known.ended)


def called_off(known: Stored) -> Move:
    """A row whose next visit is called off: as the visit before left it."""
    raw = rows.changed(known, known.row, state=DONE, charge=known.charge, ended=known.ended, staleness=known.staleness)
    return Move(known, raw, known.ended)
