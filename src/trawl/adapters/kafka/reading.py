"""Looking at topics as a bystander: no group is joined, nothing is committed."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition, errors
from aiokafka.admin import AIOKafkaAdminClient

from trawl.adapters.kafka.connection import client_options, named_errors, start
from trawl.errors import KafkaUnavailableError, TopicError
from trawl.records import Millis
from trawl.settings import KafkaSettings

_DESCRIBED_MEMBERS: Final = 5
"""The place of the members in a broker's description of a group."""
_NOT_YET: Final = (
    errors.GroupCoordinatorNotAvailableError,
    errors.GroupLoadInProgressError,
    errors.NotCoordinatorForGroupError,
)
_WAIT_SECONDS: Final = 0.2
_POLL_MS: Final = 500
_RECORDS_MAX: Final = 200
"""Messages taken at once."""


class Reader:
    """A consumer without a group, made by `reader`; what it reads, it reads in the order of offsets."""

    def __init__(self, consumer: AIOKafkaConsumer, admin: AIOKafkaAdminClient, settings: KafkaSettings) -> None:
        self._consumer = consumer
        self._admin = admin
        self._settings = settings

    async def places(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of topics; raises TopicError for one that is missing."""
        wanted = list(topics)
        found: list[TopicPartition] = []
        described = {told["topic"]: told for told in await self._admin.describe_topics(wanted)}
        for topic in wanted:
            if described[topic]["error_code"]:
                raise TopicError(f"the topic {topic} is missing; make the topics with `trawl topics`")
            numbers = sorted(one["partition"] for one in described[topic]["partitions"])
            found += [TopicPartition(topic, number) for number in numbers]
        return found

    async def begins(self, places: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The first offset that a broker still has, of each partition."""
        found: Mapping[TopicPartition, int] = await self._consumer.beginning_offsets(places)
        return found

    async def ends(self, places: list[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The offset behind the last record of each partition."""
        found: Mapping[TopicPartition, int] = await self._consumer.end_offsets(places)
        return found

    async def committed(self, group: str) -> dict[TopicPartition, int]:
        """What a group has committed; partitions of which it never did are left out."""
        found = await self._patiently(lambda: self._admin.list_consumer_group_offsets(group))
        return {place: told.offset for place, told in found.items() if told.offset >= 0}

    async def members(self, group: str) -> int:
        """How many processes a broker counts as members of a group."""
        # several groups in one request are read wrongly by the client
        (answer,) = await self._patiently(lambda: self._admin.describe_consumer_groups([group]))
        return len(answer.groups[0][_DESCRIBED_MEMBERS])

    async def since(self, places: list[TopicPartition], at_ms: Millis) -> dict[TopicPartition, int]:
        """The first offset of each partition at or after a time; those without one are left out."""
        found = await self._consumer.offsets_for_times(dict.fromkeys(places, at_ms))
        return {place: offset.offset for place, offset in found.items() if offset is not None}

    async def _patiently(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """The answer to a question about groups; a broker that has only just started looks for their coordinator."""
        end = time.monotonic() + self._settings.request_seconds_max
        while True:
            try:
                return await ask()
            except _NOT_YET:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(_WAIT_SECONDS)

    async def messages(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int], *, one_each: bool = False
    ) -> AsyncIterator[Any]:
        """What lies between two offsets of partitions; with `one_each` only the first message of each."""
        left = {place for place, start in starts.items() if start < ends[place]}
        if not left:
            return
        self._consumer.assign(list(left))
        for place in left:
            self._consumer.seek(place, starts[place])
        quiet_since = time.monotonic()
        while left:
            batch = await self._consumer.getmany(*left, timeout_ms=_POLL_MS, max_records=_RECORDS_MAX)
            for place, messages in batch.items():
                for message in messages[:1] if one_each else messages:
                    if message.offset < ends[place]:
                        yield message
                if one_each:
                    left.discard(place)
            # Markers of transactions and compacted records have offsets and are never delivered.
            left = {place for place in left if await self._consumer.position(place) < ends[place]}
            quiet_since = time.monotonic() if batch else quiet_since
            if left and time.monotonic() - quiet_since > self._settings.request_seconds_max:
                raise KafkaUnavailableError(
                    f"{len(left)} partitions, {min(left)} first, were not delivered in"
                    f" {self._settings.request_seconds_max:.0f} s; are all brokers running?"
                )


@asynccontextmanager
async def reader(settings: KafkaSettings, what: str) -> AsyncIterator[Reader]:
    """A reader, connected; whatever a broker refuses in the block is a KafkaError. `what` says what it is for."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    consumer = AIOKafkaConsumer(
        **client_options(settings),
        group_id=None,
        enable_auto_commit=False,
        max_partition_fetch_bytes=settings.record_bytes_max,
    )
    with named_errors(settings, what):
        try:
            async with asyncio.timeout(settings.request_seconds_max):
                await start(consumer, settings)
                await start(admin, settings)
            yield Reader(consumer, admin, settings)
        finally:
            await consumer.stop()
            await admin.close()
