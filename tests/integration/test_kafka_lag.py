"""How far consumer groups are, as a bystander sees it."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete

from tests.integration.kafka import admin_of, sending, settings_for, topics_of
from tests.servers import KafkaServer
from trawl.adapters.kafka import GroupLag, TopicLag, standing
from trawl.errors import KafkaUnavailableError, TopicError
from trawl.kinds import Stage
from trawl.pipeline import TOPICS, read_by
from trawl.records import Seed
from trawl.settings import KafkaSettings

SEEDS = [Seed(url=f"http://h{number}.test/") for number in range(40)]


def of_seeds(groups: tuple[GroupLag, ...]) -> tuple[GroupLag, TopicLag]:
    group = next(group for group in groups if group.stage is Stage.FRONTIER)
    return group, next(topic for topic in group.topics if topic.topic == "trawl.seeds")


@asynccontextmanager
async def frontier(settings: KafkaSettings) -> AsyncIterator[AIOKafkaConsumer]:
    """A member of the frontier's group that commits only what it is told to."""
    consumer = AIOKafkaConsumer(
        "trawl.seeds",
        bootstrap_servers=list(settings.bootstrap_servers),
        group_id=f"{settings.group_prefix}-frontier",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
    )
    await consumer.start()
    try:
        yield consumer
    finally:
        await consumer.stop()


async def read_all(consumer: AIOKafkaConsumer, count: int) -> None:
    seen = 0
    while seen < count:
        seen += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))


async def test_every_stage_and_topic_is_there_before_anything_ran(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    async with topics_of(settings):
        found = await standing(settings, seconds=0)
    assert [group.stage for group in found.groups] == list(Stage)
    for group in found.groups:
        assert [topic.topic for topic in group.topics] == [topic.name for topic in read_by(group.stage)]
        assert all((one.lag_records, one.lag_seconds, one.committed) == (0, 0, None) for one in group.topics)
        assert (group.members, group.is_stuck) == (0, False)
    assert dict(found.records) == {topic.name: 0 for topic in TOPICS}


async def test_what_is_unread_is_counted_and_timed_and_a_stuck_group_is_told_from_one_that_gets_on(
    kafka_server: KafkaServer,
) -> None:
    settings = settings_for(kafka_server)
    async with topics_of(settings), sending(settings) as (_, producer):
        began = time.time()
        await producer.send(SEEDS)
        await asyncio.sleep(1.2)
        found = await standing(settings, seconds=0)
        group, seeds = of_seeds(found.groups)
        assert (seeds.lag_records, seeds.committed, group.members, group.is_stuck) == (40, None, 0, True)
        assert 1.0 <= seeds.lag_seconds <= time.time() - began + 0.1
        assert found.records["trawl.seeds"] == 40

        async with frontier(settings) as consumer:
            await read_all(consumer, 40)
            looking = asyncio.create_task(standing(settings, seconds=1.5))
            await asyncio.sleep(0.7)
            (first, *_) = sorted(consumer.assignment())
            behind = {place: await consumer.position(place) for place in consumer.assignment()}
            behind[first] = max(behind[first] - 3, 0)
            await consumer.commit(behind)
            group, seeds = of_seeds((await looking).groups)
            assert (seeds.lag_records, seeds.advanced, group.members, group.is_stuck) == (3, 37, 1, False)
            assert seeds.lag_seconds >= 1.0
            group, seeds = of_seeds((await standing(settings, seconds=0.2)).groups)
            assert (seeds.lag_records, seeds.advanced, group.is_stuck) == (3, 0, True)
            await consumer.commit()
            group, seeds = of_seeds((await standing(settings, seconds=0.1)).groups)
            assert (seeds.lag_records, seeds.lag_seconds, seeds.committed, group.is_stuck) == (0, 0, 40, False)


async def test_records_deleted_before_they_were_read_are_counted(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    async with topics_of(settings), sending(settings) as (_, producer):
        await producer.send(SEEDS)
        async with frontier(settings) as consumer:
            await read_all(consumer, 40)
            places = sorted(consumer.assignment())
            ends = {place: await consumer.position(place) for place in places}
            await consumer.commit(dict.fromkeys(places, 0))
        place = max(ends, key=lambda one: ends[one])
        async with admin_of(settings) as admin:
            await admin.delete_records({TopicPartition(*place): RecordsToDelete(before_offset=ends[place] - 1)})
        _, seeds = of_seeds((await standing(settings, seconds=0)).groups)
        assert seeds.lost_records == ends[place] - 1
        assert seeds.lag_records == 40 - seeds.lost_records


async def test_looking_without_topics_or_a_broker_says_what_to_do(kafka_server: KafkaServer) -> None:
    settings = settings_for(kafka_server)
    async with topics_of(settings):
        pass
    with pytest.raises(TopicError, match=r"trawl\.seeds is missing.*trawl topics"):
        await standing(settings, seconds=0)
    with pytest.raises(KafkaUnavailableError, match=r"127\.0\.0\.1:1"):
        await standing(KafkaSettings(bootstrap_servers=("127.0.0.1:1",)), seconds=0)
