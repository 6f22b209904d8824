"""The frontier's state in SQLite: a lease, like every other step, touches only the rows that it changes."""

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from trawl.adapters.sqlite import crawls, rows
from trawl.adapters.sqlite.database import Database
from trawl.adapters.sqlite.origins import PARKED, READY, ROBOTS, Origin, most_queued
from trawl.adapters.sqlite.rows import DONE, DUE, LEASED, WAITING
from trawl.adapters.sqlite.visits import Visits
from trawl.adapters.transitions import CHARGED, CHARGED_PURPOSES, SETTLED, UNCHARGED, merged, reason_of, told, updated
from trawl.kinds import LIST_PURPOSES, RenderMode
from trawl.ports import (
    Admission,
    Completion,
    CrawlPolicy,
    CrawlProgress,
    OriginState,
    OriginUpdate,
    Request,
    RequestRow,
    SeedScope,
    TemplateCounts,
)
from trawl.records import Key, Millis
from trawl.url import fetch_id

_ROWS_BATCH: Final = 500
# Needed at the cap only, so it is made when the cap is first met; until then no request pays for it.
_SCORE_INDEX: Final = "CREATE INDEX IF NOT EXISTS request_score ON request (score, seq DESC) WHERE state < 2"
_LOWEST: Final = (
    "SELECT seq, score FROM request INDEXED BY request_score WHERE state < 2 ORDER BY score, seq DESC LIMIT 1"
)
_BEST: Final = (
    "SELECT seq, score FROM request INDEXED BY request_due WHERE state = 1 AND lane = ?"
    " ORDER BY score DESC, seq LIMIT 1"
)
_DONE: Final = "SELECT lane, count(*) FROM request WHERE state = 3 AND purse IN (?, ?) GROUP BY lane"
_READMIT: Final = (
    "UPDATE request SET state = 1, attempt = 1, scheduled_at_ms = ?, due_at_ms = ? WHERE state = 3 AND purse IN (?, ?)"
)
_RESCORE: Final = (
    "UPDATE request SET score = score - ifnull(staleness, ?) + staleness_of((? - at_ms) / 1000.0),"
    " staleness = staleness_of((? - at_ms) / 1000.0) WHERE state = 3 AND purse IN (?, ?)"
)
_TURNS: Final = (
    "SELECT at_ms, origin_id FROM lane INDEXED BY lane_place WHERE place > 0 AND purse = ? AND place = ?"
    " ORDER BY at_ms, origin_id LIMIT ?"
)
_FIRST: Final = "SELECT min(at_ms) FROM lane INDEXED BY lane_place WHERE place > 0 AND purse = ? AND place = ?"
_FIRST_DUE: Final = "SELECT min(due_at_ms) FROM request INDEXED BY request_waiting WHERE state = 0 AND purse = ?"


class SqliteFrontierStore:
    """Request state, queues, leases and budgets, for the one owner of a folder."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._now_ms: Millis = 0  # how far the clock has come; what is due is due as of then

    # Crawls

    async def put_crawl(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None = None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        with self._database.write() as connection:
            crawls.put_policy(connection, policy)
            if scopes is not None:
                crawls.put_scopes(connection, policy.crawl_id, scopes)

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None = None) -> None:
        """Add to a crawl's scopes those that it does not have."""
        with self._database.write() as connection:
            if policy is not None:
                known = crawls.policy_of(connection, crawl_id)
                after = merged(known, policy)
                if after != known:
                    crawls.put_policy(connection, after)
            crawls.add_scopes(connection, crawl_id, scopes)

    async def scopes(self, crawl_id: str, *, version: int = 0, known: int = 0) -> tuple[int, Sequence[SeedScope]]:
        """The version of a crawl's scopes, and the scopes without the first `known` of that version."""
        with self._database.read() as connection:
            return crawls.scopes_of(connection, crawl_id, version, known)

    async def crawl(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        with self._database.read() as connection:
            return crawls.policy_of(connection, crawl_id)

    async def count_refusals(self, crawl_id: str, reason: str, count: int) -> None:
        """Add to the crawl's refusals by reason."""
        if not count:
            return
        with self._database.write() as connection:
            crawl = crawls.Crawls(connection).named(crawl_id)
            crawls.count(connection, crawl.crawl, "refusal", reason, count)

    async def progress(self, crawl_id: str) -> CrawlProgress:
        """How far a crawl is."""
        with self._database.read() as connection:
            return crawls.progress_of(connection, crawl_id, self._now_ms)

    # Admission

    async def seen(self, requests: Sequence[Request]) -> Sequence[bool]:
        """For each request whether it was ever admitted (and not evicted)."""
        select = "SELECT 1 FROM request WHERE request_key = ?"
        with self._database.read() as connection:
            return [connection.execute(select, (one.request_key,)).fetchone() is not None for one in requests]

    async def admit(
        self, requests: Sequence[Request], *, queue_urls_max: int, host_urls_max: int, sitemaps_max: int = 5_000
    ) -> Sequence[Admission]:
        """Queue each request that was never seen; at the cap the lowest score of all leaves, or the request itself."""
        with self._database.write() as connection:
            visits = Visits(connection, self._now_ms)
            queued = int(connection.execute("SELECT ifnull(sum(queued), 0) FROM crawl").fetchone()[0])
            admitted: Counter[Key] = Counter()
            admissions: list[Admission] = []
            for request in requests:
                admission = self._admit(visits, request, queue_urls_max - queued, host_urls_max, sitemaps_max)
                if admission.admitted:
                    queued += not admission.evicted_url
                    admitted[request.template] += 1
                admissions.append(admission)
            connection.executemany(
                "INSERT INTO template (template, admitted) VALUES (?, ?)"
                " ON CONFLICT DO UPDATE SET admitted = admitted + excluded.admitted",
                admitted.items(),
            )
            visits.save()
        return admissions

    def _admit(self, visits: Visits, request: Request, room: int, host_urls_max: int, sitemaps_max: int) -> Admission:
        connection = visits.connection
        origin = visits.origins.named(request.origin)
        lowest: tuple[int, float] | None = None
        is_list = request.purpose in LIST_PURPOSES
        lists = visits.crawls.lists(request.crawl_id, request.origin) if is_list else 0
        if room <= 0 or origin.admitted >= host_urls_max or (is_list and lists >= sitemaps_max):
            seen = connection.execute("SELECT 1 FROM request WHERE request_key = ?", (request.request_key,)).fetchone()
            if seen is not None:
                return Admission(admitted=False, reason="seen")
            if origin.admitted >= host_urls_max:
                return Admission(admitted=False, reason="host_budget")
            if is_list and lists >= sitemaps_max:
                return Admission(admitted=False, reason="sitemap_budget")
            connection.execute(_SCORE_INDEX)
            lowest = connection.execute(_LOWEST).fetchone()
            if lowest is None or lowest[1] >= request.score:
                return Admission(admitted=False, reason="queue_full")
        purse = 2 * visits.crawls.named(request.crawl_id).crawl + crawls.UNPAID
        lane = visits.origins.lane(origin, purse)
        state = visits.queued_state(request.due_at_ms)
        evicted = visits.evict(lowest[0]) if lowest is not None else ""
        if not connection.execute(rows.INSERT, rows.values(request, lane.lane, purse, state)).rowcount:
            return Admission(admitted=False, reason="seen")
        if is_list:
            visits.crawls.add_list(request.crawl_id, request.origin)
        visits.count(origin, lane, state, 1)
        origin.admitted += 1
        return Admission(admitted=True, evicted_url=evicted)

    async def readmit(self, crawl_id: str, now_ms: Millis, *, staleness: Callable[[float], float] | None = None) -> int:
        """Queue every finished request of a crawl for another visit, scheduled now; how many."""
        now_ms = self._told(now_ms)
        with self._database.write() as connection:
            crawl = crawls.number_of(connection, crawl_id)
            if crawl is None:
                return 0
            visits = Visits(connection, self._now_ms)
            purses = (2 * crawl, 2 * crawl + 1)
            total = 0
            for number, count in connection.execute(_DONE, purses).fetchall():
                origin, lane = visits.origins.of_lane(number)
                visits.count(origin, lane, DUE, count)
                total += count
            if staleness is not None:
                connection.create_function("staleness_of", 1, staleness)
                connection.execute(_RESCORE, (staleness(math.inf), now_ms, now_ms, *purses))
            connection.execute(_READMIT, (now_ms, now_ms, *purses))
            visits.save()
        return total

    async def templates(self, requests: Sequence[Request]) -> Sequence[TemplateCounts]:
        """What is known of the template of each request."""
        select = "SELECT admitted, results, duplicates FROM template WHERE template = ?"
        with self._database.read() as connection:
            found = [connection.execute(select, (one.template,)).fetchone() or (0, 0, 0) for one in requests]
        return [TemplateCounts(admitted=row[0], results=row[1], duplicates=row[2]) for row in found]

    # Leases

    async def lease_robots(self, now_ms: Millis, limit: int, lease_ms: int) -> Sequence[str]:
        """Origins that have queued requests but no current robots.txt, each leased for one robots fetch."""
        now_ms = self._told(now_ms)
        with self._database.write() as connection:
            visits = Visits(connection, now_ms)
            turns = self._turns(visits, visits.settle(), ROBOTS, limit)
            origins = [visits.origins.numbered(origin_id) for wake_ms, origin_id in turns if wake_ms <= now_ms]
            for origin in origins:
                origin.robots_lease_until_ms = now_ms + lease_ms
                origin.known_changed = True
            visits.save()
        return [origin.origin for origin in origins]

    async def lease(self, now_ms: Millis, limit: int, lease_ms: int, *, origins_max: int) -> Sequence[Request]:
        """Up to `limit` due requests, best score first within an origin, least recently served origin first."""
        now_ms = self._told(now_ms)
        with self._database.write() as connection:
            visits = Visits(connection, now_ms)
            ready = self._turns(visits, visits.settle(), READY, max(0, min(limit, origins_max)))
            turns = [visits.origins.numbered(origin_id) for _, origin_id in ready]
            leased: list[Request] = []
            while turns and len(leased) < limit:
                turns = [
                    origin
                    for origin in turns
                    if len(leased) < limit and self._serve(visits, origin, leased, now_ms + lease_ms)
                ]
                turns = [origin for origin in turns if origin.may_serve(now_ms)]
            visits.save()
        return leased

    def _serve(self, visits: Visits, origin: Origin, leased: list[Request], lease_until_ms: Millis) -> bool:
        """Lease the best due request of an origin; False if none is left."""
        lanes = [
            lane for purse, lane in origin.lanes.items() if lane.due and visits.crawls.of_purse(purse).may_spend(purse)
        ]
        heads = [visits.connection.execute(_BEST, (lane.lane,)).fetchone() for lane in lanes]
        if not heads:
            return False
        seq = heads[0][0] if len(heads) == 1 else min(heads, key=lambda head: (-head[1], head[0]))[0]
        row = visits.row("WHERE r.seq = ?", seq)
        assert row is not None
        request = rows.request_of(row)
        charge = row[30]
        if charge == UNCHARGED and request.purpose in CHARGED_PURPOSES:
            charge = CHARGED
            visits.crawls.of_purse(row[29]).charged += 1
        new_id = fetch_id(request.request_key, request.purpose, RenderMode.STATIC, request.scheduled_at_ms)
        visits.move(row, LEASED, charge, fetch_id=new_id, lease_until_ms=lease_until_ms)
        origin.last_served_ms = visits.now_ms
        origin.next_at_ms = visits.now_ms + origin.delay_ms
        leased.append(replace(request, fetch_id=new_id))
        return True

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False, and nothing is changed, if that fetch id does not hold it."""
        with self._database.write() as connection:
            visits = Visits(connection, self._now_ms)
            row = visits.row("WHERE r.request_key = ?", completion.request_key)
            if row is None or row[18] != LEASED or row[17] != completion.fetch_id:
                return False
            if completion.duplicate is not None:
                connection.execute(
                    "INSERT INTO template (template, results, duplicates) VALUES (?, 1, ?) ON CONFLICT DO UPDATE"
                    " SET results = results + 1, duplicates = duplicates + excluded.duplicates",
                    (row[4], completion.duplicate),
                )
            self._end(visits, row, completion)
            visits.save()
        return True

    def _end(self, visits: Visits, row: tuple[Any, ...], completion: Completion) -> None:
        charge = row[30]
        if charge == CHARGED and not completion.charged:
            charge = UNCHARGED
            visits.crawls.of_purse(row[29]).charged -= 1
        after = told(rows.row_of(row), completion)
        columns: dict[str, Any] = {
            "fetch_id": 0,
            "outcome": completion.outcome.value,
            "reason": after.reason,
            "status": after.status,
            "detail": after.detail,
            "at_ms": after.at_ms,
            "etag": after.request.validators.etag,
            "last_modified": after.request.validators.last_modified,
            "document_key": after.document_key,
            "duplicate_of": after.duplicate_of,
        }
        if completion.requeue_at_ms is not None:
            columns |= {"attempt": completion.attempt, "due_at_ms": completion.requeue_at_ms}
            visits.move(row, visits.queued_state(completion.requeue_at_ms), charge, **columns)
            return
        ended, crawl = reason_of(completion), row[29] // 2
        columns |= {"visits": after.visits + 1, "ended": ended}
        if row[31] != ended:
            crawls.count(visits.connection, crawl, "outcome", ended, 1)
            if row[31] is not None:
                crawls.count(visits.connection, crawl, "outcome", row[31], -1)
        visits.move(row, DONE, SETTLED if charge else UNCHARGED, **columns)

    async def dismiss(self, endings: Sequence[Completion]) -> int:
        """End queued requests without a fetch; how many of them were queued."""
        dismissed = 0
        with self._database.write() as connection:
            visits = Visits(connection, self._now_ms)
            for ending in endings:
                row = visits.row("WHERE r.request_key = ?", ending.request_key)
                if row is None or row[18] not in {WAITING, DUE}:
                    continue
                dismissed += 1
                if row[26]:
                    visits.move(row, DONE, row[30])
                else:
                    self._end(visits, row, ending)
            visits.save()
        return dismissed

    async def reap(self, now_ms: Millis) -> Sequence[Request]:
        """Return requests whose lease has expired to the queue, with one attempt more; which."""
        select = "SELECT seq FROM request INDEXED BY request_lease WHERE state = 2 AND lease_until_ms <= ?"
        now_ms = self._told(now_ms)
        with self._database.write() as connection:
            expired = connection.execute(f"{select} ORDER BY lease_until_ms, seq", (now_ms,)).fetchall()
            visits = Visits(connection, self._now_ms)
            reaped = [self._requeued(visits, seq, 1) for (seq,) in expired]
            visits.save()
        return reaped

    async def release_leases(self) -> int:
        """Return every leased request to the queue unchanged: for the one owner's start after a crash; how many."""
        with self._database.write() as connection:
            leased = connection.execute("SELECT seq FROM request INDEXED BY request_lease WHERE state = 2").fetchall()
            visits = Visits(connection, self._now_ms)
            for (seq,) in leased:
                self._requeued(visits, seq, 0)
            held = connection.execute("SELECT origin_id FROM origin WHERE robots_lease_until_ms > 0").fetchall()
            for (origin_id,) in held:
                origin = visits.origins.numbered(origin_id)
                origin.robots_lease_until_ms = 0
                origin.known_changed = True
            visits.save()
        return len(leased)

    def _requeued(self, visits: Visits, seq: int, more_attempts: int) -> Request:
        row = visits.row("WHERE r.seq = ?", seq)
        assert row is not None
        request = rows.request_of(row)
        attempt = request.attempt + more_attempts
        visits.move(row, visits.queued_state(request.due_at_ms), row[30], attempt=attempt, fetch_id=0)
        return replace(request, attempt=attempt, fetch_id=0)

    # Origins

    async def origin(self, origin: str) -> OriginState | None:
        """What is known of an origin."""
        with self._database.read() as connection:
            known = Visits(connection, self._now_ms).origins.find(origin)
        return None if known is None else known.state()

    async def update_origin(self, origin: str, update: OriginUpdate) -> OriginState:
        """Set fields of an origin (created if new); its state afterwards."""
        with self._database.write() as connection:
            visits = Visits(connection, self._now_ms)
            known = visits.origins.named(origin)
            known.learn(updated(known.state(), update), self._now_ms)
            if update.robots is not None:
                known.robots_lease_until_ms = 0
            visits.save()
        return known.state()

    async def origins(self, limit: int) -> Sequence[OriginState]:
        """Origins, most queued first."""
        with self._database.read() as connection:
            return list(most_queued(connection, limit))

    async def next_event_ms(self, now_ms: Millis) -> Millis | None:
        """The earliest time at which a lease or a robots fetch could become possible; None if nothing waits."""
        now_ms = self._told(now_ms)
        with self._database.write() as connection:
            visits = Visits(connection, now_ms)
            times: list[Millis] = []
            for purse in visits.settle():
                if self._turns(visits, (purse,), READY, 1):
                    return now_ms
                firsts = [connection.execute(_FIRST, (purse, place)).fetchone()[0] for place in (PARKED, ROBOTS)]
                firsts.append(connection.execute(_FIRST_DUE, (purse,)).fetchone()[0])
                times += (at_ms for at_ms in firsts if at_ms is not None)
        return max(now_ms, min(times)) if times else None

    # Rows

    async def request(self, request_key: Key, url: str) -> RequestRow | None:
        """One request with its state."""
        del url
        with self._database.read() as connection:
            row = Visits(connection, self._now_ms).row("WHERE r.request_key = ?", request_key)
        return None if row is None else rows.row_of(row)

    async def rows(self, crawl_id: str) -> AsyncIterator[RequestRow]:
        """Every request of a crawl, in the order of admission."""
        after = 0
        while True:
            with self._database.read() as connection:
                crawl = crawls.number_of(connection, crawl_id)
                where = "WHERE r.seq > ? AND r.purse / 2 = ? ORDER BY r.seq LIMIT ?"
                batch = connection.execute(rows.SELECT + where, (after, crawl, _ROWS_BATCH)).fetchall()
            for row in batch:
                yield rows.row_of(row)
            if len(batch) < _ROWS_BATCH:
                return
            after = batch[-1][27]

    # What the methods share

    def _told(self, now_ms: Millis) -> Millis:
        """The time, which never goes back."""
        self._now_ms = max(self._now_ms, now_ms)
        return self._now_ms

    def _turns(self, visits: Visits, purses: Iterable[int], place: int, limit: int) -> list[tuple[Millis, int]]:
        """Origins with a lane in a place: when and which, first come first, without repeats."""
        found: set[tuple[Millis, int]] = set()
        for purse in purses:
            found.update(visits.connection.execute(_TURNS, (purse, place, limit)))
        return sorted(found)[:limit]
