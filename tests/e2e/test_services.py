"""The five services over real servers: what they must prove together."""

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.deployed import STAGES, Bystander, Deploy, clusters, texts, through
from tests.e2e.running import Corpus, crawl, serving
from tests.servers import Registry
from tests.site.process import WebProcess
from tests.site.sites.demo import demo
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.sqlite import Database, SqlitePageStore
from trawl.ports import SearchQuery, StoredPage
from trawl.records import FetchOutcome, Seed

pytestmark = pytest.mark.timeout(300)


async def embedded_pages(folder: Path) -> list[StoredPage]:
    database = Database(folder, read_only=True)
    try:
        return [page async for page in SqlitePageStore(database).pages("default")]
    finally:
        database.close()


async def test_the_services_make_what_the_embedded_crawl_makes(
    deploy: Deploy, registry_server: Registry, tmp_path: Path
) -> None:
    with serving(demo()) as web:
        done = await asyncio.to_thread(crawl, web, "http://demo.test/", out=tmp_path / "embedded")
        assert done.code == 0, done.err
        corpus = Corpus(tmp_path / "embedded")
        expected = await embedded_pages(tmp_path / "embedded")
        deployment = deploy(**through(web.proxy, web.ca_file), TRAWL_KAFKA_REGISTRY_URL=registry_server.url)
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


async def test_three_fetchers_keep_one_hosts_crawl_delay_over_kills_and_rebalances(deploy: Deploy) -> None:
    with WebProcess("tiny-delay:tiny.test:20") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start(*STAGES, "fetcher", "fetcher")
            await look.send(Seed(url="http://tiny.test/"))
            for hits, number in ((4, signal.SIGKILL), (8, signal.SIGTERM), (12, signal.SIGKILL)):

                async def some(hits: int = hits) -> bool:
                    return len(web.hits("tiny.test")) >= hits

                await look.until(some, 60)
                deployment.kill("fetcher", number)
                deployment.start("fetcher")
            await look.until_indexed(20, 120)
        gaps = web.gaps("tiny.test")
        assert len(gaps) >= 20
        assert min(gaps) >= 0.99  # the server sees a request a little after it was sent
