"""Full text and vectors in SQLite: FTS5 with BM25, and cosine by brute force, fused by reciprocal rank.

FTS5 keeps no text of its own (a contentless table over `indexable` text), so each chunk's text is stored once. Its rows
are numbered in order of arrival, since FTS5 appends far faster than it inserts. A user's words are quoted one by one,
so no query is ever read as FTS5 syntax.
"""

import json
import sqlite3
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from trawl.adapters.fusion import reciprocal_ranks
from trawl.adapters.sqlite.database import Database
from trawl.adapters.sqlite.sizes import add_size, size_of
from trawl.adapters.sqlite.vectors import VectorTable, stored_form
from trawl.adapters.words import indexable, terms
from trawl.errors import EmbedderMismatchError, StoreCorruptError
from trawl.kinds import Use
from trawl.ports import Chunk, Hit, SearchQuery, Vectors
from trawl.records import Key

_Row: TypeAlias = tuple[Any, ...]

_INSERT: Final = (
    "INSERT INTO chunk (seq, chunk_id, crawl, document_key, crawl_id, url, title, headings, text, position,"
    " fetched_at_ms, language, tags, permitted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE: Final = (
    "UPDATE chunk SET crawl = ?, document_key = ?, crawl_id = ?, url = ?, title = ?, headings = ?, text = ?,"
    " position = ?, fetched_at_ms = ?, language = ?, tags = ?, permitted = ? WHERE seq = ?"
)
_SELECT: Final = (
    "SELECT chunk_id, seq, document_key, crawl_id, url, title, headings, text, position, fetched_at_ms, language,"
    " tags, permitted FROM chunk "
)
_OF_IDS: Final = "WHERE chunk_id IN (SELECT value FROM json_each(?))"
_INDEX: Final = "INSERT INTO chunk_text (rowid, title, headings, body) VALUES (?, ?, ?, ?)"
_UNINDEX: Final = "INSERT INTO chunk_text (chunk_text, rowid, title, headings, body) VALUES ('delete', ?, ?, ?, ?)"
_LIST: Final = json.JSONEncoder(ensure_ascii=False)
_indexable: Final = lru_cache(maxsize=1024)(indexable)  # titles and headings, which many chunks share
_COMMON_MIN: Final = 2000
_COMMON_SHARE: Final = 0.2
_MATCH: Final = "SELECT rowid FROM chunk_text WHERE chunk_text MATCH ? ORDER BY rank LIMIT ?"
_MATCH_SOME: Final = (
    "SELECT chunk_text.rowid FROM chunk_text CROSS JOIN chunk ON chunk.seq = chunk_text.rowid"
    " WHERE chunk_text MATCH ?1 AND (?2 IS NULL OR chunk.crawl = ?2)"
    " AND (?3 IS NULL OR chunk.permitted NOT IN (SELECT value FROM json_each(?3))) ORDER BY rank LIMIT ?4"
)
_KINDS: Final = "SELECT DISTINCT permitted FROM chunk"
_FORBIDDEN: Final = "SELECT seq FROM chunk WHERE permitted IN (SELECT value FROM json_each(?))"


class SqliteSearchIndex:
    """Chunks with full text and vectors."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._vectors = VectorTable(database.connection)

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
        with self._database.write() as connection:
            dimensions = (_bound(connection) or ("", 0))[1]
            if vectors.shape != (len(chunks), dimensions):
                raise ValueError(f"{len(chunks)} chunks, {dimensions} dimensions, but vectors of shape {vectors.shape}")
            ids = dict.fromkeys(chunk.crawl_id for chunk in chunks)
            crawls = {crawl_id: _crawl(connection, crawl_id, create=True) for crawl_id in ids}
            new = {chunk.chunk_id: chunk for chunk in chunks}
            stored = dict(zip((chunk.chunk_id for chunk in chunks), stored_form(vectors), strict=True))
            known = _known(connection, list(new))
            for chunk_id, (seq, row) in known.items():
                if _texts_of_row(row) == _texts(new[chunk_id]):
                    same = new.pop(chunk_id)
                    crawl = crawls[same.crawl_id]
                    connection.execute(_UPDATE, (crawl, *_row(same), seq))
                    connection.execute(
                        "UPDATE vector SET crawl = ?, vector = ? WHERE seq = ?", (crawl, stored[chunk_id], seq)
                    )
            changed = {seq: row for chunk_id, (seq, row) in known.items() if chunk_id in new}
            _remove(connection, changed)
            _append(connection, list(new.values()), crawls, stored)
            add_size(connection, "chunk", len(new) - len(changed))

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        """Remove chunks; harmless if they are not there."""
        with self._database.write() as connection:
            known = _known(connection, list(set(chunk_ids)))
            _remove(connection, dict(known.values()))
            add_size(connection, "chunk", -len(known))

    async def search(self, query: SearchQuery) -> Sequence[Hit]:
        """Hybrid search: full text and vectors, fused by reciprocal rank."""
        with self._database.read() as connection:
            crawl = _crawl(connection, query.crawl_id) if query.crawl_id else None
            if query.crawl_id and crawl is None:
                return []
            lists = _forbidding(connection, query.use)
            rankings = [_matching(connection, query.text, query.candidates, crawl, lists)]
            if query.vector is not None:
                self._check(connection, query.vector)
                forbidden = [seq for (seq,) in connection.execute(_FORBIDDEN, (lists,))] if lists else []
                rankings.append(self._vectors.nearest(query.vector, query.candidates, crawl, forbidden))
            fused = reciprocal_ranks(rankings, limit=query.limit)
            found = [(connection.execute(_SELECT + "WHERE seq = ?", (seq,)).fetchone(), score) for seq, score in fused]
        return [Hit(chunk=_chunk(row), score=score) for row, score in found]

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


def _forbidding(connection: sqlite3.Connection, use: Use | None) -> str | None:
    """The lists of permitted uses in which one is missing, as JSON; there are few, however many chunks there are."""
    if use is None:
        return None
    lists = [text for (text,) in connection.execute(_KINDS) if use not in _parted(text)]
    return _LIST.encode(lists) if lists else None


def _matching(
    connection: sqlite3.Connection, query: str, limit: int, crawl: int | None, forbidding: str | None
) -> list[int]:
    """Numbers of the chunks that hold any of the query's terms, by BM25."""
    phrases = [f'"{" ".join(term)}"' for term in terms(query)]
    if not phrases or limit <= 0:
        return []
    expression = " OR ".join(_telling(connection, phrases))
    if crawl is None and forbidding is None:
        found = connection.execute(_MATCH, (expression, limit))
    else:
        found = connection.execute(_MATCH_SOME, (expression, crawl, forbidding, limit))
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


def _row(chunk: Chunk) -> _Row:
    """A chunk as the values of its columns, from `document_key` on."""
    return (
        chunk.document_key,
        chunk.crawl_id,
        chunk.url,
        chunk.title,
        _listed(chunk.heading_path),
        chunk.text,
        chunk.position,
        chunk.fetched_at_ms,
        chunk.language,
        _listed(chunk.tags),
        _listed(chunk.permitted),
    )


def _chunk(row: tuple[Any, ...]) -> Chunk:
    """The chunk of a row of `_SELECT`."""
    chunk_id, _, document_key, crawl_id, url, title, headings, text, position, fetched_at_ms, language, *lists = row
    return Chunk(
        chunk_id=chunk_id,
        document_key=document_key,
        crawl_id=crawl_id,
        url=url,
        title=title,
        heading_path=_parted(headings),
        text=text,
        position=position,
        fetched_at_ms=fetched_at_ms,
        language=language,
        tags=_parted(lists[0]),
        permitted=_parted(lists[1]),
    )


@lru_cache(maxsize=1024)
def _listed(texts: tuple[str, ...]) -> str:
    """Texts in one column; the chunks of a section have the same headings."""
    return _LIST.encode(texts) if texts else ""


def _parted(listed: str) -> tuple[str, ...]:
    try:
        return tuple(json.loads(listed)) if listed else ()
    except ValueError as error:
        raise StoreCorruptError(f"a chunk of the search index cannot be read: {error}") from error


def _texts(chunk: Chunk) -> tuple[str, str, str]:
    """What FTS5 indexes of a chunk; the same must be given again to take it out."""
    return _indexable(chunk.title), _indexable(" ".join(chunk.heading_path)), indexable(chunk.text)


def _texts_of_row(row: _Row) -> tuple[str, str, str]:
    return _indexable(row[3]), _indexable(" ".join(_parted(row[4]))), indexable(row[5])


def _known(connection: sqlite3.Connection, chunk_ids: Sequence[Key]) -> dict[Key, tuple[int, _Row]]:
    """By id the number and the row of each chunk that is there."""
    rows = connection.execute(_SELECT + _OF_IDS, (json.dumps(chunk_ids),))
    return {row[0]: (row[1], row[2:]) for row in rows}


def _append(
    connection: sqlite3.Connection, chunks: Sequence[Chunk], crawls: dict[str, int], vectors: dict[Key, bytes]
) -> None:
    """Write chunks that are not there, numbered on from the last."""
    (last,) = connection.execute("SELECT coalesce(max(seq), 0) FROM chunk").fetchone()
    numbered = list(enumerate(chunks, start=last + 1))
    crawl = crawls.__getitem__
    connection.executemany(
        _INSERT, [(seq, chunk.chunk_id, crawl(chunk.crawl_id), *_row(chunk)) for seq, chunk in numbered]
    )
    connection.executemany(
        "INSERT INTO vector VALUES (?, ?, ?)",
        [(seq, crawl(chunk.crawl_id), vectors[chunk.chunk_id]) for seq, chunk in numbered],
    )
    connection.executemany(_INDEX, [(seq, *_texts(chunk)) for seq, chunk in numbered])


def _remove(connection: sqlite3.Connection, rows: dict[int, _Row]) -> None:
    """Take out the chunks of these numbers."""
    connection.executemany(_UNINDEX, [(seq, *_texts_of_row(row)) for seq, row in rows.items()])
    connection.executemany("DELETE FROM vector WHERE seq = ?", [(seq,) for seq in rows])
    connection.executemany("DELETE FROM chunk WHERE seq = ?", [(seq,) for seq in rows])


def _crawl(connection: sqlite3.Connection, crawl_id: str, *, create: bool = False) -> Any:
    """The number of a crawl in the search index, or None."""
    row = connection.execute("SELECT crawl FROM chunk_crawl WHERE crawl_id = ?", (crawl_id,)).fetchone()
    if row is None and create:
        return connection.execute("INSERT INTO chunk_crawl (crawl_id) VALUES (?)", (crawl_id,)).lastrowid
    return None if row is None else row[0]
