"""The topology: which record travels on which topic, by which key, from whom to whom. The whole flow, in one table.

     user ── seeds ──> ┌──────────┐ <──────────────── outcomes ────────────────────────────┐
     user ─ control ─> │ FRONTIER │                                                        │
        ┌─ discovered >└──────────┘── changes (crawl finished) ──> anyone                  │
        │               │  │    └── documents (withdrawals) ─────────────────┐             │
        │   fetch-tasks │  │ render-tasks                                   │             │
        │               v  v                                                │             │
        ├───────────── FETCHER ─────────────────────────────────────────────┼─────────────┤
        │                 │ fetched                                         │             │
        │                 v                                                 │             │
        └───────────── EXTRACTOR ───────────────────────────────────────────┼─────────────┤
                          │ documents                                       │             │
                          v                                                 │             │
                        DEDUP <─────────────────────────────────────────────┘ ────────────┤
                          │   └── changes (created, changed, gone, ...) ──> anyone        │
                          │ unique                                                        │
                          v                                                               │
                       INDEXER ───────────────────────────────────────────────────────────┘
                          │ indexed
                          v
                        anyone                     dead-letters (every stage -> anyone)

The frontier sends links from its seeds to itself as `discovered`, so that each reaches the shard that owns its host.
Services, the embedded shell, topic creation, Helm and docs/topics.md come from this table or are tested against it.
Topics are never compacted, except control; replaying one changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeAlias

import xxhash

from trawl.kinds import RenderMode, Stage
from trawl.records import (
    ChangeEvent,
    CrawlControl,
    DeadLetter,
    DiscoveredLinks,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    IndexedDocument,
    Record,
    Seed,
    UniqueDocument,
)
from trawl.url import host_of, host_shard, key_hex

HOST_SHARDS: Final = 256
"""Every host belongs to one of this many shards, for ever: shards move between partitions and replicas, hosts never."""
PARTITIONS: Final = 16
"""Partitions of a topic, unless a deployment says otherwise."""
DAY: Final = 24
"""In hours."""


class Outside(StrEnum):
    """Who sends and reads besides the stages."""

    USER = "user"
    ANYONE = "anyone"


Party: TypeAlias = Stage | Outside
STAGES: Final[tuple[Party, ...]] = tuple(Stage)


@dataclass(frozen=True, slots=True)
class Key:
    """By what the records of a topic are spread over its partitions; records of one key keep their order."""

    description: str
    """For people."""
    of: Callable[[Any], bytes]
    """The key of a record of the topic: a shard in decimal, a hash in hex, or a name; empty for any partition."""


def _shard(host: str) -> bytes:
    return b"%d" % host_shard(host, HOST_SHARDS)


def _hash(key: int) -> bytes:
    return key_hex(key).encode()


def _of_change(event: ChangeEvent) -> bytes:
    return event.crawl_id.encode() if event.document_key is None else _hash(event.document_key)


ANY: Final = Key("any", lambda _: b"")
HOST_OF_LINKS: Final = Key("host shard", lambda links: _shard(links.target_host))
HOST_OF_URL: Final = Key("host shard", lambda record: _shard(host_of(record.url)))
REQUEST: Final = Key("request key", lambda page: _hash(page.request_key))
DOCUMENT: Final = Key("document key", lambda record: _hash(record.document_key))
INNER_DOCUMENT: Final = Key("document key", lambda unique: _hash(unique.document.document_key))
CHANGED_DOCUMENT: Final = Key("document key", _of_change)
CRAWL: Final = Key("crawl id", lambda control: control.crawl_id.encode())
ORIGINAL: Final = Key("as original", lambda letter: letter.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One row of the topology."""

    name: str
    """The topic's name, the same in every deployment."""
    record: type[Record]
    """The class of all its records."""
    key: Key
    """How they are spread."""
    producers: tuple[Party, ...]
    """Who sends them."""
    consumers: tuple[Party, ...]
    """Who reads them; each reader sees every record."""
    retention_hours: int
    """How long a broker keeps them; 0 is for ever."""
    partitions: int = PARTITIONS
    """How many partitions the topic gets where a deployment says nothing else."""
    compacted: bool = False
    """Whether a broker keeps only the latest record of each key."""
    note: str = ""
    """What a reader of the table should know besides."""


_FRONTIER, _FETCHER, _EXTRACTOR, _DEDUP, _INDEXER = Stage
_USER, _ANYONE = Outside

# fmt: off
TOPICS: Final = (
    Topic(name="trawl.seeds", record=Seed, key=ANY,
          producers=(_USER,), consumers=(_FRONTIER,), retention_hours=7 * DAY,
          note="also a bare URL line or a JSON object"),
    Topic(name="trawl.discovered", record=DiscoveredLinks, key=HOST_OF_LINKS,
          producers=(_FRONTIER, _FETCHER, _EXTRACTOR), consumers=(_FRONTIER,), retention_hours=3 * DAY,
          note="from seeds, from redirects to other hosts, from pages, sitemaps and feeds"),
    Topic(name="trawl.fetch-tasks", record=FetchTask, key=HOST_OF_URL,
          producers=(_FRONTIER,), consumers=(_FETCHER,), retention_hours=DAY),
    Topic(name="trawl.render-tasks", record=FetchTask, key=HOST_OF_URL,
          producers=(_FRONTIER,), consumers=(_FETCHER,), retention_hours=DAY,
          note="for fetchers in render mode, their own deployment"),
    Topic(name="trawl.fetched", record=FetchedPage, key=REQUEST,
          producers=(_FETCHER,), consumers=(_EXTRACTOR,), retention_hours=DAY),
    Topic(name="trawl.outcomes", record=FetchOutcome, key=HOST_OF_URL,
          producers=(_FETCHER, _EXTRACTOR, _DEDUP, _INDEXER), consumers=(_FRONTIER,), retention_hours=7 * DAY,
          note="keyed by the host of the requested URL"),
    Topic(name="trawl.documents", record=ExtractedDocument, key=DOCUMENT,
          producers=(_FRONTIER, _EXTRACTOR), consumers=(_DEDUP,), retention_hours=3 * DAY,
          note="from the frontier only withdrawals"),
    Topic(name="trawl.unique", record=UniqueDocument, key=INNER_DOCUMENT,
          producers=(_DEDUP,), consumers=(_INDEXER,), retention_hours=3 * DAY),
    Topic(name="trawl.indexed", record=IndexedDocument, key=DOCUMENT,
          producers=(_INDEXER,), consumers=(_ANYONE,), retention_hours=7 * DAY),
    Topic(name="trawl.changes", record=ChangeEvent, key=CHANGED_DOCUMENT,
          producers=(_FRONTIER, _DEDUP), consumers=(_ANYONE,), retention_hours=30 * DAY,
          note="crawl id where an event is about no document"),
    Topic(name="trawl.control", record=CrawlControl, key=CRAWL,
          producers=(_USER,), consumers=(_FRONTIER,), retention_hours=0, partitions=1, compacted=True,
          note="what the frontier no longer releases reaches no other stage"),
    Topic(name="trawl.dead-letters", record=DeadLetter, key=ORIGINAL,
          producers=STAGES, consumers=(_ANYONE,), retention_hours=30 * DAY, partitions=1,
          note="listed, inspected and replayed by people"),
)
# fmt: on
TOPIC: Final[Mapping[str, Topic]] = {topic.name: topic for topic in TOPICS}
"""The rows by name."""

_RENDER: Final = TOPIC["trawl.render-tasks"]
_BY_RECORD: Final = {topic.record: topic for topic in TOPICS if topic is not _RENDER}


def route(record: Record) -> Topic:
    """Give the topic on which a record travels. A task for a browser has its own."""
    if isinstance(record, FetchTask) and record.render_mode is RenderMode.HEADLESS:
        return _RENDER
    return _BY_RECORD[type(record)]


def key_of(record: Record) -> bytes:
    """Give the key that a record carries on its topic."""
    return route(record).key.of(record)


def partition_of(key: bytes, partitions: int) -> int | None:
    """Give the partition for a key of `key_of`; None leaves the choice to the producer's client.

    Our own rule, the same in every producer, since the default hashes of Kafka clients differ. Shards are dealt out in
    turn, so that partitions are equally full.
    """
    if not key:
        return None
    if key.isdigit() and len(key) <= len(str(HOST_SHARDS)):
        return int(key) % partitions
    return xxhash.xxh3_64_intdigest(key) % partitions


def read_by(party: Party) -> tuple[Topic, ...]:
    """Give the topics that a stage, or a person, reads."""
    return tuple(topic for topic in TOPICS if party in topic.consumers)


def written_by(party: Party) -> tuple[Topic, ...]:
    """Give the topics that a stage, or a person, sends to."""
    return tuple(topic for topic in TOPICS if party in topic.producers)
