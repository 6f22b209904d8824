import asyncio
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.contract.requests import SITE, admit, completion, lease, open_origin, request
from tests.integration.test_sqlite_crash import ROOT, faults
from trawl.adapters.sqlite import (
    Database,
    FolderLock,
    SqliteFrontierStore,
    SqlitePageStore,
    SqliteSearchIndex,
    SqliteSpillQueue,
)
from trawl.errors import StoreCorruptError, StoreError, StoreFullError, StoreInUseError, StoreTooNewError
from trawl.ports import Chunk, CrawlPolicy, SearchQuery, StoredPage
from trawl.records import ExtractedDocument

HOLDER = "import sys, time; from pathlib import Path; from trawl.adapters.sqlite import FolderLock;"
HOLDER += "lock = FolderLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"


def test_a_folder_is_made_and_opened_again(tmp_path: Path) -> None:
    for _ in range(2):
        Database(tmp_path / "a" / "b").close()


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    Database(tmp_path).close()
    with sqlite3.connect(tmp_path / "trawl.sqlite") as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    before = (tmp_path / "trawl.sqlite").read_bytes()
    with pytest.raises(StoreTooNewError, match=r"999.*upgrade Trawl"):
        Database(tmp_path)
    assert (tmp_path / "trawl.sqlite").read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trawl.sqlite").write_bytes(b"this is a text, not a database" * 100)
    with pytest.raises(StoreCorruptError, match=r"trawl\.sqlite is damaged"):
        Database(tmp_path)


async def test_damage_inside_is_named_when_it_is_met(tmp_path: Path) -> None:
    database = Database(tmp_path)
    await admit(SqliteFrontierStore(database), *(request(f"{SITE}/{n}") for n in range(2000)))
    database.close()
    path = tmp_path / "trawl.sqlite"
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4)
        file.write(os.urandom(size // 2))
    with pytest.raises(StoreCorruptError, match="move the folder away"):
        await _read_all(tmp_path)


async def _read_all(folder: Path) -> int:
    database = Database(folder)
    try:
        return len([row async for row in SqliteFrontierStore(database).rows("c")])
    finally:
        database.close()


def test_there_is_nothing_to_read_in_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no crawl in"):
        Database(tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file"):
        Database(tmp_path / "file" / "out")
    with pytest.raises(StoreError, match="file"):
        FolderLock(tmp_path / "file" / "out")


# A full disk


def _fill(database: Database, spare_pages: int) -> None:
    """Let the database grow by so many pages only, which is how SQLite meets a full disk."""
    pages = database.connection.execute("PRAGMA page_count").fetchone()[0]
    database.connection.execute(f"PRAGMA max_page_count = {pages + spare_pages}")


async def test_a_full_disk_is_named_and_loses_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path)
    frontier = SqliteFrontierStore(database)
    await frontier.put_crawl(CrawlPolicy(crawl_id="c"))
    await open_origin(frontier)
    _fill(database, 20)
    with pytest.raises(StoreFullError, match="free some and run the same command again"):
        await _admit_forever(frontier)
    admitted = (await frontier.progress("c")).queued
    assert admitted > 0
    assert admitted % 50 == 0
    database.connection.execute("PRAGMA max_page_count = 1000000")
    assert len(await lease(frontier, limit=10)) == 10
    database.connection.execute("UPDATE crawl SET pages_max = 100000")
    assert list(faults(database)) == []
    database.close()


async def _admit_forever(frontier: SqliteFrontierStore) -> None:
    for batch in itertools.count():
        await admit(frontier, *(request(f"{SITE}/{batch}/{n}") for n in range(50)))


async def test_every_store_meets_a_full_disk_the_same_way(tmp_path: Path) -> None:
    database = Database(tmp_path)
    spill, pages, index = SqliteSpillQueue(database), SqlitePageStore(database), SqliteSearchIndex(database)
    await index.open("model", 2)
    _fill(database, 2)
    noise = os.urandom(40_000)
    with pytest.raises(StoreFullError):
        await spill.push([noise])
    document = ExtractedDocument(
        document_key=1, crawl_id="c", request_key=1, fetch_id=1, url="u", final_url="u", text=noise.hex()
    )
    with pytest.raises(StoreFullError):
        await pages.put(StoredPage(document=document))
    with pytest.raises(StoreFullError):
        await index.upsert([_chunk(1, noise.hex())], np.eye(2, dtype=np.float32)[:1])
    assert [await spill.size(), await pages.size(), await index.size()] == [0, 0, 0]
    database.close()


def _chunk(chunk_id: int, text: str) -> Chunk:
    return Chunk(
        chunk_id=chunk_id,
        document_key=1,
        crawl_id="c",
        url="https://a.example/",
        title="",
        heading_path=(),
        text=text,
        position=0,
        fetched_at_ms=0,
    )


# One writer, many readers


def test_a_folder_in_use_names_its_holder(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreInUseError, match=f"process {holder.pid}"):
            FolderLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    FolderLock(tmp_path).close()


def test_a_folder_is_free_again_after_its_lock_is_closed(tmp_path: Path) -> None:
    with FolderLock(tmp_path) as lock, pytest.raises(StoreInUseError, match=f"process {os.getpid()}"):
        FolderLock(tmp_path)
    lock.close()
    FolderLock(tmp_path).close()


async def test_a_reader_sees_a_crawl_while_it_writes(tmp_path: Path) -> None:
    writer = Database(tmp_path)
    frontier, index = SqliteFrontierStore(writer), SqliteSearchIndex(writer)
    await index.open("model", 2)
    await open_origin(frontier)
    reader = Database(tmp_path, read_only=True)
    seen, found = SqliteFrontierStore(reader), SqliteSearchIndex(reader)
    await found.open("model", 2)
    for n in range(20):
        await admit(frontier, request(f"{SITE}/{n}"))
        (leased,) = await lease(frontier, 1000 + n)
        await frontier.complete(completion(leased))
        await index.upsert([_chunk(n, f"word{n}")], np.eye(2, dtype=np.float32)[:1])
        assert (await seen.progress("c")).outcomes == (("indexed", n + 1),)
        assert len(await seen.origins(5)) == 1
        query = SearchQuery(text=f"word{n}", vector=np.eye(2, dtype=np.float32)[:1], limit=100)
        hits = await found.search(query)
        assert hits[0].chunk.chunk_id == n
        assert len(hits) == n + 1
    reader.close()
    writer.close()


async def test_a_reader_cannot_write(tmp_path: Path) -> None:
    Database(tmp_path).close()
    reader = Database(tmp_path, read_only=True)
    with pytest.raises(StoreError):
        await SqliteSpillQueue(reader).push([b"x"])
    reader.close()


async def test_a_writer_is_not_held_up_by_a_reader_in_the_middle(tmp_path: Path) -> None:
    writer = Database(tmp_path)
    frontier = SqliteFrontierStore(writer)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(600)))
    reader = Database(tmp_path, read_only=True)
    rows = SqliteFrontierStore(reader).rows("c")
    assert (await anext(rows)).request.url == f"{SITE}/0"
    await asyncio.wait_for(admit(frontier, request(f"{SITE}/new")), 1)
    assert len([row async for row in rows]) == 600
    reader.close()
    writer.close()


def _fail_in_the_middle(database: Database) -> float:
    with database.write() as connection:
        connection.execute("INSERT INTO spill (item) VALUES (x'00')")
        return 1 / 0


def test_after_an_error_in_the_middle_nothing_is_changed(tmp_path: Path) -> None:
    database = Database(tmp_path)
    with pytest.raises(ZeroDivisionError):
        _fail_in_the_middle(database)
    with database.read() as connection:
        assert connection.execute("SELECT count(*) FROM spill").fetchone() == (0,)
    database.close()
