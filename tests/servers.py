"""Real servers for tests: each started when the first test asks for it, and stopped at the end of the run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.process import free_port
from devstack.servers import KafkaServer, OpenSearchServer, RedisCluster, RedisServer, Registry

__all__ = ["KafkaServer", "OpenSearchServer", "RedisCluster", "RedisServer", "Registry"]


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of all servers. OpenSearch's plain user must be able to reach its own."""
    folder = tmp_path_factory.mktemp("servers")
    for path in (folder, *folder.parents):
        if path.stat().st_mode & 0o055 != 0o055 and path.owner() != "nobody":
            path.chmod(path.stat().st_mode | 0o011)
    return folder


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
