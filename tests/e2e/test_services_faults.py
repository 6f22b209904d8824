"""Records that nobody can handle, bodies of any size, and an index that is away."""

import asyncio
import random
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from tests.e2e.buggy_extractor import BAD_PATH
from tests.e2e.deployed import STAGES, Bystander, Deploy, through
from tests.e2e.running import serving, trawl
from tests.servers import OpenSearchServer
from tests.site import Reply, Site
from tests.site.process import WebProcess
from tests.site.responders.mirrors import article
from tools.freeze import sample
from trawl.adapters.blobs import FileBlobStore
from trawl.kinds import OutcomeClass
from trawl.records import DeadLetter, ExtractedDocument, FetchedPage, FetchOutcome, Payload, Seed
from trawl.settings import Settings

pytestmark = pytest.mark.timeout(600)
OUTAGE_SECONDS = 120
SETTLED_SECONDS = 30
GROWTH_BYTES = 30_000_000
BAD_SEED = b'{"url": "no address", "pages_max": 7}'


async def letters_of(look: Bystander) -> list[DeadLetter]:
    return [one for one in await look.records("trawl.dead-letters") if isinstance(one, DeadLetter)]


def damage_the_blob_in(folder: Path) -> None:
    (stored,) = (path for path in folder.rglob("*") if path.is_file())
    stored.write_bytes(bytes([stored.read_bytes()[0] ^ 1]) + stored.read_bytes()[1:])


async def send_with_damaged_blob(look: Bystander, blobs: Path) -> None:
    """Send a page whose body travels by reference, to a file in which a bit fell over."""
    body = random.Random(2).randbytes(2 * Settings().kafka.inline_bytes_max)
    await FileBlobStore(blobs).put(body)
    damage_the_blob_in(blobs)
    page: FetchedPage = sample(FetchedPage, "FetchedPage")
    await look.send(replace(page, body=Payload(inline=body, size_bytes=len(body))))


async def test_poison_is_put_aside_and_the_stream_goes_on(deploy: Deploy) -> None:
    with WebProcess("tiny:tiny.test:20") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start()
            await send_with_damaged_blob(look, deployment.folder / "blobs")
            servers = list(deployment.settings.kafka.bootstrap_servers)
            async with AIOKafkaProducer(bootstrap_servers=servers) as raw:
                await raw.send_and_wait("trawl.fetched", b"\x00\x01 no record", partition=0)
                await raw.send_and_wait("trawl.fetched", b"\xc3\x01unknown schema", partition=0)
                await raw.send_and_wait("trawl.seeds", b'{"address": "http://tiny.test/"}', partition=1)
                await raw.send_and_wait("trawl.seeds", BAD_SEED, key=b"mine", partition=2)
                await raw.send_and_wait("trawl.seeds", b"http://tiny.test/\nnot me\nnor me\n", partition=2)
            await look.until_indexed(20, 90)
            letters = await letters_of(look)
            assert Counter((letter.topic, letter.reason) for letter in letters) == {
                ("trawl.fetched", "UnknownSchemaError"): 2,
                ("trawl.fetched", "RecordDecodeError"): 1,
                ("trawl.seeds", "RecordDecodeError"): 1,
                ("trawl.seeds", "invalid_url"): 3,
            }
            assert [
                (one.partition, one.offset, one.key, one.payload.inline)
                for one in letters
                if one.reason == "invalid_url"
            ] == [(2, 0, b"mine", BAD_SEED), (2, 1, b"", b"not me"), (2, 1, b"", b"nor me")]
            assert {letter.payload.inline for letter in letters} >= {b"\xc3\x01unknown schema"}


async def test_a_page_that_brings_out_a_bug_is_put_aside_and_done_once_after_the_fix(deploy: Deploy) -> None:
    with WebProcess("tiny:tiny.test:80") as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start(*(stage for stage in STAGES if stage != "extractor"))
            deployment.start("extractor", module="tests.e2e.buggy_{}")
            await look.send(Seed(url="http://tiny.test/"))

            async def given_up() -> bool:
                progress = await look.progress()
                return not progress.queued and not progress.leased and dict(progress.outcomes).get("failed", 0) == 1

            await look.until(given_up, 90)
            assert [(one.reason, one.topic) for one in await letters_of(look)] == [
                ("ZeroDivisionError", "trawl.fetched")
            ]
            before = await look.pages.size()
            deployment.kill("extractor")
            deployment.start("extractor")
            for _ in range(2):
                replayed = await asyncio.to_thread(trawl, "dlq", "replay", "--all", "--json", env=deployment.variables)
                assert replayed.code == 0, replayed.err
            await look.until_indexed(80, 90)
            urls = Counter(page.document.final_url for page in await look.stored())
            assert (before < 80, len(urls), set(urls.values())) == (True, 80, {1})
            assert urls[f"http://tiny.test{BAD_PATH}"] == 1
            assert len(await letters_of(look)) == 1


async def test_a_body_at_the_cap_travels_by_reference_and_one_over_it_is_an_outcome(deploy: Deploy) -> None:
    cap = Settings().fetch.body_bytes_max
    assert cap == 20_000_000
    page = article("whole").body
    noise = random.Random(1).randbytes(cap).hex()[: cap - len(page) - len("<!---->")]
    whole = page.replace(b"</body>", f"<!--{noise}--></body>".encode())
    assert len(whole) == cap
    html = "text/html; charset=utf-8"
    pages = {
        "/": article("start", links=["/whole", "/over"]),
        "/whole": Reply(body=whole, content_type=html),
        "/over": Reply(body=whole + b" ", content_type=html),
    }
    with serving(Site("large.test", pages)) as web:
        deployment = deploy(**through(web.proxy, web.ca_file))
        async with Bystander(deployment) as look:
            deployment.start()
            await look.send(Seed(url="http://large.test/"))
            await look.until_indexed(2, 120)
            stored = {page.document.final_url: page.document for page in await look.stored()}
            assert set(stored) == {"http://large.test/", "http://large.test/whole"}
            sent = {one.url: one for one in await look.records("trawl.documents") if isinstance(one, ExtractedDocument)}
            html_of = sent["http://large.test/whole"].html
            assert (html_of.size_bytes, html_of.inline, bool(html_of.ref)) == (cap, b"", True)
            outcomes = [one for one in await look.records("trawl.outcomes") if isinstance(one, FetchOutcome)]
            (over,) = [one for one in outcomes if one.url == "http://large.test/over" and one.terminal]
            assert (over.outcome, over.reason) == (OutcomeClass.FAILED, "wire_too_large")
            assert await letters_of(look) == []


async def test_an_index_that_is_away_for_two_minutes_costs_nothing(
    deploy: Deploy, opensearch_server: OpenSearchServer
) -> None:
    count, outstanding = 1500, 400
    with WebProcess(f"tiny:tiny.test:{count}") as web:
        deployment = deploy(
            **through(web.proxy, web.ca_file),
            TRAWL_FRONTIER_LEASE_SECONDS="600",
            TRAWL_SERVICE_OUTSTANDING_MAX=str(outstanding),
            TRAWL_SERVICE_RETRY_SECONDS_MAX="2",
        )
        async with Bystander(deployment) as look:
            deployment.start()
            await look.send(Seed(url="http://tiny.test/"))

            async def begun() -> bool:
                return dict((await look.progress()).outcomes).get("indexed", 0) >= 100

            await look.until(begun, 90)
            await asyncio.to_thread(opensearch_server.stop)
            began, grown = time.monotonic(), list[dict[str, int]]()
            settled = deployment.memory_bytes()
            while time.monotonic() < began + OUTAGE_SECONDS:
                await asyncio.sleep(5)
                if time.monotonic() < began + SETTLED_SECONDS:
                    settled = deployment.memory_bytes()
                grown.append(deployment.memory_bytes())
            status, why = deployment.ready("indexer")
            assert (status, "OpenSearch does not answer" in why) == (503, True), why
            assert (await look.progress()).leased <= outstanding
            indexed = dict((await look.progress()).outcomes)["indexed"]
            assert indexed < count // 2, "the crawl was over before the index was away"
            largest = {stage: max(one[stage] for one in grown[-6:]) for stage in STAGES}
            assert {stage: size for stage, size in largest.items() if size > settled[stage] + GROWTH_BYTES} == {}
            await asyncio.to_thread(opensearch_server.start)
            await look.until_indexed(count, 240)
            assert deployment.ready("indexer")[0] == 200
            urls = Counter(page.document.final_url for page in await look.stored())
            assert (len(urls), set(urls.values())) == (count, {1})
            assert web.total() == count + 1, "no page is fetched twice because its index was away"
            assert await letters_of(look) == []
