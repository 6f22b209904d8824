from dataclasses import replace
from typing import Any

import pytest

from tests.contract.requests import FAR_MS, SITE, admit, completion, lease, open_origin, request
from trawl.kinds import (
    LIST_PURPOSES,
    DedupScope,
    Found,
    OutcomeClass,
    Purpose,
    RecrawlKind,
    RenderMode,
    RobotsState,
    ScopeKind,
)
from trawl.ports import Admission, CrawlPolicy, CrawlProgress, FrontierStore, OriginUpdate, SeedScope, TemplateCounts
from trawl.records import Hop, RecrawlPolicy, Validators
from trawl.url import fetch_id

OTHER = "https://b.example"

# Crawls


async def test_crawl_is_unknown_until_its_policy_is_put(frontier: FrontierStore) -> None:
    assert await frontier.crawl("c") is None
    await admit(frontier, request())
    assert await frontier.crawl("c") is None


async def test_policy_comes_back_whole_and_is_replaced(frontier: FrontierStore) -> None:
    policy = CrawlPolicy(
        crawl_id="c",
        depth_max=3,
        pages_max=7,
        priority=0.25,
        recrawl=RecrawlPolicy(kind=RecrawlKind.INTERVAL, min_seconds=1.5, max_seconds=2.5),
        dedup_scope=DedupScope.PREFIX,
        tags=("ü", "b"),
        paused=True,
    )
    await frontier.put_crawl(policy)
    assert await frontier.crawl("c") == policy
    await frontier.put_crawl(replace(policy, paused=False, tags=()))
    assert await frontier.crawl("c") == replace(policy, paused=False, tags=())
    assert await frontier.crawl("d") is None


SCOPES = (
    SeedScope(url=f"{SITE}/", kind=ScopeKind.PREFIX, allowed_domains=("x.example", "b.example")),
    SeedScope(url="https://b.example/ü", kind=ScopeKind.ANY),
    SeedScope(url="https://c.example/", kind=ScopeKind.HOST, seed_url=f"{SITE}/"),
)


async def test_scopes_add_up_and_are_told_from_where_the_caller_knows_them(frontier: FrontierStore) -> None:
    assert await frontier.scopes("c") == (0, ())
    await frontier.add_scopes("c", SCOPES[:2])
    await frontier.add_scopes("c", (SCOPES[1], SCOPES[2], SCOPES[2]))
    await frontier.add_scopes("d", SCOPES[1:2])
    version, scopes = await frontier.scopes("c")
    assert tuple(scopes) == SCOPES
    assert await frontier.scopes("c", version=version, known=2) == (version, SCOPES[2:])
    assert await frontier.scopes("c", version=version, known=3) == (version, ())
    assert (await frontier.scopes("d"))[1] == SCOPES[1:2]


async def test_a_policy_alone_leaves_the_scopes_and_with_scopes_replaces_them(frontier: FrontierStore) -> None:
    await frontier.add_scopes("c", SCOPES)
    before = await frontier.scopes("c")
    await frontier.put_crawl(CrawlPolicy(crawl_id="c"))
    assert await frontier.scopes("c") == before
    await frontier.put_crawl(CrawlPolicy(crawl_id="c"), SCOPES[1:])
    version, scopes = await frontier.scopes("c", version=before[0], known=3)
    assert version != before[0]
    assert tuple(scopes) == SCOPES[1:]


async def test_a_seed_sets_the_budgets_adds_its_tags_and_never_resumes_a_paused_crawl(frontier: FrontierStore) -> None:
    await frontier.add_scopes("c", SCOPES[:1], CrawlPolicy(crawl_id="c", pages_max=5, tags=("a", "b")))
    assert await frontier.crawl("c") == CrawlPolicy(crawl_id="c", pages_max=5, tags=("a", "b"))
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", pages_max=5, tags=("a", "b"), paused=True))
    await frontier.add_scopes("c", SCOPES[:1])
    await frontier.add_scopes("c", SCOPES[1:], CrawlPolicy(crawl_id="c", pages_max=7, tags=("b", "c")))
    assert await frontier.crawl("c") == CrawlPolicy(crawl_id="c", pages_max=7, tags=("a", "b", "c"), paused=True)


# Admission


async def test_request_is_admitted_once(frontier: FrontierStore) -> None:
    first, second = request(f"{SITE}/1"), request(f"{SITE}/2")
    assert list(await frontier.seen([first, second])) == [False, False]
    admissions = await frontier.admit([first, first], queue_urls_max=10, host_urls_max=10)
    assert list(admissions) == [Admission(admitted=True), Admission(admitted=False, reason="seen")]
    assert list(await frontier.seen([second, first])) == [False, True]
    assert await admit(frontier, first) == [False]


async def test_request_of_two_crawls_is_admitted_for_each(frontier: FrontierStore) -> None:
    assert await admit(frontier, request(crawl_id="c"), request(crawl_id="d")) == [True, True]


async def test_every_field_of_a_request_comes_back(frontier: FrontierStore) -> None:
    whole = request(
        f"{SITE}/ü?q=1",
        template=-5,
        purpose=Purpose.SITEMAP,
        found=Found.ROBOTS,
        depth=3,
        score=0.125,
        attempt=2,
        scheduled_at_ms=17,
        due_at_ms=18,
        validators=Validators(etag='W/"1"', last_modified="yesterday"),
        chain=(Hop(url="https://x.example/", status=301), Hop(url="https://y.example/", status=302)),
        chain_request_key=-(2**63),
        lastmod_ms=19,
        nesting=2,
    )
    await admit(frontier, whole)
    row = await frontier.request(whole.request_key, whole.url)
    assert row is not None
    assert (row.request, row.state, row.outcome, row.visits) == (whole, "queued", None, 0)
    await open_origin(frontier)
    (leased,) = await lease(frontier)
    assert replace(leased, fetch_id=0) == whole


async def test_host_budget_counts_urls_ever_admitted(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    assert await admit(frontier, request(f"{SITE}/1"), request(f"{SITE}/2"), host_urls_max=1) == [True, False]
    (leased,) = await lease(frontier)
    assert await frontier.complete(completion(leased))
    refused = await frontier.admit([request(f"{SITE}/2")], queue_urls_max=10, host_urls_max=1)
    assert list(refused) == [Admission(admitted=False, reason="host_budget")]
    seen = await frontier.admit([request(f"{SITE}/1")], queue_urls_max=10, host_urls_max=1)
    assert list(seen) == [Admission(admitted=False, reason="seen")]
    assert await admit(frontier, request(f"{OTHER}/1"), host_urls_max=1) == [True]


async def test_sitemaps_feeds_and_lists_have_a_budget_per_crawl_and_origin(frontier: FrontierStore) -> None:
    lists = [request(f"{SITE}/{purpose}", purpose=purpose) for purpose in LIST_PURPOSES]
    others = request(f"{OTHER}/map", purpose=Purpose.SITEMAP), request(crawl_id="d", purpose=Purpose.SITEMAP)
    limits = {"queue_urls_max": 10, "host_urls_max": 10, "sitemaps_max": 2}
    admitted = await frontier.admit([*lists, *others, request(f"{SITE}/page")], **limits)
    assert [admission.reason for admission in admitted] == ["", "", "sitemap_budget", "", "", ""]
    again = await frontier.admit(lists, **limits)
    assert [admission.reason for admission in again] == ["seen", "seen", "sitemap_budget"]
    assert (await frontier.progress("c")).outcomes == ()
    assert (await frontier.progress("c")).refusals == ()


async def test_at_the_cap_the_lowest_score_of_all_leaves(frontier: FrontierStore) -> None:
    low, middle, high = (request(f"{SITE}/{score}", score=score) for score in (0.1, 0.5, 0.9))
    await admit(frontier, low, middle)
    (admission,) = await frontier.admit([high], queue_urls_max=2, host_urls_max=10)
    assert admission == Admission(admitted=True, evicted_url=low.url)
    assert list(await frontier.seen([low, middle, high])) == [False, True, True]
    assert (await frontier.progress("c")).queued == 2


@pytest.mark.parametrize("score", [0.1, 0.5])
async def test_at_the_cap_a_request_that_scores_no_higher_is_refused(frontier: FrontierStore, score: float) -> None:
    await admit(frontier, request(f"{SITE}/1", score=0.5), request(f"{OTHER}/2", score=0.7))
    (admission,) = await frontier.admit([request(f"{SITE}/3", score=score)], queue_urls_max=2, host_urls_max=10)
    assert admission == Admission(admitted=False, reason="queue_full")
    assert (await frontier.progress("c")).queued == 2


async def test_of_equal_scores_the_youngest_leaves(frontier: FrontierStore) -> None:
    old, young = request(f"{SITE}/1", score=0.5), request(f"{SITE}/2", score=0.5)
    await admit(frontier, old, young)
    (admission,) = await frontier.admit([request(f"{SITE}/3", score=0.6)], queue_urls_max=2, host_urls_max=10)
    assert admission.evicted_url == young.url


async def test_a_leased_request_takes_no_room_in_the_queue_and_is_never_evicted(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/1", score=0.1))
    (leased,) = await lease(frontier)
    assert await admit(frontier, request(f"{SITE}/2", score=0.2), queue_urls_max=1) == [True]
    assert await admit(frontier, request(f"{SITE}/3", score=0.3), queue_urls_max=1) == [True]
    assert list(await frontier.seen([leased])) == [True]
    assert await frontier.complete(completion(leased))


async def test_a_queue_without_room_refuses_everything(frontier: FrontierStore) -> None:
    assert await admit(frontier, request(), queue_urls_max=0) == [False]


async def test_eviction_calls_off_another_visit_but_forgets_no_finished_request(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    visited = request(f"{SITE}/1", score=0.1)
    await admit(frontier, visited)
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased, document_key=5))
    assert await frontier.readmit("c", 2000) == 1
    assert await admit(frontier, request(f"{SITE}/2", score=0.9), queue_urls_max=1) == [True]
    row = await frontier.request(visited.request_key, visited.url)
    assert row is not None
    assert (row.state, row.outcome, row.document_key) == ("done", OutcomeClass.INDEXED, 5)


async def test_templates_count_admissions_and_what_was_learned(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, *(request(f"{SITE}/{n}", template=7) for n in range(4)), request(f"{SITE}/9", template=8))
    for leased, duplicate in zip(await lease(frontier, limit=3), (True, False, None), strict=True):
        await frontier.complete(completion(leased, duplicate=duplicate))
    assert list(await frontier.templates([request(template=number) for number in (8, 7, 9)])) == [
        TemplateCounts(admitted=1),
        TemplateCounts(admitted=4, results=2, duplicates=1),
        TemplateCounts(),
    ]


async def test_refusals_are_counted_by_reason_and_crawl(frontier: FrontierStore) -> None:
    for reason, count in (("trap", 2), ("out_of_scope", 1), ("trap", 3), ("depth", 0)):
        await frontier.count_refusals("c", reason, count)
    assert (await frontier.progress("c")).refusals == (("out_of_scope", 1), ("trap", 5))
    assert await frontier.progress("d") == CrawlProgress()


# Leases


async def test_nothing_is_leased_before_robots_txt_is_known(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    assert await lease(frontier) == []
    assert list(await frontier.lease_robots(1000, 10, 60_000)) == [SITE]
    assert list(await frontier.lease_robots(1001, 10, 60_000)) == []
    await frontier.update_origin(SITE, OriginUpdate(robots=RobotsState.ALLOW_ALL, robots_expires_ms=5000))
    assert list(await frontier.lease_robots(1002, 10, 60_000)) == []
    assert len(await lease(frontier, 1002)) == 1


async def test_a_robots_lease_expires(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    assert list(await frontier.lease_robots(1000, 10, 500)) == [SITE]
    assert list(await frontier.lease_robots(1499, 10, 500)) == []
    assert await frontier.next_event_ms(1499) == 1500
    assert list(await frontier.lease_robots(1500, 10, 500)) == [SITE]


async def test_at_most_limit_origins_are_leased_for_robots(frontier: FrontierStore) -> None:
    await admit(frontier, *(request(f"https://{name}.example/") for name in "abc"))
    assert len(await frontier.lease_robots(0, 2, 1000)) == 2
    assert len(await frontier.lease_robots(0, 2, 1000)) == 1


async def test_an_origin_without_work_needs_no_robots_txt(frontier: FrontierStore) -> None:
    await frontier.update_origin(SITE, OriginUpdate(delay_ms=1))
    assert list(await frontier.lease_robots(1000, 10, 1000)) == []
    assert await frontier.next_event_ms(1000) is None


@pytest.mark.parametrize("policy", [{"paused": True}, {"pages_max": 1}])
async def test_a_crawl_that_may_not_go_on_needs_no_robots_txt(frontier: FrontierStore, policy: dict[str, Any]) -> None:
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", **policy))
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/1", score=1.0))
    await lease(frontier)
    await admit(frontier, request(f"{OTHER}/2"))
    assert list(await frontier.lease_robots(1000, 10, 1000)) == []
    await frontier.put_crawl(CrawlPolicy(crawl_id="c"))
    assert list(await frontier.lease_robots(1000, 10, 1000)) == [OTHER]


async def test_expired_robots_txt_is_fetched_again_before_anything_else(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await frontier.update_origin(SITE, OriginUpdate(robots_expires_ms=2000))
    await admit(frontier, request(f"{SITE}/1"), request(f"{SITE}/2"))
    assert len(await lease(frontier, 1999, limit=1)) == 1
    assert await lease(frontier, 2000) == []
    assert await frontier.next_event_ms(2000) == 2000
    assert list(await frontier.lease_robots(2000, 10, 1000)) == [SITE]


async def test_unavailable_robots_txt_is_current_until_it_expires(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    update = OriginUpdate(robots=RobotsState.UNAVAILABLE, robots_expires_ms=2000)
    await frontier.update_origin(SITE, update)
    assert list(await frontier.lease_robots(1999, 10, 1000)) == []
    assert len(await lease(frontier, 1999)) == 1


async def test_unknown_robots_txt_is_not_asked_for_before_its_time(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    assert list(await frontier.lease_robots(1000, 10, 60_000)) == [SITE]
    await frontier.update_origin(SITE, OriginUpdate(robots=RobotsState.UNKNOWN, robots_expires_ms=3000))
    assert await lease(frontier, 2000) == []
    assert list(await frontier.lease_robots(2999, 10, 1000)) == []
    assert await frontier.next_event_ms(2999) == 3000
    assert list(await frontier.lease_robots(3000, 10, 1000)) == [SITE]


async def test_a_blocked_origin_gets_no_fetch_at_all(frontier: FrontierStore) -> None:
    await admit(frontier, request(f"{SITE}/1"), request(f"{OTHER}/1"))
    await open_origin(frontier, SITE, blocked_until_ms=2000)
    await frontier.update_origin(OTHER, OriginUpdate(blocked_until_ms=3000))
    assert await lease(frontier, 1999) == []
    assert list(await frontier.lease_robots(2999, 10, 1000)) == []
    assert len(await lease(frontier, 2999)) == 1
    assert list(await frontier.lease_robots(3000, 10, 1000)) == [OTHER]


async def test_a_lease_carries_the_fetch_id_of_its_visit(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(scheduled_at_ms=33))
    (leased,) = await lease(frontier)
    assert leased.fetch_id == fetch_id(leased.request_key, Purpose.PAGE, RenderMode.STATIC, 33)
    row = await frontier.request(leased.request_key, leased.url)
    assert row is not None
    assert (row.state, row.request) == ("leased", leased)


async def test_best_score_goes_first_and_of_equals_the_oldest(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    scores = (0.2, 0.9, 0.5, 0.9, -1.0)
    await admit(frontier, *(request(f"{SITE}/{n}", score=score) for n, score in enumerate(scores)))
    assert [leased.url[-1] for leased in await lease(frontier)] == ["1", "3", "2", "0", "4"]


async def test_origins_take_turns_least_recently_served_first(frontier: FrontierStore) -> None:
    for name in "abc":
        await open_origin(frontier, f"https://{name}.example", delay_ms=100, concurrency_max=9)
        await admit(frontier, *(request(f"https://{name}.example/{n}") for n in range(3)))
    served = [(await lease(frontier, now_ms, limit=1))[0].url for now_ms in range(1000, 1800, 100)]
    assert [url[8] for url in served] == list("abcabcab")


async def test_an_origin_is_served_again_only_after_its_delay(frontier: FrontierStore) -> None:
    await open_origin(frontier, delay_ms=500)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)))
    assert len(await lease(frontier, 1000)) == 1
    assert await lease(frontier, 1499) == []
    assert await frontier.next_event_ms(1499) == 1500
    assert len(await lease(frontier, 1500)) == 1
    state = await frontier.origin(SITE)
    assert state is not None
    assert (state.last_served_ms, state.next_at_ms, state.leased, state.queued) == (1500, 2000, 2, 1)


async def test_a_new_delay_counts_from_the_last_release(frontier: FrontierStore) -> None:
    await open_origin(frontier, delay_ms=500)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)))
    await lease(frontier, 1000)
    await frontier.update_origin(SITE, OriginUpdate(delay_ms=3000))
    assert await lease(frontier, 3999) == []
    await frontier.update_origin(SITE, OriginUpdate(delay_ms=10))
    assert len(await lease(frontier, 3999)) == 1


async def test_no_more_leases_than_the_origin_allows(frontier: FrontierStore) -> None:
    await open_origin(frontier, concurrency_max=2)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(4)))
    first, _ = await lease(frontier, 1000)
    assert await lease(frontier, 1001) == []
    assert await frontier.next_event_ms(1001) is None
    await frontier.complete(completion(first))
    assert len(await lease(frontier, 1001)) == 1
    await frontier.update_origin(SITE, OriginUpdate(concurrency_max=3))
    assert len(await lease(frontier, 1001)) == 1


async def test_at_most_limit_requests_of_at_most_so_many_origins(frontier: FrontierStore) -> None:
    for name in "abcd":
        await open_origin(frontier, f"https://{name}.example")
        await admit(frontier, *(request(f"https://{name}.example/{n}") for n in range(3)))
    assert [leased.url[8] for leased in await frontier.lease(1, 3, 1000, origins_max=2)] == ["a", "b", "a"]
    assert len(await frontier.lease(2, 2, 1000, origins_max=10)) == 2
    assert list(await frontier.lease(2, 0, 1000, origins_max=10)) == []


async def test_a_request_is_not_leased_before_it_is_due(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/late", due_at_ms=2000, score=0.9), request(f"{SITE}/now", score=0.1))
    assert [leased.url for leased in await lease(frontier, 1999)] == [f"{SITE}/now"]
    assert await frontier.next_event_ms(1999) == 2000
    assert (await frontier.progress("c")).next_due_ms == 2000
    assert [leased.url for leased in await lease(frontier, 2000)] == [f"{SITE}/late"]


async def test_next_due_is_zero_while_something_is_due(frontier: FrontierStore) -> None:
    await admit(frontier, request(f"{SITE}/1", due_at_ms=2000), request(f"{SITE}/2"))
    assert (await frontier.progress("c")).next_due_ms == 0
    assert (await frontier.progress("d")).next_due_ms is None


async def test_a_paused_crawl_waits_while_others_go_on(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", paused=True))
    await admit(frontier, request(crawl_id="c", score=0.9), request(crawl_id="d", score=0.1))
    assert [leased.crawl_id for leased in await lease(frontier)] == ["d"]
    assert await frontier.next_event_ms(1000) is None
    await frontier.put_crawl(CrawlPolicy(crawl_id="c"))
    assert await frontier.next_event_ms(1000) == 1000
    assert [leased.crawl_id for leased in await lease(frontier)] == ["c"]


# Budgets


async def _budget(frontier: FrontierStore, pages_max: int, *urls: str, **fields: Any) -> None:
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", pages_max=pages_max))
    await open_origin(frontier)
    await admit(frontier, *(request(url, **fields) for url in urls))


async def test_case_45_no_more_pages_are_leased_than_the_budget_has(frontier: FrontierStore) -> None:
    await _budget(frontier, 2, *(f"{SITE}/{n}" for n in range(5)))
    leased = await lease(frontier)
    assert len(leased) == 2
    assert await lease(frontier) == []
    assert await frontier.next_event_ms(1000) is None
    await frontier.complete(completion(leased[0]))
    assert await lease(frontier) == []
    assert (await frontier.progress("c")).charged == 2


async def test_a_visit_that_is_not_charged_gives_its_page_back(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/1", f"{SITE}/2")
    (leased,) = await lease(frontier)
    assert (await frontier.progress("c")).charged == 1
    await frontier.complete(completion(leased, OutcomeClass.REFUSED, charged=False))
    assert (await frontier.progress("c")).charged == 0
    assert await frontier.next_event_ms(1000) == 1000
    assert len(await lease(frontier)) == 1


async def test_a_retry_is_paid_for_already(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/1", f"{SITE}/2")
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased, OutcomeClass.RETRY, requeue_at_ms=1000, attempt=2))
    (again,) = await lease(frontier)
    assert (again.url, again.attempt) == (leased.url, 2)
    assert (await frontier.progress("c")).charged == 1


async def test_a_refresh_is_not_charged_again_nor_given_back(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/1", f"{SITE}/2")
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased))
    assert await frontier.readmit("c", 2000) == 1
    (again,) = await lease(frontier, 2000)
    assert again.url == leased.url
    await frontier.complete(completion(again, OutcomeClass.FAILED, charged=False))
    assert (await frontier.progress("c")).charged == 1
    assert await lease(frontier, 2000) == []


async def test_a_sitemap_is_not_charged_but_waits_for_a_budget(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/s.xml", purpose=Purpose.SITEMAP, score=1.0)
    await admit(frontier, request(f"{SITE}/1"), request(f"{SITE}/2"))
    assert [leased.url for leased in await lease(frontier)] == [f"{SITE}/s.xml", f"{SITE}/1"]
    await admit(frontier, request(f"{SITE}/t.xml", purpose=Purpose.SITEMAP))
    assert await lease(frontier) == []


async def test_a_request_of_unknown_purpose_is_charged_until_its_outcome_says_otherwise(
    frontier: FrontierStore,
) -> None:
    await _budget(frontier, 1, f"{SITE}/1", f"{SITE}/2", purpose=Purpose.AUTO)
    (leased,) = await lease(frontier)
    assert await lease(frontier) == []
    await frontier.complete(completion(leased, OutcomeClass.DISCOVERED, charged=False))
    assert len(await lease(frontier)) == 1


async def test_a_larger_budget_lets_the_crawl_go_on(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/1", f"{SITE}/2")
    await lease(frontier)
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", pages_max=2))
    assert len(await lease(frontier)) == 1


async def test_an_evicted_request_gives_its_page_back(frontier: FrontierStore) -> None:
    await _budget(frontier, 1, f"{SITE}/1", score=0.1)
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased, OutcomeClass.RETRY, requeue_at_ms=5000))
    assert await admit(frontier, request(f"{SITE}/2", score=0.9), queue_urls_max=1) == [True]
    assert (await frontier.progress("c")).charged == 0
    assert [again.url for again in await lease(frontier)] == [f"{SITE}/2"]


# Completion


async def test_completion_ends_the_lease_and_is_remembered(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier)
    told = completion(
        leased,
        OutcomeClass.DUPLICATE,
        reason="near_duplicate",
        status=200,
        detail="of another",
        at_ms=1234,
        validators=Validators(etag="e"),
        document_key=-7,
        duplicate_of=8,
        content_sha256="ab",
    )
    assert await frontier.complete(told)
    row = await frontier.request(leased.request_key, leased.url)
    assert row is not None
    assert (row.state, row.outcome, row.reason, row.status) == ("done", OutcomeClass.DUPLICATE, "near_duplicate", 200)
    assert (row.detail, row.at_ms, row.document_key, row.duplicate_of) == ("of another", 1234, -7, 8)
    assert (row.visits, row.request.validators, row.request.fetch_id) == (1, Validators(etag="e"), 0)
    progress = await frontier.progress("c")
    assert (progress.queued, progress.leased, progress.outcomes) == (0, 0, (("duplicate", 1),))
    assert await frontier.next_event_ms(2000) is None


async def test_only_the_holder_of_the_lease_can_end_it(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/1"))
    queued = request(f"{SITE}/1")
    assert not await frontier.complete(completion(queued))
    (leased,) = await lease(frontier)
    assert not await frontier.complete(completion(replace(leased, fetch_id=leased.fetch_id ^ 1)))
    assert not await frontier.complete(completion(replace(leased, request_key=1)))
    assert await frontier.complete(completion(leased))
    assert not await frontier.complete(completion(leased))
    assert (await frontier.progress("c")).outcomes == (("indexed", 1),)


async def test_a_requeued_request_waits_until_it_is_due(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(scheduled_at_ms=5))
    (leased,) = await lease(frontier)
    told = completion(leased, OutcomeClass.RETRY, reason="timeout", requeue_at_ms=9000, attempt=2, charged=False)
    assert await frontier.complete(told)
    row = await frontier.request(leased.request_key, leased.url)
    assert row is not None
    assert (row.state, row.reason, row.visits) == ("queued", "timeout", 0)
    assert (await frontier.progress("c")).outcomes == ()
    assert await lease(frontier, 8999) == []
    (again,) = await lease(frontier, 9000)
    assert (again.attempt, again.scheduled_at_ms, again.due_at_ms) == (2, 5, 9000)
    assert again.fetch_id == leased.fetch_id


async def test_an_unchanged_page_keeps_what_was_known_of_it(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier)
    known = {"document_key": 3, "duplicate_of": 4, "validators": Validators(etag="e")}
    await frontier.complete(completion(leased, OutcomeClass.DUPLICATE, **known))
    await frontier.readmit("c", 2000)
    (again,) = await lease(frontier, 2000)
    assert again.validators == Validators(etag="e")
    await frontier.complete(completion(again, OutcomeClass.UNCHANGED, status=304))
    row = await frontier.request(again.request_key, again.url)
    assert row is not None
    assert (row.document_key, row.duplicate_of, row.request.validators) == (3, 4, Validators(etag="e"))


async def test_a_request_says_what_its_last_visit_that_ended_came_to(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier)
    assert leased.last_outcome is None
    await frontier.complete(completion(leased, OutcomeClass.ALIAS, reason="same_document", duplicate_of=4))
    await frontier.readmit("c", 2000)
    (again,) = await lease(frontier, 2000)
    assert again.last_outcome is OutcomeClass.ALIAS
    await frontier.complete(completion(again, OutcomeClass.RETRY, requeue_at_ms=3000, duplicate_of=4))
    (again,) = await lease(frontier, 3000)
    assert again.last_outcome is OutcomeClass.ALIAS
    await frontier.complete(completion(again, OutcomeClass.ALIAS, status=304))
    row = await frontier.request(again.request_key, again.url)
    assert row is not None
    assert (row.request.last_outcome, row.duplicate_of) == (OutcomeClass.ALIAS, 4)


async def test_a_page_that_is_no_longer_a_duplicate_says_so(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased, OutcomeClass.DUPLICATE, document_key=3, duplicate_of=4))
    await frontier.readmit("c", 2000)
    (again,) = await lease(frontier, 2000)
    await frontier.complete(completion(again, OutcomeClass.INDEXED, document_key=3))
    row = await frontier.request(again.request_key, again.url)
    assert row is not None
    assert row.duplicate_of is None


async def test_progress_counts_requests_by_their_last_terminal_outcome(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)))
    for leased in await lease(frontier, limit=2):
        await frontier.complete(completion(leased))
    assert (await frontier.progress("c")).outcomes == (("indexed", 2),)
    await frontier.readmit("c", 2000)
    assert (await frontier.progress("c")).outcomes == (("indexed", 2),)
    (again,) = await lease(frontier, 2000, limit=1)
    await frontier.complete(completion(again, OutcomeClass.UNCHANGED))
    progress = await frontier.progress("c")
    assert progress.outcomes == (("indexed", 1), ("unchanged", 1))
    assert (progress.queued, progress.leased) == (2, 0)


async def test_readmission_queues_finished_requests_for_a_new_visit(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/1", attempt=3), request(f"{SITE}/2"), request(f"{SITE}/3", crawl_id="d"))
    first, second, other = await lease(frontier)
    await frontier.complete(completion(first))
    await frontier.complete(completion(other))
    assert await frontier.readmit("c", 5000) == 1
    assert await frontier.readmit("c", 5000) == 0
    assert await frontier.readmit("nothing", 5000) == 0
    (again,) = await lease(frontier, 5000)
    assert (again.url, again.attempt, again.scheduled_at_ms, again.due_at_ms) == (first.url, 1, 5000, 5000)
    assert again.fetch_id != first.fetch_id
    assert await frontier.complete(completion(second))


async def test_readmission_scores_by_the_time_since_the_last_visit(frontier: FrontierStore) -> None:
    def staleness(seconds: float) -> float:
        return min(seconds, 100.0)

    await open_origin(frontier)
    old, new = request(f"{SITE}/old", score=100.5), request(f"{SITE}/new", score=100.75)
    await admit(frontier, old, new)
    for leased in await lease(frontier, 1000):
        await frontier.complete(completion(leased, at_ms=10_000 if leased.url == old.url else 20_000))
    await frontier.readmit("c", 50_000, staleness=staleness)
    again = await lease(frontier, 50_000)
    assert [(one.url, one.score) for one in again] == [(old.url, 40.5), (new.url, 30.75)]
    for leased in again:
        await frontier.complete(completion(leased, at_ms=50_000))
    await frontier.readmit("c", 60_000, staleness=staleness)
    assert [(one.url, one.score) for one in await lease(frontier, 60_000)] == [(new.url, 10.75), (old.url, 10.5)]


async def test_a_robots_txt_that_expires_while_all_waits_is_wanted_at_once(frontier: FrontierStore) -> None:
    await admit(frontier, request(due_at_ms=5000))
    await frontier.update_origin(SITE, OriginUpdate(robots=RobotsState.ALLOW_ALL, robots_expires_ms=2))
    assert await frontier.next_event_ms(1) == 5000
    assert await frontier.next_event_ms(1001) == 1001


# Leases that end without a word


async def test_a_queued_request_can_be_ended_without_a_fetch(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)))
    (leased,) = await lease(frontier, limit=1)
    ends = [completion(request(f"{SITE}/{n}"), OutcomeClass.REFUSED, reason="x", charged=False) for n in range(4)]
    assert await frontier.dismiss(ends) == 2
    assert await frontier.dismiss(ends) == 0
    assert [row.state async for row in frontier.rows("c")] == ["leased", "done", "done"]
    assert await frontier.complete(completion(leased))
    assert await lease(frontier, 2000) == []
    progress = await frontier.progress("c")
    assert (progress.queued, progress.leased, progress.charged) == (0, 0, 1)
    assert progress.reasons == (("indexed", 1), ("refused:x", 2))


async def test_a_request_that_is_dismissed_twice_in_one_call_ends_once(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    ending = completion(request(), OutcomeClass.REFUSED, reason="x", charged=False)
    assert await frontier.dismiss([ending, ending]) == 1
    row = await frontier.request(request().request_key, request().url)
    assert row is not None
    assert (row.state, row.visits) == ("done", 1)


async def test_another_visit_is_called_off_and_the_last_one_stays_as_it_was(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier)
    await frontier.complete(completion(leased, document_key=7))
    await frontier.readmit("c", 2000)
    assert await frontier.dismiss([completion(request(), OutcomeClass.REFUSED, reason="x", charged=False)]) == 1
    row = await frontier.request(leased.request_key, leased.url)
    assert row is not None
    assert (row.state, row.outcome, row.document_key, row.visits) == ("done", OutcomeClass.INDEXED, 7, 1)
    assert (await frontier.progress("c")).charged == 1
    assert await lease(frontier, 3000) == []


async def test_case_40_an_expired_lease_returns_to_the_queue_with_one_attempt_more(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request(f"{SITE}/1"), request(f"{SITE}/2"))
    (first,) = await lease(frontier, 1000, limit=1, lease_ms=500)
    (second,) = await lease(frontier, 1100, limit=1, lease_ms=500)
    assert list(await frontier.reap(1499)) == []
    (reaped,) = await frontier.reap(1500)
    assert (reaped.url, reaped.attempt, reaped.fetch_id) == (first.url, 2, 0)
    assert [later.url for later in await frontier.reap(1600)] == [second.url]
    assert not await frontier.complete(completion(first))
    progress = await frontier.progress("c")
    assert (progress.queued, progress.leased) == (2, 0)
    again = await lease(frontier, 1600)
    assert {(leased.url, leased.attempt) for leased in again} == {(first.url, 2), (second.url, 2)}


async def test_a_late_outcome_counts_if_the_same_visit_holds_the_lease_again(frontier: FrontierStore) -> None:
    await open_origin(frontier)
    await admit(frontier, request())
    (leased,) = await lease(frontier, 1000, lease_ms=10)
    await frontier.reap(2000)
    (again,) = await lease(frontier, 2000)
    assert again.fetch_id == leased.fetch_id
    assert await frontier.complete(completion(leased))


async def test_releasing_all_leases_returns_every_request_unchanged(frontier: FrontierStore) -> None:
    await open_origin(frontier, concurrency_max=2)
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)), request(f"{OTHER}/1"))
    leased = await lease(frontier)
    assert list(await frontier.lease_robots(1000, 10, 60_000)) == [OTHER]
    assert await frontier.release_leases() == 2
    assert await frontier.release_leases() == 0
    assert list(await frontier.lease_robots(1000, 10, 60_000)) == [OTHER]
    assert await lease(frontier) == leased


# Origins


async def test_an_origin_is_created_by_its_first_update(frontier: FrontierStore) -> None:
    assert await frontier.origin(SITE) is None
    state = await frontier.update_origin(SITE, OriginUpdate(failures=2, delay_ms=5))
    assert (state.origin, state.failures, state.delay_ms, state.robots) == (SITE, 2, 5, RobotsState.UNKNOWN)
    assert await frontier.origin(SITE) == state
    assert await frontier.update_origin(SITE, OriginUpdate()) == state


async def test_a_block_only_moves_forward_unless_it_is_lifted(frontier: FrontierStore) -> None:
    for update, expected in (
        (OriginUpdate(blocked_until_ms=500), 500),
        (OriginUpdate(blocked_until_ms=300), 500),
        (OriginUpdate(blocked_until_ms=700), 700),
        (OriginUpdate(blocked_until_ms=600, unblock=True), 600),
        (OriginUpdate(unblock=True), 0),
    ):
        assert (await frontier.update_origin(SITE, update)).blocked_until_ms == expected


async def test_an_unblocked_origin_is_served_at_once(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    await open_origin(frontier, blocked_until_ms=FAR_MS)
    assert await frontier.next_event_ms(1000) == FAR_MS
    assert await lease(frontier) == []
    await frontier.update_origin(SITE, OriginUpdate(unblock=True))
    assert len(await lease(frontier)) == 1


async def test_origins_are_listed_most_queued_first(frontier: FrontierStore) -> None:
    await admit(frontier, request(f"{SITE}/1"), request(f"{OTHER}/1"), request(f"{OTHER}/2"))
    assert [state.origin for state in await frontier.origins(10)] == [OTHER, SITE]
    (most,) = await frontier.origins(1)
    assert (most.origin, most.queued, most.admitted, most.leased) == (OTHER, 2, 2, 0)


# Events and rows


async def test_nothing_waits_in_an_empty_frontier(frontier: FrontierStore) -> None:
    assert await frontier.next_event_ms(1000) is None
    assert await lease(frontier) == []
    assert list(await frontier.reap(1000)) == []
    assert await frontier.request(1, SITE) is None


async def test_the_next_event_of_an_unknown_host_is_its_robots_txt(frontier: FrontierStore) -> None:
    await admit(frontier, request())
    assert await frontier.next_event_ms(1000) == 1000


async def test_rows_come_in_the_order_of_admission(frontier: FrontierStore) -> None:
    urls = [f"https://h{n % 7}.example/{n}" for n in range(1100)]
    await admit(frontier, *(request(url, score=-n) for n, url in enumerate(urls)), request(crawl_id="d"))
    assert [row.request.url async for row in frontier.rows("c")] == urls
    assert [row.request.crawl_id async for row in frontier.rows("d")] == ["d"]
    assert [row async for row in frontier.rows("e")] == []


async def test_state_outlives_the_process(durable_frontier: Any) -> None:
    frontier: FrontierStore = durable_frontier.store
    await open_origin(frontier, delay_ms=100, blocked_until_ms=500)
    await frontier.put_crawl(CrawlPolicy(crawl_id="c", pages_max=2))
    await admit(frontier, *(request(f"{SITE}/{n}") for n in range(3)))
    (leased,) = await lease(frontier, 1000)
    before = await frontier.progress("c"), await frontier.origin(SITE), await frontier.crawl("c")
    frontier = durable_frontier.reopen()
    assert (await frontier.progress("c"), await frontier.origin(SITE), await frontier.crawl("c")) == before
    assert await lease(frontier, 1099) == []
    assert len(await lease(frontier, 1100)) == 1
    assert await frontier.complete(completion(leased))
