"""The READMEs of the services say what the code does: topics, settings, metrics, the words of errors, and links."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest
from prometheus_client import Metric

import trawl.errors
from services.common.telemetry import Metrics
from trawl.kinds import Stage
from trawl.pipeline import TOPIC, read_by, written_by
from trawl.settings import Settings

ROOT = Path(__file__).resolve().parents[3]
SERVICES = ROOT / "services"
OVERVIEW = "README.md"
TEXTS = {path.relative_to(SERVICES).as_posix(): path.read_text("utf-8") for path in SERVICES.rglob("README.md")}
SETTINGS = {
    f"{group.name}.{field.name}"
    for group in dataclasses.fields(Settings)
    for field in dataclasses.fields(getattr(Settings(), group.name))
}
CODE = "\n".join(
    path.read_text("utf-8") for folder in (SERVICES, ROOT / "src" / "trawl") for path in sorted(folder.rglob("*.py"))
)
NOT_YET = "not yet"


def of(stage: Stage) -> str:
    return TEXTS[f"{stage}/README.md"]


def section(text: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no heading {heading!r}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The cells of the rows of a table, without its head."""
    lines = [line.strip("| \n").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line] for line in lines[2:]]


def topics(stage: Stage, way: str) -> dict[str, tuple[str, str]]:
    """The topics of one way, with their record and what is said of them."""
    found = [
        re.findall(rf"^\| {way} \| `([^`]+)` \| `(\w+)` \| ?(.*?) ?\|$", line)
        for line in section(of(stage), "Topics").splitlines()
    ]
    return {name: (record, said) for line in found for name, record, said in line}


def exposed(family: Metric) -> str:
    return f"{family.name}_total" if family.type == "counter" else family.name


def test_each_service_has_a_page_of_a_screen() -> None:
    assert set(TEXTS) == {OVERVIEW, *(f"{stage}/README.md" for stage in Stage)}
    assert all(25 <= len(text.splitlines()) <= 50 for name, text in TEXTS.items() if name != OVERVIEW)
    assert all(f"({stage}/README.md)" in TEXTS[OVERVIEW] for stage in Stage)


@pytest.mark.parametrize("stage", Stage)
def test_the_topics_are_those_of_the_topology_and_of_the_code(stage: Stage) -> None:
    inward, outward = topics(stage, "in"), topics(stage, "out")

    assert set(inward) == {topic.name for topic in read_by(stage)}
    assert set(outward) == {topic.name for topic in written_by(stage)}
    assert all(TOPIC[name].record.__name__ == record for name, (record, _) in {**inward, **outward}.items())
    read = [name for name, (_, said) in inward.items() if not said.startswith(NOT_YET)]
    assert read == list(importlib.import_module(f"services.{stage}.app").TOPICS)


@pytest.mark.parametrize("stage", Stage)
def test_what_is_not_sent_yet_is_said_to_be_so(stage: Stage) -> None:
    """A stage sends what it makes."""
    made = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "trawl" / stage).glob("*.py"))
    signs = {name: f"{topic.record.__name__}(" for name, topic in TOPIC.items()}
    signs |= {"trawl.render-tasks": "RenderMode.HEADLESS", "trawl.dead-letters": ""}

    assert {name for name, (_, said) in topics(stage, "out").items() if not said.startswith(NOT_YET)} == {
        topic.name for topic in written_by(stage) if signs[topic.name] in made
    }


@pytest.mark.parametrize("name", TEXTS)
def test_settings_exist(name: str) -> None:
    groups = "|".join(group.name for group in dataclasses.fields(Settings))
    named = re.findall(rf"`((?:{groups})\.(?!blocks)[a-z_0-9]+)`", TEXTS[name])

    assert named
    assert set(named) <= SETTINGS


@pytest.mark.parametrize("stage", Stage)
def test_metrics_are_those_that_are_exposed(stage: Stage) -> None:
    every = {exposed(family) for family in Metrics(stage).registry.collect() if family.name.startswith("trawl_")}
    common = set(re.findall(r"`(trawl_\w+)`", section(TEXTS[OVERVIEW], "Metrics")))
    own = {one: set(re.findall(r"`(trawl_\w+)`", section(of(one), "Metrics"))) for one in Stage}

    assert own[stage] <= every
    assert not own[stage] & common
    assert common.union(*own.values()) == every
    assert set(re.findall(r"`(trawl_\w+)`", of(stage))) <= common | own[stage]


@pytest.mark.parametrize("name", TEXTS)
def test_what_a_service_says_is_in_the_code(name: str) -> None:
    told = rows(section(TEXTS[name], "When something is wrong"))
    words = [word for cells in told for word in re.findall(r"`([^`]+)`", cells[0]) if word not in SETTINGS]
    errors = {word for word in words if word.endswith("Error")}

    assert len(told) >= 3
    assert all(len(cells) == 3 and all(cells) for cells in told)
    assert [word for word in words if not word.startswith("trawl_") and word not in CODE] == []
    assert errors <= set(vars(trawl.errors))


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", TEXTS[name]):
        path, _, anchor = target.partition("#")
        page = (SERVICES / name).parent / path
        assert page.exists(), f"{name} links to {target}, which is not there"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
            assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_commands_exist() -> None:
    known = set(re.findall(r"^## trawl (.+)$", (ROOT / "docs" / "cli.md").read_text("utf-8"), re.MULTILINE))
    named = {command for text in TEXTS.values() for command in re.findall(r"`trawl ([a-z ]+)`", text)}

    assert {"topics", "dlq replay"} <= named
    assert named <= known
