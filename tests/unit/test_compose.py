"""docker-compose.yml and `make up` describe the same stack, and the containers are held in."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest
import yaml  # type: ignore[import-untyped]

from devstack import opensearch_node, stack
from devstack.packages import ROOT
from devstack.server import Server
from devstack.servers import RETENTION, KafkaServer, OpenSearchServer, Prometheus, RedisServer
from trawl.settings import load

CHECKOUT: Final = ROOT.parent
COMPOSE: Final[Mapping[str, Any]] = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text("utf-8"))
CONTAINERS: Final[Mapping[str, Mapping[str, Any]]] = COMPOSE["services"]
DOCKERFILE: Final = (CHECKOUT / "Dockerfile").read_text("utf-8")
TRAWL: Final = ("topics", *stack.SERVICES)
ONCE: Final = "service_completed_successfully"


def published(name: str) -> tuple[str, str, int, int]:
    """The address, the variable of the port, its default, and the port in the container."""
    (text,) = CONTAINERS[name]["ports"]
    found = re.fullmatch(r"([\d.]+):\$\{([A-Z_]+):-(\d+)\}:(\d+)", text)
    assert found is not None, text
    return found[1], found[2], int(found[3]), int(found[4])


def on_this_machine(text: str) -> str:
    """A setting of the containers, with the places of this machine in it."""
    for name in CONTAINERS:
        if name not in TRAWL:
            text = re.sub(rf"\b{name}:\d+", f"127.0.0.1:{published(name)[2]}", text)
    return text.replace("file:/blobs", f"file:{stack.FOLDER / 'blobs'}")


def server(kind: type[Server]) -> Any:
    (found,) = (one for one in stack.servers() if isinstance(one, kind))
    return found


def options(words: list[str]) -> dict[str, str]:
    """`--name value` pairs."""
    return {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def version(name: str, which: str) -> str:
    """A version in the recipe of a server, a property of it looked up."""
    text = (ROOT / name / "pom.xml").read_text("utf-8")
    tree = ET.fromstring(re.sub(r' xmlns="[^"]+"', "", text, count=1))
    found = next(node.findtext("version", "") for node in tree.iter() if node.findtext("artifactId") == which)
    return tree.findtext(f"properties/{found[2:-1]}", found) if found.startswith("${") else found


def test_both_run_the_same_servers_and_services() -> None:
    ours = {one.name for one in [*stack.servers(), *stack.services()]}

    assert set(CONTAINERS) == ours | {"topics"}


@pytest.mark.parametrize("name", sorted(set(CONTAINERS) - {"topics"}))
def test_each_is_published_on_loopback_at_the_same_port_and_the_same_variable_chooses_another(name: str) -> None:
    address, variable, port, inside = published(name)

    assert (address, variable, port) == ("127.0.0.1", f"DEVSTACK_{name.upper()}_PORT", stack.PORTS[name])
    assert inside == port


@pytest.mark.parametrize("name", TRAWL)
def test_each_service_is_given_the_same_settings(name: str) -> None:
    told: dict[str, str] = dict(CONTAINERS[name]["environment"])
    assert told.pop("TRAWL_SERVICE_HOST") == "0.0.0.0"
    if name != "topics":
        assert told.pop("TRAWL_SERVICE_PORT") == str(stack.PORTS[name])

    ours = {**stack.variables(), "TRAWL_BLOBS_URL": f"file:{stack.FOLDER / 'blobs'}"}
    assert {variable: on_this_machine(text) for variable, text in told.items()} == ours
    assert load({}, told).redis.url == told["TRAWL_REDIS_URL"]


@pytest.mark.parametrize("name", stack.SERVICES)
def test_each_service_is_the_same_module_and_reads_the_same_blobs(name: str) -> None:
    (ours,) = (one for one in stack.services() if one.name == name)

    assert CONTAINERS[name]["command"][1:] == list(ours.command())[1:]
    assert CONTAINERS[name]["volumes"] == ["blobs:/blobs"]


def test_topics_are_made_by_the_same_command_before_a_service_begins() -> None:
    assert CONTAINERS["topics"]["command"][1:] == stack.topics_command()[3:]
    assert all(CONTAINERS[name]["depends_on"]["topics"] == {"condition": ONCE} for name in stack.SERVICES)


def waits() -> Iterator[tuple[str, str, str]]:
    """Who waits for whom, until what."""
    for name, container in CONTAINERS.items():
        for other, how in container.get("depends_on", {}).items():
            yield name, other, how["condition"]


@pytest.mark.parametrize(("name", "other", "condition"), [*waits()])
def test_what_a_container_waits_for_exists_and_can_be_waited_for(name: str, other: str, condition: str) -> None:
    assert name != other
    if condition == ONCE:
        assert CONTAINERS[other]["restart"] != "unless-stopped"
    else:
        assert condition == "service_healthy"
        assert CONTAINERS[other]["healthcheck"]["test"]


def test_every_container_that_stays_has_a_health_check() -> None:
    assert {name for name, container in CONTAINERS.items() if "test" not in container["healthcheck"]} == {"topics"}


@pytest.mark.parametrize("name", stack.SERVICES)
def test_the_health_check_of_the_services_is_that_of_their_image(name: str) -> None:
    check = CONTAINERS[name]["healthcheck"]
    (told,) = re.findall(r"^HEALTHCHECK (.*) \\\n +CMD (.*)$", DOCKERFILE, re.MULTILINE)
    limits = {"interval": "interval", "timeout": "timeout", "start_period": "start-period", "retries": "retries"}

    assert told[0].split() == [f"--{option}={check[field]}" for field, option in limits.items()]
    assert ["CMD", *json.loads(told[1])] == check["test"]
    assert "/readyz" in check["test"][-1]


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_container_is_held_in(name: str) -> None:
    container = CONTAINERS[name]

    user, _, _ = container["user"].partition(":")
    assert int(user) > 0
    assert re.fullmatch(r"[1-9]\d*[mg]", container["mem_limit"])
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert container["logging"]["options"].keys() == {"max-size", "max-file"}


@pytest.mark.parametrize("name", TRAWL)
def test_services_run_from_one_image_that_writes_nowhere_but_to_blobs_and_tmp(name: str) -> None:
    container = CONTAINERS[name]

    assert container["image"] == CONTAINERS["topics"]["image"]
    assert container["read_only"] is True
    assert container["tmpfs"] == ["/tmp:size=256m,mode=1777"]
    assert f"USER {container['user']}" in DOCKERFILE
    assert container["build"]["args"]["BASE_IMAGE"] == f"${{BASE_IMAGE:-{_base_image()}}}"


def _base_image() -> str:
    (image,) = re.findall(r"^ARG BASE_IMAGE=(\S+)$", DOCKERFILE, re.MULTILINE)
    return str(image)


def test_every_image_is_pinned_to_a_release() -> None:
    images = [_base_image(), *(container["image"] for name, container in CONTAINERS.items() if name not in TRAWL)]

    assert [image for image in images if not re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+(-[a-z-]+)?", image)] == []
    assert re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE) == ["${BASE_IMAGE}", "${BASE_IMAGE}"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("kafka", version("kafka", "kafka_2.13")),
        ("registry", version("registry", "apicurio-registry-app")),
        ("opensearch", version("opensearch", "opensearch")),
        ("opensearch", opensearch_node.VERSION),
    ],
)
def test_images_hold_the_versions_that_run_without_containers(name: str, ours: str) -> None:
    assert CONTAINERS[name]["image"].rpartition(":")[2] == ours


def test_volumes_exist_and_all_are_used() -> None:
    used = {
        volume.partition(":")[0]
        for container in CONTAINERS.values()
        for volume in container.get("volumes", ())
        if not volume.startswith("./")
    }

    assert used == set(COMPOSE["volumes"])


def test_redis_has_the_same_settings() -> None:
    ours = {name: value.strip('"') for name, value in RedisServer.settings.items()}
    theirs = options(CONTAINERS["redis"]["command"][1:])

    assert theirs.pop("maxmemory") == "768mb"
    assert theirs == ours


def test_kafka_has_the_same_settings() -> None:
    kafka: KafkaServer = server(KafkaServer)
    theirs = CONTAINERS["kafka"]["environment"]

    for name, value in kafka.settings.items():
        assert theirs[f"KAFKA_{name.replace('.', '_').upper()}"] == value, name
    assert theirs["KAFKA_HEAP_OPTS"] in kafka.command()


def test_kafka_tells_containers_and_this_machine_each_an_address_that_they_reach() -> None:
    theirs = CONTAINERS["kafka"]["environment"]
    told = dict(one.split("://") for one in theirs["KAFKA_ADVERTISED_LISTENERS"].split(","))
    heard = dict(one.split("://") for one in theirs["KAFKA_LISTENERS"].split(","))
    _, variable, port, inside = published("kafka")

    assert told == {
        "PLAINTEXT": CONTAINERS["frontier"]["environment"]["TRAWL_KAFKA_BOOTSTRAP_SERVERS"],
        "OUTSIDE": f"127.0.0.1:${{{variable}:-{port}}}",
    }
    assert heard["PLAINTEXT"].endswith(told["PLAINTEXT"].removeprefix("kafka"))
    assert heard["OUTSIDE"].endswith(f":{inside}")


def test_opensearch_has_the_same_memory_and_makes_no_index_of_trawl_by_itself(tmp_path: Path) -> None:
    ours: OpenSearchServer = server(OpenSearchServer)
    theirs = CONTAINERS["opensearch"]["environment"]
    opensearch_node.configure(tmp_path, ours.port, 1)
    configured = yaml.safe_load((tmp_path / "config" / "opensearch.yml").read_text())

    assert theirs["OPENSEARCH_JAVA_OPTS"] == f"-Xms{ours.heap} -Xmx{ours.heap}"
    assert theirs["discovery.type"] == configured["discovery.type"]
    assert theirs["action.auto_create_index"].split(",")[0] == f"-{load({}, {}).opensearch.prefix}*"
    assert configured["action.auto_create_index"] is False


def test_prometheus_reads_the_five_services_and_keeps_as_much(tmp_path: Path) -> None:
    file = ROOT / "prometheus" / "prometheus.yml"
    ((inside, _),) = [
        volume.removeprefix("./").split(":")[:2]
        for volume in CONTAINERS["prometheus"]["volumes"]
        if volume.startswith("./")
    ]
    ours = Prometheus(tmp_path, 1, {name: 20_000 + number for number, name in enumerate(stack.SERVICES)})
    ours.prepare()

    assert CHECKOUT / inside == file
    assert targets(file) == [f"{name}:{stack.PORTS[name]}" for name in stack.SERVICES]
    assert targets(tmp_path / "prometheus.yml") == [f"127.0.0.1:{20_000 + number}" for number in range(5)]
    assert f"--storage.tsdb.retention.size={RETENTION}" in CONTAINERS["prometheus"]["command"]


def targets(file: Path) -> list[str]:
    (job,) = yaml.safe_load(file.read_text())["scrape_configs"]
    ((found,),) = (config.values() for config in job["static_configs"])
    return list(found)


def test_the_example_of_an_environment_names_every_variable_with_its_default() -> None:
    lines = (CHECKOUT / ".env.example").read_text("utf-8").splitlines()
    told = dict(line.removeprefix("# ").split("=", 1) for line in lines if re.match(r"# [A-Z_]+=", line))

    for name, port in stack.PORTS.items():
        assert told[f"DEVSTACK_{name.upper()}_PORT"] == str(port)
    assert told["BASE_IMAGE"] == _base_image()
    asked = set(re.findall(r"\$\{([A-Z_]+)", (CHECKOUT / "docker-compose.yml").read_text("utf-8")))
    assert asked <= told.keys()


def test_the_image_gets_all_that_it_copies() -> None:
    let = {line[1:] for line in (CHECKOUT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {
        source
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    }

    assert copied == let
    assert all((CHECKOUT / source).exists() for source in copied)
