"""Redis after its loss, rebuilt from the page store: the same verdicts, and nothing fetched again."""

import asyncio
import random
import signal
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from tests.contract.requests import admit, lease
from tests.e2e.running import TRAWL, environment
from tests.integration.lost_redis import (
    HOSTS,
    Side,
    a_corpus,
    asked_for,
    crawl,
    fetched,
    probes,
    reseeded,
    side,
    take,
    urls_of,
    verdicts,
)
from tests.integration.opensearch import connected
from tests.servers import OpenSearchServer, RedisCluster, RedisServer
from trawl.adapters.opensearch import OpenSearchClient
from trawl.kinds import RecrawlKind
from trawl.ports import CrawlPolicy, StoredPage
from trawl.records import RecrawlPolicy
from trawl.settings import Settings

ONCE = CrawlPolicy(crawl_id="once")
OFTEN = CrawlPolicy(crawl_id="often", recrawl=RecrawlPolicy(kind=RecrawlKind.INTERVAL))
KILLED_PAGES = 600
REPEATED = ("exact_duplicate", "near_duplicate")


@pytest.fixture
def prefix() -> str:
    return f"b{random.randrange(10**9)}"


@pytest.fixture
async def opensearch(opensearch_server: OpenSearchServer, prefix: str) -> AsyncIterator[OpenSearchClient]:
    settings = replace(Settings().opensearch, url=opensearch_server.url, prefix=prefix)
    async with connected(settings) as client:
        yield client


@pytest.fixture
async def sides(
    redis_server: RedisServer, opensearch_server: OpenSearchServer, opensearch: OpenSearchClient, prefix: str
) -> AsyncIterator[tuple[Side, Side]]:
    """One that is going to lose everything, and one that never does; both with the same pages."""
    lost, kept = (side(redis_server.url, opensearch_server.url, prefix, name, opensearch) for name in ("l", "k"))
    yield lost, kept
    for one in (lost, kept):
        await one.lose()
        await one.client.close()


# The duplicate gate


@pytest.mark.parametrize("seed", range(3))
async def test_the_duplicate_gate_judges_as_if_nothing_was_lost(sides: tuple[Side, Side], seed: int) -> None:
    lost, kept = sides
    corpus = a_corpus(seed)
    await take(kept, *corpus)
    pages = await kept.pages.size()
    assert pages == await kept.index.size()

    ran = await lost.rebuild("--json")

    assert ran.code == 0, ran.err
    assert (ran.summary["pages"], ran.summary["fingerprints"], ran.summary["repeated"]) == (pages, pages, 0)
    assert await lost.index.size() == pages
    asked = probes(corpus, seed)
    told = await verdicts(kept, asked)
    assert await verdicts(lost, asked) == told
    kinds = {str(one[2] if one[2] in REPEATED else one[1]) for one in told}
    assert kinds >= {"new", "changed", "unchanged", "alias", *REPEATED}  # else the probes show little


async def test_no_page_is_its_own_duplicate_and_a_fetch_that_comes_again_is_what_it_was(
    sides: tuple[Side, Side],
) -> None:
    lost, _ = sides
    corpus = [fetched(f"https://{host}/", f"text of {host}") for host in HOSTS[:10]]
    await take(lost, *corpus)
    before = await verdicts(lost, corpus)
    await lost.lose()
    assert (await lost.rebuild()).code == 0
    assert await verdicts(lost, corpus) == before
    again = [replace(one, fetch_id=one.fetch_id + 1, fetched_at_ms=10**6) for one in corpus]
    assert [one[1:3] for one in await verdicts(lost, again)] == [("unchanged", "same_content")] * 10


async def test_withdrawn_pages_do_not_come_back(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    page = fetched("https://a.example/", "text")
    await take(lost, page, replace(page, withdrawal="gone", fetched_at_ms=5000))
    await lost.lose()
    ran = await lost.rebuild("--json")
    assert (ran.code, ran.summary["pages"], ran.summary["withdrawn"]) == (1, 0, 1)
    assert await lost.index.size() == 0
    late = replace(page, fetch_id=page.fetch_id + 1, fetched_at_ms=4000)
    ((_, outcome, reason, *_),) = await verdicts(lost, [late])
    assert (outcome, reason) == ("unchanged", "superseded")
    assert len(await verdicts(lost, [replace(late, fetched_at_ms=6000)])) == 1
    assert await lost.index.size() == 1


async def test_a_duplicate_is_judged_as_before_and_an_older_fetch_of_it_is_superseded(
    sides: tuple[Side, Side],
) -> None:
    lost, _ = sides
    page, copy = (fetched(f"https://a.example/{name}", "same", at_ms=2000) for name in ("page", "copy"))
    await take(lost, page, copy)
    await lost.lose()
    assert (await lost.rebuild()).code == 0
    newer = replace(copy, fetch_id=copy.fetch_id + 1, fetched_at_ms=9000)
    told = await verdicts(lost, [copy, newer])
    assert [one[2] for one in told] == ["duplicate", "exact_duplicate"] * 2
    older = replace(copy, fetched_at_ms=1000, content_sha256="ab" * 32, simhash=1)
    assert [one[1:3] for one in await verdicts(lost, [older])] == [("unchanged", "superseded")]
    assert await lost.index.size() == 1


async def test_other_tables_need_the_index_anew(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    corpus = a_corpus(7)
    await take(kept, *corpus)
    assert (await lost.rebuild()).code == 0
    ran = await lost.rebuild(TRAWL_REDIS_FINGERPRINT_TABLES="10")
    assert ran.code == 3
    assert "trawl rebuild --anew" in ran.err
    ran = await lost.rebuild("--anew", "--json", TRAWL_REDIS_FINGERPRINT_TABLES="10")
    assert ran.code == 0, ran.err
    assert ran.summary["requests"] == 0  # those were there
    ten = replace(lost, variables={**lost.variables, "TRAWL_REDIS_FINGERPRINT_TABLES": "10"})
    assert await ten.index.size() == await kept.index.size()
    asked = probes(corpus, 7)
    assert await verdicts(ten, asked) == await verdicts(kept, asked)


async def test_an_index_that_was_half_dropped_is_told_and_made_anew(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    await take(lost, fetched("https://a.example/", "text"))
    await lost.client.ask("HSET", lost.client.key("fp", "meta"), "layout", "dropped")
    ran = await lost.rebuild()
    assert ran.code == 3
    assert "trawl rebuild --anew" in ran.err
    assert (await lost.rebuild("--anew")).code == 0
    assert await lost.index.size() == 1


# The frontier


async def test_what_was_fetched_is_not_fetched_again(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    urls = urls_of(100)
    done = await crawl(lost, ONCE, urls, 60)
    before = await (await lost.frontier()).progress("once")
    await lost.lose()

    ran = await lost.rebuild("--json")

    assert ran.summary["requests"] == 60
    assert ran.summary["crawls"] == {"once": 60}
    assert ran.summary["without_policy"] == ["once"]
    store = await reseeded(lost, ONCE, urls)
    progress = await store.progress("once")
    assert (progress.charged, progress.reasons, progress.queued) == (before.charged, before.reasons, 0)
    admitted = await admit(store, *(asked_for(url, ONCE) for url in urls))
    assert [url for url, is_new in zip(urls, admitted, strict=True) if not is_new] == [
        url for url in urls if url in set(done)
    ]
    assert {one.url for one in await lease(store, 2000)} == set(urls) - set(done)


async def test_recrawls_come_as_before(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    urls = urls_of(80)
    await crawl(kept, OFTEN, urls, 80)
    await crawl(lost, OFTEN, urls, 80)
    await lost.lose()
    assert (await lost.rebuild()).code == 0
    found = []
    for one in (kept, lost):
        store = await reseeded(one, OFTEN, urls)
        rows = {row.request.url: row async for row in store.rows("often")}
        templates = await store.templates([rows[url].request for url in urls])
        assert await store.readmit("often", 50_000) == 80
        leased = sorted(await lease(store, 50_000), key=lambda request: request.url)
        found.append((rows, templates, leased, await store.progress("often")))
    assert found[1] == found[0]


async def test_the_policy_that_is_left_says_what_is_kept_of_a_request(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    urls = urls_of(30)
    await crawl(lost, ONCE, urls, 30)
    await lost.lose()
    store = await lost.frontier()
    await store.put_crawl(ONCE)

    ran = await lost.rebuild("--json")

    assert ran.summary["without_policy"] == []
    assert [row.request.url async for row in store.rows("once")] == urls[:1]  # a seed may have redirected
    assert all(await store.seen([asked_for(url, ONCE) for url in urls]))
    await lost.lose()
    assert (await lost.rebuild("--only-seen")).code == 0
    assert [row.request.url async for row in store.rows("once")] == urls[:1]


async def test_the_budget_of_a_crawl_counts_the_pages_that_are_there(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    urls = urls_of(60)
    await crawl(lost, replace(ONCE, pages_max=50), urls, 35)
    await lost.lose()
    assert (await lost.rebuild()).code == 0
    store = await reseeded(lost, replace(ONCE, pages_max=50), urls)
    await admit(store, *(asked_for(url, ONCE) for url in urls))
    assert len(await lease(store, 2000)) == 15
    assert (await store.progress("once")).charged == 50


async def test_with_fingerprints_only_all_is_fetched_again_and_nothing_is_new(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    urls = urls_of(20)
    await crawl(lost, ONCE, urls, 20)
    await lost.lose()
    ran = await lost.rebuild("--only-fingerprints", "--json")
    assert (ran.summary["fingerprints"], ran.summary["requests"]) == (20, 0)
    store = await reseeded(lost, ONCE, urls)
    assert all(await admit(store, *(asked_for(url, ONCE) for url in urls)))
    again = [fetched(url, f"once {url}", at_ms=2000) for url in urls]
    assert {one[1:3] for one in await verdicts(lost, again)} == {("unchanged", "same_content")}


async def test_a_frontier_that_serves_meanwhile_keeps_its_shards_and_its_queue(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    urls = urls_of(60)
    done = set(await crawl(lost, ONCE, urls, 40))
    queued = [url for url in urls if url not in done][:15]
    again = min(done)
    await lost.lose()
    store = await reseeded(lost, ONCE, urls)
    assert all(await admit(store, *(asked_for(url, ONCE) for url in (again, *queued))))
    assert (await lost.rebuild("--json")).summary["requests"] == 39
    assert {one.url for one in await lease(store, 2000)} == {again, *queued}
    assert sum(await admit(store, *(asked_for(url, ONCE) for url in urls))) == 5


# As a whole


async def test_twice_is_as_once_and_what_was_not_lost_stays_as_it_is(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    await take(kept, *a_corpus(4))
    assert (await lost.rebuild()).code == 0
    once = await lost.state()
    assert len(once) > 100
    ran = await lost.rebuild("--json")
    assert (ran.summary["fingerprints"], ran.summary["requests"]) == (0, 0)
    assert await lost.state() == once
    before = await fingerprints_of(kept)
    assert (await kept.rebuild()).code == 0
    assert await fingerprints_of(kept) == before


async def fingerprints_of(one: Side) -> dict[bytes, bytes]:
    """All of the fingerprint index but which documents were withdrawn, of which the page store knows more."""
    return {
        key: value for key, value in (await one.state()).items() if b"{fp}" in key and not key.endswith(b"withdrawn")
    }


async def test_a_rebuild_that_was_killed_is_done_by_the_next(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    await kept.pages.put_many([
        StoredPage(document=fetched(url, f"text {url}", crawl_id=f"c{number % 3}"), indexed_at_ms=2000)
        for number, url in enumerate(urls_of(KILLED_PAGES))
    ])  # fmt: skip
    assert (await kept.rebuild()).code == 0
    for after in (20, 150, 350):
        process = await asyncio.create_subprocess_exec(*TRAWL, "rebuild", env=environment(**lost.variables))
        while await lost.index.size() < after:
            assert process.returncode is None
        process.send_signal(signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
    cut = await lost.index.size()
    assert 350 <= cut < KILLED_PAGES
    ran = await lost.rebuild("--json")
    assert (ran.code, ran.summary["fingerprints"]) == (0, KILLED_PAGES - cut)
    assert await lost.state() == await kept.state()


async def test_one_crawl_alone_can_be_restored(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    await take(kept, *(fetched(f"https://a.example/{name}", name, crawl_id=name) for name in ("x", "y", "z")))
    ran = await lost.rebuild("--crawl", "y", "--json")
    assert (ran.summary["crawls"], ran.summary["fingerprints"]) == ({"y": 1}, 1)
    ran = await lost.rebuild("--crawl", "nobody")
    assert (ran.code, ran.out) == (1, "the page store has no such page; nothing was restored\n")
    ran = await lost.rebuild()
    assert "publish the seeds again (trawl seed): x, y, z" in ran.out


async def test_what_cannot_be_is_told(sides: tuple[Side, Side]) -> None:
    lost, _ = sides
    for options, code, told in (
        (("--anew", "--crawl", "c"), 2, "--anew"),
        (("--only-seen", "--only-fingerprints"), 2, "--only-seen"),
        (("--redis", "http://x"), 2, "redis.url"),
        (("--redis", "redis://127.0.0.1:9"), 3, "Redis does not answer"),
        (("--opensearch", "http://127.0.0.1:9"), 3, "OpenSearch does not answer"),
        ((), 3, "has no index"),
    ):
        ran = await lost.rebuild(*options)
        assert (ran.code, told in ran.err) == (code, True), ran.err
    assert await lost.state() == {}


async def test_a_cluster_is_restored_too(
    redis_cluster: RedisCluster, opensearch_server: OpenSearchServer, opensearch: OpenSearchClient, prefix: str,
    sides: tuple[Side, Side],
) -> None:  # fmt: skip
    kept = sides[1]
    await take(kept, *(fetched(url, f"text {url}") for url in urls_of(50)))
    cluster = side(redis_cluster.url, opensearch_server.url, prefix, "c", opensearch, TRAWL_REDIS_CLUSTER="true")
    try:
        ran = await cluster.rebuild("--json")
        assert (ran.code, ran.summary["fingerprints"], ran.summary["requests"]) == (0, 50, 50), ran.err
        ran = await cluster.rebuild("--anew", "--json")
        assert (ran.code, await cluster.index.size(), ran.summary["requests"]) == (0, 50, 0), ran.err
    finally:
        await cluster.lose()
        await cluster.client.close()


async def test_many_withdrawn_documents_and_crawls_are_all_read(sides: tuple[Side, Side]) -> None:
    lost, kept = sides
    now_ms = time.time_ns() // 1_000_000  # those of long ago are purged
    await asyncio.gather(*(kept.pages.delete(number, fetched_at_ms=now_ms) for number in range(2500)))
    pages = [fetched(f"https://a.example/{number}", f"text {number}", crawl_id=f"c{number}") for number in range(1100)]
    for first in range(0, len(pages), 100):
        await kept.pages.put_many([StoredPage(document=page) for page in pages[first : first + 100]])
    ran = await lost.rebuild("--json")
    assert (ran.code, ran.summary["withdrawn"], len(ran.summary["crawls"])) == (0, 2500, 1100), ran.err
