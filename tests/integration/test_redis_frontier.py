"""The frontier in Redis by shards: what holds over shards, replicas and crashes, besides the port's contract."""

import asyncio
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from devstack.process import free_port
from tests.contract.requests import admit, completion, lease, open_origin, request
from tests.integration.redis_frontier_worker import LEASE_MS, SHARDS
from tests.servers import RedisCluster, RedisServer
from trawl.adapters.redis import RedisClient, RedisFrontierStore, ShardLeases, connect
from trawl.adapters.redis.crawls import RedisCrawls
from trawl.errors import StaleEpochError, StoreError
from trawl.kinds import Found, OutcomeClass, RecrawlKind
from trawl.ports import CrawlPolicy, OriginUpdate, Request
from trawl.records import RecrawlPolicy
from trawl.settings import Settings
from trawl.url import host_shard

ROOT = Path(__file__).resolve().parents[2]
ALL = range(SHARDS)
_NAMES = [f"h{number}.example" for number in range(200)]
HOSTS = [host for number in ALL for host in [name for name in _NAMES if host_shard(name, SHARDS) == number][:3]]
"""Three hosts of each shard."""


class Replicas:
    """Stores that share the state under one prefix, as processes do."""

    def __init__(self, prefix: str, url: str, *, cluster: bool = False) -> None:
        self.settings = replace(Settings().redis, url=url, prefix=prefix, cluster=cluster)
        self.clients: list[RedisClient] = []

    def client(self) -> RedisClient:
        """One more connection."""
        self.clients.append(connect(self.settings))
        return self.clients[-1]

    async def store(self, shards: Iterable[int] = ALL, *, forgets_done: bool = False) -> RedisFrontierStore:
        """One more store, which has taken over these shards."""
        store = RedisFrontierStore(self.client(), shards=SHARDS, forgets_done=forgets_done)
        await self.take(store, shards)
        return store

    async def take(self, store: RedisFrontierStore, shards: Iterable[int]) -> None:
        """Let a store own these shards and no others."""
        store.own(await ShardLeases(self.clients[0]).acquire(shards))


@pytest.fixture
async def replicas(redis_server: RedisServer, tmp_path: Path) -> AsyncIterator[Replicas]:
    made = Replicas(f"r{tmp_path.parent.name}{tmp_path.name}", redis_server.url)
    yield made
    for client in made.clients:
        await client.close()


def shard(url: str) -> int:
    return host_shard(url.split("/")[2], SHARDS)


def hosts_of(shards: Iterable[int]) -> list[str]:
    return [host for host in HOSTS if host_shard(host, SHARDS) in set(shards)]


def one_host_each(count: int) -> list[str]:
    """Hosts of so many different shards."""
    return list({host_shard(host, SHARDS): host for host in HOSTS}.values())[:count]


async def fill(store: RedisFrontierStore, hosts: Iterable[str], pages: int, **fields: Any) -> list[Request]:
    """Some pages of each host, which is open, with rising scores."""
    made = []
    for host in hosts:
        await open_origin(store, f"https://{host}")
        made += [request(f"https://{host}/{page}", score=page / 100, **fields) for page in range(pages)]
    await admit(store, *made)
    return made


async def everything(store: RedisFrontierStore, now_ms: int = 1000, limit: int = 7) -> list[Request]:
    """Lease as long as there is something to lease."""
    leased: list[Request] = []
    while more := await lease(store, now_ms, limit):
        assert len(more) <= limit
        leased += more
    return leased


# Leases over shards


async def test_every_host_is_served_best_score_first_whatever_its_shard(replicas: Replicas) -> None:
    store = await replicas.store()
    made = await fill(store, HOSTS, 5)
    assert len({shard(one.url) for one in made}) == SHARDS
    first = await lease(store, limit=len(HOSTS))
    assert len(first) == len(HOSTS)
    leased = first + await everything(store)
    assert Counter(one.url for one in leased) == Counter(one.url for one in made)
    for host in HOSTS:
        scores = [one.score for one in leased if host in one.url.split("/")]
        assert scores == sorted(scores, reverse=True)
    assert (await store.progress("c")).leased == len(made)


async def test_one_busy_shard_gets_what_the_others_leave(replicas: Replicas) -> None:
    store = await replicas.store()
    busy, *rest = one_host_each(SHARDS)
    await fill(store, [busy], 50)
    await fill(store, rest, 1)
    assert len(await lease(store, limit=40)) == 40


async def test_few_leases_at_a_time_reach_every_shard(replicas: Replicas) -> None:
    store = await replicas.store()
    await fill(store, one_host_each(SHARDS), 20)
    served = {shard(one.url) for _ in range(2 * SHARDS) for one in await lease(store, limit=1)}
    assert served == set(ALL)


async def test_robots_are_leased_over_shards_up_to_the_limit(replicas: Replicas) -> None:
    store = await replicas.store()
    await admit(store, *(request(f"https://{host}/") for host in HOSTS))
    found = [*await store.lease_robots(1000, 20, 500), *await store.lease_robots(1000, 20, 500)]
    assert sorted(found) == sorted(f"https://{host}" for host in HOSTS)
    assert await store.next_event_ms(1000) == 1500


async def test_an_idle_frontier_asks_for_nothing(replicas: Replicas, redis_server: RedisServer) -> None:
    store = RedisFrontierStore(replicas.client(), shards=256)
    await replicas.take(store, range(256))
    await open_origin(store, "https://h0.example")
    await admit(store, request("https://h0.example/", due_at_ms=50_000))
    assert await store.next_event_ms(1000) == 50_000
    before = _calls(redis_server)
    for now_ms in range(1100, 6000, 100):
        assert await store.next_event_ms(now_ms) == 50_000
        assert await store.reap(now_ms) == []
        assert await lease(store, now_ms) == []
    after = _calls(redis_server)
    assert {name: after[name] - before[name] for name in after if after[name] > before[name]}.keys() <= {
        "info",
        "zrange",
    }
    assert after["zrange"] - before["zrange"] <= 5  # what other replicas have changed, once a second


def _calls(server: RedisServer) -> Counter[str]:
    lines = (line.split(":") for line in server.ask("INFO", "commandstats").splitlines() if "calls=" in line)
    return Counter({name.removeprefix("cmdstat_"): int(told.split(",")[0].split("=")[1]) for name, told in lines})


# Ownership


async def test_a_store_that_was_told_nothing_serves_nothing_and_may_read(replicas: Replicas) -> None:
    owner = await replicas.store()
    (one, *_) = await fill(owner, HOSTS[:1], 1)
    reader = RedisFrontierStore(replicas.client(), shards=SHARDS)
    with pytest.raises(StaleEpochError):
        await admit(reader, request("https://new.example/"))
    assert await lease(reader) == []
    row = await reader.request(one.request_key, one.url)
    assert row is not None
    assert row.request == one
    assert (await reader.progress("c")).queued == 1
    assert len(await lease(owner)) == 1


async def test_a_shard_taken_over_cannot_be_changed_by_its_last_owner(replicas: Replicas) -> None:
    old = await replicas.store()
    mine, other = one_host_each(2)
    await fill(old, [mine, other], 2)
    held = {one.url: one for one in await lease(old, limit=2)}
    lost = next(one for one in held.values() if mine in one.url)
    new = await replicas.store([shard(lost.url)])
    for call in (
        old.complete(completion(lost)),
        admit(old, request(f"https://{mine}/new")),
        old.update_origin(lost.origin, OriginUpdate(delay_ms=1)),
        old.dismiss([completion(request(f"https://{mine}/0"))]),
    ):
        with pytest.raises(StaleEpochError):
            await call
    assert await new.complete(completion(lost))
    assert not await new.complete(completion(lost))
    assert {one.origin for one in await everything(new)} == {f"https://{mine}"}
    assert {one.origin for one in await everything(old)} == {f"https://{other}"}


async def test_a_lost_shard_is_told_once_when_time_moves_and_the_others_are_served_on(replicas: Replicas) -> None:
    old = await replicas.store()
    await fill(old, HOSTS, 1)
    await replicas.store([0])
    with pytest.raises(StaleEpochError):
        await lease(old)
    leased = await everything(old)
    assert {shard(one.url) for one in leased} == set(ALL) - {0}


async def test_a_new_owner_finds_leases_waiting_requests_and_pacing_as_they_were(replicas: Replicas) -> None:
    old = await replicas.store()
    host = HOSTS[0]
    await open_origin(old, f"https://{host}", delay_ms=500)
    await admit(old, request(f"https://{host}/1"), request(f"https://{host}/2", due_at_ms=9000))
    (leased,) = await old.lease(1000, 10, 2000, origins_max=10)
    new = await replicas.store()
    assert await new.next_event_ms(1100) == 9000
    assert await new.reap(2999) == []
    assert [one.request_key for one in await new.reap(3000)] == [leased.request_key]
    assert await new.next_event_ms(3000) == 3000
    (again,) = await new.lease(3000, 10, 2000, origins_max=10)
    assert (again.fetch_id, again.attempt) == (leased.fetch_id, 2)


# Policies and budgets


async def test_what_one_replica_changes_of_a_crawl_the_others_know_within_a_second(replicas: Replicas) -> None:
    one, other = await replicas.store(range(4)), await replicas.store(range(4, SHARDS))
    await fill(one, hosts_of(range(4)), 2)
    await fill(other, hosts_of(range(4, SHARDS)), 2)
    assert len(await lease(other, 1000, limit=1)) == 1
    await one.put_crawl(CrawlPolicy(crawl_id="c", paused=True))
    assert await lease(one, 1001) == []
    assert await lease(other, 2001) == []
    assert await other.next_event_ms(2001) is None
    await one.put_crawl(CrawlPolicy(crawl_id="c"))
    assert len(await lease(one, 2001, limit=1)) == 1
    assert len(await lease(other, 3002, limit=1)) == 1


async def test_a_policy_of_an_earlier_owner_is_read_again_by_the_new_one(replicas: Replicas) -> None:
    old = await replicas.store()
    await fill(old, HOSTS, 1)
    await RedisFrontierStore(replicas.client(), shards=SHARDS).put_crawl(CrawlPolicy(crawl_id="c", paused=True))
    new = await replicas.store()
    assert await lease(new) == []
    assert await new.next_event_ms(1000) is None


@pytest.mark.parametrize("pages_max", [1, 7, 30])
async def test_a_budget_is_one_for_all_shards_and_replicas(replicas: Replicas, pages_max: int) -> None:
    one, other = await replicas.store(range(4)), await replicas.store(range(4, SHARDS))
    await one.put_crawl(CrawlPolicy(crawl_id="c", pages_max=pages_max))
    await fill(one, hosts_of(range(4)), 3)
    await fill(other, hosts_of(range(4, SHARDS)), 3)
    leased = []
    for now_ms in range(1000, 40_000, 1001):
        leased += await lease(one, now_ms, limit=5)
        leased += await lease(other, now_ms, limit=5)
    assert len(leased) == pages_max
    assert (await one.progress("c")).charged == pages_max
    for store in (one, other):
        assert await store.next_event_ms(50_000) is None
        assert list(await store.lease_robots(50_000, 10, 100)) == []


async def test_what_outcomes_take_back_is_there_for_other_shards(replicas: Replicas) -> None:
    one, other = await replicas.store(range(4)), await replicas.store(range(4, SHARDS))
    await one.put_crawl(CrawlPolicy(crawl_id="c", pages_max=3))
    await fill(one, hosts_of(range(4))[:1], 3)
    first = await lease(one, 1000)
    assert len(first) == 3
    await fill(other, hosts_of(range(4, SHARDS)), 3)
    assert await lease(other, 1000) == []
    for leased in first[:2]:
        assert await one.complete(completion(leased, OutcomeClass.REFUSED, charged=False))
    assert await lease(one, 2001) == []
    assert len(await everything(other, 3100)) == 2
    assert (await one.progress("c")).charged == 3


async def test_a_budget_that_grows_goes_on(replicas: Replicas) -> None:
    store = await replicas.store()
    await store.put_crawl(CrawlPolicy(crawl_id="c", pages_max=2))
    await fill(store, HOSTS, 2)
    assert len(await everything(store)) == 2
    await store.put_crawl(CrawlPolicy(crawl_id="c", pages_max=9))
    assert len(await everything(store)) == 7
    await store.put_crawl(CrawlPolicy(crawl_id="c"))
    assert len(await everything(store)) == 2 * len(HOSTS) - 9


async def test_a_budget_is_not_spent_by_what_was_paid_before(replicas: Replicas) -> None:
    store = await replicas.store()
    await store.put_crawl(CrawlPolicy(crawl_id="c", pages_max=4))
    await fill(store, HOSTS, 1)
    leased = await everything(store)
    assert len(leased) == 4
    for one in leased:
        await store.complete(completion(one, OutcomeClass.RETRY, requeue_at_ms=5000, attempt=2))
    assert await store.next_event_ms(1000) == 5000
    assert {one.url for one in await everything(store, 5000)} == {one.url for one in leased}


async def test_what_a_killed_owner_was_allotted_and_did_not_use_comes_back(replicas: Replicas) -> None:
    old = await replicas.store()
    await old.put_crawl(CrawlPolicy(crawl_id="c", pages_max=10))
    await fill(old, HOSTS, 1)
    assert len(await lease(old, limit=3)) == 3
    budget = RedisCrawls(replicas.client())
    stranded = await budget.allot({"c": (10, [(number, 0, 10) for number in ALL])})
    assert sum(stranded["c"].parts.values()) == 10
    new = await replicas.store()
    assert len(await everything(new)) == 7
    assert (await new.progress("c")).charged == 10


async def test_each_shard_keeps_its_part_of_the_cap_and_its_best(replicas: Replicas) -> None:
    store, source = await replicas.store(), random.Random(5)
    best: dict[int, list[float]] = {number: [] for number in ALL}
    for host in HOSTS:
        scores = [source.random() for _ in range(40)]
        await admit(
            store,
            *(request(f"https://{host}/{score}", score=score) for score in scores),
            queue_urls_max=20 * SHARDS,
        )
        best[host_shard(host, SHARDS)] += scores
    kept: dict[int, list[float]] = {number: [] for number in ALL}
    async for row in store.rows("c"):
        kept[shard(row.request.url)].append(row.request.score)
    assert {one: sorted(scores) for one, scores in kept.items()} == {
        one: sorted(scores)[-20:] for one, scores in best.items()
    }
    assert (await store.progress("c")).queued == sum(map(len, kept.values()))


# Requests that are done and forgotten


async def test_what_is_done_for_good_leaves_its_key_and_its_counts(replicas: Replicas) -> None:
    store = await replicas.store(forgets_done=True)
    await store.put_crawl(CrawlPolicy(crawl_id="c"))
    seed, page = request("https://h1.example/", found=Found.SEED), request("https://h1.example/p")
    await open_origin(store, "https://h1.example")
    await admit(store, seed, page)
    for one in await lease(store):
        assert await store.complete(completion(one, reason="ok", duplicate=False))
        assert not await store.complete(completion(one))
    assert [row.request.url async for row in store.rows("c")] == [seed.url]
    assert await store.request(page.request_key, page.url) is None
    assert list(await store.seen([seed, page])) == [True, True]
    assert await admit(store, seed, page) == [False, False]
    progress = await store.progress("c")
    assert (progress.queued, progress.leased, progress.charged) == (0, 0, 2)
    assert progress.reasons == (("indexed:ok", 2),)
    assert [counts.results for counts in await store.templates([page])] == [2]


async def test_what_will_be_visited_again_is_kept(replicas: Replicas) -> None:
    store = await replicas.store(forgets_done=True)
    recrawl = RecrawlPolicy(kind=RecrawlKind.INTERVAL, min_seconds=60.0)
    await store.put_crawl(CrawlPolicy(crawl_id="c", recrawl=recrawl))
    (page,) = await fill(store, HOSTS[:1], 1)
    for one in await lease(store):
        await store.complete(completion(one))
    row = await store.request(page.request_key, page.url)
    assert row is not None
    assert row.state == "done"


# Whatever happens


@pytest.mark.parametrize("seed", range(6))
async def test_a_crawl_over_replicas_that_come_and_go_ends_with_all_done_once(replicas: Replicas, seed: int) -> None:
    source, now_ms = random.Random(seed), 1000
    pages_max = source.choice((0, 0, 60))
    stores = [await replicas.store(range(4)), await replicas.store(range(4, SHARDS)), await replicas.store(())]
    await stores[0].put_crawl(CrawlPolicy(crawl_id="c", pages_max=pages_max))
    for store in stores[:2]:
        for host in hosts_of(_owned(store)):
            await open_origin(store, f"https://{host}", delay_ms=100, concurrency_max=2)
            await admit(store, *(request(f"https://{host}/{page}", score=source.random()) for page in range(6)))
    out: dict[str, Request] = {}
    served: dict[str, int] = {}
    done: Counter[str] = Counter()
    for turn in range(400):
        now_ms += source.choice((10, 100, 1000))
        if turn % 40 == 39:
            await _rebalance(replicas, stores, source)
        for store in stores:
            out = await _turn(store, out, served, done, now_ms, source)
    wanted = min(pages_max or 6 * len(HOSTS), 6 * len(HOSTS))
    progress = await stores[0].progress("c")
    assert (len(done), sum(done.values()), progress.charged) == (wanted, wanted, wanted)
    assert (progress.queued, progress.leased) == (6 * len(HOSTS) - wanted, 0)


def _owned(store: RedisFrontierStore) -> list[int]:
    return [one.number for one in store._owned.known()]


async def _rebalance(replicas: Replicas, stores: list[RedisFrontierStore], source: random.Random) -> None:
    """Give out the shards anew; who only loses some learns of it by its failures."""
    places = {number: source.randrange(len(stores)) for number in ALL}
    for number in source.sample(list(ALL), SHARDS // 2):
        places[number] = next((place for place, one in enumerate(stores) if number in _owned(one)), places[number])
    for place, store in source.sample(list(enumerate(stores)), len(stores)):
        mine = [number for number in ALL if places[number] == place]
        if not set(mine) <= set(_owned(store)):
            await replicas.take(store, mine)


async def _turn(
    store: RedisFrontierStore,
    out: Mapping[str, Request],
    served: dict[str, int],
    done: Counter[str],
    now_ms: int,
    source: random.Random,
) -> dict[str, Request]:
    """What a replica does with its hosts in one turn; what is leased now."""
    held = dict(out)
    try:
        for one in await store.reap(now_ms):
            held.pop(one.url, None)
        for one in await store.lease(now_ms, 5, 3000, origins_max=100):
            assert one.url not in held
            assert now_ms - served.get(one.origin, 0) >= 100
            served[one.origin] = now_ms
            held[one.url] = one
    except StaleEpochError:
        return held
    assert max(Counter(one.origin for one in held.values()).values(), default=0) <= 2
    for one in list(held.values()):
        if shard(one.url) in _owned(store) and source.random() < 0.5:
            held.pop(one.url)
            if source.random() < 0.1:
                continue  # its outcome never comes: the lease expires
            try:
                done[one.url] += await store.complete(completion(one))
            except StaleEpochError:
                held[one.url] = one
    return held


# Crashes


@pytest.mark.timeout(60)
async def test_a_killed_replica_loses_nothing_and_does_nothing_twice(
    replicas: Replicas, redis_server: RedisServer
) -> None:
    store = await replicas.store()
    made = await fill(store, HOSTS, 40)
    halves = ([number for number in ALL if number % 2], [number for number in ALL if not number % 2])
    told: Counter[tuple[str, int]] = Counter()
    workers = [_worker(redis_server, replicas, half) for half in halves]
    await asyncio.sleep(0.3)
    for worker in workers:
        told += _killed(worker)
    assert any(kind == "done" for kind, _ in told)
    new = await replicas.store()
    now_ms = 10_000_000
    await new.reap(now_ms)
    rest = await everything(new, now_ms)
    done = Counter({key: count for (kind, key), count in told.items() if kind == "done"})
    assert max(done.values()) == 1
    assert not done.keys() & {one.request_key for one in rest}
    unknown = {one.request_key for one in made} - done.keys() - {one.request_key for one in rest}
    assert len(unknown) <= len(workers)  # done, and killed before it could tell
    for one in rest:
        assert await new.complete(completion(one))
    progress = await new.progress("c")
    assert (progress.queued, progress.leased, progress.charged) == (0, 0, len(made))
    assert progress.outcomes == (("indexed", len(made)),)


def _worker(server: RedisServer, replicas: Replicas, shards: list[int]) -> "subprocess.Popen[bytes]":
    numbers = ",".join(map(str, shards))
    command = [sys.executable, "-m", "tests.integration.redis_frontier_worker", server.url]
    worker = subprocess.Popen([*command, replicas.settings.prefix, numbers], stdout=subprocess.PIPE, cwd=ROOT)
    assert worker.stdout is not None
    assert worker.stdout.readline() == b"ready\n"
    return worker


def _killed(worker: "subprocess.Popen[bytes]") -> Counter[tuple[str, int]]:
    worker.send_signal(signal.SIGKILL)
    assert worker.stdout is not None
    with worker, worker.stdout as output:
        told = output.read().decode()
    whole = told[: told.rfind("\n") + 1].splitlines()
    return Counter((line.split()[0], int(line.split()[1])) for line in whole)


async def test_a_server_killed_and_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", free_port()) as server:
        replicas = Replicas("restarted", server.url)
        store = await replicas.store()
        made = await fill(store, HOSTS, 4)
        leased = await lease(store, limit=30)
        for one in leased[:10]:
            assert await store.complete(completion(one))
        server.process.stop(signal.SIGKILL)
        new = request(f"https://{HOSTS[0]}/new")
        for call in (lease(store), admit(store, new), store.complete(completion(leased[10]))):
            with pytest.raises(StoreError, match="does not answer"):
                await call
        server.start()
        for one in leased[10:20]:
            assert await store.complete(completion(one))
        assert {one.url for one in await store.reap(10**6)} == {one.url for one in leased[20:]}
        rest = await everything(store, 10**6)
        assert len(rest) == len(made) - 20
        for one in rest:
            assert await store.complete(completion(one))
        progress = await store.progress("c")
        assert (progress.queued, progress.leased, progress.outcomes) == (0, 0, (("indexed", len(made)),))
        for client in replicas.clients:
            await client.close()


async def test_thousands_that_come_due_at_once_are_all_served(replicas: Replicas) -> None:
    store = await replicas.store()
    hosts = one_host_each(3)
    for host in hosts:
        await open_origin(store, f"https://{host}")
        await admit(store, *(request(f"https://{host}/{page}", due_at_ms=5000) for page in range(700)))
    assert await store.next_event_ms(1000) == 5000
    assert len(await everything(store, 5000, limit=500)) == 700 * len(hosts)


async def test_a_server_that_lost_its_last_second_gets_no_lease_stuck(replicas: Replicas) -> None:
    """Redis goes back by some writes; nobody is told, but what it holds is found again."""
    store = await replicas.store()
    await fill(store, HOSTS[:1], 1)
    (leased,) = await lease(store, 1000, lease_ms=LEASE_MS)
    client = replicas.client()
    keys = [key async for key in client.scan(f"{replicas.settings.prefix}:{{f:*")]
    before = {key: await client.ask("DUMP", key) for key in keys}
    assert await store.complete(completion(leased))
    assert await store.next_event_ms(1001) is None
    for key, dump in before.items():
        await client.ask("RESTORE", key, 0, dump, "REPLACE")
    later = 1001 + LEASE_MS
    assert await store.next_event_ms(later) is None
    assert [one.request_key for one in await store.reap(later)] == [leased.request_key]


async def test_a_server_that_lost_everything_fences_its_owner(replicas: Replicas) -> None:
    store = await replicas.store()
    await fill(store, HOSTS[:1], 1)
    client = replicas.client()
    async for key in client.scan(f"{replicas.settings.prefix}:*"):
        await client.ask("DEL", key)
    with pytest.raises(StaleEpochError):
        await admit(store, request(f"https://{HOSTS[0]}/2"))
    await replicas.take(store, ALL)
    assert await admit(store, request(f"https://{HOSTS[0]}/2")) == [True]


async def test_a_crawl_that_was_lost_with_the_last_second_is_told_again(replicas: Replicas) -> None:
    store = await replicas.store()
    await admit(store, request(f"https://{HOSTS[0]}/1"))
    client, number = replicas.client(), host_shard(HOSTS[0], SHARDS)
    await client.ask("DEL", client.key(f"f:{number}", "cn"))
    with pytest.raises(StaleEpochError):
        await admit(store, request(f"https://{HOSTS[0]}/2"))
    await replicas.take(store, ALL)
    assert await admit(store, request(f"https://{HOSTS[0]}/2")) == [True]


# Redis Cluster


async def test_the_shards_spread_over_a_cluster(redis_cluster: RedisCluster) -> None:
    replicas = Replicas("cluster", redis_cluster.url, cluster=True)
    store = await replicas.store(forgets_done=True)
    await store.put_crawl(CrawlPolicy(crawl_id="c", pages_max=50))
    made = await fill(store, HOSTS, 3)
    leased = await everything(store)
    assert len(leased) == 50
    for one in leased:
        assert await store.complete(completion(one))
    assert list(await store.seen(made)) == [True] * len(made)
    progress = await store.progress("c")
    assert (progress.queued, progress.charged) == (len(made) - 50, 50)
    assert len([row async for row in store.rows("c")]) == len(made) - 50
    assert len(await store.origins(5)) == 5
    assert await store.readmit("c", 2000) == 0
    for client in replicas.clients:
        await client.close()
    sizes = [int(node.ask("DBSIZE")) for node in redis_cluster.nodes]
    assert all(sizes)
