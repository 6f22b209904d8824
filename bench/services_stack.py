"""The whole stack for a benchmark, on free ports: real servers, the five services, and what they use and hold."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from bench.measure import descendants, processes
from devstack import guard
from devstack.packages import PLACE
from devstack.process import DevstackError, free_port
from devstack.server import Server
from devstack.servers import KafkaServer, OpenSearchServer, RedisServer, Registry
from devstack.stack import SERVICES, ServiceProcess
from trawl.pipeline import TOPIC
from trawl.settings import Settings, load

FOLDER: Final = PLACE / "bench"
"""Where servers and services have their data and logs; deleted, but for the logs, after a run that succeeded."""
ONE_THREAD: Final = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}
REST_SECONDS: Final = 5.0
"""Between the start of processes and the first record: worker processes import, consumers join their groups."""
_LINUX: Final = sys.platform.startswith("linux")
_TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds that a process has used so far."""

    own: float
    below: float
    """By its descendants, those that ended and were waited for included."""

    @property
    def total(self) -> float:
        """Of the whole tree."""
        return self.own + self.below

    def __sub__(self, before: "Cpu") -> "Cpu":
        return Cpu(self.own - before.own, self.below - before.below)


def cpu_of(pids: Mapping[str, int]) -> dict[str, Cpu]:
    """What processes and all below them have used so far, by name."""
    samples = processes()
    found = {}
    for name, pid in pids.items():
        tree = descendants(pid, samples)
        own = sum(one.cpu_seconds for one in tree if one.pid == pid)
        below = sum(one.cpu_seconds for one in tree if one.pid != pid)
        found[name] = Cpu(own, below + sum(_waited_for(one.pid) for one in tree))
    return found


def spent(before: Mapping[str, Cpu], after: Mapping[str, Cpu]) -> dict[str, Cpu]:
    """What was used between two samples."""
    return {name: cpu - before[name] for name, cpu in after.items()}


def _waited_for(pid: int) -> float:
    """CPU seconds of a process's children that have ended; Linux only, elsewhere they are left out."""
    if not _LINUX:
        return 0.0
    try:
        text = Path("/proc", str(pid), "stat").read_text("utf-8", "replace")
    except OSError:
        return 0.0  # it has ended since the listing
    fields = text.rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / _TICKS  # cutime and cstime, fields 16 and 17 of proc(5)


class BenchService(ServiceProcess):
    """One of the five services with settings of its own; none of the caller's environment reaches it."""

    def __init__(self, name: str, folder: Path, variables: Mapping[str, str]) -> None:
        super().__init__(name, folder, free_port())
        self.variables = dict(variables)

    def environment(self) -> dict[str, str]:
        """The variables that it gets."""
        kept = {name: value for name, value in super().environment().items() if not name.startswith("TRAWL_")}
        return {**kept, **ONE_THREAD, **self.variables, "TRAWL_SERVICE_PORT": str(self.port)}


class Stack:
    """Redis, Kafka, a registry and OpenSearch, and the services over them; a context that starts and ends the servers.

    The services are started by `start`, once there are topics.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        self.kafka = KafkaServer(FOLDER / "kafka", free_port(), free_port())
        self.redis = RedisServer(FOLDER / "redis", free_port())
        opensearch = OpenSearchServer(FOLDER / "opensearch", free_port(), free_port())
        registry = Registry(FOLDER / "registry", free_port(), free_port(), self.kafka)
        self.servers: Sequence[Server] = (self.redis, self.kafka, opensearch, registry)
        self.variables = {
            **variables,
            "TRAWL_KAFKA_BOOTSTRAP_SERVERS": self.kafka.bootstrap,
            "TRAWL_KAFKA_REGISTRY_URL": registry.url,
            "TRAWL_REDIS_URL": self.redis.url,
            "TRAWL_OPENSEARCH_URL": opensearch.url,
            "TRAWL_BLOBS_URL": f"file:{FOLDER / 'blobs'}",
        }
        self.settings: Settings = load({}, self.variables)
        self.services = {name: BenchService(name, FOLDER / name, self.variables) for name in SERVICES}
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        FOLDER.chmod(0o755)  # OpenSearch runs as another user
        try:
            for server in self.servers:
                server.install()
            self._launch(self.servers)
        except BaseException:
            self._exit.close()
            raise
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._exit.close()
        if kind is None:
            for data in (*(server.folder for server in self.servers), FOLDER / "blobs"):
                shutil.rmtree(data, ignore_errors=True)

    def start(self) -> None:
        """Start the services, all at once, and wait until each takes records."""
        self._launch(list(self.services.values()))

    def restart(self, name: str, variables: Mapping[str, str]) -> None:
        """Stop a service and start it again with further settings."""
        service = self.services[name]
        service.stop()
        service.variables |= variables
        service.start()

    def _launch(self, servers: Sequence[Server]) -> None:
        for server in servers:
            guard.watch(server.process)
            self._exit.callback(server.stop)
            server.launch()
        for server in servers:
            server.wait()

    def check(self) -> None:
        """Raise DevstackError if a server or service has ended."""
        for one in (*self.servers, *self.services.values()):
            if one.process.pid is None:
                raise DevstackError(f"{one.name} has ended by itself; its log:\n{one.process.last_lines()}")

    def services_cpu(self) -> dict[str, Cpu]:
        """What each service has used so far."""
        return cpu_of({name: service.process.pid or 0 for name, service in self.services.items()})

    def servers_cpu(self) -> dict[str, Cpu]:
        """What each server has used so far."""
        return cpu_of({server.name: server.process.pid or 0 for server in self.servers})

    def kafka_bytes(self) -> dict[str, int]:
        """What lies in the logs of each topic on disk."""
        found = dict.fromkeys(TOPIC, 0)
        for log in (FOLDER / "kafka" / "data").glob("*-*/*.log"):
            topic = log.parent.name.rpartition("-")[0]
            if topic in found:
                found[topic] += log.stat().st_size
        return found

    def redis_bytes(self) -> int:
        """What Redis holds in memory, without the buffers of its clients and of its journal."""
        lines = self.redis.ask("INFO", "memory").splitlines()
        told = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(told["used_memory"]) - int(told["mem_clients_normal"]) - int(told["mem_aof_buffer"])
