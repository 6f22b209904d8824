"""The topics of one test at a real broker, and raw looks at what lies on them."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient

from tests.servers import KafkaServer
from trawl.adapters.kafka import RecordCodec, RecordProducer, Topics, open_codec
from trawl.adapters.kafka.reading import reader
from trawl.pipeline import TOPIC
from trawl.ports import BlobStore
from trawl.settings import KafkaSettings

PARTITIONS = 4


def settings_for(server: KafkaServer, **changes: Any) -> KafkaSettings:
    """Settings of a deployment of its own at the broker: other consumer groups than every other test."""
    default = KafkaSettings(
        bootstrap_servers=(server.bootstrap,),
        partitions=PARTITIONS,
        group_prefix=f"t{random.randrange(10**9)}",
        request_seconds_max=15.0,
    )
    return replace(default, **changes)


@asynccontextmanager
async def admin_of(settings: KafkaSettings) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=list(settings.bootstrap_servers))
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def without_topics(settings: KafkaSettings) -> None:
    """Delete Trawl's topics; brokers take a moment."""
    async with admin_of(settings) as admin:
        while left := [name for name in await admin.list_topics() if name in TOPIC]:
            await admin.delete_topics(left)
            await asyncio.sleep(0.1)


@asynccontextmanager
async def topics_of(settings: KafkaSettings) -> AsyncIterator[Topics]:
    """Empty topics, deleted at the end."""
    await without_topics(settings)
    topics = Topics(settings)
    try:
        await topics.create()
        yield topics
    finally:
        await topics.close()
        await without_topics(settings)


@asynccontextmanager
async def sending(
    settings: KafkaSettings, blobs: BlobStore | None = None
) -> AsyncIterator[tuple[RecordCodec, RecordProducer]]:
    """A codec and a producer of these settings."""
    codec = await open_codec(settings, blobs=blobs)
    producer = RecordProducer(settings, codec)
    try:
        await producer.open()
        yield codec, producer
    finally:
        await producer.close()
        await codec.close()


@asynccontextmanager
async def raw_producer(settings: KafkaSettings) -> AsyncIterator[AIOKafkaProducer]:
    """Any client that knows nothing of Trawl."""
    async with AIOKafkaProducer(bootstrap_servers=list(settings.bootstrap_servers)) as producer:
        yield producer


async def messages_on(settings: KafkaSettings, topic: str) -> Sequence[Any]:
    """All messages of a topic."""
    async with reader(settings, "reading") as read:
        places = await read.places([topic])
        return [message async for message in read.messages(await read.begins(places), await read.ends(places))]
