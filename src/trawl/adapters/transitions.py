"""What an update makes of an origin, and an outcome of a request (pure), shared by the frontier's stores."""

from collections.abc import Iterable
from dataclasses import replace

from trawl.kinds import NOT_MODIFIED, OutcomeClass, Purpose
from trawl.ports import Completion, CrawlPolicy, OriginState, OriginUpdate, RequestRow

CHARGED_PURPOSES = frozenset({Purpose.PAGE, Purpose.AUTO})
"""A request of these counts against its crawl's budget from its lease on, until its outcome says that it does not."""

UNCHARGED, CHARGED, SETTLED = 0, 1, 2
"""Not counted against the budget; counted by this visit; counted by a visit that has ended."""


def merged(known: CrawlPolicy | None, told: CrawlPolicy) -> CrawlPolicy:
    """The policy of a crawl after one more seed: the latest sets the budgets, tags add up."""
    if known is None:
        return told
    return replace(told, tags=tuple(dict.fromkeys((*known.tags, *told.tags))), paused=known.paused)


def updated(state: OriginState, update: OriginUpdate) -> OriginState:
    """The state of an origin with an update applied."""
    blocked_until_ms = state.blocked_until_ms
    if update.unblock:
        blocked_until_ms = update.blocked_until_ms or 0
    elif update.blocked_until_ms is not None:
        blocked_until_ms = max(blocked_until_ms, update.blocked_until_ms)
    delay_ms = state.delay_ms if update.delay_ms is None else update.delay_ms
    return replace(
        state,
        robots=state.robots if update.robots is None else update.robots,
        robots_expires_ms=state.robots_expires_ms if update.robots_expires_ms is None else update.robots_expires_ms,
        blocked_until_ms=blocked_until_ms,
        delay_ms=delay_ms,
        next_at_ms=state.last_served_ms + delay_ms if state.last_served_ms else state.next_at_ms,
        concurrency_max=state.concurrency_max if update.concurrency_max is None else update.concurrency_max,
        failures=state.failures if update.failures is None else update.failures,
    )


def told(row: RequestRow, completion: Completion) -> RequestRow:
    """A row with what its last fetch told.

    A document that is known stays known; of what it is a duplicate is told anew each time, except by an answer that
    nothing has changed (304).
    """
    request = row.request
    if completion.validators is not None:
        request = replace(request, validators=completion.validators)
    if completion.requeue_at_ms is None:
        request = replace(request, last_outcome=completion.outcome)
    same = completion.outcome is OutcomeClass.UNCHANGED or completion.status == NOT_MODIFIED
    keeps = completion.duplicate_of is None and same
    return replace(
        row,
        request=request,
        outcome=completion.outcome,
        reason=completion.reason,
        status=completion.status,
        detail=completion.detail,
        at_ms=completion.at_ms,
        document_key=row.document_key if completion.document_key is None else completion.document_key,
        duplicate_of=row.duplicate_of if keeps else completion.duplicate_of,
    )


def reason_of(ended: Completion | RequestRow) -> str:
    """What a terminal outcome is counted under: `class:reason`, or the class where there is no reason."""
    return f"{ended.outcome}:{ended.reason}" if ended.reason else str(ended.outcome)


def outcome_of(ended: str | None) -> OutcomeClass | None:
    """The class of a text of `reason_of`, if there is one."""
    return None if ended is None else OutcomeClass(ended.partition(":")[0])


def by_class(reasons: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Counts by `class:reason` added up by class, in order."""
    classes: dict[str, int] = {}
    for reason, count in reasons:
        name = reason.partition(":")[0]
        classes[name] = classes.get(name, 0) + count
    return tuple(sorted(classes.items()))
