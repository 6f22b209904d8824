"""Records as plain values, JSON and dumps: the way there and back, and what a reader does with foreign input."""

import json
import time
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.strategies import RECORD_TYPES, records_of
from trawl.errors import RecordDecodeError
from trawl.kinds import BlockKind, Novelty, Purpose, SeedKind, Stage
from trawl.plain import (
    DUMP_BYTES_MAX,
    DUMP_COMPRESS_BYTES_MIN,
    RECORD_CLASSES,
    dump,
    from_json,
    from_plain,
    load,
    scalar_text,
    to_json,
    to_plain,
)
from trawl.records import (
    Block,
    DeadLetter,
    DiscoveredLinks,
    ExtractedDocument,
    FetchOutcome,
    FetchTask,
    Header,
    Hop,
    Link,
    Payload,
    Record,
    Seed,
    StaticRender,
    UniqueDocument,
)

ANY_RECORD = st.one_of([records_of(cls) for cls in RECORD_TYPES])
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
TASK = FetchTask(
    fetch_id=-(2**63),
    crawl_id="docs",
    request_key=7,
    url="https://example.com/ü",
    purpose=Purpose.FEED,
    chain=(Hop(url="https://example.org/", status=301),),
    static_render=StaticRender(body=Payload(inline=b"\x00\xff")),
)
DOCUMENT = ExtractedDocument(document_key=1, crawl_id="docs", request_key=2, fetch_id=3, url="u", final_url="f")


@pytest.mark.parametrize("cls", RECORD_TYPES)
def test_every_record_survives_json_and_dump(cls: type[Record]) -> None:
    @settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
    @given(record=records_of(cls))
    def check(record: Record) -> None:
        plain = to_plain(record)
        assert from_plain(cls, plain) == record
        assert json.loads(to_json(record)) == plain
        assert from_json(cls, to_json(record)) == record
        assert load(dump(record)) == record

    check()


def test_plain_values_are_those_of_json_in_the_order_of_the_fields() -> None:
    plain = to_plain(TASK)

    assert list(plain)[:4] == ["fetch_id", "crawl_id", "request_key", "url"]
    assert plain["fetch_id"] == -(2**63)
    assert plain["purpose"] == "feed"
    assert type(plain["purpose"]) is str
    assert plain["chain"] == [{"url": "https://example.org/", "status": 301}]
    assert plain["chain_request_key"] is None
    assert plain["validators"] == {"etag": "", "last_modified": ""}
    assert plain["static_render"]["body"]["inline"] == "AP8="


def test_json_is_one_line_of_utf8_without_escapes() -> None:
    data = to_json(Seed(url="https://example.com/é\n"))

    assert data.startswith('{"url":"https://example.com/é\\n","kind":"auto",'.encode())
    assert b"\n" not in data


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_cannot_hold_is_refused_at_any_depth(number: float) -> None:
    links = (Link(url="a"), Link(url="b", priority=number))
    for record in (
        Seed(url="u", priority=number),
        DiscoveredLinks(crawl_id="c", source_url="u", target_host="h", links=links),
    ):
        with pytest.raises(ValueError, match="no place in JSON"):
            to_json(record)
        with pytest.raises(ValueError, match="no place in JSON"):
            to_plain(record)


def test_unknown_keys_are_ignored_and_missing_ones_take_the_default() -> None:
    assert from_plain(Seed, {"url": "u", "from_the_future": [1]}) == Seed(url="u")


def test_an_unknown_enumeration_value_becomes_the_first_member_at_any_depth() -> None:
    outcome = {"url": "u", "crawl_id": "c", "request_key": 1, "fetch_id": 1, "stage": "new", "outcome": "new"}
    link = {"url": "u", "purpose": "new"}
    discovered = {"crawl_id": "c", "source_url": "s", "target_host": "h", "links": [link]}

    assert from_plain(Seed, {"url": "u", "kind": "new"}).kind is SeedKind.AUTO
    assert from_plain(FetchOutcome, outcome).stage is Stage.FRONTIER
    assert from_plain(FetchOutcome, {**outcome, "change": "new"}).change is Novelty.NEW
    assert from_plain(DiscoveredLinks, discovered).links == (Link(url="u", purpose=Purpose.PAGE),)


def test_an_integer_is_read_where_a_float_is_meant() -> None:
    seed = from_plain(Seed, {"url": "u", "priority": 1})

    assert seed.priority == 1.0
    assert type(seed.priority) is float


@pytest.mark.parametrize(
    ("cls", "mapping", "message"),
    [
        (Seed, [], "Seed: expected an object, found list"),
        (Seed, {}, "Seed.url: missing"),
        (Seed, {"url": 3}, "Seed.url: expected text, found int 3"),
        (Seed, {"url": None}, "Seed.url: expected text, found NoneType"),
        (Seed, {"url": "u", "depth_max": True}, "Seed.depth_max: expected an integer"),
        (Seed, {"url": "u", "depth_max": 1.0}, "Seed.depth_max: expected an integer"),
        (Seed, {"url": "u", "depth_max": 2**63}, "Seed.depth_max: expected an integer of 64 bits"),
        (Seed, {"url": "u", "priority": float("nan")}, "Seed.priority: expected a finite number"),
        (Seed, {"url": "u", "priority": "1"}, "Seed.priority: expected a finite number"),
        (Seed, {"url": "u", "priority": 10**400}, "Seed.priority: expected a finite number"),
        (Seed, {"url": "u", "kind": 1}, "Seed.kind: expected a value of SeedKind"),
        (Seed, {"url": "u", "tags": "abc"}, "Seed.tags: expected a list"),
        (Seed, {"url": "u", "tags": ["a", 1]}, "Seed.tags: expected text"),
        (Seed, {"url": "u", "recrawl": None}, "Seed.recrawl: expected an object"),
        (Seed, {"url": "u", "recrawl": {"kind": 1}}, "Seed.recrawl.kind: expected a value of RecrawlKind"),
        (DeadLetter, {"stage": "dedup", "reason": "r", "topic": "t", "key": "*"}, "DeadLetter.key: expected bytes"),
        (DeadLetter, {"stage": "dedup", "reason": "r", "topic": "t", "key": "é"}, "DeadLetter.key: expected bytes"),
        (UniqueDocument, {"novelty": "new", "document": {}}, "UniqueDocument.document.crawl_id: missing"),
    ],
)
def test_a_wrong_type_is_an_error_that_names_record_and_field(cls: type[Record], mapping: Any, message: str) -> None:
    with pytest.raises(RecordDecodeError) as caught:
        from_plain(cls, mapping)

    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{",
        b"\xff{}",
        b"[" * 100_000,
        b'{"url": "\\ud800"}',
        b'{"url": "u", "depth_max": ' + b"9" * 5000 + b"}",
        b'{"url": "u", "priority": 1e999}',
        b'{"url": "u", "priority": NaN}',
    ],
)
def test_bytes_that_are_no_record_are_one_error(data: bytes) -> None:
    with pytest.raises(RecordDecodeError, match="Seed"):
        from_json(Seed, data)


@settings(max_examples=60, deadline=None)
@given(value=st.dictionaries(st.sampled_from(list(to_plain(TASK))), JSON_VALUE, max_size=6))
def test_any_json_object_is_a_record_or_one_error(value: dict[str, Any]) -> None:
    try:
        task = from_json(FetchTask, json.dumps({**to_plain(TASK), **value}).encode())
    except RecordDecodeError:
        return
    assert from_json(FetchTask, to_json(task)) == task


def test_a_pair_of_surrogate_escapes_is_read_as_its_character() -> None:
    assert from_json(Seed, b'{"url": "\\ud83d\\ude00"}').url == "\U0001f600"


@given(text=st.text(st.characters(), max_size=6))
def test_scalar_text_can_be_encoded_and_leaves_other_text_alone(text: str) -> None:
    safe = scalar_text(text)

    safe.encode()
    assert scalar_text(safe) == safe
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert safe == text


def test_a_lone_surrogate_is_written_as_the_replacement_character() -> None:
    assert from_json(Seed, to_json(Seed(url="a\ud800b"))).url == "a\ufffdb"


def test_a_small_dump_is_readable_and_a_large_one_is_compressed() -> None:
    small = Seed(url="u")
    large = Seed(url="u", tags=("t" * 10_000,))

    assert dump(small).startswith(b'Seed {"url":"u",')
    assert len(dump(small)) < DUMP_COMPRESS_BYTES_MIN
    assert len(dump(large)) < 1000
    assert load(dump(large)) == large


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Seed",
        b"Nobody {}",
        b"Hop {}",
        b"\xc3\x01 {}",
        b"A" * 10_000,
        zstandard.compress(b"A" * 10_000),
        dump(Seed(url="u" * 1000))[:-4],
        dump(Seed(url="u" * 1000))[:20] + b"\x00" * 8,
        zstandard.ZstdCompressor(write_content_size=False).compress(dump(Seed(url="u"))),
    ],
)
def test_what_is_no_dump_is_one_error(data: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        load(data)


def test_a_dump_that_unpacks_to_more_than_the_cap_is_refused_unread() -> None:
    chunks = zstandard.ZstdCompressor(level=1).compressobj(size=DUMP_BYTES_MAX + 1)
    bomb = b"".join(chunks.compress(bytes(2**20)) for _ in range(DUMP_BYTES_MAX // 2**20)) + chunks.compress(b"\x00")

    with pytest.raises(RecordDecodeError, match="at most"):
        load(bomb + chunks.flush())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(record=ANY_RECORD, at=st.floats(0, 1), byte=st.integers(0, 255))
def test_one_changed_byte_of_a_dump_is_a_record_or_one_error(record: Record, at: float, byte: int) -> None:
    data = bytearray(dump(record))
    data[min(int(at * len(data)), len(data) - 1)] = byte
    try:
        assert type(load(bytes(data))) in RECORD_TYPES
    except RecordDecodeError:
        return


def test_the_classes_by_name_are_the_record_union() -> None:
    assert tuple(RECORD_CLASSES.values()) == RECORD_TYPES
    assert RECORD_CLASSES["Seed"] is Seed


def test_a_document_of_a_hundred_blocks_is_cheap_both_ways() -> None:
    block = Block(kind=BlockKind.PARAGRAPH, text="word " * 20, markdown="word " * 20, heading_path=("A", "B"))
    headers = (Header(name="server", value="x"),) * 20
    document = ExtractedDocument(**{**_fields(DOCUMENT), "blocks": (block,) * 100, "response_headers": headers})
    data = to_json(document)

    assert _best_ms(lambda: to_json(document)) < 3
    assert _best_ms(lambda: from_json(ExtractedDocument, data)) < 3


def _fields(document: ExtractedDocument) -> dict[str, Any]:
    return {name: getattr(document, name) for name in to_plain(document)}


def _best_ms(work: Any) -> float:
    times = []
    for _ in range(10):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times) * 1000
