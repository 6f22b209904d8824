"""Records through a real broker: both framings, keys and partitions, what is large, and seeds as people write them."""

import asyncio
import json
import os
import random
import urllib.request
from collections import Counter, defaultdict
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from tests.integration.kafka import PARTITIONS, messages_on, raw_producer, sending, settings_for, topics_of
from tests.servers import KafkaServer, Registry
from tools.freeze import sample
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.kafka import open_codec
from trawl.errors import (
    KafkaUnavailableError,
    RecordDecodeError,
    RecordTooLargeError,
    SettingsError,
    TopicError,
)
from trawl.kinds import Novelty, ScopeKind, SeedKind
from trawl.pipeline import TOPIC, TOPICS, key_of, partition_of, route
from trawl.plain import RECORD_CLASSES
from trawl.records import (
    DiscoveredLinks,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Link,
    Payload,
    Record,
    Seed,
    UniqueDocument,
)
from trawl.settings import KafkaSettings


def sampled(name: str) -> Any:
    """A record with a value in every field, but for what only the wire knows."""
    record = sample(RECORD_CLASSES[name], name)
    if isinstance(record, ExtractedDocument):
        return replace(record, content=None)
    return replace(record, document=sampled("ExtractedDocument")) if isinstance(record, UniqueDocument) else record


SAMPLES: list[Record] = [sampled(name) for name in RECORD_CLASSES]


@pytest.fixture(params=["single object", "registry"])
def settings(request: pytest.FixtureRequest, kafka_server: KafkaServer) -> KafkaSettings:
    registry = request.getfixturevalue("registry_server").url if request.param == "registry" else ""
    return settings_for(kafka_server, registry_url=registry)


async def test_every_record_arrives_as_it_was_on_its_topic_and_partition(settings: KafkaSettings) -> None:
    async with topics_of(settings), sending(settings) as (codec, producer):
        await producer.send(SAMPLES)
        for record in SAMPLES:
            topic, key = route(record), key_of(record)
            found = await messages_on(settings, topic.name)
            decoded = [(message, one) for message in found for one in await codec.decode(topic, message.value)]
            message = next(message for message, one in decoded if one == record)
            assert message.value[:1] == (b"\x00" if settings.registry_url else b"\xc3"), topic.name
            assert message.key == (key or None)
            wanted = partition_of(key, PARTITIONS if topic.partitions > 1 else 1)
            assert message.partition == wanted or wanted is None


async def test_readers_take_both_framings_whatever_they_write(
    kafka_server: KafkaServer, registry_server: Registry
) -> None:
    plain = settings_for(kafka_server)
    framed = replace(plain, registry_url=registry_server.url)
    one, other = await open_codec(plain, blobs=None), await open_codec(framed, blobs=None)
    try:
        for record in SAMPLES:
            assert list(await other.decode(route(record), await one.encode(record))) == [record]
    finally:
        await other.close()


async def test_the_registry_framing_is_read_by_a_program_that_knows_only_the_specification(
    kafka_server: KafkaServer, registry_server: Registry
) -> None:
    settings = settings_for(kafka_server, registry_url=registry_server.url)
    seed = Seed(url="https://a.test/", tags=("one", "two"), kind=SeedKind.FEED)
    async with topics_of(settings), sending(settings) as (_, producer):
        await producer.send([seed])
        (message,) = await messages_on(settings, "trawl.seeds")

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"{registry_server.url}{path}", timeout=10) as answer:
            return json.load(answer)

    assert message.value[0] == 0
    schema_id = int.from_bytes(message.value[1:5], "big")
    assert (await asyncio.to_thread(ask, "/subjects/trawl.seeds-value/versions/latest"))["id"] == schema_id
    assert (await asyncio.to_thread(ask, "/config/trawl.seeds-value"))["compatibilityLevel"] == "BACKWARD"
    schema = json.loads((await asyncio.to_thread(ask, f"/schemas/ids/{schema_id}"))["schema"])
    found: Any = fastavro.schemaless_reader(BytesIO(message.value[5:]), schema, None)
    assert (found["url"], found["kind"], found["tags"]) == ("https://a.test/", "feed", ["one", "two"])
    assert found["submitted_at_ms"].timestamp() == 0  # the schema says what kind of number it is


# Partitions


async def test_a_host_is_on_one_partition_whoever_sends_and_hosts_are_on_all(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    hosts = [f"h{number}.test" for number in range(40)]
    seen: defaultdict[str, set[int]] = defaultdict(set)
    async with topics_of(settings), sending(settings) as (codec, one), sending(settings) as (_, two):
        for producer in (one, two, one):
            random.shuffle(hosts)
            await producer.send([task(f"http://{host}/{random.random()}") for host in hosts])
            await producer.send([outcome(f"http://{host}/{random.random()}") for host in hosts])
        for name in ("trawl.fetch-tasks", "trawl.outcomes"):
            for message in await messages_on(settings, name):
                (record,) = await codec.decode(TOPIC[name], message.value)
                assert isinstance(record, FetchTask | FetchOutcome)
                seen[record.url.split("/")[2]].add(message.partition)
    assert {len(partitions) for partitions in seen.values()} == {1}
    assert set().union(*seen.values()) == set(range(PARTITIONS))


async def test_records_of_one_key_keep_their_order_in_a_large_send(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    sizes = [random.choice((10, 50_000, 200_000)) for _ in range(60)]
    async with topics_of(settings), sending(settings) as (codec, producer):
        await producer.send([page(os.urandom(size), number) for number, size in enumerate(sizes)])
        found = [
            one.fetch_id
            for message in await messages_on(settings, "trawl.fetched")
            for one in await codec.decode(TOPIC["trawl.fetched"], message.value)
            if isinstance(one, FetchedPage)
        ]
    assert found == list(range(60))


async def test_links_too_many_for_one_message_arrive_in_several(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server, record_bytes_max=100_000, inline_bytes_max=50_000)
    links = tuple(Link(url=f"http://a.test/{number}?{'x' * 2000}") for number in range(200))
    monster = Link(url="http://a.test/monster", rel=("r" * 200_000,))
    record = DiscoveredLinks(crawl_id="c", source_url="http://b.test/", target_host="a.test", links=(*links, monster))
    async with topics_of(settings), sending(settings) as (codec, producer):
        await producer.send([record])
        found = await messages_on(settings, "trawl.discovered")
        parts = [one for message in found for one in await codec.decode(TOPIC["trawl.discovered"], message.value)]
    assert len(parts) > 4
    assert max(len(message.value) for message in found) < 100_000
    assert [link for part in parts if isinstance(part, DiscoveredLinks) for link in part.links] == list(links)
    assert {replace(part, links=()) for part in parts if isinstance(part, DiscoveredLinks)} == {
        replace(record, links=())
    }


# What is large


def task(url: str) -> FetchTask:
    return FetchTask(fetch_id=1, crawl_id="c", request_key=1, url=url)


def outcome(url: str) -> FetchOutcome:
    found: FetchOutcome = replace(sampled("FetchOutcome"), url=url)
    return found


def page(body: bytes, number: int = 1) -> FetchedPage:
    return FetchedPage(
        fetch_id=number,
        crawl_id="c",
        request_key=7,
        url="http://a.test/",
        final_url="http://a.test/",
        status=200,
        fetched_at_ms=1,
        body=Payload(inline=body, size_bytes=len(body)),
    )


async def test_a_body_of_20_mb_travels_by_reference_and_comes_back_whole(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings, blobs = settings_for(kafka_server), FileBlobStore(tmp_path)
    sent = page(os.urandom(20_000_000))
    async with topics_of(settings), sending(settings, blobs) as (codec, producer):
        await producer.send([sent])
        (message,) = await messages_on(settings, "trawl.fetched")
        assert len(message.value) < 1000
        assert list(await codec.decode(TOPIC["trawl.fetched"], message.value)) == [sent]


@pytest.mark.parametrize("size", [0, 1023, 1024, 100_000, 899_000, 900_100])
async def test_bodies_at_every_limit_come_back_whole(tmp_path: Path, size: int) -> None:
    settings, blobs = KafkaSettings(), FileBlobStore(tmp_path)
    codec = await open_codec(settings, blobs=blobs)
    sent = page(os.urandom(size))
    data = await codec.encode(sent)
    assert len(data) <= settings.inline_bytes_max + 1000
    assert (len(data) < 1000) == (size > 900_000 or size == 0)
    assert list(await codec.decode(TOPIC["trawl.fetched"], data)) == [sent]


async def test_the_parts_of_a_document_share_one_limit_and_structured_data_counts(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings, blobs = settings_for(kafka_server), FileBlobStore(tmp_path)
    noise = os.urandom(700_000)
    document = replace(
        sampled("ExtractedDocument"),
        html=Payload(inline=noise, size_bytes=len(noise)),
        text="",
        markdown=os.urandom(350_000).hex(),
        extracted=json.dumps({"x": os.urandom(50_000).hex()}),
    )
    async with topics_of(settings), sending(settings, blobs) as (codec, producer):
        await producer.send([document, replace(document, extracted=json.dumps({"x": os.urandom(2_000_000).hex()}))])
        first, second = await messages_on(settings, "trawl.documents")
        assert len(first.value) < settings.inline_bytes_max
        assert len(second.value) < settings.inline_bytes_max
        (found,) = await codec.decode(TOPIC["trawl.documents"], first.value)
        assert isinstance(found, ExtractedDocument)
        assert await blobs.get(found.html.ref) == noise
        assert replace(found, html=document.html) == document
        (found,) = await codec.decode(TOPIC["trawl.documents"], second.value)
        assert isinstance(found, ExtractedDocument)
        assert len(json.loads(found.extracted)["x"]) == 4_000_000


async def test_who_only_passes_documents_on_leaves_their_content_packed_inline_or_by_reference(tmp_path: Path) -> None:
    blobs = FileBlobStore(tmp_path)
    writer = await open_codec(KafkaSettings(inline_bytes_max=100_000), blobs=blobs)
    passing = await open_codec(KafkaSettings(inline_bytes_max=100_000), blobs=blobs, opens_content=False)
    for size in (100, 10_000, 200_000):
        document = replace(sampled("ExtractedDocument"), markdown=os.urandom(size // 2).hex(), html=Payload())
        (passed,) = await passing.decode(TOPIC["trawl.documents"], await writer.encode(document))
        assert isinstance(passed, ExtractedDocument)
        assert (passed.content is None) == (size == 100)
        unique = UniqueDocument(document=passed, novelty=Novelty.NEW)
        (found,) = await writer.decode(TOPIC["trawl.unique"], await passing.encode(unique))
        assert found == replace(unique, document=document)


@pytest.mark.parametrize(
    "data",
    [
        b"\x28\xb5\x2f\xfd\x00\x00 no frame",
        b"",
        b"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x01\x00\x00\x00",  # claims 2**32 bytes
    ],
)
async def test_a_damaged_or_lying_payload_is_refused_before_memory_is_taken(data: bytes) -> None:
    codec = await open_codec(KafkaSettings(), blobs=None)
    lying = replace(page(b""), body=Payload(inline=data or b"\x00", encoding="zstd", size_bytes=5))
    with pytest.raises(RecordDecodeError, match="payload"):
        await codec.decode(TOPIC["trawl.fetched"], await codec.encode(lying))


# Seeds


async def test_seeds_are_taken_as_anyone_writes_them(settings: KafkaSettings) -> None:
    written: list[bytes] = [
        b"https://a.test/\n",
        b"\xef\xbb\xbfhttp://b.test/1\r\n# a note\r\n\r\n  http://b.test/2  \n",
        b'{"url": "http://c.test/", "scope": "domain", "depth_max": 3, "tags": ["x"], "priority": 1}',
        b'"http://d.test/"',
        b'["http://e.test/", {"url": "http://e.test/s", "kind": "sitemap"}]',
    ]
    own = Seed(url="http://f.test/", crawl_id="mine")
    async with topics_of(settings), sending(settings) as (codec, producer):
        async with raw_producer(settings) as raw:
            for data in written:
                await raw.send_and_wait("trawl.seeds", data, partition=0)
        await producer.send([own])
        found = [
            one
            for message in await messages_on(settings, "trawl.seeds")
            for one in await codec.decode(TOPIC["trawl.seeds"], message.value)
        ]
    assert sorted((one for one in found if isinstance(one, Seed)), key=lambda one: one.url) == [
        Seed(url="http://b.test/1"),
        Seed(url="http://b.test/2"),
        Seed(url="http://c.test/", scope=ScopeKind.DOMAIN, depth_max=3, tags=("x",), priority=1.0),
        Seed(url="http://d.test/"),
        Seed(url="http://e.test/"),
        Seed(url="http://e.test/s", kind=SeedKind.SITEMAP),
        own,
        Seed(url="https://a.test/"),
    ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b" \n# only a note\n", "empty"),
        (b"\xff\xfe\x00h", "neither Avro nor text"),
        (b'{"address": "http://a.test/"}', "no field 'address'"),
        (b'{"url": "http://a.test/", "depth_max": "3"}', "depth_max"),
        (b'{"url": "http://a.test/", "scope": "galaxy"}', "scope"),
        (b'{"url": "http://a.test/", "scope": ["host"]}', "scope"),
        (b'{"url": "http://a.test/", "recrawl": {"kind": "hourly"}}', "kind = 'hourly'.*interval"),
        (b'{"url": "http://a.test/", "recrawl": {"every": 5}}', "no field 'every'"),
        (b'{"url": "http://a.test/", "recrawl": "once"}', "recrawl"),
        (b'{"scope": "host"}', "url"),
        (b'{"url": "http://a.test/"', "begins like JSON"),
        (b"[1]", "not 1"),
        (b"[" * 100_000, "begins like JSON"),
        (b"http://a.test/\n" * 10_001, "10001 seeds"),
    ],
)
async def test_a_seed_that_cannot_be_meant_is_refused_with_what_is_wrong(data: bytes, told: str) -> None:
    codec = await open_codec(KafkaSettings(), blobs=None)
    with pytest.raises(RecordDecodeError, match=told):
        await codec.decode(TOPIC["trawl.seeds"], data)


async def test_text_on_any_other_topic_is_no_record() -> None:
    codec = await open_codec(KafkaSettings(), blobs=None)
    for topic in TOPICS:
        if topic.record is not Seed:
            with pytest.raises(RecordDecodeError):
                await codec.decode(topic, b"http://a.test/")


# Brokers that cannot serve


async def test_no_broker_is_told_by_its_address() -> None:
    settings = KafkaSettings(bootstrap_servers=("127.0.0.1:1",))
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1.*kafka\.bootstrap_servers"):
        async with sending(settings):
            pass


async def test_a_missing_topic_is_told_with_what_to_do(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server, request_seconds_max=2.0)
    async with topics_of(settings):
        pass
    async with sending(settings) as (_, producer):
        with pytest.raises(TopicError, match="trawl topics"):
            await producer.send([Seed(url="http://a.test/")])


async def test_a_record_over_the_limit_is_refused_with_the_settings_to_change(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server, record_bytes_max=100_000)
    async with topics_of(settings), sending(settings) as (_, producer):
        with pytest.raises(RecordTooLargeError, match=r"kafka\.record_bytes_max"):
            await producer.send([Seed(url="http://a.test/", tags=("x" * 200_000,))])
        # what a client with other settings sends, the broker refuses, and other records go on
        async with sending(replace(settings, record_bytes_max=1_900_000)) as (_, bold):
            with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes"):
                await bold.send(
                    [Seed(url="http://a.test/"), Seed(url="http://a.test/", tags=(os.urandom(500_000).hex(),))]
                )
            await bold.send([Seed(url="http://b.test/")] * 64)  # to every partition, that of the refused one too
        found = await messages_on(settings, "trawl.seeds")
        assert Counter(b"b.test" in message.value for message in found)[True] == 64


async def test_a_protocol_that_does_not_exist_is_a_setting_to_change(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server, security_protocol="TLS")
    with pytest.raises(SettingsError, match=r"kafka\.security_protocol = 'TLS'.*SASL_SSL"):
        async with sending(settings):
            pass
