"""The origins and lanes that one transaction of the frontier touches, and where they go when it ends."""

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from trawl.kinds import RobotsState
from trawl.ports import OriginState
from trawl.records import Millis

IDLE, READY, PARKED, ROBOTS = 0, 1, 2, 3

_SELECT: Final = (
    "SELECT origin_id, origin, robots, robots_expires_ms, next_at_ms, blocked_until_ms, delay_ms, concurrency_max,"
    " leased, queued, admitted, failures, last_served_ms, robots_lease_until_ms, fresh FROM origin "
)
_BY_ID: Final = _SELECT + "WHERE origin_id = ?"
_BY_NAME: Final = _SELECT + "WHERE origin = ?"
_MOST_QUEUED: Final = _SELECT + "ORDER BY queued DESC, origin_id LIMIT ?"
# The counts change at every step, robots.txt once a day: apart, so that its index is left alone.
_SAVE_COUNTS: Final = (
    "UPDATE origin SET next_at_ms = ?, leased = ?, queued = ?, admitted = ?, last_served_ms = ? WHERE origin_id = ?"
)
_SAVE_KNOWN: Final = (
    "UPDATE origin SET robots = ?, robots_expires_ms = ?, blocked_until_ms = ?, delay_ms = ?, concurrency_max = ?,"
    " failures = ?, robots_lease_until_ms = ?, fresh = ? WHERE origin_id = ?"
)


@dataclass(slots=True)
class Lane:
    """The queue of one origin for one purse (see `trawl.adapters.sqlite.schema`)."""

    lane: int
    purse: int
    due: int
    waiting: int
    place: int
    at_ms: Millis
    changed: bool = False


@dataclass(slots=True)
class Origin:
    """One origin while a transaction works on it."""

    origin_id: int
    origin: str
    robots: str
    robots_expires_ms: Millis
    next_at_ms: Millis
    blocked_until_ms: Millis
    delay_ms: int
    concurrency_max: int
    leased: int
    queued: int
    admitted: int
    failures: int
    last_served_ms: Millis
    robots_lease_until_ms: Millis
    fresh: int
    """Whether robots.txt is known and was not found expired."""
    lanes: dict[int, Lane] = field(default_factory=dict)
    """By purse."""
    known_changed: bool = False

    def state(self) -> OriginState:
        """The state as the port knows it."""
        return OriginState(
            origin=self.origin,
            robots=RobotsState(self.robots),
            robots_expires_ms=self.robots_expires_ms,
            next_at_ms=self.next_at_ms,
            blocked_until_ms=self.blocked_until_ms,
            delay_ms=self.delay_ms,
            concurrency_max=self.concurrency_max,
            leased=self.leased,
            queued=self.queued,
            admitted=self.admitted,
            failures=self.failures,
            last_served_ms=self.last_served_ms,
        )

    def learn(self, state: OriginState, now_ms: Millis) -> None:
        """Take over what is not counted but told."""
        self.robots = state.robots.value
        self.robots_expires_ms = state.robots_expires_ms
        self.next_at_ms = state.next_at_ms
        self.blocked_until_ms = state.blocked_until_ms
        self.delay_ms = state.delay_ms
        self.concurrency_max = state.concurrency_max
        self.failures = state.failures
        self.fresh = int(state.robots is not RobotsState.UNKNOWN and state.robots_expires_ms > now_ms)
        self.known_changed = True

    def may_serve(self, now_ms: Millis) -> bool:
        """Whether a due request of it may be leased."""
        open_ = self.next_at_ms <= now_ms and self.blocked_until_ms <= now_ms
        return open_ and bool(self.fresh) and self.leased < self.concurrency_max

    def place(self, lane: Lane, now_ms: Millis) -> tuple[int, Millis]:
        """Where a lane belongs, and the time that orders it there."""
        if not lane.due and not lane.waiting:
            return IDLE, 0
        if not self.fresh:
            return ROBOTS, max(self.blocked_until_ms, self.robots_expires_ms, self.robots_lease_until_ms)
        if not lane.due or self.leased >= self.concurrency_max:
            return IDLE, 0
        opens_ms = max(self.next_at_ms, self.blocked_until_ms)
        return (READY, self.last_served_ms) if opens_ms <= now_ms else (PARKED, opens_ms)


class Origins:
    """The origins of one transaction: loaded once, changed in memory, saved with their lanes in place by `save`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._by_id: dict[int, Origin] = {}
        self._by_name: dict[str, Origin] = {}

    def named(self, origin: str) -> Origin:
        """An origin by name, created if new."""
        known = self._by_name.get(origin)
        if known is None:
            known = self.find(origin)
        if known is None:
            self._connection.execute("INSERT INTO origin (origin) VALUES (?)", (origin,))
            known = self._loaded(self._connection.execute(_BY_NAME, (origin,)).fetchone())
        return known

    def find(self, origin: str) -> Origin | None:
        """An origin by name, if it is there."""
        row = self._connection.execute(_BY_NAME, (origin,)).fetchone()
        return None if row is None else self._loaded(row)

    def numbered(self, origin_id: int) -> Origin:
        """An origin by its number."""
        known = self._by_id.get(origin_id)
        return known or self._loaded(self._connection.execute(_BY_ID, (origin_id,)).fetchone())

    def of_lane(self, lane: int) -> tuple[Origin, Lane]:
        """A lane with its origin."""
        row = self._connection.execute("SELECT origin_id, purse FROM lane WHERE lane = ?", (lane,)).fetchone()
        origin = self.numbered(row[0])
        return origin, origin.lanes[row[1]]

    def lane(self, origin: Origin, purse: int) -> Lane:
        """The lane of an origin for a purse, created if new."""
        known = origin.lanes.get(purse)
        if known is None:
            insert = "INSERT INTO lane (origin_id, purse) VALUES (?, ?)"
            number = self._connection.execute(insert, (origin.origin_id, purse)).lastrowid
            assert number is not None
            known = origin.lanes[purse] = Lane(number, purse, 0, 0, IDLE, 0)
        return known

    def save(self, now_ms: Millis) -> None:
        """Write what changed, and put every lane where it belongs."""
        for origin in self._by_id.values():
            counts = (origin.next_at_ms, origin.leased, origin.queued, origin.admitted, origin.last_served_ms)
            self._connection.execute(_SAVE_COUNTS, (*counts, origin.origin_id))
            if origin.known_changed:
                self._save_known(origin)
            for lane in origin.lanes.values():
                place, at_ms = origin.place(lane, now_ms)
                if place != lane.place or at_ms != lane.at_ms:
                    lane.place, lane.at_ms = place, at_ms
                    self._connection.execute(
                        "UPDATE lane SET due = ?, waiting = ?, place = ?, at_ms = ? WHERE lane = ?",
                        (lane.due, lane.waiting, place, at_ms, lane.lane),
                    )
                elif lane.changed:
                    self._connection.execute(
                        "UPDATE lane SET due = ?, waiting = ? WHERE lane = ?", (lane.due, lane.waiting, lane.lane)
                    )
                lane.changed = False

    def _save_known(self, origin: Origin) -> None:
        origin.known_changed = False
        self._connection.execute(
            _SAVE_KNOWN,
            (
                origin.robots,
                origin.robots_expires_ms,
                origin.blocked_until_ms,
                origin.delay_ms,
                origin.concurrency_max,
                origin.failures,
                origin.robots_lease_until_ms,
                origin.fresh,
                origin.origin_id,
            ),
        )

    def _loaded(self, row: tuple[object, ...]) -> Origin:
        origin = Origin(*row)  # type: ignore[arg-type]  # the columns are the fields, in order
        select = "SELECT lane, purse, due, waiting, place, at_ms FROM lane WHERE origin_id = ?"
        origin.lanes = {lane[1]: Lane(*lane) for lane in self._connection.execute(select, (origin.origin_id,))}
        self._by_id[origin.origin_id] = self._by_name[origin.origin] = origin
        return origin


def most_queued(connection: sqlite3.Connection, limit: int) -> Iterator[OriginState]:
    """Origins, most queued first."""
    rows: Iterable[tuple[object, ...]] = connection.execute(_MOST_QUEUED, (limit,))
    return (Origin(*row).state() for row in rows)  # type: ignore[arg-type]  # the columns are the fields, in order
