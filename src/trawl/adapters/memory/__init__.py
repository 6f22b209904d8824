"""The state ports in plain memory: for tests, for small crawls, and as the model of every other adapter."""

from trawl.adapters.memory.dedup import MemoryFingerprintIndex
from trawl.adapters.memory.frontier import MemoryFrontierStore
from trawl.adapters.memory.hydration import MemoryHydrationStore
from trawl.adapters.memory.pages import MemoryBlobStore, MemoryPageStore
from trawl.adapters.memory.politeness import MemoryFetchMarkers, MemoryPolitenessStore, MemoryRobotsStore
from trawl.adapters.memory.search import MemorySearchIndex
from trawl.adapters.memory.spill import MemorySpillQueue

__all__ = [
    "MemoryBlobStore",
    "MemoryFetchMarkers",
    "MemoryFingerprintIndex",
    "MemoryFrontierStore",
    "MemoryHydrationStore",
    "MemoryPageStore",
    "MemoryPolitenessStore",
    "MemoryRobotsStore",
    "MemorySearchIndex",
    "MemorySpillQueue",
]
