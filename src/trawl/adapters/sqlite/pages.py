"""Documents in SQLite, each as compressed JSON."""

import sqlite3
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import numpy as np
import zstandard

from trawl.adapters.sqlite.database import Database
from trawl.adapters.sqlite.sizes import add_size, size_of
from trawl.errors import StoreCorruptError
from trawl.plain import from_json, to_json
from trawl.ports import StoredPage
from trawl.records import ExtractedDocument, Key

_BATCH: Final = 32
_SELECT: Final = "SELECT document, chunks, indexed_at_ms, seq FROM page "


class SqlitePageStore:
    """Documents by key."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._compressor = zstandard.ZstdCompressor(level=1)

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        with self._database.read() as connection:
            row = connection.execute(_SELECT + "WHERE document_key = ?", (document_key,)).fetchone()
        return None if row is None else _page(row)

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there (then False)."""
        document = page.document
        stored = self._compressor.compress(to_json(document))
        content = (document.crawl_id, document.fetched_at_ms, page.indexed_at_ms, _packed(page.chunks), stored)
        key = document.document_key
        with self._database.write() as connection:
            known = connection.execute("SELECT fetched_at_ms FROM page WHERE document_key = ?", (key,)).fetchone()
            if known is None:
                _insert(connection, key, content)
                return True
            if known[0] > document.fetched_at_ms:
                return False
            connection.execute(
                "UPDATE page SET crawl_id = ?, fetched_at_ms = ?, indexed_at_ms = ?, chunks = ?, document = ?"
                " WHERE document_key = ?",
                (*content, key),
            )
        return True

    async def delete(self, document_key: Key) -> None:
        """Forget the page; harmless if it is not there."""
        with self._database.write() as connection:
            gone = connection.execute("DELETE FROM page WHERE document_key = ?", (document_key,)).rowcount
            add_size(connection, "page", -gone)

    async def pages(self, crawl_id: str) -> AsyncIterator[StoredPage]:
        """Every page of a crawl, in the order of first storing; read in small batches, so writers are not held up."""
        after = 0
        while True:
            with self._database.read() as connection:
                where = "WHERE crawl_id = ? AND seq > ? ORDER BY seq LIMIT ?"
                batch = connection.execute(_SELECT + where, (crawl_id, after, _BATCH)).fetchall()
            for row in batch:
                yield _page(row)
            if len(batch) < _BATCH:
                return
            after = batch[-1][3]

    async def size(self) -> int:
        """Pages stored."""
        with self._database.read() as connection:
            return size_of(connection, "page")


def _insert(connection: sqlite3.Connection, key: Key, content: tuple[Any, ...]) -> None:
    connection.execute(
        "INSERT INTO page (document_key, crawl_id, fetched_at_ms, indexed_at_ms, chunks, document)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (key, *content),
    )
    add_size(connection, "page", 1)


def _packed(keys: Sequence[Key]) -> bytes:
    return np.array(keys, dtype="<i8").tobytes()


def _page(row: tuple[Any, ...]) -> StoredPage:
    try:
        document = from_json(ExtractedDocument, zstandard.decompress(row[0]))
    except zstandard.ZstdError as error:
        raise StoreCorruptError(f"page {row[3]} of the store cannot be unpacked: {error}") from error
    chunks = tuple(np.frombuffer(row[1], dtype="<i8").tolist())
    return StoredPage(document=document, chunks=chunks, indexed_at_ms=row[2])
