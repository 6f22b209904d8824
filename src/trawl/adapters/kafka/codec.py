"""Records as the bytes of Kafka's messages and back: framing, schemas, large parts, and seeds as people write them."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from trawl.adapters.avro import AvroCodec
from trawl.adapters.kafka.payloads import Payloads
from trawl.adapters.kafka.registry import SchemaRegistry
from trawl.adapters.kafka.seeds import is_text, seeds_of
from trawl.adapters.schemas import schema_text
from trawl.errors import SchemaRegistryError, SettingsError, UnknownSchemaError
from trawl.pipeline import TOPICS, Topic
from trawl.ports import BlobStore
from trawl.records import Record, Seed
from trawl.settings import KafkaSettings

_FURTHER_MAX: Final = 100
"""Schemas in kafka.schemas_folder."""
_UNKNOWN_IDS_MAX: Final = 1000
_UNKNOWN_SECONDS: Final = 60.0
"""An id that the registry does not know is not asked for again for this long."""
_SETTLE_SECONDS: Final = 3.0
"""A registry that says no is asked once more after this long, unless it has said so of another id within the minute:
Apicurio's answers before it has read its journal, and a good record must not be taken for poison."""


class RecordCodec:
    """Encodes and decodes; made by `open_codec`."""

    def __init__(self, avro: AvroCodec, payloads: Payloads, registry: SchemaRegistry | None) -> None:
        self._avro = avro
        self._payloads = payloads
        self._registry = registry
        self._unknown: OrderedDict[int, float] = OrderedDict()
        self._asking = asyncio.Lock()
        self._settled_until = 0.0

    async def encode(self, record: Record) -> bytes:
        """The bytes of a record, its large parts packed; raises StoreError if a blob cannot be written."""
        return self._avro.encode(await self._payloads.pack(record))

    async def decode(self, topic: Topic, data: bytes) -> Sequence[Record]:
        """The records of a message: one, or the seeds that a person wrote.

        Raises RecordDecodeError, UnknownSchemaError, BlobNotFoundError; SchemaRegistryError and StoreError if what is
        needed does not answer.
        """
        if topic.record is Seed and is_text(data):
            return seeds_of(data)
        await self._learn(data)
        return (await self._payloads.unpack(self._avro.decode(topic.record, data)),)

    async def close(self) -> None:
        """Close the connection to the registry."""
        if self._registry is not None:
            await self._registry.close()

    async def _learn(self, data: bytes) -> None:
        """Ask the registry for a schema whose id is not known yet, once for all that wait for it."""
        schema_id = self._avro.unknown_id(data)
        if schema_id is None or self._registry is None:
            return
        async with self._asking:
            if self._avro.unknown_id(data) is None:
                return
            if time.monotonic() >= self._unknown.get(schema_id, 0.0):
                text = await self._found(self._registry, schema_id)
                if text is not None and self._avro.holds_record(text):
                    self._avro.register(schema_id, text)
                    return
                self._unknown[schema_id] = time.monotonic() + _UNKNOWN_SECONDS
                if len(self._unknown) > _UNKNOWN_IDS_MAX:
                    self._unknown.popitem(last=False)
        raise UnknownSchemaError(
            f"the schema registry knows no schema of a record by the id {schema_id}; another program wrote this, or a"
            f" registry that was emptied since"
        )

    async def _found(self, registry: SchemaRegistry, schema_id: int) -> str | None:
        """The schema of an id; a registry that has just started may know it only a moment later."""
        try:
            text = await registry.schema(schema_id)
            if text is None and time.monotonic() >= self._settled_until:
                await asyncio.sleep(_SETTLE_SECONDS)
                text = await registry.schema(schema_id)
                self._settled_until = time.monotonic() + _UNKNOWN_SECONDS
        except SchemaRegistryError:
            self._settled_until = 0.0
            raise
        return text


async def open_codec(settings: KafkaSettings, *, blobs: BlobStore | None, opens_content: bool = True) -> RecordCodec:
    """A codec; with a registry, once every topic's schema is registered there under `TOPIC-value`.

    Without a blob store nothing can travel by reference: enough for seeds and orders. With `opens_content` false the
    text of documents stays packed as it came, for a reader that only passes it on.
    Raises SchemaRegistryError if the registry does not answer or refuses a schema.
    """
    payloads = Payloads(blobs, settings.inline_bytes_max, opens_content=opens_content)
    avro = AvroCodec(writers=_further(settings.schemas_folder), record_bytes_max=4 * settings.record_bytes_max)
    if not settings.registry_url:
        return RecordCodec(avro, payloads, None)
    registry = SchemaRegistry(settings.registry_url)
    try:
        for topic in TOPICS:
            text = schema_text(topic.record.__name__)
            avro.register(await registry.register(f"{topic.name}-value", text), text)
    except BaseException:
        await registry.close()
        raise
    return RecordCodec(avro, payloads, registry)


def _further(folder: str) -> list[str]:
    """The schemas in a folder; none without one. Raises SettingsError."""
    if not folder:
        return []
    paths = sorted(Path(folder).glob("*.avsc"))
    if not paths or len(paths) > _FURTHER_MAX:
        raise SettingsError(
            f"kafka.schemas_folder = {folder!r} cannot be used: it holds {len(paths)} files *.avsc; 1 to"
            f" {_FURTHER_MAX} are read"
        )
    try:
        return [path.read_text("utf-8") for path in paths]
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"kafka.schemas_folder = {folder!r} cannot be read: {error}") from error
