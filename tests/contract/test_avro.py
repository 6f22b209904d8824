"""Records as Avro bytes: round trips, both framings, old and newer schemas, and bytes from strangers."""

import json
import tracemalloc
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.strategies import RECORD_TYPES, records_of
from trawl.adapters.avro import AvroCodec, fingerprint
from trawl.adapters.schemas import schema_text
from trawl.errors import RecordDecodeError, UnknownSchemaError
from trawl.kinds import ControlAction, Novelty, OutcomeClass, RobotsState, SeedKind, Stage
from trawl.plain import RECORD_CLASSES, from_json
from trawl.records import CrawlControl, DiscoveredLinks, FetchOutcome, FetchTask, Record, RobotsNews, Seed

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
ANY_RECORD = st.one_of([records_of(cls) for cls in RECORD_TYPES])
CODEC = AvroCodec()
RELAXED = settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@pytest.mark.parametrize("cls", RECORD_TYPES)
def test_every_record_survives_both_framings(cls: type[Record]) -> None:
    registry = AvroCodec(registered={2**32 - 1: schema_text(cls.__name__)})

    @RELAXED
    @given(record=records_of(cls))
    def check(record: Record) -> None:
        single, framed = CODEC.encode(record), registry.encode(record)
        assert single[:10] == b"\xc3\x01" + fingerprint(schema_text(cls.__name__))
        assert framed[:5] == b"\x00\xff\xff\xff\xff"
        assert single[10:] == framed[5:]
        for data in (single, framed):
            assert registry.decode(cls, data) == record
            assert registry.decode(None, data) == record

    check()


def test_bytes_are_those_of_the_avro_specification() -> None:
    control = CrawlControl(crawl_id="ab", action=ControlAction.PAUSE, pages_max=-1, issued_at_ms=64)

    body = CODEC.encode(control)[10:]

    # string "ab": length 2 as zigzag 04; enum index 1 as 02; empty string 00; -1 as 01; 64 as 80 01
    assert body == bytes.fromhex("04 61 62 02 00 01 80 01")


def test_only_records_whose_schema_is_registered_get_the_registry_framing() -> None:
    codec = AvroCodec(registered={7: schema_text("Seed")})

    assert codec.encode(Seed(url="u"))[:5] == b"\x00\x00\x00\x00\x07"
    assert codec.encode(CrawlControl(crawl_id="c", action=ControlAction.PAUSE))[:2] == b"\xc3\x01"


def test_times_are_integers_and_huge_ones_do_not_overflow() -> None:
    seed = Seed(url="u", submitted_at_ms=2**63 - 1)

    assert CODEC.decode(Seed, CODEC.encode(seed)).submitted_at_ms == 2**63 - 1


def test_a_lone_surrogate_is_written_as_the_replacement_character_at_any_depth() -> None:
    seed = Seed(url="a\ud800b", tags=("\udfff", "\ud83d\ude00"))

    assert CODEC.decode(Seed, CODEC.encode(seed)) == Seed(url="a\ufffdb", tags=("\ufffd", "\U0001f600"))


def test_a_schema_of_a_record_is_told_from_one_of_another_program() -> None:
    assert CODEC.holds_record(schema_text("Seed"))
    assert CODEC.holds_record(changed("FetchOutcome", next_outcome))
    assert not CODEC.holds_record(schema_text("Seed").replace("trawl.v1", "shop.v1"))
    assert not CODEC.holds_record('{"type": "record", "name": "Hop", "namespace": "trawl.v1", "fields": []}')
    assert not CODEC.holds_record('"string"')
    assert not CODEC.holds_record("{")


# ---- old bytes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.avro")), ids=lambda path: path.stem)
def test_golden_bytes_are_decoded_for_ever(path: Path) -> None:
    name, _, written = path.stem.partition(".")
    data = path.read_bytes()

    assert data[:10] == b"\xc3\x01" + bytes.fromhex(written)
    expected = from_json(RECORD_CLASSES[name], path.with_suffix(".json").read_bytes())
    assert CODEC.decode(None, data) == expected


def test_every_record_and_every_released_schema_has_golden_bytes() -> None:
    golden = {path.stem for path in GOLDEN.glob("*.avro")}

    assert {stem.partition(".")[0] for stem in golden} == set(RECORD_CLASSES)
    history = Path(__file__).resolve().parents[2] / "schemas" / "history"
    assert golden == {path.stem for path in history.glob("*.avsc")}


# ---- other versions ---------------------------------------------------------------------------------------------


def changed(name: str, change: Any) -> str:
    """The current schema of a record with a change made to its JSON."""
    schema = json.loads(schema_text(name))
    change({field["name"]: field for field in schema["fields"]}, schema)
    return json.dumps(schema)


def written_by(text: str, values: dict[str, Any]) -> bytes:
    """A record as another version writes it, from a schema of its own."""
    out = BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(text)), values)
    return b"\xc3\x01" + fingerprint(text) + out.getvalue()


OUTCOME: dict[str, Any] = {"url": "u", "crawl_id": "c", "request_key": 1, "fetch_id": 2, "stage": "dedup"}


def next_outcome(fields: dict[str, Any], schema: dict[str, Any]) -> None:
    schema["fields"].insert(2, {"name": "colour", "type": "string"})
    schema["fields"].append({"name": "nested", "type": {"type": "map", "values": "long"}, "default": {}})
    fields["outcome"]["type"]["symbols"].insert(1, "postponed")
    fields["stage"]["type"]["symbols"].append("ranker")
    fields["change"]["type"][1]["symbols"].append("rewritten")
    fields["robots"]["type"][1]["fields"].append({"name": "lines", "type": "long", "default": 0})
    fields["robots"]["type"][1]["fields"][1]["type"]["symbols"].append("paywalled")


def test_a_newer_schema_with_added_fields_and_symbols_is_read_by_this_version() -> None:
    text = changed("FetchOutcome", next_outcome)
    news = {"origin": "o", "state": "paywalled", "expires_at_ms": 5, "lines": 9}
    newer = {**OUTCOME, "outcome": "postponed", "stage": "ranker", "change": "rewritten", "colour": "red"}
    codec = AvroCodec(writers=[text])

    outcome = codec.decode(FetchOutcome, written_by(text, {**newer, "robots": news, "nested": {"a": 1}}))

    assert outcome == FetchOutcome(
        url="u",
        crawl_id="c",
        request_key=1,
        fetch_id=2,
        stage=Stage.FRONTIER,
        outcome=OutcomeClass.UNKNOWN,
        change=Novelty.NEW,
        robots=RobotsNews(origin="o", state=RobotsState.UNKNOWN, expires_at_ms=5),
    )


def test_known_symbols_of_a_newer_schema_keep_their_meaning_although_their_numbers_moved() -> None:
    text = changed("FetchOutcome", next_outcome)
    newer = {**OUTCOME, "outcome": "indexed", "colour": "red", "change": "changed"}

    outcome = AvroCodec(writers=[text]).decode(FetchOutcome, written_by(text, newer))

    assert (outcome.outcome, outcome.stage, outcome.change) == (OutcomeClass.INDEXED, Stage.DEDUP, Novelty.CHANGED)


def test_an_older_schema_without_fields_and_symbols_is_read_with_defaults() -> None:
    def older(fields: dict[str, Any], schema: dict[str, Any]) -> None:
        fields["kind"]["type"]["symbols"] = ["auto", "page"]
        schema["fields"] = [fields["url"], fields["kind"], {"name": "dropped_since", "type": "string"}]

    text = changed("Seed", older)
    data = written_by(text, {"url": "u", "kind": "page", "dropped_since": "x"})

    assert AvroCodec(writers=[text]).decode(Seed, data) == Seed(url="u", kind=SeedKind.PAGE)


def test_a_newer_schema_may_come_from_the_registry() -> None:
    text = changed("FetchOutcome", next_outcome)
    data = written_by(text, {**OUTCOME, "outcome": "indexed", "colour": "red"})
    codec = AvroCodec()
    framed = b"\x00\x00\x00\x00\x09" + data[10:]

    with pytest.raises(UnknownSchemaError, match="id 9"):
        codec.decode(FetchOutcome, framed)
    codec.register(9, text)

    assert codec.decode(None, framed) == AvroCodec(writers=[text]).decode(None, data)
    assert codec.encode(codec.decode(FetchOutcome, framed))[:2] == b"\xc3\x01"


def test_a_writer_without_a_field_that_has_no_default_is_one_error() -> None:
    def older(fields: dict[str, Any], schema: dict[str, Any]) -> None:
        schema["fields"] = [fields["kind"]]

    text = changed("Seed", older)
    with pytest.raises(RecordDecodeError, match="Seed"):
        AvroCodec(writers=[text]).decode(Seed, written_by(text, {"kind": "page"}))


@pytest.mark.parametrize(
    "text", ["", "{", "3", "null", "[]", "{}", '"string"', '{"type": "record", "name": "A", "fields": 3}']
)
def test_a_text_that_is_no_schema_of_a_record_is_one_error(text: str) -> None:
    with pytest.raises(UnknownSchemaError):
        AvroCodec().register(1, text)


# ---- strangers' bytes -------------------------------------------------------------------------------------------


def test_an_unknown_fingerprint_is_an_unknown_schema() -> None:
    with pytest.raises(UnknownSchemaError, match="0011223344556677"):
        CODEC.decode(None, bytes.fromhex("c301 0011223344556677"))


def test_another_record_than_asked_for_is_an_error_that_names_both() -> None:
    with pytest.raises(RecordDecodeError, match=r"Seed.*FetchTask"):
        CODEC.decode(FetchTask, CODEC.encode(Seed(url="u")))


def test_a_record_of_a_stranger_is_refused_although_its_name_is_ours() -> None:
    text = changed("Seed", lambda _, schema: schema.update(namespace="elsewhere"))

    with pytest.raises(RecordDecodeError, match="elsewhere"):
        AvroCodec(writers=[text]).decode(None, written_by(text, {"url": "u"}))


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"\x00\x00\x00\x00", b"\xc3", b"\xc3\x01", b"\xc3\x01" + b"a" * 7, b"{}"]
)
def test_bytes_without_a_whole_framing_are_one_error(data: bytes) -> None:
    with pytest.raises(RecordDecodeError):
        CODEC.decode(None, data)


def test_bytes_after_the_end_are_one_error() -> None:
    with pytest.raises(RecordDecodeError, match="1 bytes follow"):
        CODEC.decode(None, CODEC.encode(Seed(url="u")) + b"\x00")


def test_a_record_cut_short_anywhere_is_one_error() -> None:
    data = CODEC.encode(Seed(url="u", tags=("a", "b")))

    for length in range(len(data)):
        with pytest.raises(RecordDecodeError):
            CODEC.decode(Seed, data[:length])


def head_of(cls: type[Record]) -> bytes:
    return b"\xc3\x01" + fingerprint(schema_text(cls.__name__))


LONGEST = bytes.fromhex("fe ff ff ff ff ff ff ff ff 01")  # 2**63 - 1 as a zigzag varint
SHORTEST = bytes.fromhex("ff ff ff ff ff ff ff ff ff 01")  # -2**63


@pytest.mark.parametrize("length", [LONGEST, SHORTEST, b"\x01", b"\xfe\xff\xff\xff\x1f", b"\xff" * 40, b"\x80" * 40])
@pytest.mark.parametrize("before", [b"", b"\x00\x00\x00"], ids=["text", "array"])
def test_a_hostile_length_allocates_nothing(length: bytes, before: bytes) -> None:
    data = head_of(DiscoveredLinks) + before + length + b"\x00" * 64
    tracemalloc.start()
    try:
        with pytest.raises(RecordDecodeError):
            CODEC.decode(DiscoveredLinks, data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_record_over_the_cap_is_refused_unread() -> None:
    data = CODEC.encode(Seed(url="u" * 100))

    assert AvroCodec(record_bytes_max=len(data)).decode(Seed, data).url == "u" * 100
    with pytest.raises(RecordDecodeError, match="too long"):
        AvroCodec(record_bytes_max=len(data) - 1).decode(Seed, data)


def decodes_or_refuses(codec: AvroCodec, data: bytes) -> None:
    try:
        record = codec.decode(None, data)
    except (RecordDecodeError, UnknownSchemaError):
        return
    assert codec.decode(None, codec.encode(record)) == record


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=64))
@example(data=b"\xc3\x01" + b"\x00" * 20)
def test_random_bytes_are_a_record_or_a_named_error(data: bytes) -> None:
    decodes_or_refuses(CODEC, data)


@pytest.mark.parametrize("cls", RECORD_TYPES)
def test_random_bytes_behind_a_known_fingerprint_are_a_record_or_a_named_error(cls: type[Record]) -> None:
    head = head_of(cls)

    @settings(max_examples=60, deadline=None)
    @given(body=st.binary(max_size=200))
    def check(body: bytes) -> None:
        decodes_or_refuses(CODEC, head + body)

    check()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(record=ANY_RECORD, at=st.floats(0, 1), change=st.binary(max_size=4))
def test_a_record_with_changed_bytes_is_a_record_or_a_named_error(record: Record, at: float, change: bytes) -> None:
    data = CODEC.encode(record)
    start = int(at * len(data))

    decodes_or_refuses(CODEC, data[:start] + change + data[start + len(change) :])


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=100))
def test_random_bytes_of_another_version_are_a_record_or_a_named_error(body: bytes) -> None:
    decodes_or_refuses(NEWER, b"\xc3\x01" + fingerprint(NEWER_TEXT) + body)


NEWER_TEXT = changed("FetchOutcome", next_outcome)
NEWER = AvroCodec(writers=[NEWER_TEXT])
