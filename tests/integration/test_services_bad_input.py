"""What goes wrong under running services: each says what and what to do, waits, and goes on by itself; nothing is lost.

One deployment serves all these tests, with a Redis of its own behind a relay and OpenSearch behind a proxy.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import pytest_asyncio
from aiokafka.admin import AIOKafkaAdminClient

from tests.e2e.deployed import STAGES, Bystander, Deployment, deployed, through
from tests.e2e.running import trawl
from tests.integration.faults import QUICK, Witness, later, own_redis
from tests.integration.opensearch import Proxy, proxy
from tests.relay import Relay, relay
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site.process import WebProcess
from trawl.adapters.opensearch import OpenSearchClient, connect
from trawl.adapters.redis import RedisFrontierStore
from trawl.adapters.redis import connect as connect_redis
from trawl.records import Seed
from trawl.settings import OpenSearchSettings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]
PAGES = {"tiny.test": 10, "larger.test": 100}


@dataclass(frozen=True, slots=True)
class Running:
    """Five services that serve, and all that can be done to what they need."""

    deployment: Deployment
    look: Bystander
    witness: Witness
    redis: RedisServer
    to_redis: Relay
    opensearch: Proxy
    node: OpenSearchClient
    """What lies behind the proxy."""

    async def begin(self, crawl_id: str, host: str = "tiny.test") -> None:
        """Send the seed of a crawl."""
        await self.look.send(Seed(url=f"http://{host}/", crawl_id=crawl_id))

    async def outcomes(self, crawl_id: str) -> dict[str, int]:
        return dict((await self.look.progress(crawl_id)).outcomes)

    async def ends_whole(self, crawl_id: str, host: str = "tiny.test") -> None:
        """All are ready again, every page of the crawl is indexed once, and nothing was given up."""
        await self.witness.until_ready(*STAGES)

        async def done() -> bool:
            return await self.outcomes(crawl_id) == {"indexed": PAGES[host]}

        await self.witness.until(done, 90)
        urls = Counter(page.document.final_url for page in await self.look.stored(crawl_id))
        assert (len(urls), set(urls.values())) == (PAGES[host], {1})
        progress = await self.look.progress(crawl_id)
        assert (progress.queued, progress.leased) == (0, 0)
        assert await self.look.records("trawl.dead-letters") == []

    @asynccontextmanager
    async def redis_set(self, name: str, value: str, after: str) -> AsyncIterator[None]:
        """Change a setting of Redis for the block."""
        self.redis.ask("CONFIG", "SET", name, value)
        try:
            yield
        finally:
            self.redis.ask("CONFIG", "SET", name, after)

    @asynccontextmanager
    async def read_only(self) -> AsyncIterator[None]:
        """What a full disk does to all indices of the deployment, for the block."""
        path = f"/{self.deployment.settings.opensearch.prefix}-*/_settings"
        await self.node.ask("PUT", path, {"index.blocks.read_only_allow_delete": True})
        try:
            yield
        finally:
            await self.node.ask("PUT", path, {"index.blocks.read_only_allow_delete": None})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    kafka_server: KafkaServer,
    opensearch_server: OpenSearchServer,
    servers_folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[Running]:
    async with AsyncExitStack() as stack:
        web = stack.enter_context(WebProcess(*(f"tiny:{host}:{count}" for host, count in PAGES.items())))
        redis = stack.enter_context(own_redis(servers_folder))
        to_redis = await stack.enter_async_context(relay(redis.port))
        front = await stack.enter_async_context(proxy(opensearch_server.url))
        variables = {
            **QUICK,
            **through(web.proxy, web.ca_file),
            "TRAWL_REDIS_URL": f"redis://127.0.0.1:{to_redis.port}/0",
            "TRAWL_OPENSEARCH_URL": front.url,
        }
        servers, folder = (kafka_server, redis, opensearch_server), tmp_path_factory.mktemp("running")
        deployment = stack.enter_context(deployed(servers, folder, variables))
        look = await stack.enter_async_context(Bystander(deployment))
        deployment.start()
        direct = connect_redis(replace(deployment.settings.redis, url=redis.url))
        stack.push_async_callback(direct.close)
        look.frontier = RedisFrontierStore(direct)
        node = connect(OpenSearchSettings(url=opensearch_server.url))
        stack.push_async_callback(node.close)
        made = Running(deployment, look, Witness(deployment), redis, to_redis, front, node)
        await made.begin("first")
        await made.ends_whole("first")
        yield made


# Redis


async def test_a_full_redis_is_told_and_what_it_refused_is_done_once_it_has_room(running: Running) -> None:
    await running.begin("full", "larger.test")

    async def half_way() -> bool:
        return (await running.outcomes("full")).get("indexed", 0) >= 5

    await running.witness.until(half_way)
    async with running.redis_set("maxmemory", "1mb", after="0"):
        await running.begin("meanwhile")
        await running.witness.told("frontier", r"Redis at .* is full .*raise its maxmemory")
        assert len(await running.look.stored("full")) < PAGES["larger.test"]
    await running.ends_whole("full", "larger.test")
    await running.ends_whole("meanwhile")


async def test_a_redis_that_is_away_is_told_by_idle_services(running: Running) -> None:
    await running.to_redis.shut()
    try:
        for stage in STAGES:
            await running.witness.told(stage, r"a look at Redis: Redis does not answer at .*redis\.url")
        await running.begin("away")
    finally:
        await running.to_redis.open()
    await running.ends_whole("away")


async def test_a_clock_that_drifts_off_is_told_by_idle_services_and_stops_nothing(running: Running) -> None:
    async def done() -> bool:
        return await running.outcomes("drifted") == {"indexed": PAGES["tiny.test"]}

    running.to_redis.change = later(120)
    try:
        for stage in STAGES:
            await running.witness.told(
                stage, r"a look at Redis: the clock of this machine differs by -1\d\d\.\d\d s .*NTP"
            )
        await running.begin("drifted")
        await running.witness.until(done)
    finally:
        running.to_redis.change = None
    await running.ends_whole("drifted")


# OpenSearch


async def test_an_index_that_is_read_only_is_waited_for_by_the_indexer_alone(running: Running) -> None:
    told = r"the stage's stores: .*read-only.*free space.*index\.blocks\.read_only_allow_delete"
    async with running.read_only():
        await running.begin("read-only")
        await running.witness.told("indexer", told)
        await running.witness.until_ready("frontier", "fetcher", "extractor", "dedup")
        await running.witness.until_behind("indexer", "trawl.unique", PAGES["tiny.test"])
        await running.witness.told("indexer", told)
        assert await running.look.stored("read-only") == []
    await running.ends_whole("read-only")
    await running.witness.until_behind("indexer", "trawl.unique", 0)


async def test_a_name_that_opensearch_refuses_from_now_on_is_told_by_its_settings(running: Running) -> None:
    running.opensearch.login = "somebody:else"
    try:
        told = r"refuses the name or password.*opensearch\.username and opensearch\.password"
        await running.witness.told("indexer", rf"a look at OpenSearch: .*{told}")
        await running.begin("refused")
        await running.witness.told("indexer", rf"the stage's stores: .*{told}")
    finally:
        running.opensearch.login = ""
    await running.ends_whole("refused")


# Kafka


async def test_a_topic_that_is_deleted_is_told_and_what_was_to_travel_on_it_waits(running: Running) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=list(running.deployment.settings.kafka.bootstrap_servers))
    await admin.start()
    await admin.delete_topics(["trawl.fetched"])
    await admin.close()
    try:
        for stage in STAGES:
            await running.witness.told(stage, r"a look at the topics: trawl\.fetched is missing: .*`trawl topics`")
        await running.begin("without")
        await running.witness.told("fetcher", r"Kafka: .*trawl topics")
    finally:
        made = await asyncio.to_thread(trawl, "topics", env=running.deployment.variables)
    assert made.code == 0, made.err
    await running.ends_whole("without")


async def test_a_broker_that_is_away_is_told_by_idle_services(running: Running, kafka_server: KafkaServer) -> None:
    await asyncio.to_thread(kafka_server.stop)
    try:
        for stage in STAGES:
            await running.witness.told(
                stage, r"a look at the topics: .*Kafka does not answer at .*kafka\.bootstrap_servers"
            )
    finally:
        await asyncio.to_thread(kafka_server.start)
    await running.begin("back")
    await running.ends_whole("back")
