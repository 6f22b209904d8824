"""One visit under way, and the records that tell how it went (pure)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from trawl.fetcher.hop import Sent
from trawl.fetcher.redirects import NextHop
from trawl.kinds import Found, OutcomeClass, RobotsState, Stage
from trawl.ports import HttpResponse
from trawl.records import (
    DiscoveredLinks,
    Evidence,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Header,
    Hop,
    Link,
    Millis,
    Payload,
    Record,
    RobotsNews,
    Timings,
    Validators,
)
from trawl.url import host_of


@dataclass(slots=True)
class Visit:
    """A task, and how far its redirects have led."""

    task: FetchTask
    url: str
    """What is requested now."""
    canonical_url: str
    hops: list[Hop] = field(default_factory=list)
    sent: Sent | None = None
    """The request before, or the last one."""
    resolve_ms: float = 0.0
    total_ms: float = 0.0
    gap_required_ms: int = 0
    gap_actual_ms: int | None = None

    @property
    def chain(self) -> tuple[Hop, ...]:
        """All redirects so far, those of other hosts included."""
        return (*self.task.chain, *self.hops)

    def add(self, sent: Sent) -> None:
        """Count a request; of several gaps the one that was kept worst is told."""
        self.sent = sent
        self.resolve_ms += sent.resolve_ms
        self.total_ms += sent.answer.total_ms + sent.resolve_ms
        if _spare(sent.gap_required_ms, sent.gap_actual_ms) <= _spare(self.gap_required_ms, self.gap_actual_ms):
            self.gap_required_ms, self.gap_actual_ms = sent.gap_required_ms, sent.gap_actual_ms

    def move(self, status: int, target: NextHop) -> None:
        """Follow a redirect."""
        self.hops.append(Hop(url=self.url, status=status))
        self.url, self.canonical_url = target.url, target.canonical_url

    def outcome(
        self,
        outcome: OutcomeClass,
        reason: str,
        at_ms: Millis,
        *,
        terminal: bool,
        detail: str = "",
        status: int = 0,
        retry_after_ms: int | None = None,
        deferred_until_ms: Millis | None = None,
        redirect_target: str = "",
        validators: Validators | None = None,
        robots: RobotsNews | None = None,
        body_bytes: int = 0,
        price: str = "",
    ) -> FetchOutcome:
        """How the visit ended."""
        task = self.task
        return FetchOutcome(
            url=task.url,
            crawl_id=task.crawl_id,
            request_key=task.request_key,
            fetch_id=task.fetch_id,
            stage=Stage.FETCHER,
            outcome=outcome,
            reason=reason,
            terminal=terminal,
            purpose=task.purpose,
            status=status,
            detail=detail,
            at_ms=at_ms,
            retry_after_ms=retry_after_ms,
            deferred_until_ms=deferred_until_ms,
            redirect_target=redirect_target,
            robots=robots,
            validators=validators,
            address=self.sent.address if self.sent is not None else "",
            elapsed_ms=round(self.total_ms, 3),
            gap_required_ms=self.gap_required_ms,
            gap_actual_ms=self.gap_actual_ms,
            body_bytes=body_bytes,
            price=price,
        )

    def page(self, response: HttpResponse, sent: Sent, evidence: Iterable[Evidence]) -> FetchedPage:
        """The page that was found, with what was said of its use."""
        task = self.task
        return FetchedPage(
            fetch_id=task.fetch_id,
            crawl_id=task.crawl_id,
            request_key=task.request_key,
            url=task.url,
            final_url=self.canonical_url,
            status=response.status,
            fetched_at_ms=sent.started_ms + round(response.connect_ms + response.first_byte_ms),
            purpose=task.purpose,
            render_mode=task.render_mode,
            depth=task.depth,
            found=task.found,
            chain=self.chain,
            headers=response.headers,
            content_type=header(response.headers, "content-type"),
            body=Payload(inline=response.body, size_bytes=len(response.body)),
            http_version=response.http_version,
            address=response.address,
            timings=self.timings(response),
            scheduled_at_ms=task.scheduled_at_ms,
            released_at_ms=task.released_at_ms,
            tags=task.tags,
            dedup_scope=task.dedup_scope,
            static_render=task.static_render,
            nesting=task.nesting,
            evidence=tuple(evidence),
        )

    def timings(self, response: HttpResponse) -> Timings:
        """How long the parts took; connecting and the first byte are those of the last request."""
        return Timings(
            resolve_ms=round(self.resolve_ms, 3),
            connect_ms=round(response.connect_ms, 3),
            first_byte_ms=round(response.first_byte_ms, 3),
            total_ms=round(self.total_ms, 3),
            gap_required_ms=self.gap_required_ms,
            gap_actual_ms=self.gap_actual_ms,
        )

    def handed_over(self, target: NextHop, status: int, reason: str, at_ms: Millis) -> Sequence[Record]:
        """End here: the redirect's target belongs to another queue, and this request becomes its alias."""
        task = self.task
        key = task.chain_request_key if task.chain_request_key is not None else task.request_key
        link = Link(url=target.url, depth=task.depth, purpose=task.purpose, found=Found.REDIRECT, nesting=task.nesting)
        links = DiscoveredLinks(
            crawl_id=task.crawl_id,
            source_url=self.url,
            target_host=host_of(target.canonical_url),
            links=(link,),
            chain=(*self.chain, Hop(url=self.url, status=status)),
            chain_request_key=key,
        )
        detail = f"{task.url} redirects to {target.url}"
        outcome = self.outcome(
            OutcomeClass.ALIAS,
            reason,
            at_ms,
            terminal=True,
            detail=detail,
            status=status,
            redirect_target=target.url,
        )
        return (links, outcome)


def robots_news(origin: str, state: RobotsState, expires_at_ms: Millis) -> RobotsNews:
    """What a robots fetch tells the frontier."""
    return RobotsNews(origin=origin, state=state, expires_at_ms=expires_at_ms)


def header(headers: Sequence[Header], name: str) -> str:
    """The first value of a field, or empty."""
    return next((one.value for one in headers if one.name == name), "")


def validators_of(headers: Sequence[Header]) -> Validators:
    """What the next conditional request may send."""
    return Validators(etag=header(headers, "etag"), last_modified=header(headers, "last-modified"))


def _spare(required: int, actual: int | None) -> float:
    return float("inf") if actual is None else actual - required
