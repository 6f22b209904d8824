"""One class a server: how it is installed and started, and how to tell that it is well."""

import base64
import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from devstack import opensearch_node, packages
from devstack.process import DevstackError, free_port, is_open
from devstack.server import Server, answers

_COMMAND_SECONDS_MAX: Final = 30
_REDIS_MAJOR_MIN: Final = 7
_POLL_SECONDS: Final = 0.1
_PLAIN_USER: Final = 9200
"""OpenSearch refuses to run as root; a number is enough, no such user need exist."""


class RedisServer(Server):
    """Redis with an append-only file that a crash costs at most a second of, and compact small hashes."""

    name = "redis"
    settings: Mapping[str, str] = {
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": '""',
        "maxmemory-policy": "noeviction",
        "hash-max-listpack-entries": "512",
        "hash-max-listpack-value": "512",
        "set-max-intset-entries": "512",
    }
    """What Trawl needs, here and in containers."""

    @property
    def url(self) -> str:
        """Its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def install(self) -> None:
        """Debian's package, of a version that has all that Trawl uses."""
        command = [packages.require("redis-server", "redis-server"), "--version"]
        text = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS_MAX, check=False).stdout
        version = re.search(r"v=(\d+)\.\S+", text)
        if version is None or int(version[1]) < _REDIS_MAJOR_MIN:
            raise DevstackError(f"Trawl needs Redis {_REDIS_MAJOR_MIN} or newer; {command[0]} is: {text.strip()}")

    def prepare(self) -> None:
        """Write redis.conf."""
        place = {"port": str(self.port), "bind": "127.0.0.1", "dir": f'"{self.folder}"', "daemonize": "no"}
        lines = [f"{name} {value}\n" for name, value in {**place, **self.settings}.items()]
        (self.folder / "redis.conf").write_text("".join(lines))

    def command(self) -> Sequence[str]:
        """The server itself."""
        return [packages.require("redis-server", "redis-server"), str(self.folder / "redis.conf")]

    def healthy(self) -> bool:
        """Whether it answers a PING."""
        return self.ask("PING") == "PONG"

    def ask(self, *words: str) -> str:
        """The answer to one command, by redis-cli; empty without one."""
        command = ["redis-cli", "-p", str(self.port), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_SECONDS_MAX, check=False)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout.strip()


class RedisNode(RedisServer):
    """One node of a Redis Cluster."""

    def __init__(self, folder: Path, port: int) -> None:
        super().__init__(folder, port)
        self.settings = {
            **RedisServer.settings,
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": "2000",
            "cluster-port": str(free_port()),  # by default 10,000 above, where the system's clients have theirs
        }


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
    def ports(self) -> Mapping[str, int]:
        """Of the broker and its controller."""
        return {"kafka": self.port, "kafka_controller": self._controller_port}

    @property
    def bootstrap(self) -> str:
        """Its address for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The same: Kafka has no URLs."""
        return self.bootstrap

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

    @property
    def settings(self) -> Mapping[str, str]:
        """What Trawl needs of it, here and in containers."""
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.listener.names": "CONTROLLER",
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

    def _properties(self) -> str:
        controller = f"127.0.0.1:{self._controller_port}"
        places = {
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.folder / "data"),
        }
        return "".join(f"{name}={value}\n" for name, value in {**places, **self.settings}.items())

    def command(self) -> Sequence[str]:
        """The broker and its controller in one Java process."""
        log4j = packages.ROOT / "kafka" / "log4j2.yaml"
        return [
            packages.java(), "-Xmx512m", "-XX:+UseSerialGC", f"-Dlog4j2.configurationFile={log4j}",
            "-cp", f"{self._libraries}/*", "kafka.Kafka", str(self.folder / "kafka.properties"),
        ]  # fmt: skip

    def healthy(self) -> bool:
        """Whether it says in its log that it has started, and listens."""
        text = self.process.text()
        return is_open(self.port) and text.rfind("Kafka Server started") > text.rfind("shutting down")


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
            packages.unpack(next(home.glob("*.tar.gz")), home / "app")
        return home / "app"

    @property
    def ports(self) -> Mapping[str, int]:
        """Of the API, and of Quarkus' management."""
        return {"registry": self.port, "registry_management": self._management_port}

    def install(self) -> None:
        """A Maven artifact."""
        _ = self._home

    def prepare(self) -> None:
        """Let Kafka serve first: without it, it ends."""
        self._kafka.start()

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
        self.heap = heap

    @cached_property
    def _home(self) -> Path:
        home = packages.maven("opensearch")
        opensearch_node.assemble(home)
        return home

    @property
    def ports(self) -> Mapping[str, int]:
        """Of HTTP, and of what nodes speak."""
        return {"opensearch": self.port, "opensearch_transport": self._transport_port}

    def install(self) -> None:
        """Maven artifacts, put together as its archive would be."""
        _ = self._home

    def prepare(self) -> None:
        """Write its configuration, and let the plain user have its folder."""
        opensearch_node.configure(self.folder, self.port, self._transport_port)
        if os.geteuid() == 0:
            for variable, path in {"DEVSTACK_CACHE": self._home, "DEVSTACK_FOLDER": self.folder}.items():
                self._check_way(variable, path)
            for path in [self.folder, *self.folder.rglob("*")]:
                os.chown(path, _PLAIN_USER, _PLAIN_USER)

    def _check_way(self, variable: str, path: Path) -> None:
        closed = packages.closed(path)
        if closed is not None:
            raise DevstackError(
                f"OpenSearch does not run as root, and a plain user cannot enter {closed}, where its files lie: let"
                f" {variable} name a folder that everyone may enter, or chmod o+x {closed}"
            )

    def command(self) -> Sequence[str]:
        """One Java process, never as root."""
        plain = [] if os.geteuid() else [
            packages.require("setpriv", "util-linux"), "--reuid", str(_PLAIN_USER), "--regid", str(_PLAIN_USER),
            "--clear-groups",
        ]  # fmt: skip
        return [*plain, *opensearch_node.command(packages.java(), self.folder, self._home, self.heap)]

    def environment(self) -> dict[str, str]:
        """Few variables: its security manager reads some."""
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.folder / "tmp")}

    def healthy(self) -> bool:
        """Whether all primary shards are there."""
        body = answers(f"{self.url}/_cluster/health")
        return body is not None and json.loads(body)["status"] in {"green", "yellow"}


RETENTION: Final = "512MB"
"""What Prometheus keeps at most."""


class Prometheus(Server):
    """Prometheus, reading the metrics of the five services."""

    name = "prometheus"

    def __init__(self, folder: Path, port: int, targets: Mapping[str, int]) -> None:
        super().__init__(folder, port)
        self._targets = targets

    def install(self) -> None:
        """Debian's package."""
        packages.require("prometheus", "prometheus")

    def prepare(self) -> None:
        """Write its configuration from the one of containers, where each service has its name for a host."""
        text = (packages.ROOT / "prometheus" / "prometheus.yml").read_text()
        for name, port in self._targets.items():
            text = re.sub(rf"\b{name}:\d+", f"127.0.0.1:{port}", text)
        (self.folder / "prometheus.yml").write_text(text)

    def command(self) -> Sequence[str]:
        """The server itself."""
        return [
            packages.require("prometheus", "prometheus"), f"--config.file={self.folder}/prometheus.yml",
            f"--storage.tsdb.path={self.folder}/data", f"--storage.tsdb.retention.size={RETENTION}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]  # fmt: skip

    def healthy(self) -> bool:
        """Whether it is ready."""
        return answers(f"{self.url}/-/ready") is not None
