"""The fetcher: one task in; a page, or an outcome that says why there is none."""

from collections.abc import Sequence
from itertools import chain

from trawl.access import AccessRules
from trawl.compliance.statements import condensed, of_headers
from trawl.fetcher.answers import Ending, ending_of_failure, ending_of_status, without_body
from trawl.fetcher.hop import Hops, NotSent, Sent, Wish
from trawl.fetcher.redirects import REDIRECT_STATUSES, NextHop, RedirectRefused, next_hop
from trawl.fetcher.rendering import PageRendering, with_rendering
from trawl.fetcher.requests import RequestFields
from trawl.fetcher.robots_fetch import RobotsFetch
from trawl.fetcher.visit import Visit, validators_of
from trawl.kinds import NOT_MODIFIED, OutcomeClass, Purpose, RenderMode
from trawl.ports import (
    Clock,
    HttpClient,
    HttpFailure,
    HttpResponse,
    PolitenessStore,
    Rendered,
    Renderer,
    Resolver,
    RobotsStore,
    Signer,
)
from trawl.records import Evidence, FetchedPage, FetchTask, Header, Record, Validators
from trawl.robots import product_token
from trawl.rules import Rules
from trawl.settings import Settings
from trawl.url import CanonicalRules, host_of, origin_of

_STILL_HOLD = frozenset({OutcomeClass.ALIAS, OutcomeClass.DISCOVERED, OutcomeClass.DUPLICATE, OutcomeClass.WITHDRAWN})
"""What a visit ended as that brought no page of its own; it does so again if nothing has changed."""
_REFUSED = frozenset({"address_refused", "port_refused", "redirect_scheme"})


class FetcherStage:
    """Fetches URLs safely and politely.

    Before every request, redirects included: the scheme, robots.txt, the port, the address and the slots of host and
    address. Redirects on one host are followed; one to another host ends the visit, and its target goes to that host's
    queue. Never raises for what the web does; StoreError if a store cannot serve, SettingsError when it is made.
    """

    def __init__(
        self,
        http: HttpClient,
        resolver: Resolver,
        politeness: PolitenessStore,
        robots: RobotsStore,
        clock: Clock,
        settings: Settings,
        *,
        access: AccessRules | None = None,
        signer: Signer | None = None,
        renderer: Renderer | None = None,
    ) -> None:
        """The access rules say how each host is reached, and as whom; the signer says who we are, to every host.

        Without a renderer a page for which a browser is asked comes as it was fetched, and says so.
        """
        access = access or AccessRules()
        self._clock = clock
        self._settings = settings
        self._canonical = CanonicalRules(
            url_chars_max=settings.url.url_chars_max,
            sort_query=settings.url.sort_query,
            drop_parameters=frozenset(settings.url.drop_parameters),
        )
        self._agent = product_token(settings.fetch.user_agent)
        self._rules = Rules(
            robots,
            clock,
            settings.robots,
            settings.fetch.user_agent,
            statements=settings.compliance.statements,
        )
        self._fields = RequestFields(settings.fetch, access)
        self._rendering = PageRendering(renderer, self._fields, access, settings.fetch)
        self._hops = Hops(http, resolver, politeness, self._rules, clock, settings, access=access, signer=signer)
        self._robots = RobotsFetch(self._hops, self._fields, robots, self._rules, clock, settings, self._canonical)

    async def step(self, record: Record) -> Sequence[Record]:
        """Do one FetchTask; raises TypeError for any other record."""
        if not isinstance(record, FetchTask):
            raise TypeError(f"the fetcher takes no {type(record).__name__}")
        now = self._clock.now_ms()
        if record.expires_at_ms and now > record.expires_at_ms:
            visit = Visit(task=record, url=record.url, canonical_url=record.url)
            detail = (
                f"{record.url}: the task came {(now - record.expires_at_ms) / 1000:.1f} s after its lease had ended"
            )
            return (visit.outcome(OutcomeClass.DEFERRED, "expired", now, terminal=False, detail=detail),)
        if record.purpose is Purpose.ROBOTS:
            return await self._robots.fetch(record)
        return await self._visit(Visit(task=record, url=record.url, canonical_url=record.url))

    async def _visit(self, visit: Visit) -> Sequence[Record]:
        """Follow the task's redirects to their end on this host."""
        while True:
            ending = await self._forbidden(visit)
            if ending is not None:
                return self._end(visit, ending)
            sent = await self._closed(visit) or await self._hops.go(self._wish(visit))
            if isinstance(sent, NotSent):
                return self._not_sent(visit, sent)
            visit.add(sent)
            answer = without_body(sent.answer) if isinstance(sent.answer, HttpFailure) else sent.answer
            if isinstance(answer, HttpFailure):
                return self._end(visit, ending_of_failure(answer), answer.status)
            redirects = answer.status in REDIRECT_STATUSES
            records = await (self._redirected(visit, answer) if redirects else self._answered(visit, sent, answer))
            if records:
                return records

    async def _forbidden(self, visit: Visit) -> Ending | None:
        """Why robots.txt does not let the next request be sent, if so."""
        ruling = await self._rules.ruling(origin_of(visit.canonical_url), visit.canonical_url)
        if ruling.allowed:
            return None
        detail = f"{visit.url}: {ruling.detail}"
        if visit.hops:
            detail = f"{visit.task.url} redirects to {detail}"
        final = ruling.reason == "robots_disallowed"
        outcome = OutcomeClass.REFUSED if final else OutcomeClass.RETRY
        return Ending(outcome=outcome, reason=ruling.reason, terminal=final, detail=detail)

    async def _closed(self, visit: Visit) -> NotSent | None:
        """Why the next request must wait for the hours at which robots.txt welcomes visits, if so."""
        origin = origin_of(visit.canonical_url)
        opens_ms = await self._rules.opens_ms(origin)
        if opens_ms <= self._clock.now_ms():
            return None
        detail = f"{visit.url}: robots.txt of {origin} welcomes visits at other hours (Visit-time)"
        return NotSent(reason="visit_time", detail=detail, deferred_until_ms=opens_ms)

    def _wish(self, visit: Visit) -> Wish:
        task, limits = visit.task, self._settings.fetch
        # An ETag names one representation; a date alone could belong to what the redirect led to before.
        validators = task.validators if not visit.hops else Validators(etag=task.validators.etag)
        return Wish(
            url=visit.url,
            canonical_url=visit.canonical_url,
            fields=self._fields.fields(visit.canonical_url, task.purpose, validators),
            body_bytes_max=limits.body_bytes_max,
            total_seconds_max=limits.total_seconds_max,
            attempt=task.attempt,
            not_before_ms=task.not_before_ms,
        )

    async def _redirected(self, visit: Visit, answer: HttpResponse) -> Sequence[Record]:
        """Move on to the redirect's target, or end the visit with these records."""
        target = next_hop(
            visit.url,
            answer.headers,
            visit.chain,
            redirects_max=self._settings.fetch.redirects_max,
            rules=self._canonical,
        )
        if isinstance(target, RedirectRefused):
            refused = target.reason in _REFUSED
            ending = Ending(
                outcome=OutcomeClass.REFUSED if refused else OutcomeClass.FAILED,
                reason=target.reason,
                terminal=True,
                detail=target.detail,
            )
            return self._end(visit, ending, answer.status)
        return await self._followed(visit, answer.status, target)

    async def _followed(self, visit: Visit, status: int, target: NextHop) -> Sequence[Record]:
        """Move on to a target on the same host, or hand it over to another queue with these records."""
        now = self._clock.now_ms()
        if host_of(target.canonical_url) != host_of(visit.canonical_url):
            return visit.handed_over(target, status, "redirect_other_host", now)
        if visit.task.path_scoped:
            return visit.handed_over(target, status, "redirect_other_path", now)
        if await self._is_unknown_origin(target):
            return visit.handed_over(target, status, "redirect_other_origin", now)
        visit.move(status, target)
        return ()

    async def _is_unknown_origin(self, target: NextHop) -> bool:
        """Whether nobody knows the robots.txt of the target's scheme yet."""
        ruling = await self._rules.ruling(origin_of(target.canonical_url), target.canonical_url)
        return ruling.reason == "robots_unknown"

    def _not_sent(self, visit: Visit, not_sent: NotSent) -> Sequence[Record]:
        now = self._clock.now_ms()
        if not_sent.deferred_until_ms is None:
            refused = not_sent.reason in _REFUSED
            outcome = OutcomeClass.REFUSED if refused else OutcomeClass.RETRY
            ending = Ending(outcome=outcome, reason=not_sent.reason, terminal=refused, detail=not_sent.detail)
            return self._end(visit, ending)
        if visit.hops:
            # The rest of the chain has to wait; beginning it anew would take the same slots in vain each time.
            last = visit.hops.pop()
            target = NextHop(url=visit.url, canonical_url=visit.canonical_url)
            visit.url = visit.canonical_url = last.url
            return visit.handed_over(target, last.status, "redirect_deferred", now)
        deferred = visit.outcome(
            OutcomeClass.DEFERRED,
            not_sent.reason,
            now,
            terminal=False,
            detail=not_sent.detail,
            deferred_until_ms=not_sent.deferred_until_ms,
        )
        return (deferred,)

    async def _answered(self, visit: Visit, sent: Sent, answer: HttpResponse) -> Sequence[Record]:
        """What the last answer of the chain means; no records if a script of the page leads on."""
        if 200 <= answer.status < 300:
            page = visit.page(answer, sent, await self._evidence(visit, answer))
            if visit.task.render_mode is RenderMode.HEADLESS:
                return await self._rendered(visit, page, answer)
            return (page,)
        if answer.status == NOT_MODIFIED and visit.task.validators != Validators():
            fresh, held = validators_of(answer.headers), visit.task.validators
            kept = Validators(etag=fresh.etag or held.etag, last_modified=fresh.last_modified or held.last_modified)
            before = visit.task.last_outcome
            unchanged = visit.outcome(
                before if before in _STILL_HOLD else OutcomeClass.UNCHANGED,
                "not_modified",
                self._clock.now_ms(),
                terminal=True,
                status=NOT_MODIFIED,
                validators=kept,
            )
            return (unchanged,)
        patience = self._settings.politeness.retry_after_seconds_max
        ending = ending_of_status(visit.url, answer.status, answer.headers, sent.retry_after_ms, patience)
        return self._end(visit, ending, answer.status, sent.retry_after_ms)

    async def _rendered(self, visit: Visit, page: FetchedPage, answer: HttpResponse) -> Sequence[Record]:
        """The page as a browser shows it; where a script leads elsewhere, that is one more redirect."""
        result = await self._rendering.render(visit.canonical_url, answer)
        if isinstance(result, Rendered) and result.navigated_to:
            target = next_hop(
                visit.url,
                (Header(name="location", value=result.navigated_to),),
                visit.chain,
                redirects_max=self._settings.fetch.redirects_max,
                rules=self._canonical,
            )
            if isinstance(target, NextHop) and target.canonical_url != visit.canonical_url:
                return await self._followed(visit, answer.status, target)
        return (with_rendering(page, result),)

    async def _evidence(self, visit: Visit, answer: HttpResponse) -> Sequence[Evidence]:
        """What is said beforehand and by the answer's headers of the use of a page."""
        url = visit.canonical_url
        beforehand = await self._rules.statements(origin_of(url), url)
        headers = ((header.name, header.value) for header in answer.headers)
        said = chain(beforehand, of_headers(headers, self._agent, self._clock.now_ms()))
        return condensed(said)

    def _end(
        self, visit: Visit, ending: Ending, status: int = 0, retry_after_ms: int | None = None
    ) -> Sequence[Record]:
        outcome = visit.outcome(
            ending.outcome,
            ending.reason,
            self._clock.now_ms(),
            terminal=ending.terminal,
            detail=ending.detail,
            status=status,
            retry_after_ms=retry_after_ms,
            price=ending.price,
        )
        return (outcome,)
