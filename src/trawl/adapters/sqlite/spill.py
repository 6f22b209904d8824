"""The frontier's overflow in SQLite."""

from collections.abc import Sequence

from trawl.adapters.sqlite.database import Database


class SqliteSpillQueue:
    """A first-in first-out queue of bytes; its numbers have no gaps, so its size is known from its ends."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def push(self, items: Sequence[bytes]) -> None:
        """Append in order."""
        with self._database.write() as connection:
            connection.executemany("INSERT INTO spill (item) VALUES (?)", ((item,) for item in items))

    async def pull(self, limit: int) -> Sequence[bytes]:
        """Remove and return the oldest, at most `limit`."""
        with self._database.write() as connection:
            found = connection.execute("SELECT seq, item FROM spill ORDER BY seq LIMIT ?", (max(0, limit),)).fetchall()
            if found:
                connection.execute("DELETE FROM spill WHERE seq <= ?", (found[-1][0],))
        return [item for _, item in found]

    async def size(self) -> int:
        """How many wait."""
        with self._database.read() as connection:
            first = connection.execute("SELECT min(seq) FROM spill").fetchone()[0]
            last = connection.execute("SELECT max(seq) FROM spill").fetchone()[0]
        return 0 if first is None else int(last - first + 1)
