"""Requests as rows of the table `request`, and back."""

import json
from typing import Any, Final

from trawl.adapters.transitions import outcome_of
from trawl.kinds import Found, OutcomeClass, Purpose
from trawl.ports import Request, RequestRow
from trawl.records import Hop, Validators

WAITING, DUE, LEASED, DONE = 0, 1, 2, 3
STATES: Final = ("queued", "queued", "leased", "done")

SELECT: Final = """SELECT r.request_key, c.crawl_id, o.origin, r.url, r.template, r.purpose, r.found, r.depth, r.score,
    r.attempt, r.scheduled_at_ms, r.due_at_ms, r.etag, r.last_modified, r.chain, r.chain_request_key, r.lastmod_ms,
    r.fetch_id, r.state, r.outcome, r.reason, r.status, r.detail, r.at_ms, r.document_key, r.duplicate_of, r.visits,
    r.seq, l.origin_id, r.purse, r.charge, r.ended, r.nesting
    FROM request r JOIN lane l ON l.lane = r.lane JOIN origin o ON o.origin_id = l.origin_id
    JOIN crawl c ON c.crawl = r.purse / 2 """

INSERT: Final = """INSERT INTO request (request_key, lane, purse, state, score, due_at_ms, attempt, scheduled_at_ms,
    template, depth, purpose, found, lastmod_ms, chain_request_key, chain, etag, last_modified, url,
    nesting) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (request_key) DO NOTHING"""

_NO_VALIDATORS: Final = Validators()


def values(request: Request, lane: int, purse: int, state: int) -> tuple[Any, ...]:
    """The parameters of `INSERT`."""
    chain = json.dumps([[hop.url, hop.status] for hop in request.chain]) if request.chain else None
    return (
        request.request_key,
        lane,
        purse,
        state,
        request.score,
        request.due_at_ms,
        request.attempt,
        request.scheduled_at_ms,
        request.template,
        request.depth,
        request.purpose.value,
        request.found.value,
        request.lastmod_ms,
        request.chain_request_key,
        chain,
        request.validators.etag,
        request.validators.last_modified,
        request.url,
        request.nesting,
    )


def request_of(row: tuple[Any, ...]) -> Request:
    """The request of a row of `SELECT`."""
    etag, last_modified, chain = row[12], row[13], row[14]
    return Request(
        request_key=row[0],
        crawl_id=row[1],
        origin=row[2],
        url=row[3],
        template=row[4],
        purpose=Purpose(row[5]),
        found=Found(row[6]),
        depth=row[7],
        score=row[8],
        attempt=row[9],
        scheduled_at_ms=row[10],
        due_at_ms=row[11],
        validators=Validators(etag=etag, last_modified=last_modified) if etag or last_modified else _NO_VALIDATORS,
        chain=tuple(Hop(url=url, status=status) for url, status in json.loads(chain)) if chain else (),
        chain_request_key=row[15],
        lastmod_ms=row[16],
        nesting=row[32],
        last_outcome=outcome_of(row[31]),
        fetch_id=row[17],
    )


def row_of(row: tuple[Any, ...]) -> RequestRow:
    """The request and its state of a row of `SELECT`."""
    return RequestRow(
        request=request_of(row),
        state=STATES[row[18]],
        outcome=OutcomeClass(row[19]) if row[19] is not None else None,
        reason=row[20],
        status=row[21],
        detail=row[22],
        at_ms=row[23],
        document_key=row[24],
        duplicate_of=row[25],
        visits=row[26],
    )
