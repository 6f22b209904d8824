"""The records that stages exchange: frozen, slotted, one Avro schema each in `schemas/`.

Commands are imperative (FetchTask), facts are nouns or past tense (FetchOutcome). Every field has a default where a
reader of older bytes would need one, so that schemas evolve backward-compatibly. Times are integers: milliseconds
since the Unix epoch, UTC. Keys are 64-bit hashes as signed integers (see
`trawl.url`); people see them as 16 hex digits. The enumerations are in `trawl.kinds`.
"""

from typing import TypeAlias

from trawl.records.crawling import CrawlControl, DiscoveredLinks, FetchTask, Seed
from trawl.records.documents import ChangeEvent, ExtractedDocument, IndexedDocument, UniqueDocument
from trawl.records.fetching import FetchedPage, FetchOutcome
from trawl.records.letters import DeadLetter
from trawl.records.parts import (
    Block,
    Content,
    Evidence,
    Header,
    Hop,
    Key,
    Link,
    Millis,
    Payload,
    RecrawlPolicy,
    RobotsNews,
    StaticRender,
    Timings,
    Validators,
)

Record: TypeAlias = (
    Seed
    | DiscoveredLinks
    | FetchTask
    | FetchedPage
    | FetchOutcome
    | ExtractedDocument
    | UniqueDocument
    | IndexedDocument
    | ChangeEvent
    | CrawlControl
    | DeadLetter
)
"""Anything that travels on a topic."""

__all__ = [
    "Block",
    "ChangeEvent",
    "Content",
    "CrawlControl",
    "DeadLetter",
    "DiscoveredLinks",
    "Evidence",
    "ExtractedDocument",
    "FetchOutcome",
    "FetchTask",
    "FetchedPage",
    "Header",
    "Hop",
    "IndexedDocument",
    "Key",
    "Link",
    "Millis",
    "Payload",
    "Record",
    "RecrawlPolicy",
    "RobotsNews",
    "Seed",
    "StaticRender",
    "Timings",
    "UniqueDocument",
    "Validators",
]
