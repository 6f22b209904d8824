"""Requests as the binary rows that the frontier's scripts read and write, and back (pure).

A row begins with a head that the scripts know (see lua/frontier.lua) and ends with a tail that they do not look into: a
MessagePack array without its empty end, so that a request that was only queued costs little more than its path.
"""

import json
import struct
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from trawl.adapters.transitions import outcome_of
from trawl.kinds import Found, OutcomeClass, Purpose, RenderMode
from trawl.ports import Request, RequestRow
from trawl.records import Hop, Key, Validators
from trawl.url import fetch_id

WAITING, DUE, LEASED, DONE = 0, 1, 2, 3
STATES: Final = ("queued", "queued", "leased", "done")
_HEAD: Final = struct.Struct(">BBBBIII8sdQQBHBH")
_PURPOSES: Final = tuple(Purpose)
_FOUND: Final = tuple(Found)
_ATTEMPT_MAX: Final = 0xFF
_SMALL_MAX: Final = 0xFFFF
(
    _PATH, _ETAG, _MODIFIED, _LASTMOD, _CHAIN, _CHAIN_KEY, _OUTCOME, _REASON, _STATUS, _DETAIL, _AT, _DOCUMENT,
    _DUPLICATE, _ENDED, _STALENESS,
) = range(15)  # fmt: skip
_NONE: Final = Validators()


@dataclass(frozen=True, slots=True)
class Stored:
    """A row as it was read: what the port knows, and what only the store does."""

    raw: bytes
    row: RequestRow
    charge: int
    ended: str
    """What the last terminal outcome is counted under; empty if there was none."""
    staleness: float | None
    """The part of its score that its staleness made; none if it never was readmitted."""
    seq: int
    origin: int
    crawl: int
    state: int


def key_bytes(key: Key) -> bytes:
    """A key as the scripts have it: its last byte names the bucket."""
    return key.to_bytes(8, "big", signed=True)


def key_of(data: bytes) -> Key:
    """The key of eight bytes."""
    return int.from_bytes(data, "big", signed=True)


def new_row(request: Request) -> bytes:
    """The row of a request that may be admitted; the script numbers it."""
    chain = json.dumps([[hop.url, hop.status] for hop in request.chain]) if request.chain else None
    tail = [
        request.url.removeprefix(request.origin),
        request.validators.etag or None,
        request.validators.last_modified or None,
        request.lastmod_ms,
        chain,
        None if request.chain_request_key is None else key_bytes(request.chain_request_key),
    ]
    return _head(request, WAITING, 0, 0, 0, 0, 0) + _packed(tail)


def stored(key: bytes, raw: bytes, origin: str, crawl_id: str) -> Stored:
    """What a row holds; its origin and crawl are numbers in it."""
    (
        state, charge, purpose, found, seq, origin_number, crawl, template, score, scheduled, due, attempt, depth,
        nesting, visits,
    ) = _HEAD.unpack_from(raw)  # fmt: skip
    tail = msgspec.msgpack.decode(memoryview(raw)[_HEAD.size :])
    tail += [None] * (_STALENESS + 1 - len(tail))
    ended = tail[_ENDED]
    etag, modified = tail[_ETAG] or "", tail[_MODIFIED] or ""
    request = Request(
        request_key=key_of(key),
        crawl_id=crawl_id,
        url=origin + tail[_PATH],
        origin=origin,
        template=key_of(template),
        purpose=_PURPOSES[purpose],
        found=_FOUND[found],
        depth=depth,
        score=score,
        attempt=attempt,
        scheduled_at_ms=scheduled,
        due_at_ms=due,
        validators=Validators(etag=etag, last_modified=modified) if etag or modified else _NONE,
        chain=tuple(Hop(url=url, status=status) for url, status in json.loads(tail[_CHAIN])) if tail[_CHAIN] else (),
        chain_request_key=None if tail[_CHAIN_KEY] is None else key_of(tail[_CHAIN_KEY]),
        lastmod_ms=tail[_LASTMOD],
        nesting=nesting,
        last_outcome=outcome_of(ended),
    )
    if state == LEASED:
        held = fetch_id(request.request_key, request.purpose, RenderMode.STATIC, scheduled)
        request = replace(request, fetch_id=held)
    row = RequestRow(
        request=request,
        state=STATES[state],
        outcome=None if tail[_OUTCOME] is None else OutcomeClass(tail[_OUTCOME]),
        reason=tail[_REASON] or "",
        status=tail[_STATUS] or 0,
        detail=tail[_DETAIL] or "",
        at_ms=tail[_AT] or 0,
        document_key=None if tail[_DOCUMENT] is None else key_of(tail[_DOCUMENT]),
        duplicate_of=None if tail[_DUPLICATE] is None else key_of(tail[_DUPLICATE]),
        visits=visits,
    )
    return Stored(raw, row, charge, ended or "", tail[_STALENESS], seq, origin_number, crawl, state)


def changed(known: Stored, row: RequestRow, *, state: int, charge: int, ended: str, staleness: float | None) -> bytes:
    """The row of a request that was known, as it is to be."""
    request = row.request
    chain = json.dumps([[hop.url, hop.status] for hop in request.chain]) if request.chain else None
    tail = [
        request.url.removeprefix(request.origin),
        request.validators.etag or None,
        request.validators.last_modified or None,
        request.lastmod_ms,
        chain,
        None if request.chain_request_key is None else key_bytes(request.chain_request_key),
        None if row.outcome is None else row.outcome.value,
        row.reason or None,
        row.status or None,
        row.detail or None,
        row.at_ms or None,
        None if row.document_key is None else key_bytes(row.document_key),
        None if row.duplicate_of is None else key_bytes(row.duplicate_of),
        ended or None,
        staleness,
    ]
    return _head(request, state, charge, known.seq, known.origin, known.crawl, row.visits) + _packed(tail)


def _head(request: Request, state: int, charge: int, seq: int, origin: int, crawl: int, visits: int) -> bytes:
    return _HEAD.pack(
        state,
        charge,
        _PURPOSES.index(request.purpose),
        _FOUND.index(request.found),
        seq,
        origin,
        crawl,
        key_bytes(request.template),
        request.score,
        request.scheduled_at_ms,
        request.due_at_ms,
        min(request.attempt, _ATTEMPT_MAX),
        min(request.depth, _SMALL_MAX),
        min(request.nesting, _ATTEMPT_MAX),
        min(visits, _SMALL_MAX),
    )


def _packed(tail: list[Any]) -> bytes:
    while tail[-1] is None:
        tail.pop()
    return msgspec.msgpack.encode(tail)
