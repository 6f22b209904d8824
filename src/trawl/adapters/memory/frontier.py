"""The frontier's state in memory: every queue is searched one by one, so that nothing can be out of step.

Two facts are not part of the port: how far the clock has come (what is due is due as of the latest time that a method
was told), and whether a request is paid for.
"""

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from trawl.adapters.transitions import (
    CHARGED,
    CHARGED_PURPOSES,
    SETTLED,
    UNCHARGED,
    by_class,
    merged,
    reason_of,
    told,
    updated,
)
from trawl.kinds import LIST_PURPOSES, RenderMode, RobotsState
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


@dataclass(slots=True)
class _Entry:
    row: RequestRow
    sequence: int
    charge: int = UNCHARGED
    lease_until_ms: Millis = 0
    staleness: float | None = None  # the part of the score that it makes, if not that of a new request
    ended: str | None = None  # class and reason of the last terminal outcome


@dataclass(slots=True)
class _Crawl:
    policy: CrawlPolicy | None
    charged: int = 0
    scopes: dict[SeedScope, None] = field(default_factory=dict)
    scopes_version: int = 0


@dataclass(slots=True)
class _Origin:
    state: OriginState
    sequence: int
    robots_lease_until_ms: Millis = 0


class MemoryFrontierStore:
    """Request state, queues, leases and budgets."""

    def __init__(self) -> None:
        self._entries: dict[Key, _Entry] = {}
        self._queues: dict[str, dict[Key, _Entry]] = {}  # what is queued, by origin
        self._origins: dict[str, _Origin] = {}
        self._crawls: dict[str, _Crawl] = {}
        self._refusals: dict[tuple[str, str], int] = {}
        self._templates: dict[Key, TemplateCounts] = {}
        self._lists: Counter[tuple[str, str]] = Counter()  # sitemaps, feeds and lists by crawl and origin
        self._sequence = 0
        self._now_ms: Millis = 0

    # Crawls

    async def put_crawl(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None = None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        crawl = self._crawl(policy.crawl_id)
        crawl.policy = policy
        if scopes is not None:
            crawl.scopes = dict.fromkeys(scopes)
            crawl.scopes_version += 1

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None = None) -> None:
        """Add to a crawl's scopes those that it does not have."""
        crawl = self._crawl(crawl_id)
        crawl.scopes.update(dict.fromkeys(scopes))
        if policy is not None:
            crawl.policy = merged(crawl.policy, policy)

    async def scopes(self, crawl_id: str, *, version: int = 0, known: int = 0) -> tuple[int, Sequence[SeedScope]]:
        """The version of a crawl's scopes, and the scopes without the first `known` of that version."""
        crawl = self._crawls.get(crawl_id, _Crawl(None))
        first = known if version == crawl.scopes_version else 0
        return crawl.scopes_version, tuple(islice(crawl.scopes, first, None))

    async def crawl(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        return self._crawls[crawl_id].policy if crawl_id in self._crawls else None

    async def count_refusals(self, crawl_id: str, reason: str, count: int) -> None:
        """Add to the crawl's refusals by reason."""
        if count:
            self._refusals[crawl_id, reason] = self._refusals.get((crawl_id, reason), 0) + count

    async def progress(self, crawl_id: str) -> CrawlProgress:
        """How far a crawl is."""
        entries = [entry for entry in self._entries.values() if entry.row.request.crawl_id == crawl_id]
        queued = [entry for entry in entries if entry.row.state == "queued"]
        ended = [entry.ended for entry in entries if entry.ended is not None]
        reasons = tuple(sorted(Counter(ended).items()))
        dues = [0 if self._is_due(entry) else entry.row.request.due_at_ms for entry in queued]
        refusals = ((reason, count) for (crawl, reason), count in self._refusals.items() if crawl == crawl_id)
        return CrawlProgress(
            queued=len(queued),
            leased=sum(entry.row.state == "leased" for entry in entries),
            charged=self._crawls[crawl_id].charged if crawl_id in self._crawls else 0,
            outcomes=by_class(reasons),
            reasons=reasons,
            refusals=tuple(sorted(refusals)),
            next_due_ms=min(dues, default=None),
        )

    # Admission

    async def seen(self, requests: Sequence[Request]) -> Sequence[bool]:
        """For each request whether it was ever admitted (and not evicted)."""
        return [request.request_key in self._entries for request in requests]

    async def admit(
        self, requests: Sequence[Request], *, queue_urls_max: int, host_urls_max: int, sitemaps_max: int = 5_000
    ) -> Sequence[Admission]:
        """Queue each request that was never seen; at the cap the lowest score of all leaves, or the request itself."""
        return [self._admit(request, queue_urls_max, host_urls_max, sitemaps_max) for request in requests]

    def _admit(self, request: Request, queue_urls_max: int, host_urls_max: int, sitemaps_max: int) -> Admission:
        if request.request_key in self._entries:
            return Admission(admitted=False, reason="seen")
        origin = self._origin(request.origin)
        if origin.state.admitted >= host_urls_max:
            return Admission(admitted=False, reason="host_budget")
        is_list, lists = request.purpose in LIST_PURPOSES, (request.crawl_id, request.origin)
        if is_list and self._lists[lists] >= sitemaps_max:
            return Admission(admitted=False, reason="sitemap_budget")
        evicted = ""
        if sum(map(len, self._queues.values())) >= queue_urls_max:
            queued = (entry for queue in self._queues.values() for entry in queue.values())
            lowest = min(queued, key=lambda entry: (entry.row.request.score, -entry.sequence), default=None)
            if lowest is None or lowest.row.request.score >= request.score:
                return Admission(admitted=False, reason="queue_full")
            evicted = lowest.row.request.url
            self._evict(lowest)
        self._crawl(request.crawl_id)
        self._lists[lists] += is_list
        self._sequence += 1
        row = RequestRow(request=replace(request, fetch_id=0), state="queued")
        entry = self._entries[request.request_key] = _Entry(row, self._sequence)
        self._queues.setdefault(request.origin, {})[request.request_key] = entry
        origin.state = replace(origin.state, admitted=origin.state.admitted + 1, queued=origin.state.queued + 1)
        counts = self._templates.get(request.template, TemplateCounts())
        self._templates[request.template] = replace(counts, admitted=counts.admitted + 1)
        return Admission(admitted=True, evicted_url=evicted)

    def _evict(self, entry: _Entry) -> None:
        """A request that was never visited is forgotten; another visit of one that was is called off."""
        if entry.row.visits:
            self._move(entry, "done")
            return
        self._move(entry, "gone")
        self._refund(entry)
        del self._entries[entry.row.request.request_key]

    async def readmit(self, crawl_id: str, now_ms: Millis, *, staleness: Callable[[float], float] | None = None) -> int:
        """Queue every finished request of a crawl for another visit, scheduled now; how many."""
        now_ms = self._now_ms = max(self._now_ms, now_ms)
        done = [
            entry
            for entry in self._entries.values()
            if entry.row.state == "done" and entry.row.request.crawl_id == crawl_id
        ]
        for entry in done:
            if staleness is not None:
                before = staleness(math.inf) if entry.staleness is None else entry.staleness
                entry.staleness = staleness((now_ms - entry.row.at_ms) / 1000)
                score = entry.row.request.score - before + entry.staleness
                entry.row = replace(entry.row, request=replace(entry.row.request, score=score))
            self._move(entry, "queued", attempt=1, scheduled_at_ms=now_ms, due_at_ms=now_ms)
        return len(done)

    async def templates(self, requests: Sequence[Request]) -> Sequence[TemplateCounts]:
        """What is known of the template of each request."""
        return [self._templates.get(request.template, TemplateCounts()) for request in requests]

    # Leases

    async def lease_robots(self, now_ms: Millis, limit: int, lease_ms: int) -> Sequence[str]:
        """Origins that have queued requests but no current robots.txt, each leased for one robots fetch."""
        now_ms = self._now_ms = max(self._now_ms, now_ms)
        wanted = [(wake, self._origins[name].sequence, name) for name, wake in self._robots_wanted().items()]
        ready = [name for wake, _, name in sorted(wanted) if wake <= now_ms][:limit]
        for name in ready:
            self._origins[name].robots_lease_until_ms = now_ms + lease_ms
        return ready

    async def lease(self, now_ms: Millis, limit: int, lease_ms: int, *, origins_max: int) -> Sequence[Request]:
        """Up to `limit` due requests, best score first within an origin, least recently served origin first."""
        now_ms = self._now_ms = max(self._now_ms, now_ms)
        ready = [origin for origin in self._origins.values() if self._is_ready(origin, now_ms)]
        ready.sort(key=lambda origin: (origin.state.last_served_ms, origin.sequence))
        turns = ready[: max(0, min(limit, origins_max))]
        leased: list[Request] = []
        while turns and len(leased) < limit:
            served = [
                origin for origin in turns if len(leased) < limit and self._serve(origin, leased, now_ms, lease_ms)
            ]
            turns = [origin for origin in served if self._is_ready(origin, now_ms)]
        return leased

    def _serve(self, origin: _Origin, leased: list[Request], now_ms: Millis, lease_ms: int) -> bool:
        """Lease the best due request of an origin; False if none is left."""
        due = self._due(origin)
        entry = min(due, key=lambda entry: (-entry.row.request.score, entry.sequence), default=None)
        if entry is None:
            return False
        request = entry.row.request
        if request.purpose in CHARGED_PURPOSES and entry.charge == UNCHARGED:
            entry.charge = CHARGED
            self._crawl(request.crawl_id).charged += 1
        entry.lease_until_ms = now_ms + lease_ms
        new_id = fetch_id(request.request_key, request.purpose, RenderMode.STATIC, request.scheduled_at_ms)
        self._move(entry, "leased", fetch_id=new_id)
        next_at_ms = now_ms + origin.state.delay_ms
        origin.state = replace(origin.state, last_served_ms=now_ms, next_at_ms=next_at_ms)
        leased.append(entry.row.request)
        return True

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False, and nothing is changed, if that fetch id does not hold it."""
        entry = self._entries.get(completion.request_key)
        if entry is None or entry.row.state != "leased" or entry.row.request.fetch_id != completion.fetch_id:
            return False
        if not completion.charged:
            self._refund(entry)
        if completion.duplicate is not None:
            template = entry.row.request.template
            counts = self._templates.get(template, TemplateCounts())
            self._templates[template] = replace(
                counts, results=counts.results + 1, duplicates=counts.duplicates + completion.duplicate
            )
        if completion.requeue_at_ms is not None:
            entry.row = told(entry.row, completion)
            self._move(entry, "queued", attempt=completion.attempt, due_at_ms=completion.requeue_at_ms, fetch_id=0)
        else:
            self._finish(entry, completion)
        return True

    def _finish(self, entry: _Entry, completion: Completion) -> None:
        entry.row = told(entry.row, completion)
        entry.ended = reason_of(completion)
        entry.charge = SETTLED if entry.charge else UNCHARGED
        entry.row = replace(entry.row, visits=entry.row.visits + 1)
        self._move(entry, "done", fetch_id=0)

    async def dismiss(self, endings: Sequence[Completion]) -> int:
        """End queued requests without a fetch; how many of them were queued."""
        dismissed = 0
        for ending in endings:
            entry = self._entries.get(ending.request_key)
            if entry is None or entry.row.state != "queued":
                continue
            dismissed += 1
            if entry.row.visits:
                self._move(entry, "done")
                continue
            if not ending.charged:
                self._refund(entry)
            self._finish(entry, ending)
        return dismissed

    async def reap(self, now_ms: Millis) -> Sequence[Request]:
        """Return requests whose lease has expired to the queue, with one attempt more; which."""
        now_ms = self._now_ms = max(self._now_ms, now_ms)
        expired = [
            entry for entry in self._entries.values() if entry.row.state == "leased" and entry.lease_until_ms <= now_ms
        ]
        for entry in sorted(expired, key=lambda entry: (entry.lease_until_ms, entry.sequence)):
            self._move(entry, "queued", attempt=entry.row.request.attempt + 1, fetch_id=0)
        return [entry.row.request for entry in sorted(expired, key=lambda e: (e.lease_until_ms, e.sequence))]

    async def release_leases(self) -> int:
        """Return every leased request to the queue unchanged: for the one owner's start after a crash; how many."""
        leased = [entry for entry in self._entries.values() if entry.row.state == "leased"]
        for entry in leased:
            self._move(entry, "queued", fetch_id=0)
        for origin in self._origins.values():
            origin.robots_lease_until_ms = 0
        return len(leased)

    # Origins

    async def origin(self, origin: str) -> OriginState | None:
        """What is known of an origin."""
        return self._origins[origin].state if origin in self._origins else None

    async def update_origin(self, origin: str, update: OriginUpdate) -> OriginState:
        """Set fields of an origin (created if new); its state afterwards."""
        known = self._origin(origin)
        known.state = updated(known.state, update)
        if update.robots is not None:
            known.robots_lease_until_ms = 0
        return known.state

    async def origins(self, limit: int) -> Sequence[OriginState]:
        """Origins, most queued first."""
        ordered = sorted(self._origins.values(), key=lambda origin: (-origin.state.queued, origin.sequence))
        return [origin.state for origin in ordered[:limit]]

    async def next_event_ms(self, now_ms: Millis) -> Millis | None:
        """The earliest time at which a lease or a robots fetch could become possible; None if nothing waits."""
        now_ms = self._now_ms = max(self._now_ms, now_ms)
        times = list(self._robots_wanted().values())
        for entry in self._waiting():
            state = self._origins[entry.row.request.origin].state
            if not self._is_due(entry):
                times.append(entry.row.request.due_at_ms)
            elif self._has_robots(state) and state.leased < state.concurrency_max:
                times.append(max(state.next_at_ms, state.blocked_until_ms))
        return max(now_ms, min(times)) if times else None

    # Rows

    async def request(self, request_key: Key, url: str) -> RequestRow | None:
        """One request with its state."""
        del url
        return self._entries[request_key].row if request_key in self._entries else None

    async def rows(self, crawl_id: str) -> AsyncIterator[RequestRow]:
        """Every request of a crawl, in the order of admission."""
        for entry in sorted(self._entries.values(), key=lambda entry: entry.sequence):
            if entry.row.request.crawl_id == crawl_id:
                yield entry.row

    # What the methods share

    def _crawl(self, crawl_id: str) -> _Crawl:
        return self._crawls.setdefault(crawl_id, _Crawl(None))

    def _origin(self, origin: str) -> _Origin:
        return self._origins.setdefault(origin, _Origin(OriginState(origin=origin), len(self._origins)))

    def _waiting(self) -> Iterable[_Entry]:
        """Queued requests of crawls that may spend on them."""
        return (entry for queue in self._queues.values() for entry in queue.values() if self._may_spend(entry))

    def _due(self, origin: _Origin) -> Iterable[_Entry]:
        queue = self._queues.get(origin.state.origin, {})
        return (entry for entry in queue.values() if self._is_due(entry) and self._may_spend(entry))

    def _may_spend(self, entry: _Entry) -> bool:
        crawl = self._crawl(entry.row.request.crawl_id)
        policy = crawl.policy or CrawlPolicy(crawl_id="")
        within = entry.charge != UNCHARGED or not policy.pages_max or crawl.charged < policy.pages_max
        return within and not policy.paused

    def _is_due(self, entry: _Entry) -> bool:
        return entry.row.request.due_at_ms <= self._now_ms

    def _has_robots(self, state: OriginState) -> bool:
        return state.robots is not RobotsState.UNKNOWN and state.robots_expires_ms > self._now_ms

    def _is_ready(self, origin: _Origin, now_ms: Millis) -> bool:
        state = origin.state
        open_ = max(state.next_at_ms, state.blocked_until_ms) <= now_ms
        ready = open_ and self._has_robots(state) and state.leased < state.concurrency_max
        return ready and any(True for _ in self._due(origin))

    def _robots_wanted(self) -> dict[str, Millis]:
        """Origins with work but without robots.txt, and when each may be asked."""
        wanted = {}
        for name in {entry.row.request.origin for entry in self._waiting()}:
            origin = self._origins[name]
            if not self._has_robots(origin.state):
                state = origin.state
                wanted[name] = max(state.blocked_until_ms, state.robots_expires_ms, origin.robots_lease_until_ms)
        return wanted

    def _refund(self, entry: _Entry) -> None:
        if entry.charge == CHARGED:
            entry.charge = UNCHARGED
            self._crawl(entry.row.request.crawl_id).charged -= 1

    def _move(
        self,
        entry: _Entry,
        state: str,
        *,
        attempt: int | None = None,
        scheduled_at_ms: Millis | None = None,
        due_at_ms: Millis | None = None,
        fetch_id: Key = 0,
    ) -> None:
        """Change a request's state, and the counts of its origin with it."""
        old, request = entry.row.state, entry.row.request
        changed = replace(
            request,
            attempt=request.attempt if attempt is None else attempt,
            scheduled_at_ms=request.scheduled_at_ms if scheduled_at_ms is None else scheduled_at_ms,
            due_at_ms=request.due_at_ms if due_at_ms is None else due_at_ms,
            fetch_id=fetch_id,
        )
        entry.row = replace(entry.row, request=changed, state=state)
        queue = self._queues.setdefault(request.origin, {})
        queue.pop(request.request_key, None)
        if state == "queued":
            queue[request.request_key] = entry
        origin = self._origin(request.origin)
        origin.state = replace(
            origin.state,
            queued=origin.state.queued + (state == "queued") - (old == "queued"),
            leased=origin.state.leased + (state == "leased") - (old == "leased"),
        )
