"""The tables of `trawl.sqlite`, as the statements that bring a database from each version to the next.

A migration that was released is never changed; a new one is added, and `PRAGMA user_version` counts them.

The frontier: a request waits in a lane, the queue of one origin for one purse. A purse is a crawl's budget (crawl * 2)
or its requests that are paid for already (crawl * 2 + 1), so a crawl that is paused or has spent its budget costs
nothing: its lanes are not looked at. A lane is where its next event is (`place`), so a lease scans nothing:

    place 0 idle      nothing due, or all leases of the origin out; woken by what changes that
          1 ready     at_ms is when the origin was served last
          2 parked    at_ms is when the origin may be served again
          3 robots    robots.txt is wanted; at_ms is when it may be fetched

    state 0 waiting   queued, due at a later time
          1 due       queued, may be leased
          2 leased
          3 done
"""

from typing import Final

_FRONTIER: Final = (
    """CREATE TABLE crawl (
        crawl INTEGER PRIMARY KEY, crawl_id TEXT NOT NULL UNIQUE, paused INTEGER NOT NULL DEFAULT 0,
        pages_max INTEGER NOT NULL DEFAULT 0, queued INTEGER NOT NULL DEFAULT 0, waiting INTEGER NOT NULL DEFAULT 0,
        leased INTEGER NOT NULL DEFAULT 0, charged INTEGER NOT NULL DEFAULT 0,
        scopes_version INTEGER NOT NULL DEFAULT 0)""",
    # One row each, so that one more seed among thousands costs one row.
    """CREATE TABLE scope (
        crawl INTEGER NOT NULL, number INTEGER NOT NULL, scope TEXT NOT NULL,
        PRIMARY KEY (crawl, number), UNIQUE (crawl, scope)) WITHOUT ROWID""",
    # Apart, so that counting does not write a policy again.
    "CREATE TABLE policy (crawl INTEGER PRIMARY KEY, policy BLOB NOT NULL)",
    """CREATE TABLE crawl_count (
        crawl INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, count INTEGER NOT NULL,
        PRIMARY KEY (crawl, kind, name)) WITHOUT ROWID""",
    """CREATE TABLE origin (
        origin_id INTEGER PRIMARY KEY, origin TEXT NOT NULL UNIQUE, robots TEXT NOT NULL DEFAULT 'unknown',
        robots_expires_ms INTEGER NOT NULL DEFAULT 0, next_at_ms INTEGER NOT NULL DEFAULT 0,
        blocked_until_ms INTEGER NOT NULL DEFAULT 0, delay_ms INTEGER NOT NULL DEFAULT 0,
        concurrency_max INTEGER NOT NULL DEFAULT 1, leased INTEGER NOT NULL DEFAULT 0,
        queued INTEGER NOT NULL DEFAULT 0, admitted INTEGER NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0,
        last_served_ms INTEGER NOT NULL DEFAULT 0, robots_lease_until_ms INTEGER NOT NULL DEFAULT 0,
        fresh INTEGER NOT NULL DEFAULT 0)""",
    "CREATE INDEX origin_expiry ON origin (robots_expires_ms) WHERE fresh = 1",
    """CREATE TABLE lane (
        lane INTEGER PRIMARY KEY, origin_id INTEGER NOT NULL, purse INTEGER NOT NULL, due INTEGER NOT NULL DEFAULT 0,
        waiting INTEGER NOT NULL DEFAULT 0, place INTEGER NOT NULL DEFAULT 0, at_ms INTEGER NOT NULL DEFAULT 0,
        UNIQUE (origin_id, purse))""",
    "CREATE INDEX lane_place ON lane (purse, place, at_ms, origin_id) WHERE place > 0",
    """CREATE TABLE request (
        seq INTEGER PRIMARY KEY, request_key INTEGER NOT NULL UNIQUE, lane INTEGER NOT NULL, purse INTEGER NOT NULL,
        state INTEGER NOT NULL, score REAL NOT NULL, due_at_ms INTEGER NOT NULL,
        lease_until_ms INTEGER NOT NULL DEFAULT 0, fetch_id INTEGER NOT NULL DEFAULT 0,
        attempt INTEGER NOT NULL, scheduled_at_ms INTEGER NOT NULL, charge INTEGER NOT NULL DEFAULT 0,
        visits INTEGER NOT NULL DEFAULT 0, status INTEGER NOT NULL DEFAULT 0, at_ms INTEGER NOT NULL DEFAULT 0,
        ended TEXT, outcome TEXT, reason TEXT NOT NULL DEFAULT '', detail TEXT NOT NULL DEFAULT '',
        document_key INTEGER, duplicate_of INTEGER, template INTEGER NOT NULL, depth INTEGER NOT NULL,
        purpose TEXT NOT NULL, found TEXT NOT NULL, lastmod_ms INTEGER, chain_request_key INTEGER, chain TEXT,
        etag TEXT NOT NULL DEFAULT '', last_modified TEXT NOT NULL DEFAULT '', url TEXT NOT NULL,
        nesting INTEGER NOT NULL DEFAULT 0, staleness REAL)""",
    "CREATE INDEX request_due ON request (lane, score DESC) WHERE state = 1",
    "CREATE INDEX request_waiting ON request (purse, due_at_ms) WHERE state = 0",
    "CREATE INDEX request_lease ON request (lease_until_ms) WHERE state = 2",
    """CREATE TABLE template (
        template INTEGER PRIMARY KEY, admitted INTEGER NOT NULL DEFAULT 0, results INTEGER NOT NULL DEFAULT 0,
        duplicates INTEGER NOT NULL DEFAULT 0)""",
    "CREATE TABLE spill (seq INTEGER PRIMARY KEY, item BLOB NOT NULL)",
)

_HOSTS: Final = (
    """CREATE TABLE politeness (
        key TEXT PRIMARY KEY, last_ms INTEGER, blocked_until_ms INTEGER NOT NULL DEFAULT 0,
        response_ms REAL NOT NULL DEFAULT 0, failures INTEGER NOT NULL DEFAULT 0, backoffs INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID""",
    "CREATE TABLE robots (origin TEXT PRIMARY KEY, entry BLOB NOT NULL)",
)

_DOCUMENTS: Final = (
    "CREATE TABLE size (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID",
    "INSERT INTO size VALUES ('fingerprint', 0), ('page', 0), ('chunk', 0)",
    "CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE space (
        space INTEGER PRIMARY KEY, namespace TEXT NOT NULL, version INTEGER NOT NULL, UNIQUE (namespace, version))""",
    """CREATE TABLE fingerprint (
        seq INTEGER PRIMARY KEY, document_key INTEGER NOT NULL UNIQUE, space INTEGER NOT NULL, sha256 BLOB NOT NULL,
        simhash INTEGER NOT NULL, near INTEGER NOT NULL, request_key INTEGER NOT NULL, fetch_id INTEGER NOT NULL,
        fetched_at_ms INTEGER NOT NULL, direct INTEGER NOT NULL, committed INTEGER NOT NULL DEFAULT 0,
        verdict TEXT NOT NULL,
        previous_sha256 BLOB, previous_simhash INTEGER, url TEXT NOT NULL)""",
    "CREATE INDEX fingerprint_sha256 ON fingerprint (sha256)",
    """CREATE TABLE band (
        space INTEGER NOT NULL, band INTEGER NOT NULL, seq INTEGER NOT NULL, simhash INTEGER NOT NULL,
        PRIMARY KEY (space, band, seq)) WITHOUT ROWID""",
    """CREATE TABLE page (
        seq INTEGER PRIMARY KEY, document_key INTEGER NOT NULL UNIQUE, crawl_id TEXT NOT NULL,
        fetched_at_ms INTEGER NOT NULL, indexed_at_ms INTEGER NOT NULL, chunks BLOB NOT NULL,
        document BLOB NOT NULL)""",
    "CREATE INDEX page_crawl ON page (crawl_id, seq)",
)

_SEARCH: Final = (
    """CREATE TABLE chunk (
        seq INTEGER PRIMARY KEY, chunk_id INTEGER NOT NULL UNIQUE, crawl INTEGER NOT NULL,
        document_key INTEGER NOT NULL, crawl_id TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL,
        headings TEXT NOT NULL, text TEXT NOT NULL, position INTEGER NOT NULL, fetched_at_ms INTEGER NOT NULL,
        language TEXT NOT NULL, tags TEXT NOT NULL, permitted TEXT NOT NULL)""",
    "CREATE TABLE chunk_crawl (crawl INTEGER PRIMARY KEY, crawl_id TEXT NOT NULL UNIQUE)",
    "CREATE TABLE vector (seq INTEGER PRIMARY KEY, crawl INTEGER NOT NULL, vector BLOB NOT NULL)",
    """CREATE VIRTUAL TABLE chunk_text USING fts5 (
        title, headings, body, content = '', tokenize = 'unicode61 remove_diacritics 2')""",
    "INSERT INTO chunk_text (chunk_text, rank) VALUES ('rank', 'bm25(2.0, 1.5, 1.0)')",
)

_WITHDRAWN: Final = (
    "INSERT INTO size VALUES ('withdrawn', 0)",
    "CREATE TABLE withdrawn (document_key INTEGER PRIMARY KEY, not_before_ms INTEGER NOT NULL)",
    "CREATE INDEX withdrawn_oldest ON withdrawn (not_before_ms)",
)

_WITHDRAWN_PAGES: Final = (
    "INSERT INTO size VALUES ('withdrawn_page', 0)",
    """CREATE TABLE withdrawn_page (
        seq INTEGER PRIMARY KEY, document_key INTEGER NOT NULL UNIQUE, fetched_at_ms INTEGER NOT NULL)""",
)

_PERMITTED: Final = ("CREATE INDEX chunk_permitted ON chunk (permitted)",)

_HYDRATION: Final = ("CREATE TABLE hydration (origin TEXT PRIMARY KEY, host BLOB NOT NULL)",)

MIGRATIONS: Final = (
    (*_FRONTIER, *_HOSTS, *_DOCUMENTS, *_SEARCH),
    _WITHDRAWN,
    _WITHDRAWN_PAGES,
    _PERMITTED,
    _HYDRATION,
)
