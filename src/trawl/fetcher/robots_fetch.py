"""Fetching robots.txt: its own redirects, its own reading of failures, and the sitemaps that it names."""

from collections.abc import Sequence
from typing import Final

from trawl.errors import InvalidUrlError
from trawl.fetcher.answers import without_body
from trawl.fetcher.hop import Hops, NotSent, Sent, Wish
from trawl.fetcher.redirects import REDIRECT_STATUSES, RedirectRefused, next_hop
from trawl.fetcher.requests import RequestFields
from trawl.fetcher.robots_entry import RobotsAnswer, entry_after
from trawl.fetcher.visit import Visit, robots_news
from trawl.kinds import Found, OutcomeClass, Purpose, RobotsState
from trawl.ports import Clock, HttpFailure, RobotsEntry, RobotsStore
from trawl.records import DiscoveredLinks, FetchTask, Link, Record
from trawl.rules import Rules
from trawl.settings import Settings
from trawl.url import CanonicalRules, canonical, host_of, join, origin_of

_SITEMAPS_MAX: Final = 500


class RobotsFetch:
    """Asks an origin for its robots.txt and stores what holds from then on."""

    def __init__(
        self,
        hops: Hops,
        fields: RequestFields,
        store: RobotsStore,
        rules: Rules,
        clock: Clock,
        settings: Settings,
        canonical_rules: CanonicalRules,
    ) -> None:
        self._hops = hops
        self._fields = fields
        self._store = store
        self._rules = rules
        self._clock = clock
        self._settings = settings
        self._canonical = canonical_rules

    async def fetch(self, task: FetchTask) -> Sequence[Record]:
        """The sitemaps that robots.txt names (if a crawl asks), and what holds from now on."""
        visit = Visit(task=task, url=task.url, canonical_url=task.url)
        answer = await self._ask(visit)
        if isinstance(answer, NotSent):
            deferred = visit.outcome(
                OutcomeClass.DEFERRED,
                answer.reason,
                self._clock.now_ms(),
                terminal=False,
                detail=answer.detail,
                deferred_until_ms=answer.deferred_until_ms,
            )
            return (deferred,)
        origin, now_ms = origin_of(task.url), self._clock.now_ms()
        entry = entry_after(await self._store.get(origin), origin, answer, now_ms, self._settings.robots)
        await self._store.put(entry)
        self._rules.forget(origin)
        outcome = visit.outcome(
            OutcomeClass.ROBOTS,
            entry.reason if entry.state is RobotsState.UNAVAILABLE else str(entry.state),
            now_ms,
            terminal=True,
            detail=entry.detail,
            status=answer.status,
            retry_after_ms=answer.retry_after_ms or None,
            robots=robots_news(origin, entry.state, entry.expires_at_ms),
            body_bytes=len(answer.body),
        )
        return (*await self._sitemaps(task, entry), outcome)

    async def _ask(self, visit: Visit) -> RobotsAnswer | NotSent:
        """The last answer of the chain; NotSent only if politeness puts the whole fetch off."""
        while True:
            sent = await self._hops.go(self._wish(visit))
            if isinstance(sent, NotSent):
                if sent.deferred_until_ms is not None:
                    return sent
                status = visit.hops[-1].status if visit.hops else 0  # the host itself did answer then
                return RobotsAnswer(reason=sent.reason, detail=sent.detail, status=status)
            visit.add(sent)
            answer = self._judged(visit, sent)
            if answer is not None:
                return answer

    def _wish(self, visit: Visit) -> Wish:
        seconds = min(self._settings.fetch.robots_seconds_max, self._settings.fetch.total_seconds_max)
        return Wish(
            url=visit.url,
            canonical_url=visit.canonical_url,
            fields=self._fields.fields(visit.canonical_url, Purpose.ROBOTS),
            body_bytes_max=self._settings.robots.body_bytes_max,
            cut_body=True,
            total_seconds_max=seconds,
            attempt=visit.task.attempt,
            not_before_ms=visit.task.not_before_ms,
            patient=bool(visit.hops),
        )

    def _judged(self, visit: Visit, sent: Sent) -> RobotsAnswer | None:
        """What an answer means; None if it is a redirect that was followed."""
        answer = without_body(sent.answer) if isinstance(sent.answer, HttpFailure) else sent.answer
        retry_after = sent.retry_after_ms or 0
        if isinstance(answer, HttpFailure):
            return RobotsAnswer(reason=answer.reason, detail=answer.detail, status=answer.status)
        if answer.status not in REDIRECT_STATUSES:
            return RobotsAnswer(status=answer.status, body=answer.body, retry_after_ms=retry_after)
        target = next_hop(
            visit.url,
            answer.headers,
            visit.hops,
            redirects_max=self._settings.robots.redirects_max,
            rules=self._canonical,
        )
        if isinstance(target, RedirectRefused):
            return RobotsAnswer(reason=target.reason, detail=target.detail, status=answer.status)
        visit.move(answer.status, target)
        return None

    async def _sitemaps(self, task: FetchTask, entry: RobotsEntry) -> Sequence[DiscoveredLinks]:
        """Links of the `Sitemap` lines, by host; nothing if no single crawl asked."""
        if not task.crawl_id or entry.state is not RobotsState.RULES:
            return ()
        robots = await self._rules.robots(entry.origin)
        by_host: dict[str, list[Link]] = {}
        for written in robots.sitemaps[:_SITEMAPS_MAX]:
            try:
                url = join(task.url, written)
                host = host_of(canonical(url, self._canonical))
            except InvalidUrlError:
                continue
            link = Link(url=url, depth=task.depth, purpose=Purpose.SITEMAP, found=Found.ROBOTS)
            by_host.setdefault(host, []).append(link)
        return [
            DiscoveredLinks(crawl_id=task.crawl_id, source_url=task.url, target_host=host, links=tuple(links))
            for host, links in by_host.items()
        ]
