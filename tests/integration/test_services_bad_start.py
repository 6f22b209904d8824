"""A service started with something wrong says what it is and which setting, waits, and loses nothing of what comes."""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from tests.e2e.deployed import Bystander, Deployment, deployed
from tests.e2e.running import trawl
from tests.integration.faults import QUICK, Witness, later, own_redis
from tests.integration.opensearch import proxy
from tests.relay import Relay, relay
from tests.servers import KafkaServer, OpenSearchServer, RedisServer, Registry
from trawl.kinds import Novelty
from trawl.records import ExtractedDocument, Seed, UniqueDocument

SUBJECT = "trawl.control-value"
OTHER_SCHEMA = {
    "type": "record", "name": "CrawlControl", "namespace": "trawl.v1",
    "fields": [{"name": "crawl_id", "type": "long"}],
}  # fmt: skip
PASSWORD = "hunter2"
Mend = Callable[[], Awaitable[Any]]


class Started:
    """Deployments of one test, each with a bystander."""

    def __init__(self, servers: tuple[KafkaServer, RedisServer, OpenSearchServer], folder: Path) -> None:
        self._servers = servers
        self._folder = folder
        self.exit = AsyncExitStack()

    async def deploy(self, **variables: str) -> tuple[Deployment, Bystander, Witness]:
        """A deployment with its topics, and no process yet."""
        made = self.exit.enter_context(deployed(self._servers, self._folder, {**QUICK, **variables}))
        return made, await self.exit.enter_async_context(Bystander(made)), Witness(made)

    async def relay(self, target: int) -> Relay:
        """A relay that is open."""
        return await self.exit.enter_async_context(relay(target))


@pytest.fixture
async def started(
    kafka_server: KafkaServer, redis_server: RedisServer, opensearch_server: OpenSearchServer, tmp_path: Path
) -> AsyncIterator[Started]:
    made = Started((kafka_server, redis_server, opensearch_server), tmp_path)
    async with made.exit:
        yield made


@pytest.fixture(scope="module")
def redis(servers_folder: Path) -> Iterator[RedisServer]:
    with own_redis(servers_folder) as server:
        yield server


async def takes_what_was_sent(look: Bystander, witness: Witness) -> None:
    """The frontier begins with the one seed that was sent, once, and gives nothing up."""
    await witness.until_ready("frontier")

    async def released() -> bool:
        return bool(await look.records("trawl.fetch-tasks"))

    await witness.until(released)
    assert len(await look.records("trawl.discovered")) == 1
    assert len(await look.records("trawl.fetch-tasks")) == 1
    assert await look.records("trawl.dead-letters") == []


async def waits(deployment: Deployment, look: Bystander, witness: Witness, pattern: str, mend: Mend) -> str:
    """What a frontier says that is started while something is wrong; once it is mended, it goes on by itself."""
    deployment.start("frontier")
    said = await witness.told("frontier", pattern)
    await mend()
    await takes_what_was_sent(look, witness)
    return said


# Kafka and the registry


async def test_a_wrong_broker_address_is_told_by_its_setting(started: Started, kafka_server: KafkaServer) -> None:
    way = await started.relay(kafka_server.port)
    address = f"127.0.0.1:{way.port}"
    deployment, look, witness = await started.deploy(TRAWL_KAFKA_BOOTSTRAP_SERVERS=address)
    await look.send(Seed(url="http://a.test/"))
    await way.shut()
    pattern = rf"the topics: .*Kafka does not answer at {address}.*kafka\.bootstrap_servers"
    await waits(deployment, look, witness, pattern, way.open)


async def test_a_missing_topic_is_told_with_the_command_that_makes_it(started: Started) -> None:
    deployment, look, witness = await started.deploy()
    await look.send(Seed(url="http://a.test/"))
    admin = AIOKafkaAdminClient(bootstrap_servers=list(deployment.settings.kafka.bootstrap_servers))
    await admin.start()
    await admin.delete_topics(["trawl.outcomes"])
    await admin.close()

    async def make() -> None:
        made = await asyncio.to_thread(trawl, "topics", env=deployment.variables)
        assert made.code == 0, made.err

    pattern = r"the topics: trawl\.outcomes is missing: make topics with `trawl topics`"
    await waits(deployment, look, witness, pattern, make)


async def test_no_registry_and_one_with_another_schema_are_waited_for(
    started: Started, registry_server: Registry
) -> None:
    way = await started.relay(registry_server.port)
    url = registry_server.url.replace(str(registry_server.port), str(way.port))
    deployment, look, witness = await started.deploy(TRAWL_KAFKA_REGISTRY_URL=url)
    await look.send(Seed(url="http://a.test/"))
    await way.shut()
    deployment.start("frontier")
    await witness.told(
        "frontier", rf"the schema registry: the schema registry at {url} does not answer.*kafka\.registry_url"
    )

    await asyncio.to_thread(register_another_schema, registry_server)
    await way.open()
    try:
        await witness.told("frontier", rf"{SUBJECT}.*409.*not compatible.*Run the newest version everywhere, or delete")
    finally:
        await asyncio.to_thread(tell, registry_server, "DELETE", f"/subjects/{SUBJECT}")
    await takes_what_was_sent(look, witness)


def register_another_schema(registry: Registry) -> None:
    """Another program has the subject of orders."""
    tell(registry, "DELETE", f"/subjects/{SUBJECT}")
    tell(registry, "PUT", f"/config/{SUBJECT}", {"compatibility": "NONE"})
    tell(registry, "POST", f"/subjects/{SUBJECT}/versions", {"schema": json.dumps(OTHER_SCHEMA), "schemaType": "AVRO"})


def tell(registry: Registry, method: str, path: str, body: Any = None) -> None:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{registry.url}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        answer.read()


# Redis


async def test_a_wrong_password_of_redis_is_told_by_its_setting_and_not_shown(
    started: Started, redis: RedisServer
) -> None:
    url = f"redis://:{PASSWORD}@127.0.0.1:{redis.port}/0"
    deployment, look, witness = await started.deploy(TRAWL_REDIS_URL=url)
    await look.send(Seed(url="http://a.test/"))
    redis.ask("CONFIG", "SET", "requirepass", "another")

    async def give_it_that_password() -> None:
        redis.ask("-a", "another", "CONFIG", "SET", "requirepass", PASSWORD)

    try:
        pattern = rf"Redis: Redis at redis://127\.0\.0\.1:{redis.port}/0 refuses the name or password in redis\.url"
        said = await waits(deployment, look, witness, pattern, give_it_that_password)
    finally:
        for password in ("another", PASSWORD):
            redis.ask("-a", password, "CONFIG", "SET", "requirepass", "")
    assert PASSWORD not in said
    assert PASSWORD not in deployment.log()


async def test_a_redis_that_evicts_is_told_with_the_policy_to_set(started: Started, redis: RedisServer) -> None:
    deployment, look, witness = await started.deploy(TRAWL_REDIS_URL=redis.url)
    await look.send(Seed(url="http://a.test/"))
    redis.ask("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")

    async def keep_all() -> None:
        redis.ask("CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "noeviction")

    pattern = r"Redis: .*evicts keys when it is full \(maxmemory-policy allkeys-lru\).*set maxmemory-policy noeviction"
    await waits(deployment, look, witness, pattern, keep_all)


async def test_a_clock_that_differs_is_told_by_how_much(started: Started, redis: RedisServer) -> None:
    way = await started.relay(redis.port)
    deployment, look, witness = await started.deploy(TRAWL_REDIS_URL=f"redis://127.0.0.1:{way.port}/0")
    await look.send(Seed(url="http://a.test/"))
    way.change = later(120)

    async def synchronise() -> None:
        way.change = None

    pattern = r"Redis: the clock of this machine differs by -1(20\.0\d|19\.\d\d) s .*synchronise the clocks \(NTP\)"
    await waits(deployment, look, witness, pattern, synchronise)


# OpenSearch


async def test_a_wrong_password_of_opensearch_is_told_by_its_settings(
    started: Started, opensearch_server: OpenSearchServer
) -> None:
    front = await started.exit.enter_async_context(proxy(opensearch_server.url))
    login = {"TRAWL_OPENSEARCH_USERNAME": "crawler", "TRAWL_OPENSEARCH_PASSWORD": PASSWORD}
    deployment, look, witness = await started.deploy(TRAWL_OPENSEARCH_URL=front.url, **login)
    document = ExtractedDocument(
        document_key=7, crawl_id="c", request_key=1, fetch_id=2, url="http://a.test/", final_url="http://a.test/",
        fetched_at_ms=1000, text="A heron stands in the reeds.",
    )  # fmt: skip
    await look.send(UniqueDocument(document=document, novelty=Novelty.NEW))
    front.login = "crawler:another"
    deployment.start("indexer")

    said = await witness.told("indexer", r"OpenSearch: .*refuses the name or password: look at opensearch\.username")
    assert PASSWORD not in said
    front.login = f"crawler:{PASSWORD}"
    await witness.until_ready("indexer")

    async def indexed() -> bool:
        return await look.pages.size() == 1

    await witness.until(indexed)
    assert len(await look.records("trawl.indexed")) == 1
    assert await look.records("trawl.dead-letters") == []
