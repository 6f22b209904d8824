"""Real servers for tests: each started when the first test asks for it, and stopped at the end of the run."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack import guard
from devstack.packages import PLACE
from devstack.process import free_port
from devstack.servers import KafkaServer, OpenSearchServer, RedisCluster, RedisServer, Registry

__all__ = ["KafkaServer", "OpenSearchServer", "RedisCluster", "RedisServer", "Registry"]


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """The data of all servers, until the end of the run, however that ends.

    Not in pytest's own temporary folder: each run that starts closes that to other users, and OpenSearch is one.
    """
    place = PLACE / "tests"
    place.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=place))
    folder.chmod(0o755)
    guard.forget(folder)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server(servers_folder: Path) -> Iterator[RedisServer]:
    with RedisServer(servers_folder / "redis", free_port()) as server:
        yield server


@pytest.fixture(scope="session")
def redis_cluster(servers_folder: Path) -> Iterator[RedisCluster]:
    with RedisCluster(servers_folder / "redis-cluster", [free_port() for _ in range(3)]) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kafka_server(servers_folder: Path) -> Iterator[KafkaServer]:
    with KafkaServer(servers_folder / "kafka", free_port(), free_port()) as server:
        yield server


@pytest.fixture(scope="session")
def registry_server(servers_folder: Path, kafka_server: KafkaServer) -> Iterator[Registry]:
    with Registry(servers_folder / "registry", free_port(), free_port(), kafka_server) as server:
        yield server


@pytest.fixture(scope="session")
def opensearch_server(servers_folder: Path) -> Iterator[OpenSearchServer]:
    with OpenSearchServer(servers_folder / "opensearch", free_port(), free_port()) as server:
        yield server
