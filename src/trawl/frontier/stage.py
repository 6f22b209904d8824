"""The frontier: what to fetch, when. Nobody else releases fetches."""

from collections import OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from trawl.errors import InvalidUrlError, StaleEpochError, StoreCorruptError, StoreError
from trawl.frontier.admission import (
    PURPOSES,
    Candidate,
    Gate,
    by_host,
    canonical_rules,
    policy_of,
    renewed,
    scope_of,
)
from trawl.frontier.gates import Gates
from trawl.frontier.outcomes import Outcomes
from trawl.frontier.rendering import Rendering
from trawl.frontier.score import diversity
from trawl.frontier.traps import template_trap
from trawl.kinds import ControlAction, Found, OutcomeClass, Purpose, RenderMode, Stage
from trawl.ports import Clock, Completion, CrawlPolicy, FrontierStore, HydrationStore, Request, SeedScope
from trawl.records import (
    CrawlControl,
    DeadLetter,
    DiscoveredLinks,
    FetchOutcome,
    FetchTask,
    Link,
    Millis,
    Payload,
    Record,
    Seed,
    Validators,
)
from trawl.rules import Rules
from trawl.settings import Settings
from trawl.url import canonical, fetch_id, request_key

_ORIGINS_MAX = 65_536
_CALLED_OFF_BATCH = 500
_T = TypeVar("_T")


class FrontierStage:
    """Admits URLs, releases fetches politely paced, and learns from their outcomes.

    One instance owns the hosts of its shards. `step` takes Seed, DiscoveredLinks, FetchOutcome and CrawlControl; `due`
    gives the fetches that may start now.
    """

    def __init__(
        self,
        store: FrontierStore,
        rules: Rules,
        clock: Clock,
        settings: Settings,
        *,
        hydration: HydrationStore | None = None,
    ) -> None:
        """What is learned of hosts whose text comes with scripts is kept in the last store."""
        self._store = store
        self._rules = rules
        self._clock = clock
        self._settings = settings
        self._canonical = canonical_rules(settings)
        self._rendering = Rendering(settings.browser, hydration)
        self._outcomes = Outcomes(store, rules, settings, self._rendering)
        self._gates = Gates(store, clock, settings)
        self._begun: set[str] = set()
        self._refused: dict[tuple[str, str], int] = {}
        self._announced: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._leased: deque[tuple[Request, Millis]] = deque()  # and not released, with the ends of their leases
        self._paced: OrderedDict[str, None] = OrderedDict()

    async def step(self, record: Record) -> Sequence[Record]:
        """Take one record in; the records that follow from it."""
        match record:
            case Seed():
                return await self._seed(record)
            case DiscoveredLinks():
                await self._discovered(record)
                return ()
            case FetchOutcome():
                return await self._outcomes.take(await self._in_scope(record))
            case CrawlControl():
                await self._control(record)
                return ()
        raise TypeError(f"the frontier takes no {type(record).__name__}")

    def refuses(self, record: Record) -> bool:
        """Whether the record is links of a host that is out of scope, as most links of a page are: refused at once.

        False says nothing; `step` decides then. A shell may ask before it lets a record wait.
        """
        if not isinstance(record, DiscoveredLinks) or record.chain_request_key is not None:
            return False
        gate = self._gates.recent(record.crawl_id)
        if gate is None or not gate.refuses(record):
            return False
        self._refuse(record.crawl_id, "out_of_scope", len(record.links))
        return True

    async def begin(self, seeds: Sequence[Seed]) -> bool:
        """Let these seeds, all of one crawl, alone say what it is, whatever earlier ones said; whether that narrows it.

        For the one owner of a crawl, before its first step. Where such a seed had redirected to stays in scope. Seeds
        that are no URLs say nothing; `step` tells of them.
        """
        policy: CrawlPolicy | None = None
        scopes: dict[SeedScope, None] = {}
        for seed in seeds:
            with suppress(InvalidUrlError):
                scopes[scope_of(seed, canonical(seed.url, self._canonical))] = None
                told = policy_of(seed)
                policy = replace(told, tags=tuple(dict.fromkeys((*(policy or told).tags, *told.tags))))
        if policy is None:
            return False
        known = await self._store.crawl(policy.crawl_id)
        _, before = await self._store.scopes(policy.crawl_id)
        after = renewed(before, scopes)
        paused = known is not None and known.paused
        await self._store.put_crawl(replace(policy, paused=paused), after)
        self._begun.add(policy.crawl_id)
        self._gates.forget(policy.crawl_id)
        shallower = known is not None and policy.depth_max < known.depth_max
        return shallower or not set(before) <= set(after)

    async def call_off(self, crawl_id: str) -> int:
        """End what is queued but out of the crawl's scope or depth, without a fetch; how many."""
        gate = await self._gates.gate(crawl_id, fresh=True)
        if gate is None:
            return 0
        called_off, batch = 0, list[Completion]()
        async for row in self._store.rows(crawl_id):
            reason = gate.calls_off(row.request) if row.state == "queued" else None
            if reason is not None:
                batch.append(self._called_off(row.request, reason))
            if len(batch) >= _CALLED_OFF_BATCH:
                called_off += await self._store.dismiss(batch)
                batch = []
        return called_off + await self._store.dismiss(batch)

    def _called_off(self, request: Request, reason: str) -> Completion:
        return Completion(
            request_key=request.request_key,
            url=request.url,
            fetch_id=request.fetch_id,
            outcome=OutcomeClass.REFUSED,
            reason=reason,
            detail=f"{request.url} was found before the crawl's scope or depth was made smaller",
            at_ms=self._clock.now_ms(),
            charged=False,
        )

    async def due(self, now_ms: Millis, limit: int) -> Sequence[Record]:
        """At most `limit` fetches that may start now, and what their release discloses (a host's sitemaps).

        Expired leases return to the queue first. Requests that robots.txt refuses end here, without a fetch.
        """
        released: list[Record] = []
        try:
            await self.flush()
            await self._store.reap(now_ms)
            await self._release_due(released, now_ms, limit)
        except StoreError:
            if not released:  # else what was leased goes out, and the next call goes on where this one was
                raise
        return released

    async def _release_due(self, released: list[Record], now_ms: Millis, limit: int) -> None:
        lease_ms = int(1000 * self._settings.frontier.lease_seconds)
        robots = await self._store.lease_robots(now_ms, limit, lease_ms)
        released.extend(self._robots_task(origin, now_ms, now_ms + lease_ms) for origin in robots)
        tasks = len(released)
        while tasks < limit:
            if not self._leased:
                origins_max = self._settings.frontier.hosts_ready_max
                leased = await self._store.lease(now_ms, limit - tasks, lease_ms, origins_max=origins_max)
                self._leased.extend((request, now_ms + lease_ms) for request in leased)
            if not self._leased:
                return
            request, expires_ms = self._leased[0]
            try:
                records = await self._release(request, now_ms, expires_ms)
            except (StaleEpochError, StoreCorruptError):  # to try again would be in vain
                self._leased.popleft()
                raise
            self._leased.popleft()
            tasks += any(isinstance(record, FetchTask) for record in records)
            released.extend(records)

    # Seeds and links

    async def _seed(self, seed: Seed) -> Sequence[Record]:
        try:
            url = canonical(seed.url, self._canonical)
        except InvalidUrlError as error:
            data = seed.url.encode(errors="replace")  # JSON may hold half a character
            letter = DeadLetter(
                stage=Stage.FRONTIER,
                reason="invalid_url",
                topic="trawl.seeds",
                payload=Payload(inline=data, size_bytes=len(data)),
                error=f"the seed {seed.url[:200]!r} is not a URL that can be crawled: {error}",
                at_ms=self._clock.now_ms(),
            )
            return (letter,)
        if seed.crawl_id not in self._begun:
            await self._store.add_scopes(seed.crawl_id, (scope_of(seed, url),), policy_of(seed))
            self._gates.forget(seed.crawl_id)
        link = Link(url=url, purpose=PURPOSES[seed.kind], found=Found.SEED, lastmod_ms=None)
        return by_host(seed.crawl_id, url, (link,), self._canonical)

    async def _discovered(self, found: DiscoveredLinks) -> None:
        gate = await self._gates.gate(found.crawl_id)
        if gate is None:
            self._refuse(found.crawl_id, "unknown_crawl", len(found.links))
            return
        if found.chain_request_key is not None and found.links:
            gate = await self._widened(found, gate)
        if any(link.found is Found.SEED and gate.scope_at(link.url) is None for link in found.links):
            gate = await self._gates.gate(found.crawl_id, fresh=True) or gate  # another replica may have taken the seed
        if not gate.allows_host(found.target_host):
            self._refuse(found.crawl_id, "out_of_scope", len(found.links))
            return
        refused: dict[str, int] = {}
        await self._admit(await self._unseen(found, gate, refused), refused)
        for reason, count in refused.items():
            self._refuse(found.crawl_id, reason, count)

    def _refuse(self, crawl_id: str, reason: str, count: int) -> None:
        """Note refusals; `due` writes them down, since pages refuse links all the time."""
        self._refused[crawl_id, reason] = self._refused.get((crawl_id, reason), 0) + count

    async def flush(self) -> None:
        """Write down the refusals noted since the last time."""
        refused, self._refused = self._refused, {}
        for (crawl_id, reason), count in refused.items():
            await self._store.count_refusals(crawl_id, reason, count)

    async def _unseen(self, found: DiscoveredLinks, gate: Gate, refused: dict[str, int]) -> list[Candidate]:
        now_ms = self._clock.now_ms()
        candidates: dict[int, Candidate] = {}
        for link in found.links:
            judged = gate.judge(link, found, now_ms)
            if isinstance(judged, str):
                refused[judged] = refused.get(judged, 0) + 1
            else:
                candidates.setdefault(judged.request.request_key, judged)
        requests = [candidate.request for candidate in candidates.values()]
        seen = await self._store.seen(requests) if requests else ()
        return [candidate for candidate, known in zip(candidates.values(), seen, strict=True) if not known]

    async def _admit(self, candidates: Sequence[Candidate], refused: dict[str, int]) -> None:
        accepted: list[Request] = []
        known: dict[str, float] = {}
        counts = await self._store.templates([candidate.request for candidate in candidates])
        for candidate, count in zip(candidates, counts, strict=True):
            request = candidate.request
            reason: str | None = template_trap(candidate.template, count, request.request_key, self._settings.frontier)
            if reason is None and await self._disallowed(request):
                reason = "robots_disallowed"
            if reason is None:
                if request.origin not in known:
                    known[request.origin] = await self._diversity(request.origin)
                accepted.append(replace(request, score=request.score + known[request.origin]))
            else:
                refused[str(reason)] = refused.get(str(reason), 0) + 1
        if not accepted:
            return
        limits = self._settings.frontier
        admissions = await self._store.admit(
            accepted,
            queue_urls_max=limits.queue_urls_max,
            host_urls_max=limits.host_urls_max,
            sitemaps_max=limits.sitemaps_per_host_max,
        )
        for admission in admissions:
            if not admission.admitted and admission.reason != "seen":
                refused[admission.reason] = refused.get(admission.reason, 0) + 1
            if admission.evicted_url:
                refused["evicted"] = refused.get("evicted", 0) + 1

    async def _diversity(self, origin: str) -> float:
        """What is taken off the scores of an origin's new URLs for those that it has already."""
        known = await self._store.origin(origin)
        return 0.0 if known is None else diversity(known.admitted) - diversity(0)

    async def _disallowed(self, request: Request) -> bool:
        """Whether rules that are known already forbid it; seeds are queued all the same, to end with an outcome."""
        if request.found is Found.SEED:
            return False
        ruling = await self._rules.ruling(request.origin, request.url)
        return ruling.reason == "robots_disallowed"

    async def _widened(self, found: DiscoveredLinks, gate: Gate) -> Gate:
        """A seed's own redirect (example.com to www.example.com) widens the crawl's scope by its target."""
        first = await self._store.request(found.chain_request_key or 0, found.chain[0].url) if found.chain else None
        if first is None or first.request.found is not Found.SEED:
            return gate
        try:
            url = canonical(found.links[0].url, self._canonical)
        except InvalidUrlError:
            return gate
        seed = gate.scope_at(first.request.url)
        if seed is None or gate.scope_at(url) is not None:
            return gate
        await self._store.add_scopes(found.crawl_id, (replace(seed, url=url, seed_url=first.request.url),))
        return await self._gates.gate(found.crawl_id, fresh=True) or gate

    async def _in_scope(self, outcome: FetchOutcome) -> FetchOutcome:
        """A page whose redirect leads out of the scope of its own host is refused; a seed's own widens that instead."""
        gate = await self._gates.gate(outcome.crawl_id) if outcome.reason == "redirect_other_path" else None
        row = await self._store.request(outcome.request_key, outcome.url) if gate is not None else None
        if gate is None or row is None:
            return outcome
        chain = row.request.chain
        began = row.request.chain_request_key or outcome.request_key
        first = await self._store.request(began, chain[0].url if chain else outcome.url)
        widens = first is not None and first.request.found is Found.SEED
        target = canonical(outcome.redirect_target, self._canonical)
        if widens or gate.allows(target):
            return outcome
        detail = f"{outcome.url} redirects to {outcome.redirect_target}, which is out of scope"
        return replace(outcome, outcome=OutcomeClass.REFUSED, reason="out_of_scope", detail=detail)

    async def _control(self, control: CrawlControl) -> None:
        policy = await self._store.crawl(control.crawl_id)
        if policy is None:
            return
        if control.action in {ControlAction.PAUSE, ControlAction.CANCEL}:
            await self._store.put_crawl(replace(policy, paused=True))
        elif control.action is ControlAction.RESUME:
            await self._store.put_crawl(replace(policy, paused=False))
        elif control.action is ControlAction.LIMIT:
            await self._store.put_crawl(replace(policy, pages_max=control.pages_max))
        self._gates.forget(control.crawl_id)

    # Release

    def _robots_task(self, origin: str, now_ms: Millis, expires_ms: Millis) -> FetchTask:
        key = request_key("", f"{origin}/robots.txt")
        return FetchTask(
            fetch_id=fetch_id(key, Purpose.ROBOTS, RenderMode.STATIC, now_ms),
            crawl_id="",
            request_key=key,
            url=f"{origin}/robots.txt",
            purpose=Purpose.ROBOTS,
            found=Found.ROBOTS,
            scheduled_at_ms=now_ms,
            released_at_ms=now_ms,
            expires_at_ms=expires_ms,
        )

    async def _release(self, request: Request, now_ms: Millis, expires_ms: Millis) -> list[Record]:
        if request.attempt > self._settings.frontier.attempts_max:
            await self._outcomes.exhausted(request, now_ms)
            return []
        gate = await self._gates.gate(request.crawl_id)
        reason = gate.calls_off(request) if gate is not None else None
        if reason is not None:
            await self._store.complete(self._called_off(request, reason))
            return []
        ruling = await self._rules.ruling(request.origin, request.url)
        if not ruling.allowed:
            await self._outcomes.not_released(request, ruling, now_ms)
            return []
        if self._first_time(self._paced, request.origin):
            await self._outcomes.pace(request.origin)
        row = await self._store.request(request.request_key, request.url) if self._rendering.learns else None
        mode = await self._rendering.mode(request, row, now_ms)
        policy = gate.policy if gate else CrawlPolicy(crawl_id=request.crawl_id)
        task = FetchTask(
            fetch_id=request.fetch_id,
            crawl_id=request.crawl_id,
            request_key=request.request_key,
            url=request.url,
            purpose=request.purpose,
            render_mode=mode,
            depth=request.depth,
            found=request.found,
            # that the page as it is fetched has not changed would say nothing of what its scripts show
            validators=request.validators if mode is RenderMode.STATIC else Validators(),
            last_outcome=request.last_outcome,
            nesting=request.nesting,
            attempt=request.attempt,
            scheduled_at_ms=request.scheduled_at_ms,
            released_at_ms=now_ms,
            expires_at_ms=expires_ms,
            chain=request.chain,
            chain_request_key=request.chain_request_key,
            tags=policy.tags,
            dedup_scope=policy.dedup_scope,
            path_scoped=gate is not None and gate.is_path_scoped(request),
        )
        return [*await self._sitemaps(request), task]

    @staticmethod
    def _first_time(known: OrderedDict[_T, None], item: _T) -> bool:
        """Whether an item is not among the known ones, the newest `_ORIGINS_MAX`; it is from now on."""
        if item in known:
            return False
        known[item] = None
        if len(known) > _ORIGINS_MAX:
            known.popitem(last=False)
        return True

    async def _sitemaps(self, request: Request) -> list[Record]:
        """The sitemaps that robots.txt names, once per crawl and origin (again after a restart, then seen).

        Their URLs are one step from the seeds, so a crawl of depth 0 fetches its seeds alone.
        """
        if (request.crawl_id, request.origin) in self._announced:
            return []
        urls = (await self._rules.robots(request.origin)).sitemaps
        self._first_time(self._announced, (request.crawl_id, request.origin))
        links = [Link(url=url, depth=1, purpose=Purpose.SITEMAP, found=Found.ROBOTS) for url in urls[:500]]
        return list(by_host(request.crawl_id, f"{request.origin}/robots.txt", links, self._canonical))
