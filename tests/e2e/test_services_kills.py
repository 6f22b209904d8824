"""Whatever ends or starts again, no page is lost or twice."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable

import pytest

from devstack.server import Server
from tests.e2e.deployed import STAGES, Bystander, Deploy, Deployment, through
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site.process import WebProcess
from trawl.records import FetchedPage, Seed

pytestmark = pytest.mark.timeout(1800 if os.environ.get("TRAWL_SOAK") else 600)
PAGES = int(os.environ.get("TRAWL_KILLED_PAGES", "2000"))
KILLS = 10 if os.environ.get("TRAWL_SOAK") else 1
Event = tuple[str, Callable[[], None]]


def _restarted(server: Server) -> None:
    """Ended as by a power failure, and there again."""
    server.kill()
    server.start()


def _killed(deployment: Deployment, stage: str) -> None:
    deployment.kill(stage)
    deployment.start(stage)


def events(deployment: Deployment, *servers: Server) -> list[Event]:
    """What happens during the crawl, in random order; but one fetcher becomes three before three become two."""
    found: list[Event] = [
        (f"kill {stage}", lambda stage=stage: _killed(deployment, stage))  # type: ignore[misc]
        for stage in STAGES
        for _ in range(KILLS)
    ]
    found += [(f"restart {one.name}", lambda one=one: _restarted(one)) for one in servers]  # type: ignore[misc]
    random.shuffle(found)
    up, down = sorted(random.sample(range(len(found) + 1), 2))
    found.insert(down, ("a fetcher less", lambda: deployment.kill("fetcher", signal.SIGTERM)))
    found.insert(up, ("two fetchers more", lambda: deployment.start("fetcher", "fetcher")))
    return found


async def test_no_page_is_lost_or_twice_whatever_ends_or_starts_again(
    deploy: Deploy, kafka_server: KafkaServer, redis_server: RedisServer, opensearch_server: OpenSearchServer
) -> None:
    with WebProcess(f"tiny:tiny.test:{PAGES}") as web:
        deployment = deploy(**through(web.proxy, web.ca_file), TRAWL_POLITENESS_DELAY_SECONDS="0.005")
        async with Bystander(deployment) as look:
            deployment.start()
            await look.send(Seed(url="http://tiny.test/"))
            happening = events(deployment, kafka_server, redis_server, opensearch_server)
            print(*(name for name, _ in happening), sep="; ")  # noqa: T201 - shown if the test fails
            for number, (_, happens) in enumerate(happening, start=1):
                wanted = number * PAGES // (len(happening) + 2)

                async def reached(wanted: int = wanted) -> bool:
                    return sum(dict((await look.progress()).outcomes).values()) >= wanted

                await look.until(reached, 240)
                await asyncio.to_thread(happens)
            await look.until_indexed(PAGES, 300)
            await every_page_once(look)
            fetched = [one for one in await look.records("trawl.fetched") if isinstance(one, FetchedPage)]
            gaps = [(one.timings.gap_actual_ms, one.timings.gap_required_ms) for one in fetched]
            assert [gap for gap in gaps if gap[0] is not None and gap[0] < gap[1]] == []


async def test_no_page_is_lost_between_its_fingerprint_and_the_send(deploy: Deploy) -> None:
    with WebProcess("tiny:tiny.test:20") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start(*(stage for stage in STAGES if stage != "dedup"))
            await look.send(Seed(url="http://tiny.test/"))
            for _ in range(3):
                deployment.start("dedup", module="tests.e2e.dying_{}")
                assert await asyncio.to_thread(deployment.ended, "dedup", 60) == -signal.SIGKILL
            assert await look.pages.size() == 0
            deployment.start("dedup")
            await look.until_indexed(20, 90)
            await every_page_once(look, 20)


async def every_page_once(look: Bystander, count: int = PAGES) -> None:
    """Each page is stored and indexed once, nothing is under way, and no record was given up."""
    stored = await look.stored()
    urls = Counter(page.document.final_url for page in stored)
    assert len(urls) == count
    assert set(urls.values()) == {1}
    assert await look.index.size() == sum(len(page.chunks) for page in stored)
    progress = await look.progress()
    assert (progress.queued, progress.leased, dict(progress.outcomes)) == (0, 0, {"indexed": count})
    assert await look.records("trawl.dead-letters") == []
