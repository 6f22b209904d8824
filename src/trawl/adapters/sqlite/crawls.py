"""Crawls in SQLite: policies, budgets and counts; and which of their purses may be spent."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from trawl.adapters.transitions import by_class
from trawl.plain import from_json, to_json
from trawl.ports import CrawlPolicy, CrawlProgress, SeedScope
from trawl.records import Millis

UNPAID, PAID = 0, 1
_SELECT: Final = "SELECT crawl, paused, pages_max, charged, queued, waiting, leased FROM crawl "
_BY_NUMBER: Final = _SELECT + "WHERE crawl = ?"
_LAST_SCOPE: Final = "SELECT ifnull(max(number), 0) FROM scope WHERE crawl = ?"
_WITH_WORK: Final = _SELECT + "WHERE paused = 0 AND queued > 0"


@dataclass(slots=True)
class Crawl:
    """A crawl's counts while a transaction works on them."""

    crawl: int
    paused: int
    pages_max: int
    charged: int
    queued: int
    waiting: int
    """Of the queued those that are not due."""
    leased: int
    before: tuple[int, int, int, int]
    """Charged, queued, waiting and leased as they are stored."""

    def may_spend(self, purse: int) -> bool:
        """Whether requests of the purse may be leased: paid ones always, others while the budget lasts."""
        return not self.paused and (purse % 2 == PAID or not self.pages_max or self.charged < self.pages_max)


class Crawls:
    """The crawls of one transaction: loaded once, counted in memory, saved by `save`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._crawls: dict[int, Crawl] = {}
        self._numbers: dict[str, int] = {}

    def named(self, crawl_id: str) -> Crawl:
        """A crawl by its id, created (without a policy) if new."""
        number = self._numbers.get(crawl_id)
        if number is None:
            number = number_of(self._connection, crawl_id)
        if number is None:
            insert = "INSERT INTO crawl (crawl_id) VALUES (?)"
            number = self._connection.execute(insert, (crawl_id,)).lastrowid
            assert number is not None
        self._numbers[crawl_id] = number
        return self.numbered(number)

    def numbered(self, crawl: int) -> Crawl:
        """A crawl by its number."""
        if crawl not in self._crawls:
            self._load(self._connection.execute(_BY_NUMBER, (crawl,)).fetchone())
        return self._crawls[crawl]

    def of_purse(self, purse: int) -> Crawl:
        """The crawl whose purse that is."""
        return self.numbered(purse // 2)

    def purses(self) -> list[int]:
        """The purses that may be spent now and have requests queued."""
        for row in self._connection.execute(_WITH_WORK).fetchall():
            if row[0] not in self._crawls:
                self._load(row)
        crawls = [crawl for crawl in self._crawls.values() if crawl.queued]
        purses = (2 * crawl.crawl + paid for crawl in crawls for paid in (UNPAID, PAID))
        return [purse for purse in purses if self.of_purse(purse).may_spend(purse)]

    def lists(self, crawl_id: str, origin: str) -> int:
        """How many sitemaps, feeds and lists of an origin a crawl has admitted."""
        select = "SELECT count FROM crawl_count WHERE crawl = ? AND kind = 'list' AND name = ?"
        row = self._connection.execute(select, (self.named(crawl_id).crawl, origin)).fetchone()
        return 0 if row is None else int(row[0])

    def add_list(self, crawl_id: str, origin: str) -> None:
        """Count one more of them."""
        count(self._connection, self.named(crawl_id).crawl, "list", origin, 1)

    def save(self) -> None:
        """Write the counts that changed."""
        for crawl in self._crawls.values():
            after = (crawl.charged, crawl.queued, crawl.waiting, crawl.leased)
            if after != crawl.before:
                update = "UPDATE crawl SET charged = ?, queued = ?, waiting = ?, leased = ? WHERE crawl = ?"
                self._connection.execute(update, (*after, crawl.crawl))
                crawl.before = after

    def _load(self, row: tuple[int, ...]) -> None:
        self._crawls[row[0]] = Crawl(*row, row[3:])  # type: ignore[call-arg, arg-type]  # the columns


def number_of(connection: sqlite3.Connection, crawl_id: str) -> int | None:
    """The number of a crawl, if it is there."""
    row = connection.execute("SELECT crawl FROM crawl WHERE crawl_id = ?", (crawl_id,)).fetchone()
    return None if row is None else int(row[0])


def put_policy(connection: sqlite3.Connection, policy: CrawlPolicy) -> None:
    """Store or replace a crawl's policy."""
    crawl = Crawls(connection).named(policy.crawl_id).crawl
    update = "UPDATE crawl SET paused = ?, pages_max = ? WHERE crawl = ?"
    connection.execute(update, (policy.paused, policy.pages_max, crawl))
    connection.execute("INSERT OR REPLACE INTO policy VALUES (?, ?)", (crawl, to_json(policy)))


def policy_of(connection: sqlite3.Connection, crawl_id: str) -> CrawlPolicy | None:
    """A crawl's policy, if its first seed has arrived."""
    select = "SELECT policy FROM policy JOIN crawl USING (crawl) WHERE crawl_id = ?"
    row = connection.execute(select, (crawl_id,)).fetchone()
    return None if row is None else _policy(row[0])


def put_scopes(connection: sqlite3.Connection, crawl_id: str, scopes: Iterable[SeedScope]) -> None:
    """Replace a crawl's scopes."""
    crawl = Crawls(connection).named(crawl_id).crawl
    connection.execute("DELETE FROM scope WHERE crawl = ?", (crawl,))
    connection.execute("UPDATE crawl SET scopes_version = scopes_version + 1 WHERE crawl = ?", (crawl,))
    add_scopes(connection, crawl_id, scopes)


def add_scopes(connection: sqlite3.Connection, crawl_id: str, scopes: Iterable[SeedScope]) -> None:
    """Number the scopes that a crawl does not have after those that it has."""
    crawl = Crawls(connection).named(crawl_id).crawl
    known = "SELECT 1 FROM scope WHERE crawl = ? AND scope = ?"
    number = int(connection.execute(_LAST_SCOPE, (crawl,)).fetchone()[0])
    for scope in scopes:
        text = to_json(scope).decode()
        if connection.execute(known, (crawl, text)).fetchone() is None:
            number += 1
            connection.execute("INSERT INTO scope VALUES (?, ?, ?)", (crawl, number, text))


def scopes_of(
    connection: sqlite3.Connection, crawl_id: str, version: int, known: int
) -> tuple[int, Sequence[SeedScope]]:
    """The version of a crawl's scopes, and the scopes without the first `known` of that version."""
    found = connection.execute("SELECT crawl, scopes_version FROM crawl WHERE crawl_id = ?", (crawl_id,)).fetchone()
    if found is None:
        return 0, ()
    crawl, stored = found
    select = "SELECT scope FROM scope WHERE crawl = ? AND number > ? ORDER BY number"
    scopes = connection.execute(select, (crawl, known if version == stored else 0)).fetchall()
    return stored, tuple(from_json(SeedScope, text.encode()) for (text,) in scopes)


@lru_cache(maxsize=256)
def _policy(stored: bytes) -> CrawlPolicy:
    return from_json(CrawlPolicy, stored)


def count(connection: sqlite3.Connection, crawl: int, kind: str, name: str, change: int) -> None:
    """Add to one of a crawl's counts by name."""
    connection.execute(
        "INSERT INTO crawl_count VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
        (crawl, kind, name, change),
    )


def progress_of(connection: sqlite3.Connection, crawl_id: str, now_ms: Millis) -> CrawlProgress:
    """How far a crawl is."""
    select = "SELECT crawl, queued, waiting, leased, charged FROM crawl WHERE crawl_id = ?"
    row = connection.execute(select, (crawl_id,)).fetchone()
    if row is None:
        return CrawlProgress()
    crawl, queued, waiting, leased, charged = row
    counts = connection.execute(
        "SELECT kind, name, count FROM crawl_count WHERE crawl = ? AND kind IN ('outcome', 'refusal') AND count > 0"
        " ORDER BY name",
        (crawl,),
    ).fetchall()
    reasons = tuple((name, number) for kind, name, number in counts if kind == "outcome")
    return CrawlProgress(
        queued=queued,
        leased=leased,
        charged=charged,
        outcomes=by_class(reasons),
        reasons=reasons,
        refusals=tuple((name, number) for kind, name, number in counts if kind == "refusal"),
        next_due_ms=_next_due_ms(connection, crawl, queued, waiting, now_ms),
    )


def _next_due_ms(
    connection: sqlite3.Connection, crawl: int, queued: int, waiting: int, now_ms: Millis
) -> Millis | None:
    if not queued:
        return None
    if queued > waiting:
        return 0
    select = "SELECT min(due_at_ms) FROM request INDEXED BY request_waiting WHERE state = 0 AND purse = ?"
    found = [connection.execute(select, (purse,)).fetchone()[0] for purse in (2 * crawl, 2 * crawl + 1)]
    due_ms = min((at_ms for at_ms in found if at_ms is not None), default=None)
    return 0 if due_ms is not None and due_ms <= now_ms else due_ms
