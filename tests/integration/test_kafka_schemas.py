"""Schemas over time: a registry that is down, restarted or refuses, and neighbours of another version."""

import asyncio
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.integration.kafka import messages_on, raw_producer, sending, settings_for, topics_of
from tests.servers import KafkaServer, Registry
from trawl.adapters.avro import fingerprint
from trawl.adapters.kafka import RecordCodec, open_codec
from trawl.adapters.kafka.registry import SchemaRegistry
from trawl.adapters.schemas import schema_text
from trawl.errors import RecordDecodeError, SchemaRegistryError, SettingsError, UnknownSchemaError
from trawl.kinds import ControlAction
from trawl.pipeline import TOPIC
from trawl.records import CrawlControl
from trawl.settings import KafkaSettings

CONTROL = TOPIC["trawl.control"]
SUBJECT = "trawl.control-value"
ORDER = CrawlControl(crawl_id="c", action=ControlAction.LIMIT, pages_max=7)
NEXT_VALUES = {"crawl_id": "c", "action": "limit", "pages_max": 7, "urgency": 3}


def next_version() -> str:
    """The schema of orders as a later version may have it: one field more, with a default."""
    schema = json.loads(schema_text("CrawlControl"))
    schema["fields"].append({"name": "urgency", "type": "int", "default": 0})
    return json.dumps(schema)


def written(schema: str, values: dict[str, Any], head: bytes) -> bytes:
    out = BytesIO(head)
    out.seek(0, 2)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), values)
    return out.getvalue()


def ask(registry: Registry, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{registry.url}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def registered(registry: Registry, schema: str) -> Iterator[int]:
    """A newest version of the subject of orders, taken back at the end; its id."""
    ask(registry, "PUT", f"/config/{SUBJECT}", {"compatibility": "NONE"})
    found = ask(registry, "POST", f"/subjects/{SUBJECT}/versions", {"schema": schema, "schemaType": "AVRO"})
    try:
        yield found["id"]
    finally:
        end = time.monotonic() + 20
        while not _taken_back(registry, found["id"]):  # one that has just started knows it a moment later
            assert time.monotonic() < end
            time.sleep(0.1)


def _taken_back(registry: Registry, schema_id: int) -> bool:
    try:
        newest = ask(registry, "GET", f"/subjects/{SUBJECT}/versions/latest")
        if newest["id"] == schema_id:
            ask(registry, "DELETE", f"/subjects/{SUBJECT}/versions/latest")
    except urllib.error.HTTPError:
        return False
    return bool(newest["id"] == schema_id)


@asynccontextmanager
async def codec_of(settings: KafkaSettings) -> AsyncIterator[RecordCodec]:
    codec = await open_codec(settings, blobs=None)
    try:
        yield codec
    finally:
        await codec.close()


# Neighbours of another version


@pytest.mark.parametrize("framing", ["single object", "registry"])
async def test_this_version_and_the_next_work_side_by_side(
    framing: str, request: pytest.FixtureRequest, kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings = settings_for(kafka_server)
    if framing == "registry":
        registry: Registry = request.getfixturevalue("registry_server")
        settings = replace(settings, registry_url=registry.url)
    else:
        (tmp_path / "CrawlControl.avsc").write_text(next_version())
        settings = replace(settings, schemas_folder=str(tmp_path))
    async with topics_of(settings), sending(settings) as (codec, producer), raw_producer(settings) as neighbour:
        if framing == "registry":
            with registered(registry, next_version()) as schema_id:
                head = b"\x00" + schema_id.to_bytes(4, "big")
                data = written(next_version(), NEXT_VALUES, head)
                await neighbour.send_and_wait(CONTROL.name, data, key=b"c")
                await producer.send([ORDER])
                # a process of this version that starts now is taken in too: its schema is an old one of the subject
                async with codec_of(settings) as later:
                    await _read_by_both(settings, [codec, later], skip=5)
        else:
            head = b"\xc3\x01" + fingerprint(next_version())
            await neighbour.send_and_wait(CONTROL.name, written(next_version(), NEXT_VALUES, head), key=b"c")
            await producer.send([ORDER])
            await _read_by_both(settings, [codec], skip=10)


async def _read_by_both(settings: KafkaSettings, codecs: list[RecordCodec], *, skip: int) -> None:
    messages = await messages_on(settings, CONTROL.name)
    assert len(messages) == 2
    for codec in codecs:
        assert [list(await codec.decode(CONTROL, message.value)) for message in messages] == [[ORDER], [ORDER]]
    # and the next version reads what this one wrote, with its default
    mine, newer = json.loads(schema_text("CrawlControl")), fastavro.parse_schema(json.loads(next_version()))
    found: Any = fastavro.schemaless_reader(BytesIO(messages[1].value[skip:]), mine, newer)
    assert (found["crawl_id"], found["pages_max"], found["urgency"]) == ("c", 7, 0)


async def test_without_a_registry_the_next_version_is_not_guessed() -> None:
    data = written(next_version(), NEXT_VALUES, b"\xc3\x01" + fingerprint(next_version()))
    async with codec_of(KafkaSettings()) as codec:
        with pytest.raises(UnknownSchemaError, match=fingerprint(next_version()).hex()):
            await codec.decode(CONTROL, data)


async def test_a_folder_of_schemas_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(SettingsError, match=r"kafka\.schemas_folder"):
            await open_codec(KafkaSettings(schemas_folder=str(folder)), blobs=None)
    (tmp_path / "x.avsc").write_text("{")
    with pytest.raises(UnknownSchemaError, match="Not an Avro schema"):
        await open_codec(KafkaSettings(schemas_folder=str(tmp_path)), blobs=None)


# A registry that refuses or is away


async def test_a_schema_that_is_not_compatible_ends_the_start_with_what_to_do(
    kafka_server: KafkaServer, registry_server: Registry
) -> None:
    settings = settings_for(kafka_server, registry_url=registry_server.url)
    async with codec_of(settings):
        pass
    other = json.dumps({
        "type": "record", "name": "CrawlControl", "namespace": "trawl.v1",
        "fields": [{"name": "crawl_id", "type": "long"}],
    })  # fmt: skip
    ask(registry_server, "DELETE", f"/subjects/{SUBJECT}")
    with (
        registered(registry_server, other),
        pytest.raises(SchemaRegistryError, match=f"{SUBJECT}.*409.*not compatible"),
    ):
        await open_codec(settings, blobs=None)
    async with codec_of(settings) as codec:
        assert list(await codec.decode(CONTROL, await codec.encode(ORDER))) == [ORDER]


async def test_services_that_start_together_register_together(registry_server: Registry) -> None:
    registries = [SchemaRegistry(registry_server.url) for _ in range(8)]
    try:
        for number in range(10):
            subject = f"new-{number}-value"
            ids = await asyncio.gather(*(one.register(subject, schema_text("Seed")) for one in registries))
            assert len(set(ids)) == 1
            assert ask(registry_server, "GET", f"/config/{subject}")["compatibilityLevel"] == "BACKWARD"
    finally:
        await asyncio.gather(*(one.close() for one in registries))


async def test_what_is_known_goes_on_while_the_registry_is_away_and_what_is_not_waits(
    kafka_server: KafkaServer, registry_server: Registry
) -> None:
    settings = settings_for(kafka_server, registry_url=registry_server.url)
    async with codec_of(settings) as codec:
        known = await codec.encode(ORDER)
        with pytest.raises(UnknownSchemaError, match="3999999999"):
            await codec.decode(CONTROL, b"\x00" + (3_999_999_999).to_bytes(4, "big") + b"x")
        with registered(registry_server, next_version()) as schema_id:
            newer = written(next_version(), NEXT_VALUES, b"\x00" + schema_id.to_bytes(4, "big"))
            await asyncio.to_thread(registry_server.stop)
            assert list(await codec.decode(CONTROL, known)) == [ORDER]
            assert await codec.encode(ORDER) == known
            with pytest.raises(SchemaRegistryError, match=r"does not answer.*kafka\.registry_url"):
                await codec.decode(CONTROL, newer)
            with pytest.raises(SchemaRegistryError, match="does not answer"):
                await open_codec(settings, blobs=None)
            # what the registry did not know a moment ago is not asked again
            with pytest.raises(UnknownSchemaError, match="3999999999"):
                await codec.decode(CONTROL, b"\x00" + (3_999_999_999).to_bytes(4, "big") + b"x")
            await asyncio.to_thread(registry_server.start)
            many = await asyncio.gather(*(codec.decode(CONTROL, newer) for _ in range(20)))
            assert all(list(found) == [ORDER] for found in many)
    async with codec_of(settings) as again:  # it kept its ids over the restart
        assert await again.encode(ORDER) == known


async def test_a_schema_of_another_program_is_no_record(kafka_server: KafkaServer, registry_server: Registry) -> None:
    settings = settings_for(kafka_server, registry_url=registry_server.url)
    foreign = json.dumps({"type": "record", "name": "Order", "namespace": "shop", "fields": []})
    found = await asyncio.to_thread(
        ask, registry_server, "POST", "/subjects/shop-value/versions", {"schema": foreign, "schemaType": "AVRO"}
    )
    async with codec_of(settings) as codec:
        with pytest.raises(UnknownSchemaError, match=str(found["id"])):
            await codec.decode(CONTROL, b"\x00" + found["id"].to_bytes(4, "big"))


async def test_a_record_of_another_topic_is_refused_by_name(
    kafka_server: KafkaServer, registry_server: Registry
) -> None:
    async with codec_of(settings_for(kafka_server, registry_url=registry_server.url)) as codec:
        data = await codec.encode(ORDER)
        with pytest.raises(RecordDecodeError, match="CrawlControl"):
            await codec.decode(TOPIC["trawl.fetched"], data)


async def test_what_answers_and_is_no_registry_is_told(address_of_no_registry: str) -> None:
    with pytest.raises(SchemaRegistryError, match=r"kafka\.registry_url") as told:
        await open_codec(KafkaSettings(registry_url=address_of_no_registry), blobs=None)
    assert "secret" not in str(told.value)


@pytest.fixture
def address_of_no_registry(registry_server: Registry) -> str:
    """A server that speaks HTTP and is no registry there: the root of its own pages. With a password in the URL."""
    return f"http://name:secret@127.0.0.1:{registry_server.port}"


async def test_an_id_is_asked_for_under_its_own_path(registry_server: Registry) -> None:
    registry = SchemaRegistry(registry_server.url)
    try:
        schema_id = await registry.register("odd subject/name?-value", schema_text("Seed"))
        found = await registry.schema(schema_id)
        assert found is not None
        assert json.loads(found)["name"] == "Seed"
        assert await registry.schema(3_999_999_998) is None
    finally:
        await registry.close()
