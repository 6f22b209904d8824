"""What a shell makes of a record that a stage could not handle (pure): a dead letter, and the end of its visit."""

import traceback
from collections.abc import Sequence
from typing import Final

from trawl.kinds import OutcomeClass, Stage
from trawl.pipeline import key_of, route
from trawl.plain import dump
from trawl.records import (
    DeadLetter,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Millis,
    Payload,
    Record,
    UniqueDocument,
)

TRACEBACK_CHARS_MAX: Final = 4000
"""A longer traceback loses its beginning."""
_DETAIL_CHARS_MAX: Final = 500


def failure(stage: Stage, record: Record, error: Exception, now_ms: Millis) -> Sequence[Record]:
    """The dead letter of a record, whole, and the terminal outcome of the visit that it belongs to, if any."""
    data = dump(record)
    letter = DeadLetter(
        stage=stage,
        reason=type(error).__name__,
        topic=route(record).name,
        key=key_of(record),
        payload=Payload(inline=data, size_bytes=len(data)),
        error=traceback_of(error),
        at_ms=now_ms,
    )
    return (letter, *visit_failed(stage, record, error, now_ms))


def traceback_of(error: Exception) -> str:
    """The traceback as text, bounded."""
    return "".join(traceback.format_exception(error))[-TRACEBACK_CHARS_MAX:]


def visit_failed(stage: Stage, record: Record, error: Exception, now_ms: Millis) -> Sequence[FetchOutcome]:
    """The terminal outcome of a visit that ran into a bug; none for records that belong to no visit."""
    visit = record.document if isinstance(record, UniqueDocument) else record
    if not isinstance(visit, FetchTask | FetchedPage | ExtractedDocument):
        return ()
    outcome = FetchOutcome(
        url=visit.url,
        crawl_id=visit.crawl_id,
        request_key=visit.request_key,
        fetch_id=visit.fetch_id,
        stage=stage,
        outcome=OutcomeClass.FAILED,
        reason=f"{stage}_error",
        detail=f"{type(error).__name__}: {error}"[:_DETAIL_CHARS_MAX],
        at_ms=now_ms,
    )
    return (outcome,)


def url_of(record: Record) -> str:
    """The URL that a record is about, for people; empty if it is about none."""
    document = record.document if isinstance(record, UniqueDocument) else record
    return str(getattr(document, "url", getattr(document, "source_url", "")))
