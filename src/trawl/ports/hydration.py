"""What is known of hosts whose text comes with scripts."""

from dataclasses import dataclass
from typing import Protocol

from trawl.records import Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class HostHydration:
    """What the pages of one origin showed so far, and what follows."""

    origin: str
    headless: bool = False
    """Whether each of its pages is rendered at once."""
    decided_at_ms: Millis = 0
    """When that was decided; 0 while it is not."""
    shares: tuple[float, ...] = ()
    """The shares of text that came with scripts, of the latest pages that were compared."""
    sampled: int = 0
    """Pages that were rendered to compare, whether or not it worked."""
    shells: int = 0
    """Pages that were shells, and that a browser filled."""
    plain: int = 0
    """Pages that were published as they were fetched."""


class HydrationStore(Protocol):
    """What is known by origin; kept over restarts. Who owns an origin's queue is the only one to write."""

    async def get(self, origin: str) -> HostHydration | None:
        """What is known of an origin."""
        ...

    async def put(self, host: HostHydration) -> None:
        """Store or replace it."""
        ...
