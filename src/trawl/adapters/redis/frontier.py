"""The frontier's state in Redis, by shards of hosts: one owner each, one script a decision.

The design is that of the SQLite store: lanes by origin and purse, places by time, counts that change with each move.
Scripts choose and count; what an outcome makes of a request is decided here, by the pure rules that all stores share,
and written only if the row is still as it was read.
"""

import asyncio
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from trawl.adapters.redis import frontier_rows as rows
from trawl.adapters.redis.client import Argument, RedisClient, Script
from trawl.adapters.redis.crawls import RedisCrawls, mapping, pairs
from trawl.adapters.redis.frontier_moves import Move, called_off, ended, readmitted, with_more
from trawl.adapters.redis.frontier_rows import DONE, DUE, LEASED, WAITING, Stored, key_bytes
from trawl.adapters.redis.shards import ShardLeases, meta_key
from trawl.adapters.transitions import by_class
from trawl.errors import StaleEpochError, StoreError
from trawl.kinds import LIST_PURPOSES, Found, RecrawlKind, RobotsState
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

_ADMIT, _LEASE, _ROBOTS, _MOVE, _REAP, _ORIGIN, _EVENT, _CONFIGURE = (
    Script(f"frontier_{name}", "frontier")
    for name in ("admit", "lease", "robots", "move", "reap", "origin", "event", "configure")
)
_REASONS: Final = {0: "seen", -1: "host_budget", -2: "sitemap_budget", -3: "queue_full"}
_BATCH: Final = 500
_BUCKETS: Final = 64
"""Hashes of rows that are read in one round trip."""
_TRIES: Final = 5
_NAMES_MAX: Final = 100_000
_POLICY_MS: Final = 1000
"""A crawl's policy is read again after this time, for another replica may have changed it."""
_NO_LIMIT: Final = -1
_NEVER: Final = 1 << 62


class _Shard:
    """What the owner of a shard keeps in memory: when it next has something to do."""

    def __init__(self, number: int, epoch: int) -> None:
        self.number = number
        self.epoch = epoch
        self.event_ms: Millis = 0
        self.lease_ends_ms: Millis = 0
        self.expires_ms: Millis = 0
        self.dirty = True
        self.limits: dict[str, tuple[int, int]] = {}  # by crawl what the shard was told: paused, limit


class RedisFrontierStore:
    """Request state, queues, leases and budgets.

    `own` says which shards are served; a store that never was told owns all of its shards from its first write on.
    Reading needs no ownership. Raises StoreError; StaleEpochError once another owner has a shard.
    """

    def __init__(self, client: RedisClient, *, shards: int = 256, forgets_done: bool = False) -> None:
        """With `forgets_done`, only the key stays of what is done in a crawl without recrawls, seeds apart."""
        self._client = client
        self._shards = shards
        self._forgets_done = forgets_done
        self._crawls = RedisCrawls(client)
        self._owned: dict[int, _Shard] | None = None
        self._policies: dict[str, tuple[CrawlPolicy | None, Millis]] = {}
        self._names: OrderedDict[tuple[int, str, int], str] = OrderedDict()
        self._now_ms: Millis = 0
        self._taking = asyncio.Lock()

    def own(self, epochs: Mapping[int, int]) -> None:
        """Serve these shards, and no others, under these epochs."""
        self._owned = {number: _Shard(number, epoch) for number, epoch in epochs.items()}

    # Crawls

    async def put_crawl(self, policy: CrawlPolicy, scopes: Sequence[SeedScope] | None = None) -> None:
        """Store or replace a crawl's policy and, if they are given, its scopes."""
        await self._crawls.put(policy, scopes)
        await self._policy_changed(policy.crawl_id)

    async def add_scopes(self, crawl_id: str, scopes: Sequence[SeedScope], policy: CrawlPolicy | None = None) -> None:
        """Add to a crawl's scopes those that it does not have."""
        await self._crawls.add_scopes(crawl_id, scopes, policy)
        if policy is not None:
            await self._policy_changed(crawl_id)

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
        found = await asyncio.gather(*(self._progress(shard, crawl_id) for shard in range(self._shards)))
        known = [part for part in found if part is not None]
        reasons: dict[str, int] = {}
        for part in known:
            for name, count in part.reasons:
                reasons[name] = reasons.get(name, 0) + count
        ordered = tuple(sorted(reasons.items()))
        due = [part.next_due_ms for part in known if part.next_due_ms is not None]
        return CrawlProgress(
            queued=sum(part.queued for part in known),
            leased=sum(part.leased for part in known),
            charged=sum(part.charged for part in known),
            outcomes=by_class(ordered),
            reasons=ordered,
            refusals=await self._crawls.refusals(crawl_id),
            next_due_ms=min(due, default=None),
        )

    async def _progress(self, shard: int, crawl_id: str) -> CrawlProgress | None:
        number = await self._client.ask("HGET", self._key(shard, "cn"), crawl_id)
        if number is None:
            return None
        crawl = int(number)
        counts = await pairs(self._client, self._key(shard, f"c:{crawl}"))
        queued, waiting = int(counts.get(b"queued", 0)), int(counts.get(b"waiting", 0))
        reasons = await pairs(self._client, self._key(shard, f"n:{crawl}"))
        due: Millis | None = None
        if queued > waiting:
            due = 0
        elif queued:
            firsts = [await self._first(self._key(shard, f"w:{purse}")) for purse in (2 * crawl, 2 * crawl + 1)]
            due = min((at_ms for at_ms in firsts if at_ms is not None), default=None)
            due = 0 if due is not None and due <= self._now_ms else due
        return CrawlProgress(
            queued=queued,
            leased=int(counts.get(b"leased", 0)),
            charged=int(counts.get(b"charged", 0)),
            reasons=tuple((name.decode(), int(count)) for name, count in reasons.items() if int(count) > 0),
            next_due_ms=due,
        )

    async def _first(self, key: str) -> Millis | None:
        found = await self._client.ask("ZRANGE", key, 0, 0, "WITHSCORES")
        return _score(found)

    # Admission

    async def seen(self, requests: Sequence[Request]) -> Sequence[bool]:
        """For each request whether it was ever admitted (and not evicted)."""
        commands: list[tuple[Argument, ...]] = []
        for request in requests:
            key, shard = key_bytes(request.request_key), self._shard_of(request.url)
            commands.append(("HEXISTS", self._key(shard, f"y:{key[7]}"), key))
            if self._forgets_done:
                commands.append(("SISMEMBER", self._key(shard, f"s:{key[7]}"), request.request_key))
        answers = await self._client.ask_all(commands)
        each = 1 + self._forgets_done
        return [any(answers[at : at + each]) for at in range(0, len(answers), each)]

    async def admit(
        self, requests: Sequence[Request], *, queue_urls_max: int, host_urls_max: int, sitemaps_max: int = 5_000
    ) -> Sequence[Admission]:
        """Queue each request that was never seen; at a shard's part of the cap its lowest score leaves."""
        cap = math.ceil(queue_urls_max / self._shards)
        groups: dict[int, list[int]] = {}
        for number, request in enumerate(requests):
            groups.setdefault(self._shard_of(request.url), []).append(number)
        answers: dict[int, Admission] = {}
        for shard, numbers in groups.items():
            arguments: list[Argument] = [cap, host_urls_max, sitemaps_max]
            for number in numbers:
                arguments += await self._admission(requests[number], shard)
            found = await self._write(_ADMIT, shard, arguments)
            answers |= {number: _admission(answer) for number, answer in zip(numbers, found, strict=True)}
        return [answers[number] for number in range(len(requests))]

    async def _admission(self, request: Request, shard: int) -> list[Argument]:
        owned = await self._mine(shard)
        if request.crawl_id not in owned.limits:
            owned.limits[request.crawl_id] = await self._limit(request.crawl_id)
        paused, limit = owned.limits[request.crawl_id]
        return [
            key_bytes(request.request_key),
            request.request_key,
            request.crawl_id,
            request.origin,
            paused,
            limit,
            int(request.purpose in LIST_PURPOSES),
            rows.new_row(request),
        ]

    async def readmit(self, crawl_id: str, now_ms: Millis, *, staleness: Callable[[float], float] | None = None) -> int:
        """Queue every finished request of a crawl for another visit, scheduled now; how many."""
        now_ms = self._told(now_ms)
        total = 0
        for shard in await self._mine_all():
            async for batch in self._batches(shard.number, crawl_id):
                moves = [readmitted(known, now_ms, staleness) for known in batch if known.state == DONE]
                total += sum(await self._move(shard.number, moves))
        return total

    async def templates(self, requests: Sequence[Request]) -> Sequence[TemplateCounts]:
        """What is known of the template of each request."""
        keys = [(self._shard_of(request.url), key_bytes(request.template)) for request in requests]
        answers = await self._client.ask_all([("HGET", self._key(shard, f"t:{key[7]}"), key) for shard, key in keys])
        return [TemplateCounts() if found is None else _template(found) for found in answers]

    # Leases

    async def lease_robots(self, now_ms: Millis, limit: int, lease_ms: int) -> Sequence[str]:
        """Origins that have queued requests but no current robots.txt, each leased for one robots fetch."""
        now_ms = self._told(now_ms)
        names: list[str] = []
        for shard in await self._awake(now_ms):
            if len(names) >= limit:
                break
            found = await self._write(_ROBOTS, shard.number, [limit - len(names), lease_ms])
            names += [name.decode() for name in found]
        return names

    async def lease(self, now_ms: Millis, limit: int, lease_ms: int, *, origins_max: int) -> Sequence[Request]:
        """Up to `limit` due requests, best score first within an origin, least recently served origin first."""
        now_ms = self._told(now_ms)
        leased: list[Request] = []
        awake = await self._awake(now_ms)
        for left, shard in zip(range(len(awake), 0, -1), awake, strict=True):
            part = math.ceil((limit - len(leased)) / left)  # every shard has its turn
            if part <= 0:
                break
            await self._ask_for_budget(shard, part)
            found = await self._write(_LEASE, shard.number, [part, lease_ms, origins_max])
            leased += [_stored(answer).row.request for answer in found]
            await self._give_back(shard)
        return leased

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False, and nothing is changed, if that fetch id does not hold it."""

        def after(known: Stored) -> Move | None:
            if known.state != LEASED or known.row.request.fetch_id != completion.fetch_id:
                return None
            return ended(known, completion)

        return await self._changed(completion, after)

    async def dismiss(self, endings: Sequence[Completion]) -> int:
        """End queued requests without a fetch; how many of them were queued."""

        def after(known: Stored, ending: Completion) -> Move | None:
            if known.state not in {WAITING, DUE}:
                return None
            if known.row.visits:
                return called_off(known)
            return ended(known, replace(ending, requeue_at_ms=None))

        dismissed = 0
        for ending in endings:
            dismissed += await self._changed(ending, lambda known, ending=ending: after(known, ending))  # type: ignore[misc]  # mypy sees no default
        return dismissed

    async def _changed(self, completion: Completion, after: Callable[[Stored], Move | None]) -> bool:
        """Read a row, decide, and write if it is still so; read it again if it is not."""
        shard = self._shard_of(completion.url)
        for _ in range(_TRIES):
            known = await self._read(completion.request_key, shard)
            move = None if known is None else after(known)
            if move is None:
                return False
            if self._forgets(move, await self._policy(move.known.row.request.crawl_id)):
                move = with_more(move, forgotten=str(completion.request_key))
            if completion.duplicate is not None and move.known.state == LEASED:
                move = with_more(move, duplicate=str(int(completion.duplicate)))
            if (await self._move(shard, [move]))[0]:
                return True
        raise StoreError(f"{completion.url} changes all the time; its outcome was not written")

    def _forgets(self, move: Move, policy: CrawlPolicy | None) -> bool:
        once = policy is None or policy.recrawl.kind is RecrawlKind.ONCE
        seed = move.known.row.request.found is Found.SEED
        return self._forgets_done and move.after[0] == DONE and once and not seed

    async def reap(self, now_ms: Millis) -> Sequence[Request]:
        """Return requests whose lease has expired to the queue, with one attempt more; which."""
        now_ms = self._told(now_ms)
        reaped: list[Request] = []
        for shard in await self._mine_all():
            while shard.dirty or shard.lease_ends_ms <= now_ms:
                found = await self._write(_REAP, shard.number, [now_ms, 1, _BATCH])
                reaped += [_stored(answer).row.request for answer in found]
                if len(found) < _BATCH:
                    break
        return reaped

    async def release_leases(self) -> int:
        """Return every leased request to the queue unchanged: for the one owner's start after a crash; how many."""
        released = 0
        for shard in await self._mine_all():
            while True:
                found = await self._write(_REAP, shard.number, ["+inf", 0, _BATCH])
                released += len(found)
                if len(found) < _BATCH:
                    break
        return released

    # Origins

    async def origin(self, origin: str) -> OriginState | None:
        """What is known of an origin."""
        shard = self._shard_of(origin)
        number = await self._client.ask("HGET", self._key(shard, "on"), origin)
        if number is None:
            return None
        return _origin(await pairs(self._client, self._key(shard, f"o:{int(number)}")))

    async def update_origin(self, origin: str, update: OriginUpdate) -> OriginState:
        """Set fields of an origin (created if new); its state afterwards."""
        arguments: list[Argument] = [
            origin,
            "" if update.robots is None else update.robots.value,
            *(
                "" if value is None else value
                for value in (
                    update.robots_expires_ms,
                    update.blocked_until_ms,
                    update.delay_ms,
                    update.concurrency_max,
                    update.failures,
                )
            ),
            int(update.unblock),
        ]
        found = await self._write(_ORIGIN, self._shard_of(origin), arguments)
        return _origin(mapping(found))

    async def origins(self, limit: int) -> Sequence[OriginState]:
        """Origins, most queued first; reads them all, so for people."""
        found: list[tuple[int, int, OriginState]] = []
        for shard in range(self._shards):
            numbers = [int(number) for number in (await pairs(self._client, self._key(shard, "on"))).values()]
            for start in range(0, len(numbers), _BATCH):
                part = numbers[start : start + _BATCH]
                answers = await self._client.ask_all([("HGETALL", self._key(shard, f"o:{one}")) for one in part])
                states = [_origin(mapping(answer)) for answer in answers]
                found += [(-state.queued, number, state) for number, state in zip(part, states, strict=True)]
        return [state for *_, state in sorted(found, key=lambda one: one[:2])[:limit]]

    async def next_event_ms(self, now_ms: Millis) -> Millis | None:
        """The earliest time at which a lease or a robots fetch could become possible; None if nothing waits."""
        now_ms = self._told(now_ms)
        await self._look(now_ms)
        earliest = min((shard.event_ms for shard in await self._mine_all()), default=_NEVER)
        return None if earliest >= _NEVER else max(now_ms, earliest)

    # Rows

    async def request(self, request_key: Key, url: str) -> RequestRow | None:
        """One request with its state."""
        known = await self._read(request_key, self._shard_of(url))
        return None if known is None else known.row

    async def rows(self, crawl_id: str) -> AsyncIterator[RequestRow]:
        """Every request of a crawl, by shard in the order of admission; for people and tests."""
        for shard in range(self._shards):
            found = [known async for batch in self._batches(shard, crawl_id) for known in batch]
            for known in sorted(found, key=lambda known: known.seq):
                yield known.row

    async def _batches(self, shard: int, crawl_id: str) -> AsyncIterator[list[Stored]]:
        number = await self._client.ask("HGET", self._key(shard, "cn"), crawl_id)
        if number is None:
            return
        for first in range(0, 256, _BUCKETS):
            commands = [("HGETALL", self._key(shard, f"y:{byte}")) for byte in range(first, first + _BUCKETS)]
            found = [one for answer in await self._client.ask_all(commands) for one in mapping(answer).items()]
            batch = [
                await self._known(shard, key, raw)
                for key, raw in found
                if int.from_bytes(raw[12:16], "big") == int(number)
            ]
            if batch:
                yield batch

    async def _read(self, request_key: Key, shard: int) -> Stored | None:
        key = key_bytes(request_key)
        raw = await self._client.ask("HGET", self._key(shard, f"y:{key[7]}"), key)
        return None if raw is None else await self._known(shard, key, raw)

    async def _known(self, shard: int, key: bytes, raw: bytes) -> Stored:
        origin, crawl = int.from_bytes(raw[8:12], "big"), int.from_bytes(raw[12:16], "big")
        return rows.stored(
            key, raw, await self._name(shard, "o", "name", origin), await self._name(shard, "c", "id", crawl)
        )

    async def _name(self, shard: int, kind: str, field: str, number: int) -> str:
        """The name behind a number, which never changes."""
        known = self._names.get((shard, kind, number))
        if known is None:
            known = (await self._client.ask("HGET", self._key(shard, f"{kind}:{number}"), field)).decode()
            self._names[shard, kind, number] = known
            if len(self._names) > _NAMES_MAX:
                self._names.popitem(last=False)
        return known

    # Moves

    async def _move(self, shard: int, moves: Sequence[Move]) -> list[bool]:
        if not moves:
            return []
        arguments: list[Argument] = []
        for move in moves:
            key = key_bytes(move.known.row.request.request_key)
            arguments += [
                key, move.known.raw, move.after, move.known.ended, move.ended, move.duplicate, move.forgotten
            ]  # fmt: skip
        return [bool(answer) for answer in await self._write(_MOVE, shard, arguments)]

    # Shards

    def _shard_of(self, url: str) -> int:
        return host_shard(host_of(url), self._shards)

    def _key(self, shard: int, name: str) -> str:
        return self._client.key(f"f:{shard}", name)

    async def _mine_all(self) -> list[_Shard]:
        """The shards that this store serves; all of them if it was never told."""
        if self._owned is None:
            async with self._taking:
                if self._owned is None:
                    self.own(await ShardLeases(self._client).acquire(range(self._shards)))
        assert self._owned is not None
        return list(self._owned.values())

    async def _mine(self, shard: int) -> _Shard:
        await self._mine_all()
        assert self._owned is not None
        if shard not in self._owned:
            raise StaleEpochError(f"shard {shard} of the frontier is not owned by this process")
        return self._owned[shard]

    async def _write(self, script: Script, shard: int, arguments: Iterable[Argument]) -> Any:
        """Run a script that writes to a shard; from then on it is not known when the shard has something to do."""
        owned = await self._mine(shard)
        owned.dirty = True
        head = (self._key(shard, ""), owned.epoch, self._now_ms)
        return await self._client.run(script, (meta_key(self._client, shard),), (*head, *arguments))

    async def _awake(self, now_ms: Millis) -> list[_Shard]:
        """The shards in which something may be possible now."""
        await self._look(now_ms)
        return [shard for shard in await self._mine_all() if shard.event_ms <= now_ms]

    async def _look(self, now_ms: Millis) -> None:
        """Ask the shards that have changed, or whose time has come, when they have something to do."""
        await self._refresh(now_ms)
        asked = [
            shard for shard in await self._mine_all() if shard.dirty or min(shard.event_ms, shard.expires_ms) <= now_ms
        ]
        calls = [
            ((meta_key(self._client, shard.number),), (self._key(shard.number, ""), shard.epoch, now_ms))
            for shard in asked
        ]
        for shard, answer in zip(asked, await self._client.run_all(_EVENT, calls), strict=True):
            times = [int(float(time)) for time in answer]
            shard.event_ms, shard.lease_ends_ms, shard.expires_ms = (_NEVER if time < 0 else time for time in times)
            shard.dirty = False

    # Policies and budgets

    async def _policy(self, crawl_id: str) -> CrawlPolicy | None:
        known = self._policies.get(crawl_id)
        if known is None or self._now_ms - known[1] > _POLICY_MS:
            known = self._policies[crawl_id] = (await self._crawls.policy(crawl_id), self._now_ms)
        return known[0]

    async def _limit(self, crawl_id: str) -> tuple[int, int]:
        """Whether a crawl is paused, and how many pages a shard may charge before it asks for more."""
        policy = await self._policy(crawl_id)
        if policy is None:
            return 0, _NO_LIMIT
        if not policy.pages_max:
            return int(policy.paused), _NO_LIMIT
        return int(policy.paused), policy.pages_max if self._shards == 1 else 0

    async def _policy_changed(self, crawl_id: str) -> None:
        """Tell the shards at once; other replicas find it within a second."""
        self._policies.pop(crawl_id, None)
        for shard in await self._mine_all():
            await self._configure(shard, [crawl_id])

    async def _configure(self, shard: _Shard, crawl_ids: Sequence[str]) -> list[list[int]]:
        for crawl_id in crawl_ids:
            shard.limits[crawl_id] = await self._limit(crawl_id)
        return await self._tell(shard, crawl_ids)

    async def _tell(self, shard: _Shard, crawl_ids: Sequence[str]) -> list[list[int]]:
        arguments: list[Argument] = []
        for crawl_id in crawl_ids:
            arguments += [crawl_id, *shard.limits[crawl_id]]
        found: list[list[int]] = await self._write(_CONFIGURE, shard.number, arguments)
        return found

    async def _refresh(self, now_ms: Millis) -> None:
        """Tell the shards of policies that another replica has changed, and load what a new owner does not know."""
        stale = [name for name, (_, read_ms) in self._policies.items() if now_ms - read_ms > _POLICY_MS]
        for crawl_id in stale:
            before = self._policies[crawl_id][0]
            if await self._policy(crawl_id) != before:
                await self._policy_changed(crawl_id)

    async def _ask_for_budget(self, shard: _Shard, wanted: int) -> None:
        """Have a part of each limited crawl's budget allotted before a lease; a single shard has all of it."""
        limited = await self._limited(shard)
        for crawl_id, pages_max in limited.items():
            ((charged, queued),) = await self._tell(shard, [crawl_id])
            part = await self._crawls.allot(crawl_id, shard.number, charged, min(wanted, queued), pages_max)
            shard.limits[crawl_id] = (shard.limits[crawl_id][0], part)
        if limited:
            await self._tell(shard, list(limited))

    async def _give_back(self, shard: _Shard) -> None:
        """Give back what a lease did not use of a budget."""
        for crawl_id, pages_max in (await self._limited(shard)).items():
            ((charged, _),) = await self._tell(shard, [crawl_id])
            part = await self._crawls.allot(crawl_id, shard.number, charged, 0, pages_max)
            shard.limits[crawl_id] = (shard.limits[crawl_id][0], part)

    async def _limited(self, shard: _Shard) -> dict[str, int]:
        if self._shards == 1:
            return {}
        policies = {crawl_id: await self._policy(crawl_id) for crawl_id in shard.limits}
        return {name: policy.pages_max for name, policy in policies.items() if policy and policy.pages_max}

    def _told(self, now_ms: Millis) -> Millis:
        """The time, which never goes back."""
        self._now_ms = max(self._now_ms, now_ms)
        return self._now_ms


def _stored(answer: Sequence[bytes]) -> Stored:
    key, raw, origin, crawl_id = answer
    return rows.stored(key, raw, origin.decode(), crawl_id.decode())


def _admission(answer: Sequence[Any]) -> Admission:
    code, evicted, origin = answer
    if code != 1:
        return Admission(admitted=False, reason=_REASONS[code])
    url = _stored((b"\0" * 8, evicted, origin, b"")).row.request.url if evicted else ""
    return Admission(admitted=True, evicted_url=url)


def _origin(found: Mapping[bytes, bytes]) -> OriginState:
    def number(name: bytes) -> int:
        return int(float(found.get(name, b"0")))

    return OriginState(
        origin=found[b"name"].decode(),
        robots=RobotsState(found[b"robots"].decode()),
        robots_expires_ms=number(b"expires"),
        next_at_ms=number(b"next"),
        blocked_until_ms=number(b"blocked"),
        delay_ms=number(b"delay"),
        concurrency_max=number(b"concurrency"),
        leased=number(b"leased"),
        queued=number(b"queued"),
        admitted=number(b"admitted"),
        failures=number(b"failures"),
        last_served_ms=number(b"served"),
    )


def _template(found: bytes) -> TemplateCounts:
    admitted, results, duplicates = (int.from_bytes(found[at : at + 4], "big") for at in (0, 4, 8))
    return TemplateCounts(admitted=admitted, results=results, duplicates=duplicates)


def _score(found: Sequence[Any]) -> Millis | None:
    """The score of the first member of a sorted set, in either form that a client gives it."""
    if not found:
        return None
    first = found[0]
    return int(float(first[1])) if isinstance(first, list | tuple) else int(float(found[1]))
