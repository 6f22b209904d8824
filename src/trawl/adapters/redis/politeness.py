"""When hosts and addresses may be fetched, and their robots.txt, in Redis: shared by every fetcher.

Each decision is one script on the keys of one host or address. A fetch reserves its host and its address in two steps
and waits for the later slot, so the two need not lie on one node of a cluster.
"""

from typing import Any, Final

import msgspec
import zstandard

from trawl.adapters.redis.client import RedisClient, Script
from trawl.adapters.slots import SMOOTHING, permits_out
from trawl.errors import StoreCorruptError
from trawl.ports import PolitenessState, Reservation, RobotsEntry
from trawl.records import Key, Millis
from trawl.settings import RedisSettings, RobotsSettings

_RESERVE: Final = Script("reserve")
_BLOCK: Final = Script("block")
_OBSERVE: Final = Script("observe")
_BODY_BYTES_MAX: Final = 64 * 1024 * 1024


class RedisPolitenessStore:
    """Slots, blocks, permits and what is learned from answers."""

    def __init__(self, client: RedisClient, settings: RedisSettings) -> None:
        self._client = client
        self._ttl_ms = int(1000 * settings.politeness_seconds)

    def _keys(self, key: str) -> tuple[str, str]:
        return self._client.key(f"p:{key}", "state"), self._client.key(f"p:{key}", "permits")

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
        arguments = (now_ms, interval_ms, horizon_ms, concurrency_max, permit_ms, self._ttl_ms)
        granted, at_ms, permit, gap = await self._client.run(_RESERVE, self._keys(key), arguments)
        if granted:
            return Reservation(
                granted=True,
                at_ms=at_ms,
                permit=permit,
                gap_required_ms=interval_ms,
                gap_actual_ms=None if gap < 0 else gap,
            )
        if permit >= 0:
            return permits_out(now_ms, at_ms, interval_ms, permit)
        return Reservation(granted=False, at_ms=at_ms, gap_required_ms=interval_ms)

    async def release(self, key: str, permit: int) -> None:
        """Give a permit back; harmless if it is not out."""
        await self._client.ask("ZREM", self._keys(key)[1], permit)

    async def block(self, key: str, until_ms: Millis) -> None:
        """Grant nothing before that time; never shortens a block."""
        await self._client.run(_BLOCK, self._keys(key)[:1], (until_ms, self._ttl_ms))

    async def observe(self, key: str, *, response_ms: float | None, failed: bool, throttled: bool) -> PolitenessState:
        """Learn from an answer; the new state."""
        told = "" if response_ms is None else repr(float(response_ms))
        arguments = (told, int(failed), int(throttled), SMOOTHING, self._ttl_ms)
        return _state(await self._client.run(_OBSERVE, self._keys(key), arguments))

    async def state(self, key: str) -> PolitenessState:
        """What is known of a key; defaults if nothing."""
        state, permits = self._keys(key)
        fields = ("last", "blocked", "response", "failures", "backoffs")
        known, out = await self._client.ask_all([("HMGET", state, *fields), ("ZCARD", permits)])
        return _state([*known, out])


def _state(values: list[Any]) -> PolitenessState:
    last, blocked, response, failures, backoffs, out = values
    return PolitenessState(
        last_start_ms=int(last or 0),
        blocked_until_ms=int(blocked or 0),
        response_ms=float(response or 0),
        failures=int(failures or 0),
        backoffs=int(backoffs or 0),
        in_flight=int(out),
    )


class RedisRobotsStore:
    """robots.txt by origin, compressed; forgotten when no last good copy could serve any more."""

    def __init__(self, client: RedisClient, settings: RobotsSettings) -> None:
        self._client = client
        self._keep_ms = int(1000 * (settings.last_good_seconds_max + settings.cache_seconds))
        self._compressor = zstandard.ZstdCompressor(level=3)

    async def get(self, origin: str) -> RobotsEntry | None:
        """The entry, expired or not."""
        data = await self._client.ask("GET", self._client.key(f"r:{origin}", "robots"))
        if data is None:
            return None
        try:
            plain = zstandard.decompress(data, max_output_size=_BODY_BYTES_MAX)
            return msgspec.msgpack.decode(plain, type=RobotsEntry)
        except (zstandard.ZstdError, msgspec.MsgspecError) as error:
            raise StoreCorruptError(
                f"the robots.txt of {origin} in Redis is damaged: {error}; delete its key"
            ) from error

    async def put(self, entry: RobotsEntry) -> None:
        """Store or replace an entry."""
        data = self._compressor.compress(msgspec.msgpack.encode(entry))
        await self._client.ask("SET", self._client.key(f"r:{entry.origin}", "robots"), data, "PX", self._keep_ms)


class RedisFetchMarkers:
    """Which fetches are done, for a while."""

    def __init__(self, client: RedisClient, settings: RedisSettings) -> None:
        self._client = client
        self._ttl_ms = int(1000 * settings.fetched_seconds)

    def _key(self, fetch_id: Key) -> str:
        return self._client.key(f"d:{fetch_id:x}", "done")

    async def done(self, fetch_id: Key) -> bool:
        """Whether the fetch was marked not long ago."""
        return bool(await self._client.ask("EXISTS", self._key(fetch_id)))

    async def mark(self, fetch_id: Key) -> None:
        """Remember that it is done."""
        await self._client.ask("SET", self._key(fetch_id), 1, "PX", self._ttl_ms)
