"""The five services over real servers: what they must prove together."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from tests.e2e.deployed import STAGES, Bystander, Deployment, clusters, deployed, texts, through
from tests.e2e.running import Corpus, crawl, serving
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site.process import WebProcess
from tests.site.sites.demo import demo
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.sqlite import Database, SqlitePageStore
from trawl.ports import SearchQuery, StoredPage
from trawl.records import DeadLetter, FetchOutcome, Seed

Deploy = Callable[..., Deployment]
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def deploy(
    kafka_server: KafkaServer, redis_server: RedisServer, opensearch_server: OpenSearchServer, tmp_path: Path
) -> Iterator[Deploy]:
    servers = (kafka_server, redis_server, opensearch_server)
    with ExitStack() as stack:
        yield lambda **variables: stack.enter_context(deployed(servers, tmp_path, variables))


async def embedded_pages(folder: Path) -> list[StoredPage]:
    database = Database(folder, read_only=True)
    try:
        return [page async for page in SqlitePageStore(database).pages("default")]
    finally:
        database.close()


async def test_the_services_make_what_the_embedded_crawl_makes(deploy: Deploy, tmp_path: Path) -> None:
    with serving(demo()) as web:
        done = await asyncio.to_thread(crawl, web, "http://demo.test/", out=tmp_path / "embedded")
        assert done.code == 0, done.err
        corpus = Corpus(tmp_path / "embedded")
        expected = await embedded_pages(tmp_path / "embedded")
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start()
            await look.send(Seed(url="http://demo.test/"))
            await look.until_indexed(len(expected), 90)
            found = await look.stored()
            assert texts(found) == texts(expected)
            outcomes = [one for one in await look.records("trawl.outcomes") if isinstance(one, FetchOutcome)]
            repeated = {(one.url, one.duplicate_of_url) for one in outcomes if one.duplicate_of_url}
            rows = corpus.by_url.values()
            assert clusters((page.document.final_url for page in found), repeated) == clusters(
                (row["final_url"] for row in rows if not row["duplicate_of"]),
                ((row["url"], row["duplicate_of"]) for row in rows if row["duplicate_of"]),
            )
            progress = await look.progress()
            ended = await asyncio.to_thread(corpus.outcomes)
            assert Counter(dict(progress.outcomes)) == Counter(outcome for _, outcome, _ in ended)
            assert await look.index.size() == corpus.count("chunk")
            letters = await look.records("trawl.dead-letters")
            assert letters == []
            # and what was crawled is found
            embedder = WordllamaEmbedder()
            await look.index.open(embedder.name, embedder.dimensions)
            text = found[0].document.title
            hits = await look.index.search(SearchQuery(text=text, vector=await embedder.embed([text])))
            assert hits[0].chunk.title == text


async def test_every_service_is_killed_and_no_page_is_lost_or_twice(deploy: Deploy) -> None:
    count = int(os.environ.get("TRAWL_KILLED_PAGES", "500"))
    kills = 10 if os.environ.get("TRAWL_SOAK") else 1
    with WebProcess(f"tiny:tiny.test:{count}") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start()
            await look.send(Seed(url="http://tiny.test/"))
            victims = [stage for stage in STAGES for _ in range(kills)]
            random.shuffle(victims)
            for number, stage in enumerate(victims, start=1):
                wanted = number * count // (len(victims) + 2)

                async def reached(wanted: int = wanted) -> bool:
                    return sum(dict((await look.progress()).outcomes).values()) >= wanted

                await look.until(reached, 240)
                deployment.kill(stage)
                deployment.start(stage)
            await look.until_indexed(count, 300)
            stored = await look.stored()
            urls = Counter(page.document.final_url for page in stored)
            assert len(urls) == count
            assert set(urls.values()) == {1}
            assert await look.index.size() == sum(len(page.chunks) for page in stored)
            progress = await look.progress()
            assert (progress.queued, progress.leased, dict(progress.outcomes)) == (0, 0, {"indexed": count})
            assert await look.records("trawl.dead-letters") == []


async def test_three_fetchers_keep_one_hosts_crawl_delay_over_kills(deploy: Deploy) -> None:
    with WebProcess("tiny:tiny.test:12") as web:
        deployment = deploy(
            **through(web.proxy, web.ca_file),
            TRAWL_POLITENESS_DELAY_SECONDS="1",
            TRAWL_POLITENESS_PER_HOST_CONCURRENCY="1",
        )
        async with Bystander(deployment) as look:
            deployment.start(*STAGES, "fetcher", "fetcher")
            await look.send(Seed(url="http://tiny.test/"))

            async def some() -> bool:
                return len(web.hits("tiny.test")) >= 4

            await look.until(some, 60)
            deployment.kill("fetcher")
            deployment.start("fetcher")
            await look.until_indexed(12, 120)
        gaps = web.gaps("tiny.test")
        assert len(gaps) >= 12
        assert min(gaps) >= 0.99  # the server sees a request a little after it was sent


async def test_poison_is_put_aside_and_the_stream_goes_on(deploy: Deploy) -> None:
    with WebProcess("tiny:tiny.test:20") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start()
            servers = list(deployment.settings.kafka.bootstrap_servers)
            async with AIOKafkaProducer(bootstrap_servers=servers) as raw:
                await raw.send_and_wait("trawl.fetched", b"\x00\x01 no record", partition=0)
                await raw.send_and_wait("trawl.fetched", b"\xc3\x01unknown schema", partition=0)
                await raw.send_and_wait("trawl.seeds", b'{"address": "http://tiny.test/"}', partition=1)
                await raw.send_and_wait("trawl.seeds", b"http://tiny.test/\n", partition=1)
            await look.until_indexed(20, 90)
            letters = [one for one in await look.records("trawl.dead-letters") if isinstance(one, DeadLetter)]
            assert Counter((letter.topic, letter.reason) for letter in letters) == {
                ("trawl.fetched", "UnknownSchemaError"): 2,
                ("trawl.seeds", "RecordDecodeError"): 1,
            }
            assert {letter.payload.inline for letter in letters} >= {b"\xc3\x01unknown schema"}
