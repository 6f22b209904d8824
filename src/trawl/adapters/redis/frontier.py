"""The frontier's state in Redis, by shards of hosts: one owner each, one script a decision.

The design is that of the SQLite store: lanes by origin and purse, places by time, counts that change with each move.
Scripts choose and count; what an outcome makes of a request is decided here, by the pure rules that all stores share,
and written only if the row is still as it was read.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trawl.adapters.redis import frontier_rows as rows
from trawl.adapters.redis.client import Argument, RedisClient, Script
from trawl.adapters.redis.crawls import RedisCrawls, mapping
from trawl.adapters.redis.frontier_budgets import Budgets, Limit
from trawl.adapters.redis.frontier_moves import Move, called_off, ended, readmitted, with_more
from trawl.adapters.redis.frontier_moving import Moving
from trawl.adapters.redis.frontier_reading import FrontierReading, origin_of, row_of
from trawl.adapters.redis.frontier_rows import DONE, DUE, LEASED, WAITING, Stored, key_bytes
from trawl.adapters.redis.shards import NEVER, OwnedShards, Shard
from trawl.adapters.transitions import CHARGED, UNCHARGED
from trawl.errors import StoreError
from trawl.kinds import LIST_PURPOSES, Found, RecrawlKind
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
from trawl.url import host_of, host_shard

_ADMIT, _LEASE, _ROBOTS, _REAP, _ORIGIN, _EVENT = (
    Script(f"frontier_{name}", "frontier") for name in ("admit", "lease", "robots", "reap", "origin", "event")
)
_REASONS: Final = {0: "seen", -1: "host_budget", -2: "sitemap_budget", -3: "queue_full"}
_BATCH: Final = 500
_TRIES: Final = 5
_LEASED_MAX: Final = 10_000
"""Rows of requests out on a lease that are kept in memory."""
_LOOK_MS: Final = 30_000
"""Each shard is looked at again after this time: a server that lost its last second told nobody."""


class RedisFrontierStore:
    """Request state, queues, leases and budgets.

    `own` says which shards are served, and without it none; only the one shard of a store with `shards=1` needs no
    saying. Reading needs no ownership. Raises StoreError; StaleEpochError, once, when another owner has a shard, which
    is served no more.
    """

    def __init__(self, client: RedisClient, *, shards: int = 256, forgets_done: bool = False) -> None:
        """With `forgets_done`, only the key stays of what is done in a crawl without recrawls, seeds apart."""
        self._shards = shards
        self._forgets_done = forgets_done
        self._crawls = RedisCrawls(client)
        self._owned = OwnedShards(client, shards)
        self._budgets = Budgets(self._crawls, self._owned, shared=shards > 1)
        self._reading = FrontierReading(client, shards)
        self._moving = Moving(self._owned)
        self._leased: OrderedDict[Key, Stored] = OrderedDict()  # as they were leased, so that few are read again
        self._leasing = asyncio.Lock()

    def own(self, epochs: Mapping[int, int]) -> None:
        """Serve these shards, and no others, under these epochs."""
        self._owned.own(epochs)

    # Crawls

    async def put_crawl(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None = None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        if await self._crawls.put(policy, scopes):
            await self._budgets.changed(policy.crawl_id)

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None = None) -> None:
        """Add to a crawl's scopes those that it does not have."""
        if await self._crawls.add_scopes(crawl_id, scopes, policy):
            await self._budgets.changed(crawl_id)

    async def scopes(self, crawl_id: str, *, version: int = 0, known: int = 0) -> tuple[int, Sequence[SeedScope]]:
        """The version of a crawl's scopes, and the scopes without the first `known` of that version."""
        return await self._crawls.scopes(crawl_id, version, known)

    async def crawl(self, crawl_id: str) -> CrawlPolicy | None:
        """A crawl's policy, if its first seed has arrived."""
        return await self._crawls.policy(crawl_id)

    async def count_refusals(self, crawl_id: str, reason: str, count: int) -> None:
        """Add to the crawl's refusals by reason."""
        if count:
            await self._crawls.refuse(crawl_id, reason, count)

    async def progress(self, crawl_id: str) -> CrawlProgress:
        """How far a crawl is, in all shards."""
        return await self._reading.progress(crawl_id, self._owned.now_ms, await self._crawls.refusals(crawl_id))

    # Admission

    async def seen(self, requests: Sequence[Request]) -> Sequence[bool]:
        """For each request whether it was ever admitted (and not evicted)."""
        keys = [(self._shard_of(request.url), request.request_key) for request in requests]
        return await self._reading.seen(keys, forgotten=self._forgets_done)

    async def admit(
        self, requests: Sequence[Request], *, queue_urls_max: int, host_urls_max: int, sitemaps_max: int = 5_000
    ) -> Sequence[Admission]:
        """Queue each request that was never seen; at a shard's part of the cap its lowest score leaves."""
        caps = [math.ceil(queue_urls_max / self._shards), host_urls_max, sitemaps_max]
        groups: dict[int, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(self._shard_of(request.url), []).append(number)
        answers: dict[int, Admission] = {}
        for number, numbers in groups.items():
            shard = await self._owned.one(number)
            found = await self._admit(shard, caps, [requests[one] for one in numbers])
            answers |= dict(zip(numbers, found, strict=True))
        return [answers[number] for number in range(len(requests))]

    async def _admit(self, shard: Shard, caps: Sequence[int], requests: Sequence[Request]) -> list[Admission]:
        untold = await self._budgets.untold(shard, [request.crawl_id for request in requests])
        answers = await self._owned.write(_ADMIT, shard, _admissions(caps, untold, requests))
        shard.limits |= untold
        admitted = []
        for code, *evicted in answers:
            if not evicted[0]:
                admitted.append(Admission(admitted=code == 1, reason=_REASONS.get(code, "")))
                continue
            gone = row_of([b"\0" * 8, *evicted])
            if gone.charge == CHARGED:
                shard.refunds.add(gone.row.request.crawl_id)
            admitted.append(Admission(admitted=True, evicted_url=gone.row.request.url))
        return admitted

    async def readmit(self, crawl_id: str, now_ms: Millis, *, staleness: Callable[[float], float] | None = None) -> int:
        """Queue every finished request of a crawl for another visit, scheduled now; how many."""
        now_ms = self._owned.told(now_ms)
        total = 0
        for shard in await self._owned.all():
            async for batch in self._reading.batches(shard.number, crawl_id):
                moves = [readmitted(known, now_ms, staleness) for known in batch if known.state == DONE]
                for first in range(0, len(moves), _BATCH):
                    total += sum(await self._moving.move_all(shard, moves[first : first + _BATCH]))
        return total

    async def templates(self, requests: Sequence[Request]) -> Sequence[TemplateCounts]:
        """What is known of the template of each request."""
        return await self._reading.templates([(self._shard_of(request.url), request) for request in requests])

    # Leases

    async def lease_robots(self, now_ms: Millis, limit: int, lease_ms: int) -> Sequence[str]:
        """Origins that have queued requests but no current robots.txt, each leased for one robots fetch."""
        async with self._leasing:
            now_ms = self._owned.told(now_ms)
            await self._look(now_ms)

            async def take(parts: Mapping[Shard, int]) -> list[list[str]]:
                calls: list[tuple[Shard, Sequence[Argument]]] = [
                    (shard, (part, lease_ms)) for shard, part in parts.items()
                ]
                answers = await self._owned.write_all(_ROBOTS, calls)
                return [[name.decode() for name in answer or ()] for answer in answers]

            return await self._in_parts(limit, take, lambda shard: shard.robots_ms <= now_ms)

    async def lease(self, now_ms: Millis, limit: int, lease_ms: int, *, origins_max: int) -> Sequence[Request]:
        """Up to `limit` due requests; within a shard, best score first within an origin, and the origin first that was
        served least recently.
        """  # noqa: D205 - one sentence, longer than a line
        async with self._leasing:
            now_ms = self._owned.told(now_ms)
            await self._budgets.refund()
            await self._look(now_ms)

            async def take(parts: Mapping[Shard, int]) -> list[list[Request]]:
                return await self._lease_parts(parts, lease_ms, origins_max)

            return await self._in_parts(limit, take, lambda shard: shard.lease_ms <= now_ms)

    async def _in_parts(self, limit: int, take: Callable[..., Any], wanted: Callable[[Shard], bool]) -> list[Any]:
        """Take up to so many from the shards in which there is something; they have even parts, then what is left."""
        shards, taken = await self._owned.in_turn(wanted), list[Any]()
        while shards and len(taken) < limit:
            left = limit - len(taken)
            asked, later = shards[:left], shards[left:]
            share, more = divmod(left, len(asked))
            parts = {shard: share + (number < more) for number, shard in enumerate(asked)}
            found = await take(parts)
            taken += [one for part in found for one in part]
            shards = later + [shard for shard, part in zip(asked, found, strict=True) if len(part) == parts[shard]]
        if not taken:
            self._owned.raise_lost()
        return taken

    async def _lease_parts(self, parts: Mapping[Shard, int], lease_ms: int, origins_max: int) -> list[list[Request]]:
        grants = await self._budgets.grant(parts)
        calls: list[tuple[Shard, list[Argument]]] = []
        for shard, part in parts.items():
            words = [word for name, (_, pages) in grants[shard].items() for word in (name, pages)]
            calls.append((shard, [part, lease_ms, origins_max, *words]))
        leased, charged = list[list[Request]](), dict[Shard, dict[str, int]]()
        try:
            answers = await self._owned.write_all(_LEASE, calls)
        except StoreError:
            for shard, granted in grants.items():
                shard.refunds.update(granted)
            raise
        for shard, answer in zip(parts, answers, strict=True):
            leased.append([] if answer is None else [self._remembered(row_of(one)) for one in answer[0]])
            shard.lease_ends_ms = min(shard.lease_ends_ms, self._owned.now_ms + lease_ms)
            if answer is not None:
                charged[shard] = dict(zip(grants[shard], map(int, answer[1]), strict=True))
        await self._budgets.spent(grants, charged)
        return leased

    def _remembered(self, leased: Stored) -> Request:
        self._leased[leased.row.request.request_key] = leased
        if len(self._leased) > _LEASED_MAX:
            self._leased.popitem(last=False)
        return leased.row.request

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False, and nothing is changed, if that fetch id does not hold it."""

        def after(known: Stored, told: Completion) -> Move | None:
            if known.state != LEASED or known.row.request.fetch_id != told.fetch_id:
                return None
            return ended(known, told)

        return await self._changed(completion, after, self._leased.pop(completion.request_key, None))

    async def dismiss(self, endings: Sequence[Completion]) -> int:
        """End queued requests without a fetch; how many of them were queued."""
        shards = [await self._owned.one(self._shard_of(ending.url)) for ending in endings]
        asked = [(shard.number, ending.request_key) for shard, ending in zip(shards, endings, strict=True)]
        rows_known = await self._reading.some(asked)

        def after(known: Stored, told: Completion) -> Move | None:
            if known.state not in {WAITING, DUE}:
                return None
            return called_off(known) if known.row.visits else ended(known, told)

        final = [ending if ending.requeue_at_ms is None else replace(ending, requeue_at_ms=None) for ending in endings]
        changes = [
            self._changed(ending, after, known)
            for ending, known in zip(final, rows_known, strict=True)
            if known is not None
        ]
        return sum(await asyncio.gather(*changes))

    async def _changed(
        self, told: Completion, after: Callable[[Stored, Completion], Move | None], known: Stored | None
    ) -> bool:
        """Write what a row becomes, if it is still as it is known; else read it, and decide again."""
        shard = await self._owned.one(self._shard_of(told.url))
        for _ in range(_TRIES):
            move = None if known is None else await self._moved(told, after, known)
            if move is not None and await self._moving.move(shard, move):
                if move.known.charge == CHARGED and move.charge == UNCHARGED:
                    shard.refunds.add(move.known.row.request.crawl_id)
                return True
            before, known = known, await self._reading.row(shard.number, told.request_key)
            if known is None or (move is None and before is not None and before.raw == known.raw):
                return False
        raise StoreError(f"{told.url} changes all the time; its outcome was not written")

    async def _moved(
        self, told: Completion, after: Callable[[Stored, Completion], Move | None], known: Stored
    ) -> Move | None:
        move = after(known, told)
        if move is not None and await self._forgets(move):
            move = with_more(move, forgotten=str(told.request_key))
        if move is not None and told.duplicate is not None and known.state == LEASED:
            move = with_more(move, duplicate=str(int(told.duplicate)))
        return move

    async def _forgets(self, move: Move) -> bool:
        request = move.known.row.request
        if not self._forgets_done or move.after[0] != DONE or request.found is Found.SEED:
            return False
        policy = await self._budgets.policy(request.crawl_id)
        return policy is None or policy.recrawl.kind is RecrawlKind.ONCE

    async def reap(self, now_ms: Millis) -> Sequence[Request]:
        """Return requests whose lease has expired to the queue, with one attempt more; which."""
        now_ms = self._owned.told(now_ms)
        return await self._reap(now_ms, 1, lambda shard: shard.lease_ends_ms <= now_ms)

    async def release_leases(self) -> int:
        """Return every leased request to the queue unchanged: for the one owner's start after a crash; how many."""
        return len(await self._reap("+inf", 0, lambda _: True))

    async def _reap(self, until: str | int, attempts: int, wanted: Callable[[Shard], bool]) -> list[Request]:
        reaped: list[Request] = []
        async with self._leasing:
            shards = [shard for shard in await self._owned.all() if wanted(shard)]
            while shards:
                calls: list[tuple[Shard, Sequence[Argument]]] = [(shard, (until, attempts, _BATCH)) for shard in shards]
                answers = await self._owned.write_all(_REAP, calls)
                full = []
                for shard, answer in zip(shards, answers, strict=True):
                    ends, found = answer or (b"-1", ())
                    shard.lease_ends_ms = _time(ends)
                    reaped += [row_of(one).row.request for one in found]
                    full += [shard] if len(found) == _BATCH else []
                shards = full
            if not reaped:
                self._owned.raise_lost()
        return reaped

    # Origins

    async def origin(self, origin: str) -> OriginState | None:
        """What is known of an origin."""
        return await self._reading.origin(self._shard_of(origin), origin)

    async def update_origin(self, origin: str, update: OriginUpdate) -> OriginState:
        """Set fields of an origin (created if new); its state afterwards."""
        fields = (
            update.robots_expires_ms, update.blocked_until_ms, update.delay_ms, update.concurrency_max, update.failures
        )  # fmt: skip
        arguments: list[Argument] = [
            origin,
            "" if update.robots is None else update.robots.value,
            *("" if value is None else value for value in fields),
            int(update.unblock),
        ]
        shard = await self._owned.one(self._shard_of(origin))
        return origin_of(mapping(await self._owned.write(_ORIGIN, shard, arguments)))

    async def origins(self, limit: int) -> Sequence[OriginState]:
        """Origins, most queued first; reads them all, so for people."""
        return await self._reading.origins(limit)

    async def next_event_ms(self, now_ms: Millis) -> Millis | None:
        """The earliest time at which a lease or a robots fetch could become possible; None if nothing waits."""
        async with self._leasing:
            now_ms = self._owned.told(now_ms)
            await self._look(now_ms)
            times = [min(shard.lease_ms, shard.robots_ms) for shard in await self._owned.all()]
            earliest = min(times, default=NEVER)
            return None if earliest >= NEVER else max(now_ms, earliest)

    async def _look(self, now_ms: Millis) -> None:
        """Ask the shards that have changed, or whose time has come, when they have something to do."""
        await self._budgets.refresh(now_ms)
        asked = [shard for shard in await self._owned.all() if _to_be_looked_at(shard, now_ms)]
        for shard in asked:
            shard.dirty = False  # before the script runs: what changes while its answer travels is not missed
        try:
            answers = await self._owned.write_all(_EVENT, [(shard, ()) for shard in asked], changes=False)
        except StoreError:
            for shard in asked:
                shard.dirty = True
            raise
        for shard, answer in zip(asked, answers, strict=True):
            if answer is None:
                continue
            times = [_time(word) for word in answer[:4]]
            shard.lease_ms, shard.robots_ms, shard.lease_ends_ms, shard.expires_ms = times
            shard.wants = {name.decode(): (int(charged), int(unpaid)) for name, charged, unpaid in answer[4:]}
            shard.looked_ms = now_ms
        self._owned.raise_lost()

    # Rows

    async def request(self, request_key: Key, url: str) -> RequestRow | None:
        """One request with its state."""
        known = await self._reading.row(self._shard_of(url), request_key)
        return None if known is None else known.row

    async def rows(self, crawl_id: str) -> AsyncIterator[RequestRow]:
        """Every request of a crawl, by shard in the order of admission; for people and tests."""
        for shard in range(self._shards):
            found = [known async for batch in self._reading.batches(shard, crawl_id) for known in batch]
            for known in sorted(found, key=lambda known: known.seq):
                yield known.row

    def _shard_of(self, url: str) -> int:
        return host_shard(host_of(url), self._shards)


def _to_be_looked_at(shard: Shard, now_ms: Millis) -> bool:
    due_ms = min(shard.lease_ms, shard.robots_ms, shard.expires_ms, shard.looked_ms + _LOOK_MS)
    return shard.dirty or due_ms <= now_ms


def _admissions(caps: Sequence[int], untold: Mapping[str, Limit], requests: Sequence[Request]) -> list[Argument]:
    arguments: list[Argument] = [*caps, len(untold)]
    for crawl_id, limit in untold.items():
        arguments += [crawl_id, *limit]
    for request in requests:
        arguments += [
            key_bytes(request.request_key),
            request.request_key,
            request.crawl_id,
            request.origin,
            int(request.purpose in LIST_PURPOSES),
            rows.new_row(request),
        ]
    return arguments


def _time(word: bytes) -> Millis:
    """A time of which a negative one means never."""
    at_ms = int(float(word))
    return NEVER if at_ms < 0 else at_ms
