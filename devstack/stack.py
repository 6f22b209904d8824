"""The whole stack on this machine: the servers, then the five services, each on its port."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from devstack.packages import PLACE, ROOT
from devstack.process import DevstackError
from devstack.server import Server, answers, ask
from devstack.servers import KafkaServer, OpenSearchServer, Prometheus, RedisServer, Registry

CHECKOUT: Final = ROOT.parent
FOLDER: Final = Path(os.environ.get("DEVSTACK_FOLDER", PLACE / "data")).absolute()
PORTS: Final[Mapping[str, int]] = {
    "kafka": 9092,
    "kafka_controller": 9093,
    "registry": 8081,
    "registry_management": 9081,
    "redis": 6379,
    "opensearch": 9200,
    "opensearch_transport": 9300,
    "prometheus": 9090,
    "frontier": 8101,
    "fetcher": 8102,
    "extractor": 8103,
    "dedup": 8104,
    "indexer": 8105,
}
"""On loopback; a variable such as DEVSTACK_KAFKA_PORT chooses another."""
SERVICES: Final = ("frontier", "fetcher", "extractor", "dedup", "indexer")


def port(name: str) -> int:
    """The port of a server or service."""
    text = os.environ.get(f"DEVSTACK_{name.upper()}_PORT", str(PORTS[name]))
    if not text.isdigit():
        raise DevstackError(f"DEVSTACK_{name.upper()}_PORT = {text!r} is no port")
    return int(text)


def variables() -> dict[str, str]:
    """What the services, and `trawl` beside them, are told by variables."""
    return {
        "TRAWL_KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port('kafka')}",
        "TRAWL_KAFKA_REGISTRY_URL": f"http://127.0.0.1:{port('registry')}/apis/ccompat/v7",
        "TRAWL_REDIS_URL": f"redis://127.0.0.1:{port('redis')}/0",
        "TRAWL_OPENSEARCH_URL": f"http://127.0.0.1:{port('opensearch')}",
        "TRAWL_BLOBS_URL": f"file:{FOLDER / 'blobs'}",
    }


def topics_command() -> list[str]:
    """What makes and checks the topics."""
    return [sys.executable, "-m", "trawl", "topics"]


class ServiceProcess(Server):
    """One of the five services."""

    def __init__(self, name: str, folder: Path, port: int) -> None:
        self.name = name
        super().__init__(folder, port)

    @property
    def place(self) -> Path:
        """Where it was started: the settings that it is given may name files from there."""
        return Path.cwd()

    def install(self) -> None:
        """It is this checkout."""

    def command(self) -> Sequence[str]:
        """Its module."""
        return [sys.executable, "-m", f"services.{self.name}"]

    def environment(self) -> dict[str, str]:
        """The places of all servers; what stands in the environment already wins."""
        paths = os.pathsep.join(filter(None, [str(CHECKOUT), os.environ.get("PYTHONPATH", "")]))
        told = {**variables(), **os.environ, "PYTHONPATH": paths}
        return {**told, "TRAWL_SERVICE_PORT": str(self.port)}

    def healthy(self) -> bool:
        """Whether it takes records."""
        return answers(f"{self.url}/readyz") is not None

    def complaint(self) -> str:
        """The reasons why it takes no records."""
        _, body = ask(f"{self.url}/readyz")
        return body.decode("utf-8", "replace").strip()


def servers() -> list[Server]:
    """All servers, in the order of their start."""
    kafka = KafkaServer(FOLDER / "kafka", port("kafka"), port("kafka_controller"))
    return [
        RedisServer(FOLDER / "redis", port("redis")),
        kafka,
        OpenSearchServer(FOLDER / "opensearch", port("opensearch"), port("opensearch_transport")),
        Prometheus(FOLDER / "prometheus", port("prometheus"), {name: port(name) for name in SERVICES}),
        Registry(FOLDER / "registry", port("registry"), port("registry_management"), kafka),
    ]


def services() -> list[Server]:
    """The five services, in the order of the flow."""
    return [ServiceProcess(name, FOLDER / name, port(name)) for name in SERVICES]
