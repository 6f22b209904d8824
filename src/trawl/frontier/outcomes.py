"""What the frontier makes of an outcome: the visit is over, or it is tried again; the host is let be, or trusted."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace

from trawl.frontier.rendering import Rendering, waits_for_browser
from trawl.frontier.retry import HOST_FAILURES, backoff_ms, next_try
from trawl.kinds import NOT_MODIFIED, OutcomeClass, Purpose, RobotsState
from trawl.ports import Completion, FrontierStore, OriginUpdate, Request
from trawl.records import FetchOutcome, Millis, Record
from trawl.rules import Rules, Ruling, delay_seconds
from trawl.settings import Settings
from trawl.url import origin_of

_PAGES = frozenset({OutcomeClass.INDEXED, OutcomeClass.DUPLICATE, OutcomeClass.UNCHANGED, OutcomeClass.WITHDRAWN})
"""Outcomes that count against a crawl's budget of pages."""

_LEARNED = {OutcomeClass.INDEXED: False, OutcomeClass.DUPLICATE: True}
"""What an outcome teaches of its URL template: whether its pages are duplicates."""
_CLOSED_HOSTS = frozenset({"address_refused", "dns_not_found", "port_refused"})
"""Why robots.txt is unavailable where trying again would not help: the host is not there, or must not be fetched.

Unless the host did answer, by a redirect of its robots.txt to such a place."""
_HEALTHY_MAX = 65_536
_LOG = logging.getLogger(__name__)


class Outcomes:
    """Applies outcomes to the frontier's store."""

    def __init__(self, store: FrontierStore, rules: Rules, settings: Settings, rendering: Rendering) -> None:
        self._store = store
        self._rendering = rendering
        self._rules = rules
        self._settings = settings
        self._healthy: OrderedDict[str, None] = OrderedDict()

    async def take(self, outcome: FetchOutcome) -> Sequence[Record]:
        """Apply one outcome; a repeated or late one changes nothing."""
        origin = origin_of(outcome.url)
        if outcome.purpose is Purpose.ROBOTS:
            await self._robots(origin, outcome)
            return ()
        await self._host(origin, outcome)
        needed = not outcome.terminal or self._rendering.learns
        row = await self._store.request(outcome.request_key, outcome.url) if needed else None
        attempt = row.request.attempt if row is not None and not outcome.terminal else 1
        completion = self._completion(outcome, attempt)
        if completion.requeue_at_ms is not None and waits_for_browser(row):
            completion = replace(completion, outcome=OutcomeClass.NEEDS_RENDER)  # whatever delays it
        if await self._store.complete(completion):
            await self._rendering.learn(outcome, row)
        return ()

    async def not_released(self, request: Request, ruling: Ruling, now_ms: Millis) -> None:
        """End a lease that robots.txt forbids to use: refused, or kept until robots.txt can be read.

        A host that does not exist, or that may not be fetched from, ends its requests with that reason.
        """
        reason, detail = ruling.reason, ruling.detail
        final = reason == "robots_disallowed"
        if reason == "robots_unavailable":
            entry = await self._rules.entry(request.origin)
            if entry is not None and not entry.status and entry.reason in _CLOSED_HOSTS:
                final, reason, detail = True, entry.reason, entry.detail
            final = final or request.attempt >= self._settings.frontier.attempts_max
        await self._store.complete(
            Completion(
                request_key=request.request_key,
                url=request.url,
                fetch_id=request.fetch_id,
                outcome=OutcomeClass.REFUSED if final else OutcomeClass.RETRY,
                reason=reason,
                detail=detail,
                at_ms=now_ms,
                requeue_at_ms=None if final else max(ruling.expires_ms, now_ms + 1000),
                attempt=request.attempt + (ruling.reason == "robots_unavailable"),
                charged=False,
            )
        )

    async def exhausted(self, request: Request, now_ms: Millis) -> None:
        """Give a request up whose fetches vanish again and again."""
        await self._store.complete(
            Completion(
                request_key=request.request_key,
                url=request.url,
                fetch_id=request.fetch_id,
                outcome=OutcomeClass.FAILED,
                reason="lease_expired",
                detail=f"no stage told what became of {request.url} in {request.attempt - 1} tries",
                at_ms=now_ms,
                charged=False,
            )
        )

    async def _robots(self, origin: str, outcome: FetchOutcome) -> None:
        if outcome.robots is None:
            known = await self._store.origin(origin)
            again = outcome.deferred_until_ms or outcome.at_ms + 1000
            state = known.robots if known is not None else RobotsState.UNKNOWN
            await self._store.update_origin(origin, OriginUpdate(robots=state, robots_expires_ms=again))
            return
        self._rules.forget(origin)
        asked = await self._rules.asked_delay(origin)
        longest = self._settings.politeness.crawl_delay_seconds_max
        if asked > longest:
            _LOG.warning("%s asks for a delay of %s s; it is clamped to %s s", origin, asked, longest)
        robots = OriginUpdate(robots=outcome.robots.state, robots_expires_ms=outcome.robots.expires_at_ms)
        await self._store.update_origin(origin, self._paced(robots, asked))

    async def pace(self, origin: str) -> None:
        """Let an origin be paced by the settings as they are now; those of an earlier start may have been others."""
        await self._store.update_origin(origin, self._paced(OriginUpdate(), await self._rules.asked_delay(origin)))

    def _paced(self, update: OriginUpdate, asked: float) -> OriginUpdate:
        politeness = self._settings.politeness
        delay_ms = int(1000 * delay_seconds(asked, politeness))
        return replace(update, delay_ms=delay_ms, concurrency_max=politeness.per_host_concurrency)

    async def _host(self, origin: str, outcome: FetchOutcome) -> None:
        if outcome.deferred_until_ms is not None:
            await self._store.update_origin(origin, OriginUpdate(blocked_until_ms=outcome.deferred_until_ms))
        if outcome.retry_after_ms is not None:
            until_ms = outcome.at_ms + outcome.retry_after_ms
            await self._store.update_origin(origin, OriginUpdate(blocked_until_ms=until_ms))
        if outcome.reason in HOST_FAILURES:
            await self._failed(origin, outcome.at_ms)
        elif outcome.status:
            await self._answered(origin)

    async def _answered(self, origin: str) -> None:
        """Forget the failures of a host that answers.

        The store is asked at the first answer after a start or a failure; it may hold failures of an earlier run.
        """
        if origin in self._healthy:
            self._healthy.move_to_end(origin)
            return
        known = await self._store.origin(origin)
        if known is not None and known.failures:
            await self._store.update_origin(origin, OriginUpdate(failures=0))
        self._healthy[origin] = None
        if len(self._healthy) > _HEALTHY_MAX:
            self._healthy.popitem(last=False)

    async def _failed(self, origin: str, at_ms: Millis) -> None:
        """Count a failure of the host; from `breaker_failures` in a row on, it is left alone, longer each time."""
        self._healthy.pop(origin, None)
        known = await self._store.origin(origin)
        failures = (known.failures if known is not None else 0) + 1
        politeness = self._settings.politeness
        beyond = failures - politeness.breaker_failures + 1
        pause_ms = backoff_ms(beyond, politeness.breaker_seconds, politeness.backoff_seconds_max) if beyond > 0 else 0
        blocked = at_ms + pause_ms if pause_ms else None
        await self._store.update_origin(origin, OriginUpdate(failures=failures, blocked_until_ms=blocked))

    def _completion(self, outcome: FetchOutcome, attempt: int) -> Completion:
        retry = None if outcome.terminal else next_try(outcome, attempt, self._settings.frontier)
        given_up = not outcome.terminal and retry is None
        return Completion(
            request_key=outcome.request_key,
            url=outcome.url,
            fetch_id=outcome.fetch_id,
            outcome=OutcomeClass.FAILED if given_up else outcome.outcome,
            reason=outcome.reason,
            status=outcome.status,
            detail=outcome.detail,
            at_ms=outcome.at_ms,
            requeue_at_ms=retry.at_ms if retry else None,
            attempt=retry.attempt if retry else 1,
            validators=outcome.validators,
            document_key=outcome.document_key,
            duplicate_of=outcome.duplicate_of,
            content_sha256=outcome.content_sha256,
            charged=outcome.outcome in _PAGES
            or outcome.outcome is OutcomeClass.NEEDS_RENDER
            or _was_to_be_a_page(outcome),
            duplicate=None if outcome.status == NOT_MODIFIED else _LEARNED.get(outcome.outcome),
        )


def _was_to_be_a_page(outcome: FetchOutcome) -> bool:
    """Whether a link to a page led to a list of URLs: it counts, or lists that name lists would cost nothing."""
    return outcome.outcome is OutcomeClass.DISCOVERED and outcome.purpose is Purpose.PAGE
