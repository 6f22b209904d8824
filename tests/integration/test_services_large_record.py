"""A record that is larger than a topic takes, made by a real page, in running services."""

import random
from pathlib import Path

from tests.e2e.deployed import Bystander, deployed, through
from tests.e2e.running import serving
from tests.integration.faults import QUICK, Witness
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site import Site, with_headers
from tests.site.responders.mirrors import article
from trawl.kinds import OutcomeClass, Purpose
from trawl.records import DeadLetter, FetchedPage, FetchOutcome, Seed


async def test_a_page_whose_headers_outgrow_a_record_is_one_dead_letter(
    kafka_server: KafkaServer, redis_server: RedisServer, opensearch_server: OpenSearchServer, tmp_path: Path
) -> None:
    noise = random.Random(1).randbytes(15_000).hex()
    pages = {"/": article("start"), "/large": with_headers(article("large"), ("X-Noise", noise))}
    with serving(Site("headers.test", pages)) as web:
        variables = {
            **QUICK,
            **through(web.proxy, web.ca_file),
            "TRAWL_KAFKA_RECORD_BYTES_MAX": "20000",
            "TRAWL_KAFKA_INLINE_BYTES_MAX": "10000",
        }
        servers = (kafka_server, redis_server, opensearch_server)
        with deployed(servers, tmp_path, variables) as deployment:
            async with Bystander(deployment) as look:
                await look.send(Seed(url="http://headers.test/large"), Seed(url="http://headers.test/"))
                deployment.start("frontier", "fetcher")

                async def both() -> bool:
                    return bool(await look.records("trawl.dead-letters") and await look.records("trawl.fetched"))

                await Witness(deployment).until(both)
                letters = [one for one in await look.records("trawl.dead-letters") if isinstance(one, DeadLetter)]
                assert [(one.reason, one.topic) for one in letters] == [("RecordTooLargeError", "trawl.fetch-tasks")]
                outcomes = [one for one in await look.records("trawl.outcomes") if isinstance(one, FetchOutcome)]
                assert [(one.url, one.outcome, one.reason) for one in outcomes if one.purpose is Purpose.PAGE] == [
                    ("http://headers.test/large", OutcomeClass.FAILED, "fetcher_error")
                ]
                fetched = [one for one in await look.records("trawl.fetched") if isinstance(one, FetchedPage)]
                assert [one.url for one in fetched] == ["http://headers.test/"]
