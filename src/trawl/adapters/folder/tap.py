"""The tap that writes a crawl's documents to a folder."""

import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import zstandard

from trawl.adapters.folder.rows import as_json, page_text, row
from trawl.adapters.sqlite.database import Database
from trawl.records import ExtractedDocument, Payload
from trawl.url import file_name

FORMATS: Final = ("markdown", "html", "jsonl")

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS output (
        seq INTEGER PRIMARY KEY, document_key INTEGER NOT NULL UNIQUE, name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        line BLOB NOT NULL DEFAULT x'')""",
    "CREATE TABLE IF NOT EXISTS output_state (clean INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS output_format (format TEXT PRIMARY KEY) WITHOUT ROWID",
)


class FolderTap:
    """Writes `html/`, `markdown/` and `pages.jsonl`; idempotent, and right again after a crash at any point.

    Which file belongs to which document, and each document's line, is kept in the folder's database. `pages.jsonl` is
    appended to as pages come; where a line was replaced, or the run before did not end, it is written anew from the
    database, by `open` or by `close`.
    """

    def __init__(
        self,
        database: Database,
        *,
        formats: frozenset[str],
        inline_html: bool,
        name_chars_max: int,
        on_page: Callable[[ExtractedDocument, str], Awaitable[None]] | None = None,
    ) -> None:
        self._folder = database.folder
        self._database = database
        self._formats = formats
        self._inline_html = inline_html
        self._name_chars_max = name_chars_max
        self._on_page = on_page
        self.lacking: tuple[str, ...] = ()
        """Formats in which documents of earlier runs were not written; known once it is open."""
        self._stale = False
        self._file = -1
        self._packer = zstandard.ZstdCompressor(level=1)

    def open(self) -> None:
        """Make folders and files ready; mends what an interrupted run left. Raises StoreError."""
        with self._database.write() as connection:
            for table in _TABLES:
                connection.execute(table)
            clean = connection.execute("SELECT clean FROM output_state").fetchone()
            if clean is None:
                connection.execute("INSERT INTO output_state VALUES (0)")
            connection.execute("UPDATE output_state SET clean = 0")
            self.lacking = self._compared(connection)
        with self._told():
            for name in ("markdown", "html"):
                if name in self._formats:
                    (self._folder / name).mkdir(exist_ok=True)
        if "jsonl" in self._formats:
            if clean != (1,) or not self._jsonl.exists():
                self._write_anew()
            with self._told():
                self._file = os.open(self._jsonl, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def close(self) -> None:
        """Bring `pages.jsonl` to its final state."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            if self._stale:
                self._write_anew()
        with self._database.write() as connection:
            connection.execute("UPDATE output_state SET clean = 1")

    async def document(self, document: ExtractedDocument, duplicate_of: str) -> ExtractedDocument:
        """Write a unique document, or the line of a duplicate of the document at that URL; idempotent."""
        name = self._claim(document)
        markdown = f"markdown/{name}.md" if "markdown" in self._formats else ""
        html = f"html/{name}.html" if "html" in self._formats else ""
        with self._told():
            if duplicate_of:
                self._remove(markdown, html)
                markdown = html = ""
            if markdown:
                _write(f"{self._folder}/{markdown}", page_text(document).encode("utf-8", "replace"))
            if html:
                _write(f"{self._folder}/{html}", document.html.inline)
        if "jsonl" in self._formats:
            inline = self._inline_html and not duplicate_of
            self._line(
                document, row(document, duplicate_of, markdown=markdown, html=document.html.inline if inline else html)
            )
        if self._on_page is not None:
            await self._on_page(document, duplicate_of)
        return replace(document, html=Payload(ref=html, size_bytes=document.html.size_bytes))

    async def withdrawn(self, document: ExtractedDocument) -> None:
        """Remove a document's files and line; harmless if it never was."""
        with self._database.write() as connection:
            found = connection.execute(
                "DELETE FROM output WHERE document_key = ? RETURNING name", (document.document_key,)
            ).fetchone()
        if found is not None:
            self._stale = True
            with self._told():
                self._remove(f"markdown/{found[0]}.md", f"html/{found[0]}.html")

    def _compared(self, connection: sqlite3.Connection) -> tuple[str, ...]:
        """The formats of this run that not all documents have; notes which ones all will have after it."""
        written = connection.execute("SELECT 1 FROM output LIMIT 1").fetchone() is not None
        complete = {name for (name,) in connection.execute("SELECT format FROM output_format")}
        kept = self._formats & complete if written else self._formats
        connection.execute("DELETE FROM output_format")
        connection.executemany("INSERT INTO output_format VALUES (?)", [(name,) for name in sorted(kept)])
        return tuple(sorted(self._formats - kept))

    @property
    def _jsonl(self) -> Path:
        return self._folder / "pages.jsonl"

    def _claim(self, document: ExtractedDocument) -> str:
        """The document's file name without ending: never another's, also where only the case differs."""
        key = document.document_key
        names = (
            file_name(document.final_url, disambiguate=plain, name_chars_max=self._name_chars_max)
            for plain in (False, True)
        )
        with self._database.write() as connection:
            found = connection.execute("SELECT name FROM output WHERE document_key = ?", (key,)).fetchone()
            if found is not None:
                return str(found[0])
            for name in names:
                taken = connection.execute("SELECT 1 FROM output WHERE name = ?", (name,)).fetchone()
                if taken is None:
                    connection.execute("INSERT INTO output (document_key, name) VALUES (?, ?)", (key, name))
                    return name
            name = f"{name}_{key & 0xFFFFFFFFFFFFFFFF:016x}"
            connection.execute("INSERT INTO output (document_key, name) VALUES (?, ?)", (key, name))
            return name

    def _line(self, document: ExtractedDocument, values: dict[str, object]) -> None:
        line = as_json(values).encode("utf-8", "replace") + b"\n"
        packed = self._packer.compress(line)
        with self._database.write() as connection:
            (before,) = connection.execute(
                "SELECT line FROM output WHERE document_key = ?", (document.document_key,)
            ).fetchone()
            if before == packed:
                return
            connection.execute("UPDATE output SET line = ? WHERE document_key = ?", (packed, document.document_key))
        if before:
            self._stale = True
        elif self._file >= 0:
            with self._told():
                os.write(self._file, line)

    def _write_anew(self) -> None:
        unpacker = zstandard.ZstdDecompressor()
        anew = self._folder / "pages.jsonl.new"
        with self._told(), anew.open("wb") as file:
            rows = self._database.connection.execute("SELECT line FROM output WHERE line != x'' ORDER BY seq")
            file.writelines(unpacker.decompress(line) for (line,) in rows)
        with self._told():
            anew.replace(self._jsonl)
        self._stale = False

    def _remove(self, *names: str) -> None:
        for name in names:
            if name:
                (self._folder / name).unlink(missing_ok=True)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """An error of the file system as the StoreError that a person can act on."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise self._database.translated(error) from error


def _write(path: str, data: bytes) -> None:
    """A whole file in three calls of the system; a file object makes twice as many, and a decoder."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        written = os.write(file, data)
        while written < len(data):  # a disk that is filling up takes a part, and refuses the next
            written += os.write(file, data[written:])
    finally:
        os.close(file)
