"""The duplicate gate in SQLite: near-duplicates are looked for by bands (Manku, Jain and Das Sarma, WWW 2007)."""

import sqlite3
from typing import Any, Final

from trawl.adapters.sqlite.database import Database
from trawl.adapters.sqlite.sizes import add_size, size_of
from trawl.fingerprint import BAND_THRESHOLD_MAX, NEAR_DUPLICATE_BITS_MAX, bands, hamming
from trawl.ports import WITHDRAWN_MAX, DedupVerdict, Fingerprint
from trawl.records import Key, Millis

_KNOWN: Final = (
    "SELECT seq, request_key, fetch_id, fetched_at_ms, sha256, simhash, committed, verdict, previous_sha256,"
    " previous_simhash, url, space, direct FROM fingerprint WHERE document_key = ?"
)
(
    _SEQ, _REQUEST, _FETCH, _FETCHED, _SHA256, _SIMHASH, _COMMITTED, _VERDICT, _OLD_SHA256, _OLD_SIMHASH, _URL, _SPACE,
    _DIRECT,
) = range(13)  # fmt: skip
_SAME: Final = (
    "SELECT document_key, url FROM fingerprint INDEXED BY fingerprint_sha256"
    " WHERE sha256 = ? AND space = ? AND document_key <> ? ORDER BY seq LIMIT 1"
)
_INSERT: Final = (
    "INSERT INTO fingerprint (document_key, space, sha256, simhash, near, request_key, fetch_id, fetched_at_ms,"
    " direct, committed, verdict, previous_sha256, previous_simhash, url)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class SqliteFingerprintIndex:
    """Exact and near-duplicate fingerprints of documents.

    The number of bands follows the largest `hamming_max` asked for; when that grows, the bands are written anew.
    """

    def __init__(self, database: Database, *, withdrawn_max: int = WITHDRAWN_MAX) -> None:
        self._database = database
        self._withdrawn_max = withdrawn_max

    async def check_and_add(self, fingerprint: Fingerprint, *, hamming_max: int) -> DedupVerdict:
        """Judge a document and store it unless it is a duplicate; see the port."""
        with self._database.write() as connection:
            known = connection.execute(_KNOWN, (fingerprint.document_key,)).fetchone()
            if known is not None:
                verdict = _known(connection, known, fingerprint)
                if verdict is not None:
                    return verdict
            elif _is_withdrawn(connection, fingerprint):
                return DedupVerdict(kind="stale")
            space = _space(connection, fingerprint.namespace, fingerprint.version)
            threshold = _threshold(connection, hamming_max)
            own = known[_SEQ] if known is not None else 0
            duplicate = _exact(connection, fingerprint, space) or _near(
                connection, fingerprint, space, own, threshold, hamming_max
            )
            if known is not None:
                _remove(connection, known, threshold)
            if duplicate is not None:
                if known is not None:
                    self._withdraw(connection, fingerprint.document_key, fingerprint.fetched_at_ms)
                return duplicate
            verdict = _novelty(known)
            if known is None:
                _readmit(connection, fingerprint.document_key)
            _store(connection, fingerprint, space, verdict, threshold)
        return verdict

    async def commit(self, document_key: Key, fetch_id: Key) -> None:
        """The document of that fetch is indexed; harmless if repeated or superseded."""
        with self._database.write() as connection:
            update = "UPDATE fingerprint SET committed = 1 WHERE document_key = ? AND fetch_id = ?"
            connection.execute(update, (document_key, fetch_id))

    async def forget(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """The document is withdrawn as of that time, unless a newer fetch of it is stored (then False)."""
        with self._database.write() as connection:
            known = connection.execute(_KNOWN, (document_key,)).fetchone()
            if known is not None and known[_FETCHED] > fetched_at_ms:
                return False
            if known is not None:
                _remove(connection, known, _threshold(connection, 0))
            self._withdraw(connection, document_key, fetched_at_ms + 1)
        return True

    async def size(self) -> int:
        """Documents stored."""
        with self._database.read() as connection:
            return size_of(connection, "fingerprint")

    def _withdraw(self, connection: sqlite3.Connection, document_key: Key, not_before_ms: Millis) -> None:
        """Fetches of a document from before a time are stale from now on; only so many documents are remembered."""
        raised = connection.execute(
            "UPDATE withdrawn SET not_before_ms = max(not_before_ms, ?) WHERE document_key = ?",
            (not_before_ms, document_key),
        )
        if raised.rowcount:
            return
        connection.execute("INSERT INTO withdrawn VALUES (?, ?)", (document_key, not_before_ms))
        add_size(connection, "withdrawn", 1)
        if size_of(connection, "withdrawn") > self._withdrawn_max:
            connection.execute(
                "DELETE FROM withdrawn"
                " WHERE document_key = (SELECT document_key FROM withdrawn ORDER BY not_before_ms LIMIT 1)"
            )
            add_size(connection, "withdrawn", -1)


def _is_withdrawn(connection: sqlite3.Connection, asked: Fingerprint) -> bool:
    select = "SELECT 1 FROM withdrawn WHERE document_key = ? AND not_before_ms > ?"
    return connection.execute(select, (asked.document_key, asked.fetched_at_ms)).fetchone() is not None


def _readmit(connection: sqlite3.Connection, document_key: Key) -> None:
    gone = connection.execute("DELETE FROM withdrawn WHERE document_key = ?", (document_key,))
    add_size(connection, "withdrawn", -gone.rowcount)


def _known(connection: sqlite3.Connection, known: tuple[Any, ...], asked: Fingerprint) -> DedupVerdict | None:
    """The verdict on a document that is known, unless its text is to be judged anew."""
    sha256 = known[_SHA256].hex()
    if known[_REQUEST] != asked.request_key:
        direct, fetched_at_ms = bool(known[_DIRECT]), known[_FETCHED]
        if asked.outlives(owner_direct=direct, owner_sha256=sha256, owner_fetched_at_ms=fetched_at_ms):
            return None
        return DedupVerdict(kind="alias", duplicate_of=asked.document_key, duplicate_of_url=known[_URL])
    if known[_FETCH] == asked.fetch_id and sha256 == asked.sha256:
        return _verdict(known)
    if known[_FETCHED] > asked.fetched_at_ms:
        return DedupVerdict(kind="stale")
    same = sha256 == asked.sha256 and known[_COMMITTED]
    if not same or known[_SPACE] != _space(connection, asked.namespace, asked.version):
        return None
    connection.execute(
        "UPDATE fingerprint SET fetch_id = ?, fetched_at_ms = ?, url = ?, verdict = 'unchanged',"
        " previous_sha256 = sha256, previous_simhash = simhash WHERE seq = ?",
        (asked.fetch_id, asked.fetched_at_ms, asked.url, known[_SEQ]),
    )
    return DedupVerdict(kind="unchanged", previous_sha256=asked.sha256, previous_simhash=known[_SIMHASH])


def _verdict(known: tuple[Any, ...]) -> DedupVerdict:
    previous = known[_OLD_SHA256]
    return DedupVerdict(
        kind=known[_VERDICT],
        previous_sha256=previous.hex() if previous is not None else "",
        previous_simhash=known[_OLD_SIMHASH],
    )


def _novelty(known: tuple[Any, ...] | None) -> DedupVerdict:
    """`changed` against the version that was committed last; a version that never was committed was never there."""
    if known is None:
        return DedupVerdict(kind="new")
    if not known[_COMMITTED]:
        return _verdict(known)
    return DedupVerdict(kind="changed", previous_sha256=known[_SHA256].hex(), previous_simhash=known[_SIMHASH])


def _exact(connection: sqlite3.Connection, asked: Fingerprint, space: int) -> DedupVerdict | None:
    same = connection.execute(_SAME, (bytes.fromhex(asked.sha256), space, asked.document_key)).fetchone()
    return None if same is None else DedupVerdict(kind="exact", duplicate_of=same[0], duplicate_of_url=same[1])


def _near(
    connection: sqlite3.Connection, asked: Fingerprint, space: int, own: int, threshold: int, hamming_max: int
) -> DedupVerdict | None:
    """The nearest fingerprint within `hamming_max` bits, of equals the oldest."""
    if not asked.near:
        return None
    candidates: set[tuple[int, int]] = set()
    for band in bands(asked.simhash, threshold):
        select = "SELECT seq, simhash FROM band WHERE space = ? AND band = ?"
        candidates.update(connection.execute(select, (space, band)).fetchall())
    distances = ((hamming(simhash, asked.simhash), seq) for seq, simhash in candidates if seq != own)
    distance, seq = min(distances, default=(hamming_max + 1, 0))
    if distance > hamming_max:
        return None
    other = connection.execute("SELECT document_key, url FROM fingerprint WHERE seq = ?", (seq,)).fetchone()
    return DedupVerdict(kind="near", duplicate_of=other[0], duplicate_of_url=other[1], distance=distance)


def _store(
    connection: sqlite3.Connection, asked: Fingerprint, space: int, verdict: DedupVerdict, threshold: int
) -> None:
    previous = bytes.fromhex(verdict.previous_sha256) if verdict.previous_sha256 else None
    fetch = (asked.request_key, asked.fetch_id, asked.fetched_at_ms, asked.direct)
    content = (asked.document_key, space, bytes.fromhex(asked.sha256), asked.simhash, asked.near)
    judged = (False, verdict.kind, previous, verdict.previous_simhash, asked.url)
    seq = connection.execute(_INSERT, (*content, *fetch, *judged)).lastrowid
    assert seq is not None
    if asked.near:
        _write_bands(connection, space, seq, asked.simhash, threshold)
    add_size(connection, "fingerprint", 1)


def _remove(connection: sqlite3.Connection, known: tuple[Any, ...], threshold: int) -> None:
    for band in bands(known[_SIMHASH], threshold):
        connection.execute(
            "DELETE FROM band WHERE space = ? AND band = ? AND seq = ?", (known[_SPACE], band, known[_SEQ])
        )
    connection.execute("DELETE FROM fingerprint WHERE seq = ?", (known[_SEQ],))
    add_size(connection, "fingerprint", -1)


def _write_bands(connection: sqlite3.Connection, space: int, seq: int, simhash: Key, threshold: int) -> None:
    rows = ((space, band, seq, simhash) for band in bands(simhash, threshold))
    connection.executemany("INSERT INTO band VALUES (?, ?, ?, ?)", rows)


def _threshold(connection: sqlite3.Connection, hamming_max: int) -> int:
    """The threshold that the bands are made for, raised to `hamming_max` if that is more."""
    if hamming_max > BAND_THRESHOLD_MAX:
        raise ValueError(f"near-duplicates are found up to {BAND_THRESHOLD_MAX} differing bits, not {hamming_max}")
    row = connection.execute("SELECT value FROM setting WHERE name = 'band_threshold'").fetchone()
    threshold = int(row[0]) if row is not None else NEAR_DUPLICATE_BITS_MAX
    if hamming_max <= threshold:
        return threshold
    connection.execute("DELETE FROM band")
    rows = connection.execute("SELECT space, seq, simhash FROM fingerprint WHERE near = 1").fetchall()
    for space, seq, simhash in rows:
        _write_bands(connection, space, seq, simhash, hamming_max)
    connection.execute("INSERT OR REPLACE INTO setting VALUES ('band_threshold', ?)", (str(hamming_max),))
    return hamming_max


def _space(connection: sqlite3.Connection, namespace: str, version: int) -> int:
    """The number of a namespace and version; fingerprints are compared within one only."""
    select = "SELECT space FROM space WHERE namespace = ? AND version = ?"
    row = connection.execute(select, (namespace, version)).fetchone()
    if row is not None:
        return int(row[0])
    insert = "INSERT INTO space (namespace, version) VALUES (?, ?)"
    number = connection.execute(insert, (namespace, version)).lastrowid
    assert number is not None
    return number
