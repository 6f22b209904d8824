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
from trawl.ports import WITHDRAWN_MAX, StoredPage
from trawl.records import ExtractedDocument, Key, Millis

_BATCH: Final = 32
_SELECT: Final = "SELECT document, chunks, indexed_at_ms, seq FROM page "


class SqlitePageStore:
    """Documents by key."""

    def __init__(self, database: Database, *, withdrawn_max: int = WITHDRAWN_MAX) -> None:
        self._database = database
        self._withdrawn_max = withdrawn_max
        self._compressor = zstandard.ZstdCompressor(level=1)

    async def get(self, document_key: Key) -> StoredPage | None:
        """The page, if it is indexed."""
        with self._database.read() as connection:
            row = connection.execute(_SELECT + "WHERE document_key = ?", (document_key,)).fetchone()
        return None if row is None else _page(row)

    async def get_many(self, document_keys: Sequence[Key]) -> dict[Key, StoredPage]:
        """The pages of those documents that are indexed."""
        found = {key: await self.get(key) for key in document_keys}
        return {key: page for key, page in found.items() if page is not None}

    async def put(self, page: StoredPage) -> bool:
        """Store or replace, unless a page with a newer fetch time is there, or was withdrawn since (then False)."""
        return (await self.put_many([page]))[0]

    async def put_many(self, pages: Sequence[StoredPage]) -> list[bool]:
        """Store or replace many, in order; for each whether it was done, as by `put`."""
        with self._database.write() as connection:
            return [self._put(connection, page) for page in pages]

    def _put(self, connection: sqlite3.Connection, page: StoredPage) -> bool:
        document = page.document
        key = document.document_key
        known = connection.execute("SELECT fetched_at_ms FROM page WHERE document_key = ?", (key,)).fetchone()
        if known is not None and known[0] > document.fetched_at_ms:
            return False
        withdrawn = None if known is not None else _withdrawn(connection, key)
        if withdrawn is not None and withdrawn >= document.fetched_at_ms:
            return False
        stored = self._compressor.compress(to_json(document))
        content = (document.crawl_id, document.fetched_at_ms, page.indexed_at_ms, _packed(page.chunks), stored)
        if known is None:
            _insert(connection, key, content)
            return True
        connection.execute(
            "UPDATE page SET crawl_id = ?, fetched_at_ms = ?, indexed_at_ms = ?, chunks = ?, document = ?"
            " WHERE document_key = ?",
            (*content, key),
        )
        return True

    async def delete(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """Withdraw the page as of that time, unless something newer is known of it (then False); see the port."""
        with self._database.write() as connection:
            gone = connection.execute(
                "DELETE FROM page WHERE document_key = ? AND fetched_at_ms <= ?", (document_key, fetched_at_ms)
            ).rowcount
            add_size(connection, "page", -gone)
            left = connection.execute("SELECT 1 FROM page WHERE document_key = ?", (document_key,)).fetchone()
            if left is not None or (_withdrawn(connection, document_key) or fetched_at_ms) > fetched_at_ms:
                return False
            self._withdraw(connection, document_key, fetched_at_ms)
        return True

    def _withdraw(self, connection: sqlite3.Connection, key: Key, fetched_at_ms: Millis) -> None:
        """Remember it, as the last of those that are remembered."""
        _readmit(connection, key)
        connection.execute(
            "INSERT INTO withdrawn_page (document_key, fetched_at_ms) VALUES (?, ?)", (key, fetched_at_ms)
        )
        add_size(connection, "withdrawn_page", 1)
        if size_of(connection, "withdrawn_page") > self._withdrawn_max:
            connection.execute("DELETE FROM withdrawn_page WHERE seq = (SELECT min(seq) FROM withdrawn_page)")
            add_size(connection, "withdrawn_page", -1)

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
    _readmit(connection, key)


def _withdrawn(connection: sqlite3.Connection, key: Key) -> Millis | None:
    """As of which fetch the document was withdrawn, if it was."""
    select = "SELECT fetched_at_ms FROM withdrawn_page WHERE document_key = ?"
    row = connection.execute(select, (key,)).fetchone()
    return None if row is None else row[0]


def _readmit(connection: sqlite3.Connection, key: Key) -> None:
    gone = connection.execute("DELETE FROM withdrawn_page WHERE document_key = ?", (key,)).rowcount
    add_size(connection, "withdrawn_page", -gone)


def _packed(keys: Sequence[Key]) -> bytes:
    return np.array(keys, dtype="<i8").tobytes()


def _page(row: tuple[Any, ...]) -> StoredPage:
    try:
        document = from_json(ExtractedDocument, zstandard.decompress(row[0]))
    except zstandard.ZstdError as error:
        raise StoreCorruptError(f"page {row[3]} of the store cannot be unpacked: {error}") from error
    chunks = tuple(np.frombuffer(row[1], dtype="<i8").tolist())
    return StoredPage(document=document, chunks=chunks, indexed_at_ms=row[2])
