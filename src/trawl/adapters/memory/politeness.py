"""Politeness slots and robots.txt in memory."""

from dataclasses import dataclass, field, replace

from trawl.adapters.slots import observed, permits_out, slot_ms
from trawl.ports import PolitenessState, Reservation, RobotsEntry
from trawl.records import Key, Millis


@dataclass(slots=True)
class _Key:
    state: PolitenessState = field(default_factory=PolitenessState)
    last_ms: Millis | None = None
    permits: dict[int, Millis] = field(default_factory=dict)  # permit to expiry


class MemoryPolitenessStore:
    """When hosts and addresses were and may be fetched."""

    def __init__(self) -> None:
        self._keys: dict[str, _Key] = {}
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
        known = self._keys.setdefault(key, _Key())
        known.permits = {permit: expires for permit, expires in known.permits.items() if expires > now_ms}
        at_ms = slot_ms(now_ms, known.last_ms, known.state.blocked_until_ms, interval_ms)
        if concurrency_max and len(known.permits) >= concurrency_max:
            return permits_out(now_ms, at_ms, interval_ms, min(known.permits.values()))
        if at_ms > now_ms + horizon_ms:
            return Reservation(granted=False, at_ms=at_ms, gap_required_ms=interval_ms)
        gap = None if known.last_ms is None else at_ms - known.last_ms
        known.last_ms = at_ms
        self._last_permit += 1
        known.permits[self._last_permit] = at_ms + permit_ms
        return Reservation(
            granted=True, at_ms=at_ms, permit=self._last_permit, gap_required_ms=interval_ms, gap_actual_ms=gap
        )

    async def release(self, key: str, permit: int) -> None:
        """Give a permit back; harmless if it is not out."""
        if key in self._keys:
            self._keys[key].permits.pop(permit, None)

    async def block(self, key: str, until_ms: Millis) -> None:
        """Grant nothing before that time; never shortens a block."""
        known = self._keys.setdefault(key, _Key())
        known.state = replace(known.state, blocked_until_ms=max(until_ms, known.state.blocked_until_ms))

    async def observe(self, key: str, *, response_ms: float | None, failed: bool, throttled: bool) -> PolitenessState:
        """Learn from an answer; the new state."""
        known = self._keys.setdefault(key, _Key())
        known.state = observed(known.state, response_ms=response_ms, failed=failed, throttled=throttled)
        return await self.state(key)

    async def state(self, key: str) -> PolitenessState:
        """What is known of a key; defaults if nothing."""
        known = self._keys.get(key, _Key())
        return replace(known.state, last_start_ms=known.last_ms or 0, in_flight=len(known.permits))


class MemoryRobotsStore:
    """robots.txt by origin."""

    def __init__(self) -> None:
        self._entries: dict[str, RobotsEntry] = {}

    async def get(self, origin: str) -> RobotsEntry | None:
        """The entry, expired or not."""
        return self._entries.get(origin)

    async def put(self, entry: RobotsEntry) -> None:
        """Store or replace an entry."""
        self._entries[entry.origin] = entry


class MemoryFetchMarkers:
    """Which fetches are done."""

    def __init__(self) -> None:
        self._done: set[Key] = set()

    async def done(self, fetch_id: Key) -> bool:
        """Whether the fetch was marked."""
        return fetch_id in self._done

    async def mark(self, fetch_id: Key) -> None:
        """Remember that it is done."""
        self._done.add(fetch_id)
