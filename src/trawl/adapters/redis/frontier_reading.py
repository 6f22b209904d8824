"""What the frontier's state in Redis says, for whoever asks: reading needs no ownership."""

from collections.abc import AsyncIterator, Sequence
from typing import Final

from trawl.adapters.redis import frontier_rows as rows
from trawl.adapters.redis.client import Argument, RedisClient, Script
from trawl.adapters.redis.crawls import mapping, pairs
from trawl.adapters.redis.frontier_rows import Stored, key_bytes
from trawl.adapters.redis.shards import meta_key, prefix
from trawl.adapters.transitions import by_class
from trawl.kinds import RobotsState
from trawl.ports import CrawlProgress, OriginState, Request, TemplateCounts
from trawl.records import Key, Millis

_READ: Final = Script("frontier_read")
_PROGRESS: Final = Script("frontier_progress", "frontier")
_BATCH: Final = 500
_BUCKETS: Final = 64
"""Hashes of rows that are read in one round trip."""
_ORIGIN: Final = slice(8, 12)
_CRAWL: Final = slice(12, 16)
"""Where in a row the numbers of its origin and crawl stand (see lua/frontier.lua)."""
_SHARDS_AT_ONCE: Final = 64


class FrontierReading:
    """The questions that change nothing."""

    def __init__(self, client: RedisClient, shards: int) -> None:
        self._client = client
        self._shards = shards

    def key(self, shard: int, name: str) -> str:
        """A key of a shard."""
        return prefix(self._client, shard) + name

    async def seen(self, keys: Sequence[tuple[int, Key]], *, forgotten: bool) -> list[bool]:
        """For each shard and request key whether it was ever admitted; also those of which only the key is kept."""
        commands: list[tuple[Argument, ...]] = []
        for shard, request_key in keys:
            key = key_bytes(request_key)
            commands.append(("HEXISTS", self.key(shard, f"y:{key[7]}"), key))
            if forgotten:
                commands.append(("SISMEMBER", self.key(shard, f"s:{key[7]}"), request_key))
        answers = await self._client.ask_all(commands)
        each = 1 + forgotten
        return [any(answers[at : at + each]) for at in range(0, len(answers), each)]

    async def templates(self, asked: Sequence[tuple[int, Request]]) -> list[TemplateCounts]:
        """What is known of the template of each request."""
        keys = [(shard, key_bytes(request.template)) for shard, request in asked]
        answers = await self._client.ask_all([("HGET", self.key(shard, f"t:{key[7]}"), key) for shard, key in keys])
        return [TemplateCounts() if found is None else _template(found) for found in answers]

    async def row(self, shard: int, request_key: Key) -> Stored | None:
        """One row."""
        return (await self.some([(shard, request_key)]))[0]

    async def some(self, keys: Sequence[tuple[int, Key]]) -> list[Stored | None]:
        """The rows of these shards and request keys."""
        calls = []
        for shard, request_key in keys:
            key = key_bytes(request_key)
            calls.append(((self.key(shard, f"y:{key[7]}"),), (self.key(shard, ""), key)))
        answers = await self._client.run_all(_READ, calls)
        return [row_of([call[1][1], *found]) if found else None for call, found in zip(calls, answers, strict=True)]

    async def batches(self, shard: int, crawl_id: str) -> AsyncIterator[list[Stored]]:
        """All rows of a crawl in a shard, so many at a time."""
        found = await self._client.ask("HGET", self.key(shard, "cn"), crawl_id)
        if found is None:
            return
        crawl, names = int(found), dict[int, bytes]()
        for first in range(0, 256, _BUCKETS):
            commands = [("HGETALL", self.key(shard, f"y:{byte}")) for byte in range(first, first + _BUCKETS)]
            held = [one for answer in await self._client.ask_all(commands) for one in mapping(answer).items()]
            mine = [(key, raw) for key, raw in held if int.from_bytes(raw[_CRAWL], "big") == crawl]
            await self._learn(shard, names, {int.from_bytes(raw[_ORIGIN], "big") for _, raw in mine})
            if mine:
                yield [
                    rows.stored(key, raw, names[int.from_bytes(raw[_ORIGIN], "big")].decode(), crawl_id)
                    for key, raw in mine
                ]

    async def _learn(self, shard: int, names: dict[int, bytes], wanted: set[int]) -> None:
        unknown = sorted(wanted - names.keys())
        found = await self._client.ask_all([("HGET", self.key(shard, f"o:{one}"), "name") for one in unknown])
        names |= dict(zip(unknown, found, strict=True))

    async def origin(self, shard: int, origin: str) -> OriginState | None:
        """What is known of an origin."""
        number = await self._client.ask("HGET", self.key(shard, "on"), origin)
        if number is None:
            return None
        return origin_of(await pairs(self._client, self.key(shard, f"o:{int(number)}")))

    async def origins(self, limit: int) -> list[OriginState]:
        """Origins, most queued first; reads them all, so for people."""
        found: list[tuple[int, int, OriginState]] = []
        for shard in range(self._shards):
            numbers = sorted(int(number) for number in (await pairs(self._client, self.key(shard, "on"))).values())
            for start in range(0, len(numbers), _BATCH):
                part = numbers[start : start + _BATCH]
                answers = await self._client.ask_all([("HGETALL", self.key(shard, f"o:{one}")) for one in part])
                states = [origin_of(mapping(answer)) for answer in answers]
                found += [(-state.queued, number, state) for number, state in zip(part, states, strict=True)]
            found = sorted(found, key=lambda one: one[:2])[:limit]
        return [state for *_, state in found]

    async def progress(self, crawl_id: str, now_ms: Millis, refusals: tuple[tuple[str, int], ...]) -> CrawlProgress:
        """How far a crawl is, in all shards."""
        queued, waiting, leased, charged = 0, 0, 0, 0
        due: list[Millis] = []
        reasons: dict[str, int] = {}
        for first in range(0, self._shards, _SHARDS_AT_ONCE):
            shards = range(first, min(first + _SHARDS_AT_ONCE, self._shards))
            calls = [((meta_key(self._client, one),), (self.key(one, ""), "", now_ms, crawl_id)) for one in shards]
            for numbers in filter(None, await self._client.run_all(_PROGRESS, calls)):
                queued += numbers[0]
                waiting += numbers[1]
                leased += numbers[2]
                charged += numbers[3]
                due += [int(numbers[4])] if int(numbers[4]) >= 0 else []
                for name, count in zip(numbers[5::2], numbers[6::2], strict=True):
                    reasons[name.decode()] = reasons.get(name.decode(), 0) + int(count)
        ordered = tuple(sorted((name, count) for name, count in reasons.items() if count > 0))
        first_due = 0 if queued > waiting else min(due, default=None)
        return CrawlProgress(
            queued=queued,
            leased=leased,
            charged=charged,
            outcomes=by_class(ordered),
            reasons=ordered,
            refusals=refusals,
            next_due_ms=0 if first_due is not None and first_due <= now_ms else first_due,
        )


def row_of(answer: Sequence[bytes]) -> Stored:
    """A row as scripts answer it: its key, itself, the name of its origin, its crawl id."""
    key, raw, origin, crawl_id = answer
    return rows.stored(key, raw, origin.decode(), crawl_id.decode())


def origin_of(found: dict[bytes, bytes]) -> OriginState:
    """What an origin's hash says."""

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
