"""The services after Redis has lost everything: rebuilt, they go on where the crawl was, or begin it again."""

import asyncio
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from tests.e2e.deployed import STAGES, Bystander, Deployment, deployed, through
from tests.e2e.running import trawl
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site.process import WebProcess
from trawl.adapters.kafka.reading import reader
from trawl.adapters.redis import connect
from trawl.records import Seed

PAGES = 60
HOST = "tiny.test"
SEED = Seed(url=f"http://{HOST}/")
SLOW = {"TRAWL_POLITENESS_DELAY_SECONDS": "0.1", "TRAWL_POLITENESS_PER_HOST_CONCURRENCY": "2"}
"""So that a crawl can be stopped under way."""
STILL_LOOKS = 12
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def web() -> Iterator[WebProcess]:
    with WebProcess(f"tiny:{HOST}:{PAGES}") as served:
        yield served


@pytest.fixture
def deployment(
    web: WebProcess,
    kafka_server: KafkaServer,
    redis_server: RedisServer,
    opensearch_server: OpenSearchServer,
    tmp_path: Path,
) -> Iterator[Deployment]:
    servers = (kafka_server, redis_server, opensearch_server)
    with deployed(servers, tmp_path, {**through(web.proxy, web.ca_file), **SLOW}) as made:
        yield made


async def lose(deployment: Deployment) -> None:
    """All that Redis holds of the deployment is gone."""
    client = connect(deployment.settings.redis)
    keys = [key async for key in client.scan(f"{deployment.settings.redis.prefix}:*")]
    for key in keys:
        await client.ask("DEL", key)
    await client.close()


async def rebuilt(deployment: Deployment, *options: str, beside: str = "") -> dict[str, object]:
    """What a rebuild says that it did; it warns of the services that run beside it, and of nothing else."""
    variables = {name: value for name, value in deployment.environment.items() if name.startswith("TRAWL_")}
    ran = await asyncio.to_thread(trawl, "rebuild", "--json", *options, env=variables)
    assert ran.code == 0, ran.err
    assert ran.err.partition(" run meanwhile")[0] == beside
    assert ran.err.count("\n") == bool(beside)
    return ran.summary


async def read_links_again(look: Bystander, deployment: Deployment) -> None:
    """Put the frontier's group back to the beginning of trawl.discovered, as Kafka's own tool does."""
    settings = deployment.settings.kafka
    group = f"{settings.group_prefix}-frontier"
    async with reader(settings, "putting a group back") as read:
        begins = await read.begins(await read.places(["trawl.discovered"]))

        async def has_nobody() -> bool:
            return not await read.members(group)

        await look.until(has_nobody, 30)
    consumer = AIOKafkaConsumer(bootstrap_servers=list(settings.bootstrap_servers), group_id=group)
    await consumer.start()
    try:
        consumer.assign(list(begins))
        await consumer.commit(dict(begins))
    finally:
        await consumer.stop()


async def drained(look: Bystander) -> None:
    """Wait until nothing that was released is under way any more."""
    seen: list[int] = []

    async def stays() -> bool:
        seen.append(await look.pages.size())
        return len(seen) > STILL_LOOKS and len(set(seen[-STILL_LOOKS:])) == 1

    await look.until(stays, 60)


async def test_a_crawl_under_way_goes_on_and_fetches_no_page_again(deployment: Deployment, web: WebProcess) -> None:
    async with Bystander(deployment) as look:
        deployment.start()
        await look.send(SEED)
        await look.until(lambda: has_pages(look, 15), 90)
        deployment.kill("frontier", signal.SIGTERM)
        await drained(look)
        deployment.close()
        await lose(deployment)
        stored = {page.document.url for page in await look.stored()}
        assert 15 <= len(stored) < PAGES

        assert (await rebuilt(deployment))["pages"] == len(stored)

        web.clear()
        await look.send(SEED)
        deployment.start()
        await look.until(lambda: knows_the_crawl(look), 60)
        deployment.kill("frontier", signal.SIGTERM)
        await read_links_again(look, deployment)
        deployment.start("frontier")
        await look.until_indexed(PAGES, 120)
        pages = await look.stored()
        assert Counter(page.document.url for page in pages) == Counter(dict.fromkeys(urls(), 1))
        assert {f"http://{HOST}{hit.path}" for hit in web.hits(HOST)} & stored == set()
        assert (await look.index.size()) == sum(len(page.chunks) for page in pages)
        assert dict((await look.progress()).outcomes).keys() <= {"indexed", "unchanged"}  # nothing repeats itself


async def test_a_crawl_that_begins_again_indexes_nothing_again(deployment: Deployment, web: WebProcess) -> None:
    async with Bystander(deployment) as look:
        deployment.start()
        await look.send(SEED)
        await look.until_indexed(PAGES, 90)
        beside = "note: frontier, fetcher, extractor, dedup"
        assert (await rebuilt(deployment, "--only-fingerprints", beside=beside))["fingerprints"] == 0
        deployment.close()
        await lose(deployment)
        before = await look.stored()

        assert (await rebuilt(deployment, "--only-fingerprints"))["fingerprints"] == PAGES

        web.clear()
        deployment.start(*STAGES)
        await look.send(SEED)
        await look.until(lambda: ended(look, PAGES), 120)
        assert dict((await look.progress()).outcomes) == {"unchanged": PAGES}
        assert await look.stored() == before
        assert {f"http://{HOST}{hit.path}" for hit in web.hits(HOST)} >= urls()


def urls() -> set[str]:
    return {SEED.url, *(f"{SEED.url}n/{number}" for number in range(1, PAGES))}


async def has_pages(look: Bystander, count: int) -> bool:
    return await look.pages.size() >= count


async def knows_the_crawl(look: Bystander) -> bool:
    return await look.frontier.crawl("default") is not None


async def ended(look: Bystander, count: int) -> bool:
    progress = await look.progress()
    return not progress.queued and not progress.leased and sum(dict(progress.outcomes).values()) >= count
