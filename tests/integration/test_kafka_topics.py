"""Topics at a real broker: made on purpose, compared with the topology in words, never changed or deleted."""

import asyncio

import pytest
from aiokafka.admin import NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.integration.kafka import PARTITIONS, admin_of, messages_on, sending, settings_for, topics_of, without_topics
from tests.servers import KafkaServer
from trawl.adapters.kafka import Topics
from trawl.errors import KafkaUnavailableError, TopicError
from trawl.pipeline import TOPIC, TOPICS
from trawl.records import Seed
from trawl.settings import KafkaSettings


async def test_topics_are_made_once_and_are_then_as_the_topology_says(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    await without_topics(settings)
    topics = Topics(settings)
    try:
        assert await topics.differences() == [f"{topic.name} is missing" for topic in TOPICS]
        with pytest.raises(TopicError, match=r"trawl\.seeds is missing.* and 7 more: make topics with `trawl topics`"):
            await topics.require()
        assert await topics.create() == [topic.name for topic in TOPICS]
        async with sending(settings) as (_, producer):
            await producer.send([Seed(url="http://a.test/")])
        assert await topics.create() == []
        assert await topics.differences() == []
        await topics.require()
        assert len(await messages_on(settings, "trawl.seeds")) == 1
        async with admin_of(settings) as admin:
            counts = {told["topic"]: len(told["partitions"]) for told in await admin.describe_topics()}
        assert counts["trawl.fetch-tasks"] == PARTITIONS
        assert counts["trawl.control"] == counts["trawl.dead-letters"] == 1
    finally:
        await topics.close()
        await without_topics(settings)


async def test_every_difference_is_named_and_left_alone(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    await without_topics(settings)
    async with admin_of(settings) as admin:
        await admin.create_topics([
            NewTopic("trawl.seeds", PARTITIONS + 1, 1),
            NewTopic("trawl.control", 1, 1, topic_configs={"cleanup.policy": "delete"}),
        ])  # fmt: skip
    topics = Topics(settings)
    try:
        assert len(await topics.create()) == len(TOPICS) - 2
        found = await topics.differences()
        assert "trawl.seeds has 5 partitions, not 4" in found
        assert any(text.startswith("trawl.seeds has max.message.bytes=") for text in found)
        assert "trawl.control has cleanup.policy=delete, not compact" in found
        assert "trawl.control has retention.ms=604800000, not -1" in found
        assert {text.split()[0] for text in found} == {"trawl.seeds", "trawl.control"}
        assert await topics.create() == []
        assert await topics.differences() == found
        with pytest.raises(TopicError, match=r"trawl\.seeds has 5 partitions, not 4.*kafka\.partitions"):
            await topics.require()
    finally:
        await topics.close()
        await without_topics(settings)


async def test_a_setting_changed_at_the_broker_is_seen(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    async with topics_of(settings) as topics:
        async with admin_of(settings) as admin:
            changed = {**topics.settings(TOPIC["trawl.fetched"]), "retention.ms": "60000"}
            await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "trawl.fetched", changed)])
            await admin.create_partitions({"trawl.unique": NewPartitions(PARTITIONS + 2)})
        async with asyncio.timeout(10):  # brokers learn of it a moment later
            while len(found := await topics.differences()) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert found == [
            "trawl.fetched has retention.ms=60000, not 86400000",
            "trawl.unique has 6 partitions, not 4",
        ]


async def test_more_copies_than_brokers_are_refused_with_the_brokers_words(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server, replication_factor=3)
    await without_topics(settings)
    topics = Topics(settings)
    try:
        with pytest.raises(TopicError, match=r"trawl\.seeds cannot be made.*replication"):
            await topics.create()
    finally:
        await topics.close()


async def test_no_broker_is_told_by_its_address() -> None:
    topics = Topics(KafkaSettings(bootstrap_servers=("127.0.0.1:1",)))
    for act in (topics.create, topics.differences, topics.require):
        with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1"):
            await act()
    await topics.close()
