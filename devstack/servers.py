"""One class a server: how it is installed and started, and how to tell that it is well."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from devstack import opensearch_node, packages
from devstack.process import DevstackError, Process, is_open

_HTTP_SECONDS: Final = 3.0
_POLL_SECONDS: Final = 0.1
_PLAIN_USER: Final = 9200
"""OpenSearch refuses to run as root; a number is enough, no such user need exist."""


class Server(ABC):
    """A server on loopback with a folder of its own; every method may be called at any time, and again."""

    name: str
    start_seconds_max: float = 60.0

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.process = Process(self.name, folder)

    def __enter__(self) -> Self:
        self.install()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @abstractmethod
    def install(self) -> None:
        """Fetch what it is made of, once; raises DevstackError."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What starts it, after it was installed and prepared."""

    @abstractmethod
    def healthy(self) -> bool:
        """Whether it serves."""

    def prepare(self) -> None:
        """Write its configuration, and its data folder if that is empty."""
        return

    def environment(self) -> dict[str, str]:
        """The variables that it gets."""
        return dict(os.environ)

    def start(self) -> None:
        """Start it and wait until it serves; raises DevstackError with the end of its log. It stays if it runs."""
        if self.process.pid is None:
            if is_open(self.port):
                raise DevstackError(
                    f"{self.name} cannot start: another process listens on port {self.port}; stop it, or choose"
                    f" another with DEVSTACK_{self.name.upper()}_PORT"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            self.prepare()
            self.process.start(self.command(), self.environment(), cwd=self.folder)
        self.wait()

    def wait(self) -> None:
        """Wait until it serves."""
        end = time.monotonic() + self.start_seconds_max
        while not self.healthy():
            if self.process.pid is None:
                raise DevstackError(f"{self.name} has ended at its start; {self._log()}")
            if time.monotonic() > end:
                raise DevstackError(f"{self.name} does not serve after {self.start_seconds_max:.0f} s; {self._log()}")
            time.sleep(_POLL_SECONDS)

    def _log(self) -> str:
        return f"the end of {self.process.log}:\n{self.process.last_lines()}"

    def stop(self) -> None:
        """Let it end in order."""
        self.process.stop()

    def kill(self) -> None:
        """End it as a power failure would."""
        self.process.stop(signal.SIGKILL)


def answers(url: str) -> bytes | None:
    """The body of a successful answer; None without one."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_HTTP_SECONDS) as answer:
            body: bytes = answer.read()
            return body
    except (OSError, urllib.error.URLError):
        return None


class RedisServer(Server):
    """Redis with an append-only file that a crash costs at most a second of, and compact small hashes."""

    name = "redis"
    settings: tuple[str, ...] = (
        "appendonly yes",
        "appendfsync everysec",
        'save ""',
        "maxmemory-policy noeviction",
        "hash-max-listpack-entries 512",
        "hash-max-listpack-value 512",
        "set-max-intset-entries 512",
    )
    cluster = False

    @property
    def url(self) -> str:
        """Its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def install(self) -> None:
        """Debian's package."""
        packages.require("redis-server", "redis-server")

    def prepare(self) -> None:
        """Write redis.conf."""
        lines = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.folder}", "daemonize no", *self.settings]
        if self.cluster:
            lines += ["cluster-enabled yes", "cluster-config-file nodes.conf", "cluster-node-timeout 2000"]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")

    def command(self) -> Sequence[str]:
        """The server itself."""
        return [packages.require("redis-server", "redis-server"), str(self.folder / "redis.conf")]

    def healthy(self) -> bool:
        """Whether it answers a PING."""
        return self.ask("PING") == "PONG"

    def ask(self, *words: str) -> str:
        """The answer to one command, by redis-cli."""
        done = subprocess.run(
            ["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, timeout=10, check=False
        )
        return done.stdout.strip()


class RedisNode(RedisServer):
    """One node of a Redis Cluster."""

    cluster = True


class RedisCluster:
    """Three masters of a Redis Cluster, for tests."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.nodes = [RedisNode(folder / str(port), port) for port in ports]

    @property
    def url(self) -> str:
        """One of the nodes."""
        return self.nodes[0].url

    def __enter__(self) -> Self:
        try:
            self._form()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _form(self) -> None:
        for node in self.nodes:
            node.__enter__()
        places = [f"127.0.0.1:{node.port}" for node in self.nodes]
        self.nodes[0].ask("--cluster", "create", *places, "--cluster-replicas", "0", "--cluster-yes")
        end = time.monotonic() + 30
        while any("cluster_state:ok" not in node.ask("CLUSTER", "INFO") for node in self.nodes):
            if time.monotonic() > end:
                raise DevstackError("the Redis Cluster does not come up in 30 s")
            time.sleep(_POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        for node in self.nodes:
            node.stop()


class KafkaServer(Server):
    """Kafka as one node of KRaft."""

    name = "kafka"

    def __init__(self, folder: Path, port: int, controller_port: int, *, record_bytes_max: int = 2_000_000) -> None:
        super().__init__(folder, port)
        self._controller_port = controller_port
        self._record_bytes_max = record_bytes_max

    @property
    def bootstrap(self) -> str:
        """Its address for clients."""
        return f"127.0.0.1:{self.port}"

    @cached_property
    def _libraries(self) -> Path:
        return packages.maven("kafka")

    def install(self) -> None:
        """Maven artifacts."""
        _ = self._libraries

    def prepare(self) -> None:
        """Write its properties, and format its log folder once."""
        properties = self.folder / "kafka.properties"
        properties.write_text(self._properties())
        if (self.folder / "data" / "meta.properties").exists():
            return
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        done = subprocess.run(
            [packages.java(), "-cp", f"{self._libraries}/*", "kafka.tools.StorageTool", "format", "--standalone",
             "--ignore-formatted", f"--cluster-id={cluster}", "-c", str(properties)],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode:
            raise DevstackError(f"the log folder of Kafka could not be formatted: {done.stdout}{done.stderr}")

    def _properties(self) -> str:
        controller = f"127.0.0.1:{self._controller_port}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "message.max.bytes": str(2 * self._record_bytes_max),
            "replica.fetch.max.bytes": str(2 * self._record_bytes_max),
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            # one node: every internal topic has one copy
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "10",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "10",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # small
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": "16777216",
            "log.segment.bytes": "67108864",
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())

    def command(self) -> Sequence[str]:
        """The broker and its controller in one Java process."""
        log4j = packages.ROOT / "kafka" / "log4j2.yaml"
        return [
            packages.java(), "-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log4j}",
            "-cp", f"{self._libraries}/*", "kafka.Kafka", str(self.folder / "kafka.properties"),
        ]  # fmt: skip

    def healthy(self) -> bool:
        """Whether it says in its log that it has started, and listens."""
        began = "Kafka Server started"
        text = self.process.log.read_text("utf-8", "replace") if self.process.log.exists() else ""
        return is_open(self.port) and text.rfind(began) > text.rfind("shutting down")


class Registry(Server):
    """Apicurio's schema registry, with its data in Kafka; its Confluent API is at `url`."""

    name = "registry"
    start_seconds_max = 90.0

    def __init__(self, folder: Path, port: int, management_port: int, kafka: KafkaServer) -> None:
        super().__init__(folder, port)
        self._management_port = management_port
        self._kafka = kafka

    @property
    def url(self) -> str:
        """The API as Confluent's registry has it."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    @cached_property
    def _home(self) -> Path:
        home = packages.maven("registry")
        if not (home / "app").exists():
            (archive,) = home.glob("*.tar.gz")
            staged = home / f"app.{os.getpid()}.tmp"
            staged.mkdir()
            subprocess.run(["tar", "-xzf", str(archive), "-C", str(staged)], check=True)
            staged.replace(home / "app")
        return home / "app"

    def install(self) -> None:
        """A Maven artifact."""
        _ = self._home

    def command(self) -> Sequence[str]:
        """One Java process."""
        jar = next(self._home.rglob("apicurio-registry-app-*-runner.jar"))
        return [
            packages.java(), "-Xmx256m", "-XX:+UseSerialGC",
            "-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self.port}",
            "-Dquarkus.management.host=127.0.0.1", f"-Dquarkus.management.port={self._management_port}",
            "-Dapicurio.storage.kind=kafkasql", f"-Dapicurio.kafkasql.bootstrap.servers={self._kafka.bootstrap}",
            "-jar", str(jar),
        ]  # fmt: skip

    def healthy(self) -> bool:
        """Whether it lists subjects."""
        return answers(f"{self.url}/subjects") is not None


class OpenSearchServer(Server):
    """OpenSearch with the k-NN and neural-search plugins, one node."""

    name = "opensearch"
    start_seconds_max = 120.0

    def __init__(self, folder: Path, port: int, transport_port: int, *, heap: str = "768m") -> None:
        super().__init__(folder, port)
        self._transport_port = transport_port
        self._heap = heap

    @cached_property
    def _home(self) -> Path:
        home = packages.maven("opensearch")
        opensearch_node.assemble(home)
        return home

    def install(self) -> None:
        """Maven artifacts, put together as its archive would be."""
        _ = self._home

    def prepare(self) -> None:
        """Write its configuration, and let the plain user have its folder."""
        opensearch_node.configure(self.folder, self._home, self.port, self._transport_port)
        if os.geteuid() == 0:
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, _PLAIN_USER, _PLAIN_USER)

    def command(self) -> Sequence[str]:
        """One Java process, never as root."""
        plain = [] if os.geteuid() else [
            packages.require("setpriv", "util-linux"), "--reuid", str(_PLAIN_USER), "--regid", str(_PLAIN_USER),
            "--clear-groups",
        ]  # fmt: skip
        return [*plain, *opensearch_node.command(packages.java(), self.folder, self._home, self._heap)]

    def environment(self) -> dict[str, str]:
        """Few variables: its security manager reads some."""
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.folder / "tmp")}

    def healthy(self) -> bool:
        """Whether all primary shards are there."""
        body = answers(f"{self.url}/_cluster/health")
        return body is not None and json.loads(body)["status"] in {"green", "yellow"}


class Prometheus(Server):
    """Prometheus, reading the metrics of the five services."""

    name = "prometheus"

    def __init__(self, folder: Path, port: int, targets: Sequence[int]) -> None:
        super().__init__(folder, port)
        self._targets = targets

    def install(self) -> None:
        """Debian's package."""
        packages.require("prometheus", "prometheus")

    def prepare(self) -> None:
        """Write its configuration from the one that containers use."""
        text = (packages.ROOT / "prometheus" / "prometheus.yml").read_text()
        targets = ", ".join(f'"127.0.0.1:{port}"' for port in self._targets)
        (self.folder / "prometheus.yml").write_text(text.replace('"TARGETS"', targets))

    def command(self) -> Sequence[str]:
        """The server itself."""
        return [
            packages.require("prometheus", "prometheus"), f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data", f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip

    def healthy(self) -> bool:
        """Whether it is ready."""
        return answers(f"{self.url}/-/ready") is not None


def forget(folder: Path) -> None:
    """Delete the data of a server that does not run."""
    shutil.rmtree(folder, ignore_errors=True)
