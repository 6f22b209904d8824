"""Politeness slots and robots.txt in SQLite.

Starts, blocks and what was learned outlive the process. Permits do not: they belong to fetches of this process, and
after `kill -9` none of those is running, so none may keep a host waiting.
"""

import sqlite3
from dataclasses import replace
from typing import Final

from trawl.adapters.slots import observed, permits_out, slot_ms
from trawl.adapters.sqlite.database import Database
from trawl.plain import from_json, to_json
from trawl.ports import PolitenessState, Reservation, RobotsEntry
from trawl.records import Millis

_GET: Final = "SELECT last_ms, blocked_until_ms, response_ms, failures, backoffs FROM politeness WHERE key = ?"
_START: Final = (
    "INSERT INTO politeness (key, last_ms) VALUES (?, ?) ON CONFLICT DO UPDATE SET last_ms = excluded.last_ms"
)
_BLOCK: Final = (
    "INSERT INTO politeness (key, blocked_until_ms) VALUES (?, ?) ON CONFLICT DO UPDATE"
    " SET blocked_until_ms = max(blocked_until_ms, excluded.blocked_until_ms) RETURNING last_ms"
)
_OBSERVE: Final = (
    "INSERT INTO politeness (key, response_ms, failures, backoffs) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
    " SET response_ms = excluded.response_ms, failures = excluded.failures, backoffs = excluded.backoffs"
)


_RESTART_MS: Final = 200
"""No process is up again sooner than this after it was killed."""


class SqlitePolitenessStore:
    """When hosts and addresses were and may be fetched, for the one process of a folder.

    A slot or block that a crash at once could shorten is on disk before it is given out: the next process must know of
    a request that has left.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._permits: dict[str, dict[int, Millis]] = {}  # by key: permit to expiry
        self._last_permit = 0

    async def reserve(
        self,
        key: str,
        now_ms: Millis,
        *,
        interval_ms: int,
        horizon_ms: int,
        concurrency_max: int,
        permit_ms: int,
    ) -> Reservation:
        """Take the next slot of a key, or say when to ask again."""
        permits = {permit: expires for permit, expires in self._permits.get(key, {}).items() if expires > now_ms}
        with self._database.write() as connection:
            row = connection.execute(_GET, (key,)).fetchone()
            last_ms, blocked_until_ms = (row[0], row[1]) if row is not None else (None, 0)
            at_ms = slot_ms(now_ms, last_ms, blocked_until_ms, interval_ms)
            if concurrency_max and len(permits) >= concurrency_max:
                return permits_out(now_ms, at_ms, interval_ms, min(permits.values()))
            if at_ms > now_ms + horizon_ms:
                return Reservation(granted=False, at_ms=at_ms, gap_required_ms=interval_ms)
            connection.execute(_START, (key, at_ms))
        if interval_ms > _RESTART_MS:
            self._database.commit()
        self._last_permit += 1
        permits[self._last_permit] = at_ms + permit_ms
        self._permits[key] = permits
        gap = None if last_ms is None else at_ms - last_ms
        return Reservation(
            granted=True, at_ms=at_ms, permit=self._last_permit, gap_required_ms=interval_ms, gap_actual_ms=gap
        )

    async def release(self, key: str, permit: int) -> None:
        """Give a permit back; harmless if it is not out."""
        permits = self._permits.get(key)
        if permits is not None:
            permits.pop(permit, None)
            if not permits:
                del self._permits[key]

    async def block(self, key: str, until_ms: Millis) -> None:
        """Grant nothing before that time; never shortens a block."""
        with self._database.write() as connection:
            ((last_ms,),) = connection.execute(_BLOCK, (key, until_ms)).fetchall()
        if last_ms is None or until_ms - last_ms > _RESTART_MS:  # else it is over before a new process is up
            self._database.commit()

    async def observe(self, key: str, *, response_ms: float | None, failed: bool, throttled: bool) -> PolitenessState:
        """Learn from an answer; the new state."""
        with self._database.write() as connection:
            before = self._state(connection, key)
            after = observed(before, response_ms=response_ms, failed=failed, throttled=throttled)
            if after != before:
                connection.execute(_OBSERVE, (key, after.response_ms, after.failures, after.backoffs))
        return after

    async def state(self, key: str) -> PolitenessState:
        """What is known of a key; defaults if nothing."""
        with self._database.read() as connection:
            return self._state(connection, key)

    def _state(self, connection: sqlite3.Connection, key: str) -> PolitenessState:
        row = connection.execute(_GET, (key,)).fetchone()
        state = PolitenessState(in_flight=len(self._permits.get(key, ())))
        if row is None:
            return state
        return replace(
            state,
            last_start_ms=row[0] or 0,
            blocked_until_ms=row[1],
            response_ms=row[2],
            failures=row[3],
            backoffs=row[4],
        )


class SqliteRobotsStore:
    """robots.txt by origin."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, origin: str) -> RobotsEntry | None:
        """The entry, expired or not."""
        with self._database.read() as connection:
            row = connection.execute("SELECT entry FROM robots WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else from_json(RobotsEntry, row[0])

    async def put(self, entry: RobotsEntry) -> None:
        """Store or replace an entry."""
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO robots VALUES (?, ?)", (entry.origin, to_json(entry)))
