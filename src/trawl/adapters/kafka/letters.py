"""Dead letters at a broker: listed, looked at, and sent again as they came.

A letter's number is its offset on the topic. That it was sent again is noted on the same topic, by a message without a
value under the letter's key, whose header names the number: a note lives longer than its letter, and whoever reads the
topic as Avro takes it for the tombstone that it is. The note follows the letter's bytes, so a crash between the two
sends them twice, which the stages bear, and never loses them.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from aiokafka import TopicPartition

from trawl.adapters.kafka.codec import RecordCodec
from trawl.adapters.kafka.producer import RecordProducer
from trawl.adapters.kafka.reading import reader
from trawl.errors import BlobNotFoundError, RecordDecodeError, TopicError, UnknownSchemaError
from trawl.pipeline import TOPIC, Topic
from trawl.ports import BlobStore
from trawl.records import DeadLetter, Millis, Record
from trawl.settings import KafkaSettings

LETTERS: Final = TOPIC["trawl.dead-letters"]
_PLACE: Final = TopicPartition(LETTERS.name, 0)
REPLAYED: Final = "trawl-replayed"
"""The header of a note: the number of the letter that was sent again, in decimal."""
_DIGITS_MAX: Final = 19
_UNREADABLE: Final = (
    "cannot be read as a dead letter; if the services use a schema registry, name it in kafka.registry_url"
)
BATCH_LETTERS_MAX: Final = 50
"""Letters sent at once; each may hold a body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter with its number."""

    number: int
    letter: DeadLetter
    replayed_at_ms: Millis = 0
    """When it was last sent again; 0 if never."""


@dataclass(slots=True)
class Listing:
    """What a search for letters found."""

    letters: list[Letter] = field(default_factory=list)
    """The newest that were asked for, in the order of their numbers."""
    matching: int = 0
    """How many there are, whatever the limit."""
    open: int = 0
    """How many of them were never sent again."""
    unreadable: int = 0
    """Messages on the topic that cannot be read as dead letters."""

    @property
    def unreadable_told(self) -> str:
        """Those in words; empty if there are none."""
        return _unreadable_told(self.unreadable)


@dataclass(slots=True)
class Replayed:
    """What a replay did."""

    sent: list[int] = field(default_factory=list)
    """Numbers of the letters that were sent again."""
    before: list[int] = field(default_factory=list)
    """Those that were not, since they had been before."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Those that cannot be, and why."""
    unreadable: int = 0
    """Messages that cannot be read as dead letters, where none was named by its number."""

    @property
    def unreadable_told(self) -> str:
        """Those in words; empty if there are none."""
        return _unreadable_told(self.unreadable)


Wanted = Callable[[DeadLetter], bool]


class Letters:
    """The dead letters of a deployment. Reading joins no group and commits nothing."""

    def __init__(self, settings: KafkaSettings, codec: RecordCodec, blobs: BlobStore | None = None) -> None:
        """The codec is one without blobs, so that only the bytes that are asked for are fetched."""
        self._settings = settings
        self._codec = codec
        self._blobs = blobs

    async def listed(self, wanted: Wanted, *, since_ms: Millis = 0, limit: int) -> Listing:
        """The newest letters that are wanted, at most `limit`; the whole topic is read from `since_ms` on."""
        listing, kept = Listing(), deque[Letter](maxlen=limit)
        notes: dict[int, Millis] = {}
        matching: list[int] = []
        async for number, found in self._read(since_ms=since_ms, notes=notes):
            if found is None:
                listing.unreadable += 1
            elif wanted(found):
                matching.append(number)
                kept.append(Letter(number=number, letter=found))
        listing.matching, listing.open = len(matching), sum(number not in notes for number in matching)
        listing.letters = [replace(one, replayed_at_ms=notes.get(one.number, 0)) for one in kept]
        return listing

    async def letter(self, number: int) -> Letter:
        """One letter; raises RecordDecodeError if there is none of that number."""
        notes: dict[int, Millis] = {}
        letter: DeadLetter | None = None
        async for offset, found in self._read(first=number, notes=notes):
            if offset == number and found is None:
                raise RecordDecodeError(f"message {number} of {LETTERS.name} {_UNREADABLE}")
            if offset == number:
                letter = found
        if letter is None:
            raise RecordDecodeError(
                f"there is no dead letter {number}; `trawl dlq list` shows those that the topic still holds"
            )
        return Letter(number=number, letter=letter, replayed_at_ms=notes.get(number, 0))

    async def data(self, letter: DeadLetter) -> bytes:
        """The bytes of the message that became the letter; raises BlobNotFoundError and StoreError."""
        if not letter.payload.ref:
            return letter.payload.inline
        if self._blobs is None:
            raise BlobNotFoundError(f"the bytes are in the blob {letter.payload.ref}, and no blob store was named")
        return await self._blobs.get(letter.payload.ref)

    async def contents(self, letter: DeadLetter) -> Sequence[Record]:
        """The records in a letter's bytes; raises what made it a dead letter, if that was its bytes."""
        return await self._codec.decode(_topic_of(letter), await self.data(letter))

    async def replay(
        self,
        wanted: Wanted,
        producer: RecordProducer,
        *,
        numbers: Collection[int] | None = None,
        since_ms: Millis = 0,
        again: bool = False,
    ) -> Replayed:
        """Send the bytes of letters to their topic and partition, under their key, exactly as they came.

        Letters that were sent before are left out, unless `again`. With `numbers` only those; what is not there is
        refused by number. Raises KafkaError and StoreError; what was sent until then is noted, but for one batch.
        """
        done = Replayed()
        chosen = await self._chosen(wanted, done, numbers=numbers, since_ms=since_ms, again=again)
        batch: list[tuple[int, DeadLetter]] = []
        if not chosen:
            return done
        async for number, found in self._read(first=min(chosen), last=max(chosen), notes={}):
            if number in chosen and found is not None:
                batch.append((number, found))
            if len(batch) == BATCH_LETTERS_MAX:
                await self._send(batch, producer, done)
                batch = []
        await self._send(batch, producer, done)
        return done

    async def _chosen(
        self,
        wanted: Wanted,
        done: Replayed,
        *,
        numbers: Collection[int] | None,
        since_ms: Millis,
        again: bool,
    ) -> set[int]:
        """The numbers of the letters to send; those that are not go where the result tells of them."""
        notes: dict[int, Millis] = {}
        matching, unreadable = set[int](), set[int]()
        async for number, found in self._read(first=min(numbers or (0,)), since_ms=since_ms, notes=notes):
            if numbers is not None and number not in numbers:
                continue
            if found is None:
                unreadable.add(number)
            elif wanted(found):
                matching.add(number)
        for number in sorted(set(numbers or ()) - matching):
            absent = "there is no such dead letter, or the options leave it out"
            done.refused.append((number, f"it {_UNREADABLE}" if number in unreadable else absent))
        done.unreadable = len(unreadable) if numbers is None else 0
        if not again:
            done.before = sorted(matching.intersection(notes))
            matching.difference_update(notes)
        return matching

    async def _send(self, batch: Sequence[tuple[int, DeadLetter]], producer: RecordProducer, done: Replayed) -> None:
        sent = [
            (number, letter)
            for number, letter in batch
            if await self._sent(number, letter, producer, done)
        ]  # fmt: skip
        await asyncio.gather(
            *(
                producer.send_raw(
                    LETTERS.name, None, key=letter.key, partition=0, headers=((REPLAYED, b"%d" % number),)
                )
                for number, letter in sent
            )
        )
        done.sent += [number for number, _ in sent]

    async def _sent(self, number: int, letter: DeadLetter, producer: RecordProducer, done: Replayed) -> bool:
        """Send one letter's bytes; False, with the reason told, if that is not possible for this one."""
        try:
            topic = _topic_of(letter)
            await producer.send_raw(topic.name, await self.data(letter), key=letter.key, partition=letter.partition)
        except (TopicError, BlobNotFoundError) as error:
            done.refused.append((number, str(error)))
            return False
        return True

    async def _read(
        self, *, first: int = 0, last: int | None = None, since_ms: Millis = 0, notes: dict[int, Millis]
    ) -> AsyncIterator[tuple[int, DeadLetter | None]]:
        """Numbers with their letters, None for what is none; notes of replays go into `notes` with their time."""
        async with reader(self._settings, "reading dead letters") as read:
            await read.places([LETTERS.name])
            begins, ends = await read.begins([_PLACE]), await read.ends([_PLACE])
            start = max(first, begins[_PLACE])
            if since_ms:
                start = max(start, (await read.since([_PLACE], since_ms)).get(_PLACE, ends[_PLACE]))
            end = ends[_PLACE] if last is None else min(last + 1, ends[_PLACE])
            async for message in read.messages({_PLACE: start}, {_PLACE: end}):
                number = _noted(message.headers)
                if message.value is None and number is not None:
                    notes[number] = message.timestamp
                else:
                    yield message.offset, await self._decoded(message.value or b"")

    async def _decoded(self, data: bytes) -> DeadLetter | None:
        try:
            (found,) = await self._codec.decode(LETTERS, data)
        except (RecordDecodeError, UnknownSchemaError):
            return None
        return found if isinstance(found, DeadLetter) else None


def _unreadable_told(count: int) -> str:
    return f"{count} message{'s' * (count != 1)} of {LETTERS.name} {_UNREADABLE}" if count else ""


def _topic_of(letter: DeadLetter) -> Topic:
    if letter.topic not in TOPIC:
        raise TopicError(f"the letter comes from {letter.topic!r}, which is no topic of Trawl")
    return TOPIC[letter.topic]


def _noted(headers: Iterable[tuple[str, bytes]]) -> int | None:
    """The number in a note's header; None without one."""
    found = next((value for name, value in headers if name == REPLAYED), b"")
    return int(found) if found.isdigit() and len(found) <= _DIGITS_MAX else None
