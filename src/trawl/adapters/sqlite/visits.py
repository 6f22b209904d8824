"""One transaction of the frontier: what it touches, and how a request moves from one state to another."""

import sqlite3
from typing import Any, Final

from trawl.adapters.sqlite import rows
from trawl.adapters.sqlite.crawls import PAID, UNPAID, Crawls
from trawl.adapters.sqlite.origins import PARKED, Lane, Origin, Origins
from trawl.adapters.sqlite.rows import DONE, DUE, LEASED, WAITING
from trawl.records import Millis

_UNDUE: Final = "FROM request INDEXED BY request_waiting WHERE state = 0 AND purse = ? AND due_at_ms <= ?"
_PROMOTE: Final = "UPDATE request SET state = 1 WHERE state = 0 AND purse = ? AND due_at_ms <= ?"
_OPENED: Final = (
    "SELECT origin_id FROM lane INDEXED BY lane_place WHERE place > 0 AND purse = ? AND place = ? AND at_ms <= ?"
)
_EXPIRED: Final = "SELECT origin_id FROM origin INDEXED BY origin_expiry WHERE fresh = 1 AND robots_expires_ms <= ?"


class Visits:
    """The working set of one transaction of the frontier."""

    def __init__(self, connection: sqlite3.Connection, now_ms: Millis) -> None:
        self.connection = connection
        self.now_ms = now_ms
        self.origins = Origins(connection)
        self.crawls = Crawls(connection)

    def save(self) -> None:
        """Write all that changed; the last step of every transaction."""
        self.crawls.save()
        self.origins.save(self.now_ms)

    def settle(self) -> list[int]:
        """Put into place what time alone has moved; the purses that may be spent."""
        for (origin_id,) in self.connection.execute(_EXPIRED, (self.now_ms,)).fetchall():
            origin = self.origins.numbered(origin_id)
            origin.fresh, origin.known_changed = 0, True
        purses = self.crawls.purses()
        for purse in purses:
            self._promote(purse)
            for (origin_id,) in self.connection.execute(_OPENED, (purse, PARKED, self.now_ms)).fetchall():
                self.origins.numbered(origin_id)
        self.save()
        return purses

    def _promote(self, purse: int) -> None:
        """Requests whose time has come are due."""
        due = self.connection.execute(f"SELECT lane {_UNDUE}", (purse, self.now_ms)).fetchall()
        if not due:
            return
        self.connection.execute(_PROMOTE, (purse, self.now_ms))
        self.crawls.of_purse(purse).waiting -= len(due)
        for (number,) in due:
            _, lane = self.origins.of_lane(number)
            lane.waiting -= 1
            lane.due += 1
            lane.changed = True

    def queued_state(self, due_at_ms: Millis) -> int:
        """The state of a queued request."""
        return DUE if due_at_ms <= self.now_ms else WAITING

    def count(self, origin: Origin, lane: Lane, state: int, change: int) -> None:
        """Count a request of a state in or out."""
        crawl = self.crawls.of_purse(lane.purse)
        if state in {WAITING, DUE}:
            waits = change if state == WAITING else 0
            lane.waiting += waits
            lane.due += change - waits
            lane.changed = True
            origin.queued += change
            crawl.queued += change
            crawl.waiting += waits
        elif state == LEASED:
            origin.leased += change
            crawl.leased += change

    def move(self, row: tuple[Any, ...], state: int, charge: int, **columns: Any) -> None:
        """Change the state of a request, given as a row of `rows.SELECT`, and every count with it."""
        seq, origin_id, purse, old_charge = row[27:31]
        origin = self.origins.numbered(origin_id)
        lane = origin.lanes[purse]
        self.count(origin, lane, row[18], -1)
        if bool(charge) != bool(old_charge):
            purse = purse - purse % 2 + (PAID if charge else UNPAID)
            lane = self.origins.lane(origin, purse)
            columns |= {"lane": lane.lane, "purse": purse}
        self.count(origin, lane, state, 1)
        columns |= {"state": state, "charge": charge}
        names = ", ".join(f"{name} = ?" for name in columns)
        # The names are this package's own; at most a dozen different statements come of it.
        self.connection.execute(f"UPDATE request SET {names} WHERE seq = ?", (*columns.values(), seq))  # noqa: S608

    def evict(self, seq: int) -> str:
        """Take a queued request out: forgotten if it was never visited, else its next visit is called off; its URL."""
        row = self.row("WHERE r.seq = ?", seq)
        assert row is not None
        if row[26]:
            self.move(row, DONE, row[30])
            return str(row[3])
        origin = self.origins.numbered(row[28])
        self.count(origin, origin.lanes[row[29]], row[18], -1)
        self.crawls.of_purse(row[29]).charged -= bool(row[30])
        self.connection.execute("DELETE FROM request WHERE seq = ?", (seq,))
        return str(row[3])

    def row(self, where: str, *parameters: Any) -> tuple[Any, ...] | None:
        """One row of `rows.SELECT`."""
        found: tuple[Any, ...] | None = self.connection.execute(rows.SELECT + where, parameters).fetchone()
        return found
