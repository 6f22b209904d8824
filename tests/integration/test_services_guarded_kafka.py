"""Services and a broker that asks for a name and a password: refused with what to look at, or let in by each client."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.process import free_port
from tests.e2e.deployed import Deployment, deployed
from tests.e2e.running import trawl
from tests.integration.faults import QUICK, Witness
from tests.integration.kafka import messages_on
from tests.integration.test_kafka_security import GuardedKafka
from tests.servers import OpenSearchServer, RedisServer


@pytest.fixture(scope="module")
def guarded(servers_folder: Path) -> Iterator[GuardedKafka]:
    with GuardedKafka(servers_folder / "guarded", free_port(), free_port()) as server:
        yield server


def login(password: str) -> dict[str, str]:
    return {
        **QUICK,
        "TRAWL_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "TRAWL_KAFKA_USERNAME": "owner",
        "TRAWL_KAFKA_PASSWORD": password,
    }


async def run(deployment: Deployment, *arguments: str) -> None:
    done = await asyncio.to_thread(trawl, *arguments, env=deployment.variables)
    assert done.code == 0, done.err


async def test_a_wrong_password_is_refused_and_with_the_right_one_a_seed_is_taken(
    guarded: GuardedKafka, redis_server: RedisServer, opensearch_server: OpenSearchServer, tmp_path: Path
) -> None:
    servers = (guarded, redis_server, opensearch_server)
    (tmp_path / "wrong").mkdir()
    with deployed(servers, tmp_path / "wrong", login("hunter2")) as deployment:
        deployment.start("frontier")
        said = await Witness(deployment).told(
            "frontier", rf"the topics: .*Kafka at {guarded.bootstrap} refuses: .*kafka\.username and kafka\.password"
        )
        assert "hunter2" not in said
    with deployed(servers, tmp_path, login("right")) as deployment:
        await run(deployment, "topics")
        await run(deployment, "seed", "http://a.test/")
        deployment.start("frontier")
        witness = Witness(deployment)
        await witness.until_ready("frontier")

        async def released() -> bool:
            return len(await messages_on(deployment.settings.kafka, "trawl.fetch-tasks")) == 1

        await witness.until(released)
        assert len(await messages_on(deployment.settings.kafka, "trawl.discovered")) == 1
        assert len(await messages_on(deployment.settings.kafka, "trawl.dead-letters")) == 0
