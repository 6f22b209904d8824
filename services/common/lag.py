"""How far a process is behind the ends of its partitions (pure)."""

from collections.abc import Mapping
from dataclasses import dataclass

from services.common.progress import Place


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a process is in one partition."""

    reached: int
    """The first offset that has not ended."""
    taken_ms: int = 0
    """The time of the record taken last; 0 while none was."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far it is behind in one topic."""

    records: int = 0
    seconds: float = 0.0
    """The age of the record taken last, of the partition that is furthest behind; 0 at the ends."""


def lag_of(topic: str, ends: Mapping[Place, int], stands: Mapping[Place, Stand], now_ms: int) -> Lag:
    """The lag in a topic, over those of its partitions of which both the end and our stand are known."""
    behind = {
        place: ends[place] - stand.reached
        for place, stand in stands.items()
        if place[0] == topic and ends.get(place, 0) > stand.reached
    }
    ages = [now_ms - stands[place].taken_ms for place in behind if stands[place].taken_ms]
    return Lag(sum(behind.values()), max([0, *ages]) / 1000)
