"""What is known of hosts whose text comes with scripts, in SQLite."""

from trawl.adapters.sqlite.database import Database
from trawl.plain import from_json, to_json
from trawl.ports import HostHydration


class SqliteHydrationStore:
    """What is known by origin."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, origin: str) -> HostHydration | None:
        """What is known of an origin."""
        with self._database.read() as connection:
            row = connection.execute("SELECT host FROM hydration WHERE origin = ?", (origin,)).fetchone()
        return None if row is None else from_json(HostHydration, row[0])

    async def put(self, host: HostHydration) -> None:
        """Store or replace it."""
        with self._database.write() as connection:
            connection.execute("INSERT OR REPLACE INTO hydration VALUES (?, ?)", (host.origin, to_json(host)))

    async def headless(self) -> int:
        """How many origins have each of their pages rendered."""
        with self._database.read() as connection:
            rows = connection.execute("SELECT host FROM hydration").fetchall()
        return sum(from_json(HostHydration, row[0]).headless for row in rows)
