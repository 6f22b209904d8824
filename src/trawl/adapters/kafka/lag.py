"""How far each stage's consumer group is: what it has not read, for how long that waits, and whether it gets on."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from aiokafka import TopicPartition

from trawl.adapters.kafka.reading import Reader, reader
from trawl.kinds import Stage
from trawl.pipeline import TOPICS, read_by
from trawl.records import Millis
from trawl.settings import KafkaSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLag:
    """How far one group is in one topic, all partitions together."""

    topic: str
    lag_records: int
    """Records between what is committed and the end; all that are there, where nothing was ever committed."""
    lag_seconds: float
    """How long the first record waits that is not committed; 0 at the end of the topic."""
    lost_records: int
    """Records that a broker deleted by retention before the group had committed them."""
    committed: int | None
    """The sum of the committed offsets; None if the group has never committed."""
    advanced: int
    """How far that sum moved between the two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """One stage's consumer group."""

    stage: Stage
    group: str
    members: int
    """Processes that the broker counts as its members."""
    topics: tuple[TopicLag, ...]

    @property
    def is_stuck(self) -> bool:
        """Whether records wait and nothing was committed between the two looks."""
        behind = [topic for topic in self.topics if topic.lag_records]
        return bool(behind) and not any(topic.advanced for topic in self.topics)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """All groups at one time, and the topics."""

    groups: tuple[GroupLag, ...]
    records: Mapping[str, int]
    """Records that each topic holds now."""
    seconds: float
    """The time between the two looks."""


Offsets = Mapping[TopicPartition, int]


async def standing(settings: KafkaSettings, *, seconds: float = 1.0) -> Standing:
    """Look twice, `seconds` apart. Raises KafkaError; joins no group and commits nothing."""
    async with reader(settings, "looking at consumer groups") as read:
        places = await read.places(topic.name for topic in TOPICS)
        first = {stage: await read.committed(_group(settings, stage)) for stage in Stage}
        began = time.monotonic()
        await asyncio.sleep(seconds)
        second = {stage: await read.committed(_group(settings, stage)) for stage in Stage}
        apart = time.monotonic() - began
        members = {stage: await read.members(_group(settings, stage)) for stage in Stage}
        begins, ends = await read.begins(places), await read.ends(places)
        waiting = await _waiting_since(read, second, begins, ends)
    now_ms = int(1000 * time.time())
    return Standing(
        groups=tuple(
            GroupLag(
                stage=stage,
                group=_group(settings, stage),
                members=members[stage],
                topics=tuple(
                    _lag(topic.name, first[stage], second[stage], begins, ends, waiting, now_ms)
                    for topic in read_by(stage)
                ),
            )
            for stage in Stage
        ),
        records={
            topic.name: sum(ends[place] - begins[place] for place in places if place.topic == topic.name)
            for topic in TOPICS
        },
        seconds=apart,
    )


def _group(settings: KafkaSettings, stage: Stage) -> str:
    return f"{settings.group_prefix}-{stage}"


def _next(place: TopicPartition, committed: Offsets, begins: Offsets) -> int:
    """The first offset that the group has to read."""
    return max(committed.get(place, 0), begins[place])


async def _waiting_since(
    read: Reader, committed: Mapping[Stage, Offsets], begins: Offsets, ends: Offsets
) -> dict[tuple[TopicPartition, int], Millis]:
    """The times of the first records that a group has to read, by place and offset."""
    found: dict[tuple[TopicPartition, int], Millis] = {}
    for stage, offsets in committed.items():
        names = {topic.name for topic in read_by(stage)}
        starts = {place: _next(place, offsets, begins) for place in ends if place.topic in names}
        async for message in read.messages(starts, ends, one_each=True):
            place = TopicPartition(message.topic, message.partition)
            found[place, starts[place]] = message.timestamp
    return found


def _lag(
    topic: str,
    first: Offsets,
    second: Offsets,
    begins: Offsets,
    ends: Offsets,
    waiting: Mapping[tuple[TopicPartition, int], Millis],
    now_ms: Millis,
) -> TopicLag:
    places = [place for place in ends if place.topic == topic]
    starts = {place: _next(place, second, begins) for place in places}
    since = [waiting[found] for found in starts.items() if found in waiting]
    known = [place for place in places if place in second]
    return TopicLag(
        topic=topic,
        lag_records=sum(max(ends[place] - start, 0) for place, start in starts.items()),
        lag_seconds=max((now_ms - min(since)) / 1000, 0.0) if since else 0.0,
        lost_records=sum(max(begins[place] - second[place], 0) for place in known),
        committed=sum(second[place] for place in known) if known else None,
        advanced=_sum(second, places) - _sum(first, places),
    )


def _sum(offsets: Offsets, places: Iterable[TopicPartition]) -> int:
    return sum(offsets.get(place, 0) for place in places)
