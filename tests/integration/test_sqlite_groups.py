"""Transactions that are committed together."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from trawl.adapters.sqlite import SqlitePolitenessStore
from trawl.adapters.sqlite.database import Database
from trawl.errors import StoreError, StoreFullError

SECONDS = 0.03


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """A database whose transactions are grouped, with one table."""
    with closing(Database(tmp_path, group_seconds=SECONDS)) as database:
        database.connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
        yield database


def seen_by_others(database: Database) -> list[int]:
    """What another connection sees."""
    with closing(Database(database.folder, read_only=True)) as other, other.read() as connection:
        return [n for (n,) in connection.execute("SELECT n FROM t ORDER BY n")]


def put(database: Database, *numbers: int, bug: bool = False) -> None:
    with database.write() as connection:
        for number in numbers:
            connection.execute("INSERT INTO t VALUES (?)", (number,))
        if bug:
            raise RuntimeError


def fill(database: Database) -> None:
    for number in range(2, 100_000):
        put(database, number)


async def test_a_group_is_seen_by_its_own_connection_at_once_and_by_others_together(database: Database) -> None:
    put(database, 1)
    put(database, 2)
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (2,)
    assert seen_by_others(database) == []
    await asyncio.sleep(2 * SECONDS)
    assert seen_by_others(database) == [1, 2]


async def test_one_that_fails_is_undone_alone(database: Database) -> None:
    put(database, 1)
    with pytest.raises(RuntimeError):
        put(database, 7, bug=True)
    with pytest.raises(StoreError, match="UNIQUE"):
        put(database, 8, 1)
    put(database, 2)
    await asyncio.sleep(2 * SECONDS)
    assert seen_by_others(database) == [1, 2]


async def test_closing_commits(tmp_path: Path) -> None:
    database = Database(tmp_path, group_seconds=60)
    database.connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
    put(database, 1)
    database.close()
    assert seen_by_others(database) == [1]


async def test_a_crash_loses_a_suffix_and_nothing_between(tmp_path: Path) -> None:
    database = Database(tmp_path, group_seconds=SECONDS)
    database.connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
    for number in range(200):
        put(database, number)
        await asyncio.sleep(0.001)
    kept = seen_by_others(database)  # what would be there had the process been killed now
    assert kept == list(range(len(kept)))
    assert 100 < len(kept) < 200
    database.close()


async def test_a_full_disk_is_told_and_the_group_before_it_holds(database: Database) -> None:
    put(database, 1)
    await asyncio.sleep(2 * SECONDS)
    (pages,) = database.connection.execute("PRAGMA page_count").fetchone()
    database.connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError, match="run the same command again"):
        fill(database)
    assert not database.connection.in_transaction
    assert seen_by_others(database) == [1]
    database.connection.execute("PRAGMA max_page_count = 1000000")
    with pytest.raises(StoreFullError):  # answers were undone with the group, so nothing may build on them
        put(database, 2)


async def test_a_block_is_on_disk_at_once_unless_it_is_over_before_a_process_could_start_again(
    database: Database,
) -> None:
    politeness = SqlitePolitenessStore(database)
    await politeness.reserve("h", 1000, interval_ms=0, horizon_ms=0, concurrency_max=0, permit_ms=1)
    await politeness.block("h", 1050)
    put(database, 1)
    assert seen_by_others(database) == []
    await politeness.block("h", 5000)
    assert seen_by_others(database) == [1]


def test_without_a_group_each_commits_itself(tmp_path: Path) -> None:
    with closing(Database(tmp_path)) as database:
        database.connection.execute("CREATE TABLE t (n INTEGER UNIQUE)")
        put(database, 1)
        assert seen_by_others(database) == [1]
        with pytest.raises(sqlite3.ProgrammingError):
            database.connection.execute("SELECT ?", ())
