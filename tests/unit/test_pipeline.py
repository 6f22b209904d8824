"""The topology: complete, consistent, documented, and the same keys and partitions everywhere."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strategies import RECORD_TYPES, records_of
from tools import topics as generator
from trawl import pipeline
from trawl.kinds import ChangeKind, ControlAction, Novelty, OutcomeClass, RenderMode, Stage
from trawl.pipeline import (
    HOST_SHARDS,
    PARTITIONS,
    TOPIC,
    TOPICS,
    Outside,
    key_of,
    partition_of,
    read_by,
    route,
    written_by,
)
from trawl.records import (
    ChangeEvent,
    CrawlControl,
    DeadLetter,
    DiscoveredLinks,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    IndexedDocument,
    Record,
    Seed,
    UniqueDocument,
)
from trawl.url import document_key, host_shard, key_hex, request_key

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "topics.md"
SOURCE = ROOT / "src" / "trawl"
URL = "https://example.com:8443/a"
SHARD = b"%d" % host_shard("example.com:8443", HOST_SHARDS)
REQUEST, DOCUMENT = request_key("c", URL), document_key("c", URL)
TASK = FetchTask(fetch_id=1, crawl_id="c", request_key=REQUEST, url=URL)
PAGE_RECORD = FetchedPage(
    fetch_id=1, crawl_id="c", request_key=REQUEST, url=URL, final_url=URL, status=200, fetched_at_ms=1
)
BODY = ExtractedDocument(document_key=DOCUMENT, crawl_id="c", request_key=REQUEST, fetch_id=1, url=URL, final_url=URL)
OUTCOME = FetchOutcome(
    url=URL, crawl_id="c", request_key=REQUEST, fetch_id=1, stage=Stage.DEDUP, outcome=OutcomeClass.DUPLICATE
)
ALL_STAGES = "frontier, fetcher, extractor, dedup, indexer"

DESIGN = {
    "trawl.seeds": ("Seed", "any", "user", "frontier"),
    "trawl.discovered": ("DiscoveredLinks", "host shard", "frontier, fetcher, extractor", "frontier"),
    "trawl.fetch-tasks": ("FetchTask", "host shard", "frontier", "fetcher"),
    "trawl.render-tasks": ("FetchTask", "host shard", "frontier", "fetcher"),
    "trawl.fetched": ("FetchedPage", "request key", "fetcher", "extractor"),
    "trawl.outcomes": ("FetchOutcome", "host shard", "fetcher, extractor, dedup, indexer", "frontier"),
    "trawl.documents": ("ExtractedDocument", "document key", "frontier, extractor", "dedup"),
    "trawl.unique": ("UniqueDocument", "document key", "dedup", "indexer"),
    "trawl.indexed": ("IndexedDocument", "document key", "indexer", "anyone"),
    "trawl.changes": ("ChangeEvent", "document key", "frontier, dedup", "anyone"),
    "trawl.control": ("CrawlControl", "crawl id", "user", "frontier"),
    "trawl.dead-letters": ("DeadLetter", "as original", ALL_STAGES, "anyone"),
}


def test_the_table_is_that_of_the_design() -> None:
    table = {
        topic.name: (
            topic.record.__name__,
            topic.key.description,
            ", ".join(topic.producers),
            ", ".join(topic.consumers),
        )
        for topic in TOPICS
    }

    assert table == DESIGN


def test_every_record_has_a_topic_and_only_fetch_tasks_have_two() -> None:
    records = [topic.record for topic in TOPICS]

    assert set(records) == set(RECORD_TYPES)
    assert sorted(records, key=RECORD_TYPES.index) == sorted([*RECORD_TYPES, FetchTask], key=RECORD_TYPES.index)
    assert list(TOPIC) == [topic.name for topic in TOPICS]


@pytest.mark.parametrize("cls", RECORD_TYPES)
def test_a_record_of_any_value_travels_on_a_topic_of_its_class_with_a_key(cls: type[Record]) -> None:
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(record=records_of(cls))
    def check(record: Record) -> None:
        assert route(record).record is cls
        partition = partition_of(key_of(record), 7)
        assert partition is None or 0 <= partition < 7

    check()


def test_a_task_for_a_browser_has_its_own_topic() -> None:
    browser = FetchTask(fetch_id=1, crawl_id="c", request_key=2, url=URL, render_mode=RenderMode.HEADLESS)

    assert route(TASK).name == "trawl.fetch-tasks"
    assert route(browser).name == "trawl.render-tasks"
    assert key_of(browser) == key_of(TASK)


def test_what_is_no_record_has_no_topic() -> None:
    with pytest.raises(KeyError):
        route("a text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (Seed(url=URL), b""),
        (DiscoveredLinks(crawl_id="c", source_url="https://other.org/", target_host="example.com:8443"), SHARD),
        (TASK, SHARD),
        (OUTCOME, SHARD),
        (PAGE_RECORD, key_hex(REQUEST).encode()),
        (BODY, key_hex(DOCUMENT).encode()),
        (UniqueDocument(document=BODY, novelty=Novelty.NEW), key_hex(DOCUMENT).encode()),
        (IndexedDocument(document_key=DOCUMENT, crawl_id="c", url=URL, fetch_id=1), key_hex(DOCUMENT).encode()),
        (
            ChangeEvent(event_id=1, kind=ChangeKind.GONE, crawl_id="c", document_key=DOCUMENT),
            key_hex(DOCUMENT).encode(),
        ),
        (ChangeEvent(event_id=1, kind=ChangeKind.CRAWL_FINISHED, crawl_id="c"), b"c"),
        (CrawlControl(crawl_id="crawl-\u00e9", action=ControlAction.PAUSE), "crawl-\u00e9".encode()),
        (DeadLetter(stage=Stage.DEDUP, reason="r", topic="t", key=b"\xff\x00"), b"\xff\x00"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_key_of_a_record(record: Record, key: bytes) -> None:
    assert key_of(record) == key


def test_links_tasks_and_outcomes_of_one_host_meet_in_one_partition() -> None:
    links = DiscoveredLinks(crawl_id="c", source_url="https://other.org/", target_host="example.com:8443")

    assert len({partition_of(key_of(record), PARTITIONS) for record in (links, TASK, OUTCOME)}) == 1


def test_shards_fill_partitions_evenly() -> None:
    partitions = [partition_of(b"%d" % shard, PARTITIONS) for shard in range(HOST_SHARDS)]

    assert {partitions.count(partition) for partition in range(PARTITIONS)} == {HOST_SHARDS // PARTITIONS}


@given(key=st.binary(min_size=1, max_size=20), partitions=st.integers(1, 300))
def test_every_key_has_one_partition(key: bytes, partitions: int) -> None:
    partition = partition_of(key, partitions)

    assert partition is not None
    assert 0 <= partition < partitions


def test_partitions_are_the_same_in_every_version() -> None:
    keys = (b"", b"0", b"200", b"default", key_hex(1).encode())

    assert [partition_of(key, 16) for key in keys] == [None, 0, 8, 10, 4]


def test_what_a_stage_sends_somebody_reads_and_every_stage_is_reached_from_the_user() -> None:
    assert all(topic.producers and topic.consumers for topic in TOPICS)
    reached: set[object] = {Outside.USER}
    for _ in Stage:
        reached |= {reader for topic in TOPICS if reached & set(topic.producers) for reader in topic.consumers}
    assert reached == {*Outside, *Stage}


def test_every_stage_but_the_frontier_tells_the_frontier_what_became_of_a_fetch() -> None:
    for stage in Stage:
        assert (TOPIC["trawl.outcomes"] in written_by(stage)) == (stage is not Stage.FRONTIER)
        assert TOPIC["trawl.dead-letters"] in written_by(stage)
    assert [topic.name for topic in read_by(Stage.INDEXER)] == ["trawl.unique"]


def test_a_stage_makes_only_records_that_it_may_send() -> None:
    names = {cls.__name__ for cls in RECORD_TYPES}
    for stage in Stage:
        allowed = {topic.record.__name__ for topic in written_by(stage)}
        for path in sorted((SOURCE / stage).rglob("*.py")):
            calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
            made = {call.id for call in calls if isinstance(call, ast.Name)} & names
            assert made <= allowed, f"{path.relative_to(SOURCE)} makes {made - allowed}"


def test_only_control_is_compacted_and_everything_else_ends() -> None:
    assert [topic.name for topic in TOPICS if topic.compacted] == ["trawl.control"]
    assert all((topic.retention_hours == 0) == topic.compacted for topic in TOPICS)


def test_the_page_about_topics_agrees_with_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {
        cells[0]: tuple(cells[1:4])
        for line in PAGE.read_text("utf-8").splitlines()
        if (cells := [cell.strip(" `") for cell in line.strip("|").split("|")])[0] in DESIGN
    }

    expected = {
        name: (record, key, f"{producers} -> {consumers}".replace(ALL_STAGES, "every stage"))
        for name, (record, key, producers, consumers) in DESIGN.items()
    }
    assert rows == expected
    assert generator.main(["--check"]) == 0, capsys.readouterr().err


def test_the_drawing_names_every_topic_and_stage() -> None:
    drawing = pipeline.__doc__ or ""
    for topic in TOPICS:
        assert re.search(rf"(?<![\w-]){topic.name.removeprefix('trawl.')}(?![\w-])", drawing), topic.name
    for stage in Stage:
        assert stage.upper() in drawing
