"""Dead letters at a real broker: listed, read, and sent again exactly once, as they came."""

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.kafka import messages_on, raw_producer, settings_for, topics_of
from tests.servers import KafkaServer
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.kafka import Letters, RecordProducer, open_codec
from trawl.adapters.kafka.letters import BATCH_LETTERS_MAX
from trawl.errors import BlobNotFoundError, RecordDecodeError
from trawl.kinds import Stage
from trawl.records import DeadLetter, Payload, Seed
from trawl.settings import KafkaSettings


def letter(
    data: bytes, *, topic: str = "trawl.fetched", partition: int = 2, key: bytes = b"k1", **more: Any
) -> DeadLetter:
    return DeadLetter(
        stage=more.pop("stage", Stage.EXTRACTOR),
        reason=more.pop("reason", "UnknownSchemaError"),
        topic=topic,
        partition=partition,
        offset=7,
        key=key,
        payload=Payload(inline=data, size_bytes=len(data)),
        at_ms=1_700_000_000_000,
        **more,
    )


@asynccontextmanager
async def deadly(
    settings: KafkaSettings, folder: Path, *letters: DeadLetter
) -> AsyncIterator[tuple[Letters, RecordProducer]]:
    """Letters on the topic as a service writes them, and what looks at them."""
    blobs = FileBlobStore(folder)
    async with topics_of(settings):
        writing, reading = await open_codec(settings, blobs=blobs), await open_codec(settings, blobs=None)
        producer = RecordProducer(settings, writing)
        try:
            await producer.open()
            await producer.send(letters)
            yield Letters(settings, reading, blobs), producer
        finally:
            await producer.close()


def anything(_: DeadLetter) -> bool:
    return True


async def test_letters_are_listed_newest_last_and_chosen(kafka_server: KafkaServer, tmp_path: Path) -> None:
    mixed = [letter(b"x", stage=Stage.DEDUP if number % 3 else Stage.INDEXER) for number in range(9)]
    async with deadly(settings_for(kafka_server), tmp_path, *mixed) as (letters, _):
        found = await letters.listed(anything, limit=4)
        assert ([one.number for one in found.letters], found.matching, found.open) == ([5, 6, 7, 8], 9, 9)
        assert [one.letter for one in found.letters] == mixed[5:]
        found = await letters.listed(lambda one: one.stage is Stage.INDEXER, limit=100)
        assert ([one.number for one in found.letters], found.matching) == ([0, 3, 6], 3)
        found = await letters.listed(anything, limit=4, since_ms=int(1000 * time.time()) + 60_000)
        assert (found.letters, found.matching) == ([], 0)
        found = await letters.listed(anything, limit=4, since_ms=int(1000 * time.time()) - 60_000)
        assert found.matching == 9


async def test_a_letter_goes_back_as_it_came_and_only_once_unless_asked(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings = settings_for(kafka_server)
    large = os.urandom(1_500_000)
    sent = [
        letter(b"\x00\xff\x00poison", partition=3, key=b"\x00key"),
        letter(b"http://a.test/", topic="trawl.seeds", partition=1, key=b""),
        letter(large, partition=0),
        letter(b"", partition=1),
    ]
    async with deadly(settings, tmp_path, *sent) as (letters, producer):
        assert (await letters.letter(2)).letter.payload.ref
        done = await letters.replay(anything, producer)
        assert (done.sent, done.before, done.refused) == ([0, 1, 2, 3], [], [])
        fetched = {one.partition: one for one in await messages_on(settings, "trawl.fetched")}
        assert {place: (one.key, one.value) for place, one in fetched.items()} == {
            3: (b"\x00key", b"\x00\xff\x00poison"),
            0: (b"k1", large),
            1: (b"k1", b""),
        }
        (seed,) = await messages_on(settings, "trawl.seeds")
        assert (seed.partition, seed.key, seed.value) == (1, None, b"http://a.test/")

        found = await letters.listed(anything, limit=9)
        assert (found.matching, found.open, found.unreadable) == (4, 0, 0)
        assert all(one.replayed_at_ms > 1_700_000_000_000 for one in found.letters)
        assert (await letters.letter(1)).replayed_at_ms == found.letters[1].replayed_at_ms

        done = await letters.replay(anything, producer)
        assert (done.sent, done.before) == ([], [0, 1, 2, 3])
        assert len(await messages_on(settings, "trawl.fetched")) == 3
        done = await letters.replay(anything, producer, numbers={0}, again=True)
        assert (done.sent, done.before) == ([0], [])
        assert len(await messages_on(settings, "trawl.fetched")) == 4


async def test_what_fails_again_is_a_new_letter_that_can_be_sent(kafka_server: KafkaServer, tmp_path: Path) -> None:
    async with deadly(settings_for(kafka_server), tmp_path, letter(b"one")) as (letters, producer):
        assert (await letters.replay(anything, producer)).sent == [0]
        await producer.send([letter(b"two")])
        done = await letters.replay(anything, producer)
        assert done.before == [0]
        (again,) = done.sent
        assert (await letters.letter(again)).letter.payload.inline == b"two"


async def test_more_letters_than_one_batch_are_all_sent(kafka_server: KafkaServer, tmp_path: Path) -> None:
    settings, count = settings_for(kafka_server), 2 * BATCH_LETTERS_MAX + 1
    many = [letter(b"%d" % number, partition=-1, key=b"%d" % number) for number in range(count)]
    async with deadly(settings, tmp_path, *many) as (letters, producer):
        assert len((await letters.replay(anything, producer)).sent) == count
        found = await messages_on(settings, "trawl.fetched")
        assert sorted(int(one.value) for one in found) == list(range(count))
        assert len({one.partition for one in found}) == 4


async def test_a_letter_that_cannot_go_back_is_told_and_holds_no_other_up(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings = settings_for(kafka_server)
    gone = letter(os.urandom(2_000_000))
    sent = [letter(b"a", topic="shop.orders"), letter(b"b", partition=99), gone, letter(b"good")]
    async with deadly(settings, tmp_path, *sent) as (letters, producer):
        blobs = FileBlobStore(tmp_path)
        await blobs.delete((await letters.letter(2)).letter.payload.ref)
        done = await letters.replay(anything, producer, numbers={0, 1, 2, 3, 77})
        assert done.sent == [3]
        refused = dict(done.refused)
        assert "'shop.orders'" in refused[0]
        assert "no partition 99" in refused[1]
        assert "no blob" in refused[2]
        assert "no such dead letter" in refused[77]
        with pytest.raises(BlobNotFoundError):
            await letters.data((await letters.letter(2)).letter)
        assert (await letters.replay(anything, producer)).before == [3]


async def test_what_is_in_a_letter_is_read_or_why_not(kafka_server: KafkaServer, tmp_path: Path) -> None:
    sent = [letter(b"http://a.test/\n", topic="trawl.seeds"), letter(b"junk")]
    async with deadly(settings_for(kafka_server), tmp_path, *sent) as (letters, _):
        assert list(await letters.contents((await letters.letter(0)).letter)) == [Seed(url="http://a.test/")]
        with pytest.raises(RecordDecodeError, match="no framed Avro record"):
            await letters.contents((await letters.letter(1)).letter)
        with pytest.raises(RecordDecodeError, match="no dead letter 2"):
            await letters.letter(2)


async def test_what_strangers_write_on_the_topic_is_counted_and_passed_over(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    settings = settings_for(kafka_server)
    async with deadly(settings, tmp_path, letter(b"x")) as (letters, producer):
        async with raw_producer(settings) as raw:
            await raw.send_and_wait("trawl.dead-letters", b"hello")
            await raw.send_and_wait("trawl.dead-letters", None, key=b"k")
            await raw.send_and_wait("trawl.dead-letters", None, key=b"k", headers=[("trawl-replayed", b"1" * 5000)])
            await raw.send_and_wait("trawl.dead-letters", None, key=b"k", headers=[("trawl-replayed", b"x")])
        found = await letters.listed(anything, limit=9)
        assert (found.matching, found.open, found.unreadable) == (1, 1, 4)
        assert (await letters.replay(anything, producer)).sent == [0]
