"""Full text and vectors in SQLite: FTS5 with BM25, and cosine by brute force, fused by reciprocal rank.

FTS5 keeps no text of its own (a contentless table over `indexable` text), so each chunk's text is stored once. Its rows
are numbered in order of arrival, since FTS5 appends far faster than it inserts. A user's words are quoted one by one,
so no query is ever read as FTS5 syntax.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import zstandard

from trawl.adapters.fusion import reciprocal_ranks
from trawl.adapters.sqlite.database import Database
from trawl.adapters.sqlite.sizes import add_size, size_of
from trawl.adapters.sqlite.vectors import VectorTable, stored_form
from trawl.adapters.words import indexable, terms
from trawl.errors import EmbedderMismatchError, StoreCorruptError
from trawl.plain import from_json, to_json
from trawl.ports import Chunk, Hit, SearchQuery, Vectors
from trawl.records import Key

_INDEX: Final = "INSERT INTO chunk_text (rowid, title, headings, body) VALUES (?, ?, ?, ?)"
_UNINDEX: Final = "INSERT INTO chunk_text (chunk_text, rowid, title, headings, body) VALUES ('delete', ?, ?, ?, ?)"
_COMMON_MIN: Final = 2000
_COMMON_SHARE: Final = 0.2
_MATCH: Final = "SELECT rowid FROM chunk_text WHERE chunk_text MATCH ? ORDER BY rank LIMIT ?"
_MATCH_CRAWL: Final = (
    "SELECT chunk_text.rowid FROM chunk_text CROSS JOIN chunk ON chunk.seq = chunk_text.rowid"
    " WHERE chunk_text MATCH ? AND chunk.crawl = ? ORDER BY rank LIMIT ?"
)


class SqliteSearchIndex:
    """Chunks with full text and vectors."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._vectors = VectorTable(database.connection)
        self._compressor = zstandard.ZstdCompressor(level=1)

    async def open(self, embedder: str, dimensions: int) -> None:
        """Bind the index to a model; raises EmbedderMismatchError if it holds another's vectors."""
        with self._database.read() as connection:
            bound, size = _bound(connection), size_of(connection, "chunk")
        if bound == (embedder, dimensions):
            return
        if bound is not None and size:
            raise EmbedderMismatchError(
                f"{self._database.path} holds vectors of {bound[0]} ({bound[1]} dimensions), not of {embedder}"
                f" ({dimensions}); search with that model, or index into another folder"
            )
        if not self._database.read_only:
            with self._database.write() as connection:
                settings = (("embedder", embedder), ("dimensions", str(dimensions)))
                connection.executemany("INSERT OR REPLACE INTO setting VALUES (?, ?)", settings)

    async def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write chunks with their vectors, row by row; replaces equal ids."""
        stored = [self._compressor.compress(to_json(chunk)) for chunk in chunks]
        with self._database.write() as connection:
            dimensions = (_bound(connection) or ("", 0))[1]
            if vectors.shape != (len(chunks), dimensions):
                raise ValueError(f"{len(chunks)} chunks, {dimensions} dimensions, but vectors of shape {vectors.shape}")
            ids = dict.fromkeys(chunk.crawl_id for chunk in chunks)
            crawls = {crawl_id: _crawl(connection, crawl_id, create=True) for crawl_id in ids}
            new = 0
            for chunk, blob, vector in zip(chunks, stored, stored_form(vectors), strict=True):
                new += _put(connection, chunk, crawls[chunk.crawl_id], blob, vector)
            add_size(connection, "chunk", new)

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        with self._database.write() as connection:
            known = [
                found for found in (_find(connection, chunk_id) for chunk_id in set(chunk_ids)) if found is not None
            ]
            for seq, chunk in known:
                _remove(connection, seq, chunk)
            add_size(connection, "chunk", -len(known))

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        with self._database.read() as connection:
            crawl = _crawl(connection, query.crawl_id) if query.crawl_id else None
            if query.crawl_id and crawl is None:
                return []
            rankings = [_matching(connection, query.text, query.candidates, crawl)]
            if query.vector is not None:
                self._check(connection, query.vector)
                rankings.append(self._vectors.nearest(query.vector, query.candidates, crawl))
            fused = reciprocal_ranks(rankings, limit=query.limit)
            select = "SELECT chunk FROM chunk WHERE seq = ?"
            found = [(connection.execute(select, (seq,)).fetchone()[0], score) for seq, score in fused]
        return [Hit(chunk=_chunk(blob), score=score) for blob, score in found]

    async def size(self) -> int:
        """Chunks stored."""
        with self._database.read() as connection:
            return size_of(connection, "chunk")

    def _check(self, connection: sqlite3.Connection, vector: Vectors) -> None:
        bound = _bound(connection)
        if bound is not None and vector.shape[1] != bound[1]:
            raise EmbedderMismatchError(
                f"{self._database.path} holds vectors of {bound[0]} ({bound[1]} dimensions); the query has"
                f" {vector.shape[1]}"
            )


def _bound(connection: sqlite3.Connection) -> tuple[str, int] | None:
    """The model that the index is bound to."""
    settings = dict(connection.execute("SELECT name, value FROM setting WHERE name IN ('embedder', 'dimensions')"))
    return (settings["embedder"], int(settings["dimensions"])) if settings else None


def _matching(connection: sqlite3.Connection, query: str, limit: int, crawl: int | None) -> list[int]:
    """Numbers of the chunks that hold any of the query's terms, by BM25."""
    phrases = [f'"{" ".join(term)}"' for term in terms(query)]
    if not phrases or limit <= 0:
        return []
    expression = " OR ".join(_telling(connection, phrases))
    if crawl is None:
        found = connection.execute(_MATCH, (expression, limit))
    else:
        found = connection.execute(_MATCH_CRAWL, (expression, crawl, limit))
    return [row[0] for row in found]


def _telling(connection: sqlite3.Connection, phrases: list[str]) -> list[str]:
    """The phrases without those that a fifth of all chunks hold, beside which rarer ones decide anyway.

    BM25 is worked out for every chunk that holds a phrase, 2 us each: with "the" among the words, for all of them.
    """
    total = size_of(connection, "chunk")
    if len(phrases) == 1 or total < _COMMON_MIN:
        return phrases
    select = "SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?"
    holders = {phrase: connection.execute(select, (phrase,)).fetchone()[0] for phrase in phrases}
    rare = [phrase for phrase in phrases if 0 < holders[phrase] <= total * _COMMON_SHARE]
    return rare or phrases


def _texts(chunk: Chunk) -> tuple[str, str, str]:
    """What FTS5 indexes of a chunk; the same must be given again to take it out."""
    return indexable(chunk.title), indexable(" ".join(chunk.heading_path)), indexable(chunk.text)


def _put(connection: sqlite3.Connection, chunk: Chunk, crawl: int, blob: bytes, vector: bytes) -> bool:
    """Write one chunk; whether there was none of its id."""
    known = _find(connection, chunk.chunk_id)
    if known is not None and _texts(known[1]) == _texts(chunk):
        connection.execute("UPDATE chunk SET crawl = ?, chunk = ? WHERE seq = ?", (crawl, blob, known[0]))
        connection.execute("UPDATE vector SET crawl = ?, vector = ? WHERE seq = ?", (crawl, vector, known[0]))
        return False
    if known is not None:
        _remove(connection, *known)
    insert = "INSERT INTO chunk (chunk_id, crawl, chunk) VALUES (?, ?, ?)"
    seq = connection.execute(insert, (chunk.chunk_id, crawl, blob)).lastrowid
    connection.execute("INSERT INTO vector VALUES (?, ?, ?)", (seq, crawl, vector))
    connection.execute(_INDEX, (seq, *_texts(chunk)))
    return known is None


def _remove(connection: sqlite3.Connection, seq: int, chunk: Chunk) -> None:
    connection.execute(_UNINDEX, (seq, *_texts(chunk)))
    connection.execute("DELETE FROM vector WHERE seq = ?", (seq,))
    connection.execute("DELETE FROM chunk WHERE seq = ?", (seq,))


def _find(connection: sqlite3.Connection, chunk_id: Key) -> tuple[int, Chunk] | None:
    row = connection.execute("SELECT seq, chunk FROM chunk WHERE chunk_id = ?", (chunk_id,)).fetchone()
    return None if row is None else (row[0], _chunk(row[1]))


def _chunk(blob: bytes) -> Chunk:
    try:
        return from_json(Chunk, zstandard.decompress(blob))
    except zstandard.ZstdError as error:
        raise StoreCorruptError(f"a chunk of the search index cannot be unpacked: {error}") from error


def _crawl(connection: sqlite3.Connection, crawl_id: str, *, create: bool = False) -> Any:
    """The number of a crawl in the search index, or None."""
    row = connection.execute("SELECT crawl FROM chunk_crawl WHERE crawl_id = ?", (crawl_id,)).fetchone()
    if row is None and create:
        return connection.execute("INSERT INTO chunk_crawl (crawl_id) VALUES (?)", (crawl_id,)).lastrowid
    return None if row is None else row[0]
