"""How many rows a table has, counted as they come and go."""

import sqlite3


def size_of(connection: sqlite3.Connection, name: str) -> int:
    """How many there are."""
    return int(connection.execute("SELECT count FROM size WHERE name = ?", (name,)).fetchone()[0])


def add_size(connection: sqlite3.Connection, name: str, change: int) -> None:
    """Count some in or out, in the transaction that stores or deletes them."""
    if change:
        connection.execute("UPDATE size SET count = count + ? WHERE name = ?", (change, name))
