"""Records to their topics, each acknowledged by every replica in sync before `send` returns."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from aiokafka import AIOKafkaProducer

from trawl.adapters.kafka.codec import RecordCodec
from trawl.adapters.kafka.connection import client_options, named_errors, start
from trawl.errors import TopicError
from trawl.pipeline import key_of, partition_of, route
from trawl.records import DiscoveredLinks, Record
from trawl.settings import KafkaSettings

_LOG = logging.getLogger(__name__)
_OVERHEAD_BYTES: Final = 1024
"""What a message needs besides its value: key, headers, the frame of its batch."""
_SHOWN_CHARS: Final = 200
BATCH_BYTES_MAX: Final = 256 * 1024
"""Records of one partition that travel together. A full batch holds up the next one until it is on its way, so one of
16 kB, the client's own default, costs three times the CPU for pages."""


class RecordProducer:
    """Sends records; partitions are ours to choose, so that every producer puts a host on the same one."""

    def __init__(self, settings: KafkaSettings, codec: RecordCodec) -> None:
        self._settings = settings
        self._codec = codec
        self._producer: AIOKafkaProducer | None = None
        self._partitions: dict[str, int] = {}

    async def open(self) -> None:
        """Connect; raises KafkaError."""
        producer = AIOKafkaProducer(
            **client_options(self._settings),
            acks="all",
            enable_idempotence=False,  # else it tries for ever and tells nobody, and one refused batch ends all others
            compression_type="zstd",
            linger_ms=int(1000 * self._settings.linger_seconds),
            max_batch_size=min(BATCH_BYTES_MAX, self._settings.record_bytes_max),
            max_request_size=self._settings.record_bytes_max,
        )
        with named_errors(self._settings, "connecting"):
            try:
                await start(producer, self._settings)
            except BaseException:
                await producer.stop()
                raise
        self._producer = producer

    async def close(self) -> None:
        """Send what waits, and disconnect."""
        if self._producer is not None:
            producer, self._producer = self._producer, None
            await producer.stop()

    async def send(self, records: Sequence[Record]) -> None:
        """Send all at once and wait for each acknowledgement; raises KafkaError, or StoreError for a blob.

        After an error some may have been sent: sending them again is harmless, by the identities of records.
        """
        encoded = [pair for record in records for pair in await self._encoded(record)]
        waiting: list[asyncio.Future[object]] = []
        with named_errors(self._settings, "sending"):
            try:
                for record, data in encoded:  # one after the other: records of one key keep their order
                    waiting.append(await self._queued(record, data))
            except BaseException:
                asyncio.gather(*waiting, return_exceptions=True)  # only the first error is told
                raise
            await asyncio.gather(*waiting)

    async def _encoded(self, record: Record) -> list[tuple[Record, bytes]]:
        """A record with its bytes; several, if links are too many for one message."""
        data = await self._codec.encode(record)
        if len(data) <= self._settings.record_bytes_max - _OVERHEAD_BYTES or not isinstance(record, DiscoveredLinks):
            return [(record, data)]
        middle = len(record.links) // 2
        if not middle:
            _LOG.warning("a link from %s to %s takes %d bytes and is left out", *_ends(record), len(data))
            return []
        halves = (record.links[:middle], record.links[middle:])
        return [pair for links in halves for pair in await self._encoded(replace(record, links=links))]

    async def send_raw(
        self,
        topic: str,
        data: bytes | None,
        *,
        key: bytes,
        partition: int,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Send bytes as they are, or none, for the replay of dead letters; a partition below 0 is chosen by the key.

        Raises KafkaError; TopicError if the topic has no such partition.
        """
        with named_errors(self._settings, f"sending to {topic}"):
            count = await self._count(topic)
            if partition >= count:
                raise TopicError(f"the topic {topic} has {count} partitions, and no partition {partition}")
            chosen = partition_of(key, count) if partition < 0 else partition
            bare = None if data is not None and not key else key
            await (await self._connected().send(topic, data, key=bare, partition=chosen, headers=list(headers)))

    async def _queued(self, record: Record, data: bytes) -> "asyncio.Future[object]":
        """What is done when a broker has acknowledged the record."""
        topic, key = route(record).name, key_of(record)
        partition = partition_of(key, await self._count(topic))
        queued: asyncio.Future[object] = await self._connected().send(topic, data, key=key or None, partition=partition)
        return queued

    async def _count(self, topic: str) -> int:
        """How many partitions a topic has; it never changes while a service runs."""
        if topic not in self._partitions:
            self._partitions[topic] = len(await self._connected().partitions_for(topic))
        return self._partitions[topic]

    def _connected(self) -> AIOKafkaProducer:
        if self._producer is None:
            raise RuntimeError("the producer is not open")
        return self._producer


def _ends(record: DiscoveredLinks) -> tuple[str, str]:
    return record.source_url[:_SHOWN_CHARS], record.target_host[:_SHOWN_CHARS]
