"""The gates of crawls, kept up to date with what the store holds of their policies and scopes."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from trawl.frontier.admission import Gate
from trawl.ports import Clock, FrontierStore
from trawl.records import Millis
from trawl.settings import Settings

CRAWLS_MAX: Final = 256
POLICY_MS: Final = 1000
"""What a crawl allows is read again after this time, for another replica may have changed it."""


@dataclass(slots=True)
class _Held:
    gate: Gate
    read_ms: Millis | None = None
    """As of when the store was asked; None once it is known to have more."""
    changes: int = 0
    """How often the store was known to have more."""


class Gates:
    """The gates of the crawls asked for last."""

    def __init__(self, store: FrontierStore, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._held: OrderedDict[str, _Held] = OrderedDict()

    def recent(self, crawl_id: str) -> Gate | None:
        """The crawl's gate, if it was read in the last second."""
        held = self._held.get(crawl_id)
        if held is None or held.read_ms is None or self._clock.now_ms() - held.read_ms > POLICY_MS:
            return None
        return held.gate

    async def gate(self, crawl_id: str, *, fresh: bool = False) -> Gate | None:
        """The crawl's gate, if its first seed has arrived. Raises StoreError.

        Not fresh, it may have missed what was put into the store in the last second.
        """
        recent = None if fresh else self.recent(crawl_id)
        return recent if recent is not None else await self._read(crawl_id)

    def forget(self, crawl_id: str) -> None:
        """The store has something new for a gate."""
        held = self._held.get(crawl_id)
        if held is not None:
            held.read_ms = None
            held.changes += 1

    async def _read(self, crawl_id: str) -> Gate | None:
        now_ms = self._clock.now_ms()
        held = self._held.get(crawl_id)
        changes = held.changes if held is not None else 0
        policy = await self._store.crawl(crawl_id)
        if policy is None:
            return None
        held = self._held.get(crawl_id)
        if held is None:
            held = self._held[crawl_id] = _Held(Gate(policy, self._settings))
        self._held.move_to_end(crawl_id)
        if len(self._held) > CRAWLS_MAX:
            self._held.popitem(last=False)
        await self._learn(held.gate, crawl_id)
        held.gate.policy, held.read_ms = policy, now_ms if held.changes == changes else None
        return held.gate

    async def _learn(self, gate: Gate, crawl_id: str) -> None:
        """Teach the gate the scopes that it does not know.

        Scopes that somebody else taught it meanwhile are not taught twice: how many it knows says where to go on.
        """
        while True:
            version, known = gate.known
            found = await self._store.scopes(crawl_id, version=version, known=known)
            if gate.known == (version, known):
                gate.learn(*found)
                return
