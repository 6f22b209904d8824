"""The frontier stage over the in-memory stores, with time in the test's hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from trawl.adapters.clocks import ManualClock
from trawl.adapters.memory import MemoryFrontierStore, MemoryRobotsStore
from trawl.frontier.outcomes import Outcomes
from trawl.frontier.rendering import Rendering
from trawl.frontier.score import score
from trawl.frontier.stage import FrontierStage
from trawl.kinds import ControlAction, Found, OutcomeClass, Purpose, RobotsState, ScopeKind, SeedKind, Stage
from trawl.ports import FrontierStore, OriginState, OriginUpdate, RequestRow, RobotsEntry
from trawl.records import (
    CrawlControl,
    DeadLetter,
    DiscoveredLinks,
    FetchOutcome,
    FetchTask,
    Hop,
    Link,
    Record,
    RobotsNews,
    Seed,
)
from trawl.rules import Rules
from trawl.settings import BrowserSettings, RobotsSettings, Settings
from trawl.url import host_of, origin_of

START = 1_700_000_000_000
HOUR = 3_600_000


class Frontier:
    """A frontier with everything it needs, driven by hand."""

    def __init__(self, settings: Settings | None = None, store: FrontierStore | None = None) -> None:
        self.settings = settings or Settings()
        self.clock = ManualClock(START)
        self.store = store or MemoryFrontierStore()
        self.robots = MemoryRobotsStore()
        rules = Rules(self.robots, self.clock, self.settings.robots, "trawl/0")
        self.stage = FrontierStage(self.store, rules, self.clock, self.settings)

    async def put(self, *records: Record) -> list[Record]:
        """Step the records, and what the frontier sends to itself."""
        left, others = list(records), list[Record]()
        while left:
            for record in await self.stage.step(left.pop(0)):
                (left if isinstance(record, DiscoveredLinks) else others).append(record)
        return others

    async def due(self, limit: int = 100) -> list[FetchTask]:
        """The tasks that are due now; announced sitemaps are admitted."""
        records = await self.stage.due(self.clock.now_ms(), limit)
        await self.put(*[record for record in records if isinstance(record, DiscoveredLinks)])
        return [record for record in records if isinstance(record, FetchTask)]

    async def answer_robots(
        self, task: FetchTask, body: bytes = b"", state: RobotsState = RobotsState.RULES, reason: str = ""
    ) -> None:
        """What the fetcher does with a robots task."""
        origin, now = origin_of(task.url), self.clock.now_ms()
        expires = now + 24 * HOUR if state is not RobotsState.UNAVAILABLE else now + HOUR
        good = now if state is not RobotsState.UNAVAILABLE else None
        await self.robots.put(
            RobotsEntry(
                origin=origin,
                state=state,
                body=body,
                fetched_at_ms=now,
                expires_at_ms=expires,
                good_at_ms=good,
                reason=reason,
            )
        )
        news = RobotsNews(origin=origin, state=state, expires_at_ms=expires)
        await self.put(self.outcome(task, OutcomeClass.ROBOTS, robots=news))

    def outcome(self, task: FetchTask, outcome: OutcomeClass, **changes: object) -> FetchOutcome:
        """An outcome of a task, now."""
        made = FetchOutcome(
            url=task.url,
            crawl_id=task.crawl_id,
            request_key=task.request_key,
            fetch_id=task.fetch_id,
            stage=Stage.FETCHER,
            outcome=outcome,
            purpose=task.purpose,
            at_ms=self.clock.now_ms(),
        )
        return replace(made, **changes)  # type: ignore[arg-type]

    async def started(self, body: bytes = b"", **seed: object) -> FetchTask:
        """Seed a site, answer its robots.txt, and return the seed's task."""
        await self.put(replace(Seed(url="https://a.example/", kind=SeedKind.PAGE), **seed))  # type: ignore[arg-type]
        (robots,) = await self.due()
        await self.answer_robots(robots, body)
        (task,) = await self.due()
        return task

    async def opened(self, body: bytes = b"", **seed: object) -> FetchTask:
        """As `started`, with the seed's page indexed."""
        task = await self.started(body, **seed)
        await self.put(self.outcome(task, OutcomeClass.INDEXED))
        return task

    async def moves(self, task: FetchTask, target: str) -> None:
        """Let a fetch end at a redirect to another host."""
        links = self.links(
            target,
            chain=(Hop(url=task.url, status=301),),
            chain_request_key=task.request_key,
            links=(Link(url=target, found=Found.REDIRECT),),
        )
        await self.put(*links, self.outcome(task, OutcomeClass.ALIAS, redirect_target=target))

    def links(self, *urls: str, **changes: object) -> list[DiscoveredLinks]:
        """Links as an extractor emits them."""
        return [
            replace(
                DiscoveredLinks(
                    crawl_id="default",
                    source_url="https://a.example/",
                    target_host=host_of(url),
                    links=(Link(url=url, depth=1),),
                ),
                **changes,  # type: ignore[arg-type]
            )
            for url in urls
        ]

    async def rows(self) -> dict[str, RequestRow]:
        """Every request by its URL."""
        return {row.request.url: row async for row in self.store.rows("default")}

    async def begun_again(self, *seeds: Seed) -> "Frontier":
        """Another run on what this one has stored, with these seeds."""
        other = Frontier(self.settings, self.store)
        other.clock, other.robots = self.clock, self.robots
        rules = Rules(self.robots, self.clock, self.settings.robots, "trawl/0")
        other.stage = FrontierStage(self.store, rules, self.clock, self.settings)
        if await other.stage.begin(seeds):
            await other.stage.call_off("default")
        await other.put(*seeds)
        return other

    async def refusals(self) -> dict[str, int]:
        """Refusals by reason."""
        await self.stage.flush()
        return dict((await self.store.progress("default")).refusals)


async def test_a_host_never_seen_waits_for_its_robots_txt() -> None:
    frontier = Frontier()
    await frontier.put(Seed(url="https://a.example/start"))
    (robots,) = await frontier.due()
    assert (robots.url, robots.purpose) == ("https://a.example/robots.txt", Purpose.ROBOTS)
    assert await frontier.due() == []
    await frontier.answer_robots(robots)
    (task,) = await frontier.due()
    assert (task.url, task.purpose) == ("https://a.example/start", Purpose.AUTO)


async def test_what_robots_txt_forbids_is_refused_and_never_released() -> None:
    frontier = Frontier()
    await frontier.put(Seed(url="https://a.example/private"))
    (robots,) = await frontier.due()
    await frontier.answer_robots(robots, b"User-agent: *\nDisallow: /private")
    assert await frontier.due() == []
    (row,) = [row async for row in frontier.store.rows("default")]
    assert (row.outcome, row.reason) == (OutcomeClass.REFUSED, "robots_disallowed")
    assert "line 2" in row.detail


@pytest.mark.parametrize("by_seed", [True, False])
async def test_case_16_seeds_and_links_meet_the_same_robots_group(by_seed: bool) -> None:
    body = b"User-agent: *\nDisallow: /\n\nUser-agent: trawl\nDisallow: /no\n"
    frontier = Frontier()
    await frontier.opened(body)
    if by_seed:
        await frontier.put(Seed(url="https://a.example/yes"), Seed(url="https://a.example/no"))
    else:
        await frontier.put(*frontier.links("https://a.example/yes", "https://a.example/no"))
    frontier.clock.advance(60)
    assert [task.url for task in await frontier.due()] == ["https://a.example/yes"]


async def test_case_3_an_unavailable_robots_txt_stops_the_host_and_is_tried_again() -> None:
    frontier = Frontier()
    await frontier.put(Seed(url="https://a.example/page"))
    (robots,) = await frontier.due()
    await frontier.answer_robots(robots, state=RobotsState.UNAVAILABLE, reason="http_500")
    assert await frontier.due() == []
    frontier.clock.advance(3601)
    (again,) = await frontier.due()
    assert again.purpose is Purpose.ROBOTS
    await frontier.answer_robots(again)
    assert [task.url for task in await frontier.due()] == ["https://a.example/page"]


async def test_a_host_that_does_not_exist_ends_the_request_with_the_reason() -> None:
    frontier = Frontier()
    await frontier.put(Seed(url="https://nowhere.example/page"))
    (robots,) = await frontier.due()
    await frontier.answer_robots(robots, state=RobotsState.UNAVAILABLE, reason="dns_not_found")
    assert await frontier.due() == []
    (row,) = [row async for row in frontier.store.rows("default")]
    assert (row.state, row.outcome, row.reason) == ("done", OutcomeClass.REFUSED, "dns_not_found")


async def test_a_url_is_queued_once_however_it_is_written() -> None:
    frontier = Frontier()
    await frontier.opened()
    await frontier.put(
        *frontier.links(
            "https://a.example/x",
            "https://A.example:443/x",
            "https://a.example/y/../x#part",
            "https://a.example/x?utm_source=mail",
        )
    )
    frontier.clock.advance(60)
    assert [task.url for task in await frontier.due()] == ["https://a.example/x"]


@pytest.mark.parametrize(
    ("url", "changes", "reason"),
    [
        ("https://b.example/", {}, "out_of_scope"),
        ("ftp://a.example/x", {"target_host": "a.example"}, "invalid_url"),
        ("https://a.example/" + "x/" * 30, {}, "path_too_deep"),
        ("https://a.example/" + "/".join(["a", "b"] * 6), {}, "repeated_segments"),
        ("https://a.example/deep", {"links": (Link(url="https://a.example/deep", depth=17),)}, "too_deep"),
        ("https://a.example/ad", {"links": (Link(url="https://a.example/ad", rel=("nofollow",)),)}, "nofollow"),
    ],
)
async def test_every_refusal_has_a_reason_and_a_counter(url: str, changes: dict[str, object], reason: str) -> None:
    frontier = Frontier()
    await frontier.started()
    await frontier.put(*frontier.links(url, **changes))
    assert await frontier.refusals() == {reason: 1}


async def test_links_of_a_crawl_that_no_seed_began_are_refused() -> None:
    frontier = Frontier()
    await frontier.put(*frontier.links("https://a.example/", crawl_id="other"))
    await frontier.stage.flush()
    assert dict((await frontier.store.progress("other")).refusals) == {"unknown_crawl": 1}


async def test_a_seed_that_is_no_url_becomes_a_dead_letter_with_its_text() -> None:
    (letter,) = await Frontier().put(Seed(url="https://exa mple.com:99999/"))
    assert isinstance(letter, DeadLetter)
    assert letter.reason == "invalid_url"
    assert letter.payload.inline == b"https://exa mple.com:99999/"


async def test_a_failed_fetch_is_tried_again_later_and_given_up_in_the_end() -> None:
    frontier = Frontier()
    task = await frontier.started()
    for attempt in range(1, 5):
        assert task.attempt == attempt
        await frontier.put(frontier.outcome(task, OutcomeClass.RETRY, reason="http_500", status=500, terminal=False))
        if attempt < 4:
            assert await frontier.due() == []
            frontier.clock.advance(300)
            (task,) = await frontier.due()
    (row,) = [row async for row in frontier.store.rows("default")]
    assert (row.state, row.outcome, row.reason) == ("done", OutcomeClass.FAILED, "http_500")


async def test_case_1_retry_after_parks_the_whole_host() -> None:
    frontier = Frontier()
    task = await frontier.started()
    await frontier.put(*frontier.links("https://a.example/second"))
    await frontier.put(
        frontier.outcome(
            task, OutcomeClass.RETRY, reason="http_429", status=429, terminal=False, retry_after_ms=120_000
        )
    )
    frontier.clock.advance(119)
    assert await frontier.due() == []
    frontier.clock.advance(2)
    assert len(await frontier.due()) == 1


async def test_a_dead_host_is_left_alone_for_longer_and_longer() -> None:
    frontier = Frontier()
    settings = frontier.settings.politeness
    task = await frontier.started()
    await frontier.put(*frontier.links(*(f"https://a.example/{n}" for n in range(40))))
    for _ in range(settings.breaker_failures):
        failed = frontier.outcome(task, OutcomeClass.RETRY, reason="connect_failed", terminal=False)
        await frontier.put(failed)
        frontier.clock.advance(2)
        task = (await frontier.due(1) or [task])[0]
    state = await frontier.store.origin("https://a.example")
    assert state is not None
    assert state.blocked_until_ms >= frontier.clock.now_ms() + 1000 * settings.breaker_seconds - 4000
    assert await frontier.due() == []


async def test_an_answer_ends_the_failures_of_an_earlier_run() -> None:
    frontier = Frontier()
    task = await frontier.started()
    await frontier.store.update_origin("https://a.example", OriginUpdate(failures=7))
    good = frontier.outcome(task, OutcomeClass.INDEXED, status=200)
    lost = frontier.outcome(task, OutcomeClass.RETRY, reason="connection_lost", terminal=False)
    for outcome, failures in ((good, 0), (lost, 1), (lost, 2), (good, 0), (good, 0), (lost, 1)):
        await frontier.put(outcome)
        state = await frontier.store.origin("https://a.example")
        assert state is not None
        assert state.failures == failures
        assert state.blocked_until_ms <= frontier.clock.now_ms()


async def test_of_a_host_that_goes_on_answering_the_store_is_asked_once() -> None:
    frontier = Frontier()
    task = await frontier.started()
    asked: list[str] = []

    class Counting(MemoryFrontierStore):
        async def origin(self, origin: str) -> OriginState | None:
            asked.append(origin)
            return await super().origin(origin)

    rules, rendering = Rules(frontier.robots, frontier.clock, RobotsSettings(), "t"), Rendering(BrowserSettings())
    outcomes = Outcomes(Counting(), rules, Settings(), rendering)
    for _ in range(50):
        await outcomes.take(frontier.outcome(task, OutcomeClass.INDEXED, status=200))
    assert asked == ["https://a.example"]


async def test_case_13_releases_keep_the_crawl_delay_and_clamp_an_absurd_one() -> None:
    for asked, kept in ((3, 3), (100_000, 60)):
        frontier = Frontier()
        task = await frontier.started(f"User-agent: *\nCrawl-delay: {asked}".encode())
        await frontier.put(*frontier.links("https://a.example/1", "https://a.example/2"))
        await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED))
        frontier.clock.advance(kept - 0.1)
        assert await frontier.due() == []
        frontier.clock.advance(0.2)
        assert len(await frontier.due()) == 1


async def test_case_40_a_lease_without_an_outcome_returns_to_the_queue() -> None:
    frontier = Frontier()
    task = await frontier.started()
    frontier.clock.advance(frontier.settings.frontier.lease_seconds - 1)
    assert await frontier.due() == []
    frontier.clock.advance(2)
    (again,) = await frontier.due()
    assert (again.url, again.attempt) == (task.url, 2)


async def test_an_outcome_that_comes_twice_or_late_changes_nothing() -> None:
    frontier = Frontier()
    task = await frontier.started()
    done = frontier.outcome(task, OutcomeClass.INDEXED)
    await frontier.put(done, done, frontier.outcome(task, OutcomeClass.FAILED, reason="late"))
    (row,) = [row async for row in frontier.store.rows("default")]
    assert (row.outcome, row.visits) == (OutcomeClass.INDEXED, 1)
    assert dict((await frontier.store.progress("default")).outcomes) == {"indexed": 1}


async def test_case_45_a_budget_of_pages_is_a_hard_limit() -> None:
    frontier = Frontier()
    task = await frontier.started(pages_max=3)
    await frontier.put(*frontier.links(*(f"https://a.example/calendar/{n}" for n in range(50))))
    fetched = 0
    while True:
        fetched += 1
        await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED))
        frontier.clock.advance(60)
        tasks = await frontier.due(1)
        if not tasks:
            break
        (task,) = tasks
    assert fetched == 3


async def test_a_failed_page_is_no_part_of_the_budget() -> None:
    frontier = Frontier()
    task = await frontier.started(pages_max=1)
    await frontier.put(*frontier.links("https://a.example/next"))
    await frontier.put(frontier.outcome(task, OutcomeClass.FAILED, reason="http_404", status=404))
    frontier.clock.advance(60)
    assert [task.url for task in await frontier.due()] == ["https://a.example/next"]


async def test_a_template_whose_pages_are_all_duplicates_is_closed() -> None:
    frontier = Frontier()
    task = await frontier.started()
    await frontier.put(*frontier.links(*(f"https://a.example/p?id={n}" for n in range(60))))
    await frontier.put(frontier.outcome(task, OutcomeClass.INDEXED))
    for _ in range(60):
        frontier.clock.advance(60)
        (task,) = await frontier.due(1)
        await frontier.put(frontier.outcome(task, OutcomeClass.DUPLICATE))
    await frontier.put(*frontier.links(*(f"https://a.example/p?id={n}" for n in range(1000, 1050))))
    assert await frontier.refusals() == {"template_duplicates": 50}


async def test_a_redirected_seed_widens_the_scope_by_its_target() -> None:
    frontier = Frontier()
    task = await frontier.started()
    target = "https://www.a.example/"
    await frontier.moves(task, target)
    await frontier.put(*frontier.links("https://www.a.example/more"))
    (robots,) = await frontier.due()
    await frontier.answer_robots(robots)
    (first,) = await frontier.due()
    assert first.url == target
    assert first.chain == (Hop(url="https://a.example/", status=301),)
    await frontier.put(frontier.outcome(first, OutcomeClass.INDEXED))
    frontier.clock.advance(60)
    assert [task.url for task in await frontier.due()] == ["https://www.a.example/more"]


async def test_a_redirect_of_a_page_that_is_no_seed_widens_nothing() -> None:
    frontier = Frontier()
    seed = await frontier.started()
    await frontier.put(*frontier.links("https://a.example/out"), frontier.outcome(seed, OutcomeClass.INDEXED))
    frontier.clock.advance(60)
    (task,) = await frontier.due()
    await frontier.put(
        *frontier.links(
            "https://b.example/", chain=(Hop(url=task.url, status=302),), chain_request_key=task.request_key
        )
    )
    assert await frontier.refusals() == {"out_of_scope": 1}


@pytest.mark.parametrize("hops", [1, 11])
async def test_redirects_between_hosts_end_at_a_loop_or_at_the_limit(hops: int) -> None:
    frontier = Frontier()
    seed = await frontier.started(scope=ScopeKind.ANY)
    chain = tuple(Hop(url=f"https://h{n}.example/", status=302) for n in range(hops))
    await frontier.put(*frontier.links("https://h0.example/", chain=chain, chain_request_key=seed.request_key))
    assert await frontier.refusals() == {"redirect_loop" if hops == 1 else "too_many_redirects": 1}


async def test_sitemaps_that_robots_txt_names_are_fetched() -> None:
    frontier = Frontier()
    await frontier.opened(b"Sitemap: https://a.example/map.xml\nUser-agent: *\nAllow: /")
    frontier.clock.advance(60)
    (task,) = await frontier.due()
    assert (task.url, task.purpose, task.found) == ("https://a.example/map.xml", Purpose.SITEMAP, Found.ROBOTS)


@pytest.mark.parametrize(
    ("purpose", "nesting", "refused"),
    [
        (Purpose.SITEMAP, 3, {}),
        (Purpose.SITEMAP, 4, {"sitemap_too_deep": 1}),
        (Purpose.PAGE, 4, {}),
        (Purpose.PAGE, 5, {"sitemap_too_deep": 1}),
    ],
)
async def test_sitemaps_that_name_sitemaps_end_at_a_depth(
    purpose: Purpose, nesting: int, refused: dict[str, int]
) -> None:
    frontier = Frontier()
    await frontier.opened()
    url = "https://a.example/x"
    await frontier.put(*frontier.links(url, links=(Link(url=url, depth=1, purpose=purpose, nesting=nesting),)))
    assert await frontier.refusals() == refused
    frontier.clock.advance(60)
    assert [task.nesting for task in await frontier.due()] == ([] if refused else [nesting])


async def test_a_host_may_have_so_many_sitemaps_and_no_more() -> None:
    settings = Settings()
    frontier = Frontier(replace(settings, frontier=replace(settings.frontier, sitemaps_per_host_max=3)))
    await frontier.opened()
    urls = [f"https://a.example/{n}.xml" for n in range(5)]
    maps = [link for url in urls for link in frontier.links(url, links=(Link(url=url, purpose=Purpose.SITEMAP),))]
    await frontier.put(*maps, *frontier.links("https://a.example/page"))
    assert await frontier.refusals() == {"sitemap_budget": 2}
    assert (await frontier.store.progress("default")).queued == 4


async def test_once_the_budget_of_pages_is_spent_no_sitemap_is_fetched() -> None:
    frontier = Frontier()
    await frontier.opened(b"Sitemap: https://a.example/map.xml\nUser-agent: *\nAllow: /", pages_max=1)
    frontier.clock.advance(60)
    assert await frontier.due() == []
    assert (await frontier.store.progress("default")).queued == 1


@pytest.mark.parametrize(("purpose", "charged"), [(Purpose.PAGE, 2), (Purpose.SITEMAP, 1), (Purpose.AUTO, 1)])
async def test_a_link_to_a_page_that_leads_to_a_list_counts_as_a_page(purpose: Purpose, charged: int) -> None:
    frontier = Frontier()
    await frontier.opened()
    url = "https://a.example/x"
    await frontier.put(*frontier.links(url, links=(Link(url=url, depth=1, purpose=purpose),)))
    frontier.clock.advance(60)
    (task,) = await frontier.due()
    await frontier.put(frontier.outcome(task, OutcomeClass.DISCOVERED))
    assert (await frontier.store.progress("default")).charged == charged


async def test_urls_of_a_host_of_which_less_is_known_score_higher() -> None:
    frontier = Frontier()
    await frontier.opened(scope=ScopeKind.ANY)
    await frontier.put(*frontier.links(*(f"https://a.example/{n}" for n in range(20))))
    await frontier.put(*frontier.links("https://a.example/last", "https://b.example/first"))
    scores = {row.request.url: row.request.score async for row in frontier.store.rows("default")}
    assert scores["https://b.example/first"] > scores["https://a.example/0"] > scores["https://a.example/last"]
    assert scores["https://b.example/first"] == score(depth=1)
    assert scores["https://a.example/last"] == pytest.approx(score(depth=1, host_urls=21))


async def test_an_operator_can_pause_and_resume_a_crawl() -> None:
    frontier = Frontier()
    await frontier.opened()
    await frontier.put(*frontier.links("https://a.example/1"))
    await frontier.put(CrawlControl(crawl_id="default", action=ControlAction.PAUSE))
    frontier.clock.advance(60)
    assert await frontier.due() == []
    await frontier.put(CrawlControl(crawl_id="default", action=ControlAction.RESUME))
    assert len(await frontier.due()) == 1


async def test_the_queue_keeps_its_cap_by_evicting_the_lowest_score() -> None:
    settings = Settings()
    frontier = Frontier(replace(settings, frontier=replace(settings.frontier, queue_urls_max=3)))
    await frontier.opened()
    urls = [f"https://a.example/{n}" for n in range(5)]
    deep: Sequence[Record] = [record for url in urls for record in frontier.links(url, links=(Link(url=url, depth=5),))]
    await frontier.put(*deep, *frontier.links("https://a.example/near"))
    await frontier.stage.flush()
    progress = await frontier.store.progress("default")
    assert progress.queued == 3
    assert dict(progress.refusals) == {"queue_full": 2, "evicted": 1}
    frontier.clock.advance(60)
    assert (await frontier.due(1))[0].url == "https://a.example/near"


async def test_links_out_of_scope_are_refused_before_they_wait_and_counted_once() -> None:
    frontier = Frontier()
    (away,) = frontier.links("https://b.example/")
    assert not frontier.stage.refuses(away)  # no seed has come yet: nothing is known
    await frontier.opened()
    (near,) = frontier.links("https://a.example/x")
    (moved,) = frontier.links("https://b.example/", chain_request_key=1)
    assert [frontier.stage.refuses(record) for record in (away, near, moved)] == [True, False, False]
    assert await frontier.refusals() == {"out_of_scope": 1}
