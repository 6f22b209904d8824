"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.deployed import Deploy, deployed
from tests.e2e.running import serving
from tests.servers import KafkaServer, OpenSearchServer, RedisServer
from tests.site import FakeWeb


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    """An empty fake web on a thread of its own; add sites to it at any time."""
    with serving() as served:
        yield served


@pytest.fixture
def deploy(
    kafka_server: KafkaServer, redis_server: RedisServer, opensearch_server: OpenSearchServer, tmp_path: Path
) -> Iterator[Deploy]:
    """Makes a deployment over the real servers, with these variables."""
    servers = (kafka_server, redis_server, opensearch_server)
    with ExitStack() as stack:
        yield lambda **variables: stack.enter_context(deployed(servers, tmp_path, variables))
