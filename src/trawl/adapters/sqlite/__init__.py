"""The state ports in one SQLite database, for a crawl in one process."""

from trawl.adapters.sqlite.database import Database, FolderLock
from trawl.adapters.sqlite.dedup import SqliteFingerprintIndex
from trawl.adapters.sqlite.frontier import SqliteFrontierStore
from trawl.adapters.sqlite.hydration import SqliteHydrationStore
from trawl.adapters.sqlite.pages import SqlitePageStore
from trawl.adapters.sqlite.politeness import SqlitePolitenessStore, SqliteRobotsStore
from trawl.adapters.sqlite.search import SqliteSearchIndex
from trawl.adapters.sqlite.spill import SqliteSpillQueue

__all__ = [
    "Database",
    "FolderLock",
    "SqliteFingerprintIndex",
    "SqliteFrontierStore",
    "SqliteHydrationStore",
    "SqlitePageStore",
    "SqlitePolitenessStore",
    "SqliteRobotsStore",
    "SqliteSearchIndex",
    "SqliteSpillQueue",
]
