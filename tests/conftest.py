"""Fixtures for all tests."""

from tests.servers import kafka_server, opensearch_server, redis_cluster, redis_server, registry_server, servers_folder
from tests.site.fixtures import fake_web, web_process

__all__ = [
    "fake_web",
    "kafka_server",
    "opensearch_server",
    "redis_cluster",
    "redis_server",
    "registry_server",
    "servers_folder",
    "web_process",
]
