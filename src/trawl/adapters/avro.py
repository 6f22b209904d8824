"""Records as Avro bytes and back, self-describing in either of two framings (extra `kafka`).

    single object     C3 01, then the CRC-64-AVRO fingerprint of the writer's schema in its Parsing Canonical Form,
                      eight bytes, little endian (Avro 1.12 specification, "Single-object encoding")
    schema registry   00, then the registry's id of the writer's schema, four bytes, big endian (Confluent wire format)

A reader accepts both. Bytes of another version of a schema, older or newer, are resolved to the current one: absent
fields take their default, unknown fields are dropped, unknown enumeration symbols become the first one.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, TypeVar, cast, overload

import fastavro
from fastavro.schema import SchemaParseException, fullname, parse_schema, to_parsing_canonical_form

from trawl.adapters.schemas import released_schema_texts, schema_text
from trawl.errors import RecordDecodeError, UnknownSchemaError
from trawl.plain import RECORD_CLASSES, from_avro, scalar_text, to_avro
from trawl.records import Record

NAMESPACE: Final = "trawl.v1"
RECORD_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longer bytes are refused unless a codec is told otherwise. A hostile record, all empty links, takes 60 times its
bytes in memory once decoded; no length that bytes claim allocates anything before the bytes are there."""

_SINGLE_OBJECT: Final = b"\xc3\x01"
_REGISTRY: Final = b"\x00"
_REGISTRY_HEAD_BYTES: Final = 5
_R = TypeVar("_R", bound=Record)

_BROKEN: Final = (
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    TypeError,
    KeyError,
    fastavro.read.SchemaResolutionError,
)
"""What fastavro raises over bytes that no writer of their schema can have written."""


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema in the form in which fastavro reads and writes."""

    parsed: Any
    name: str
    """The record's class name."""
    fingerprint: bytes


class AvroCodec:
    """Encodes records by their current schemas and decodes them by any known one. Not tied to a thread or a loop."""

    def __init__(
        self,
        *,
        registered: Mapping[int, str] | None = None,
        writers: Iterable[str] = (),
        record_bytes_max: int = RECORD_BYTES_MAX,
    ) -> None:
        """Know the current and all released schemas, and besides them those given.

        `registered` are the schemas of a registry by id: records whose current schema is among them are written in the
        registry's framing, others as single objects. `writers` are further schemas that others may have written with.
        """
        self._record_bytes_max = record_bytes_max
        self._current = {name: _parse(schema_text(name)) for name in RECORD_CLASSES}
        known = [*map(_parse, released_schema_texts()), *map(_parse, writers), *self._current.values()]
        self._by_fingerprint = {schema.fingerprint: schema for schema in known}
        self._by_id: dict[int, _Schema] = {}
        self._heads = {name: _SINGLE_OBJECT + schema.fingerprint for name, schema in self._current.items()}
        for schema_id, text in (registered or {}).items():
            self.register(schema_id, text)

    def register(self, schema_id: int, text: str) -> None:
        """Learn a schema of the registry by its id. Raises UnknownSchemaError if the text is not a usable schema."""
        schema = _parse(text)
        self._by_id[schema_id] = schema
        current = self._current.get(schema.name)
        if current is not None and current.fingerprint == schema.fingerprint:
            self._heads[schema.name] = _REGISTRY + schema_id.to_bytes(4, "big")

    def holds_record(self, text: str) -> bool:
        """Whether a schema is one of Trawl's records, of any version."""
        try:
            return _parse(text).name in self._current
        except UnknownSchemaError:
            return False

    def unknown_id(self, data: bytes) -> int | None:
        """The registry's id in the bytes' framing, if its schema is not known; None otherwise."""
        if not data.startswith(_REGISTRY) or len(data) < _REGISTRY_HEAD_BYTES:
            return None
        schema_id = int.from_bytes(data[1:_REGISTRY_HEAD_BYTES], "big")
        return None if schema_id in self._by_id else schema_id

    def encode(self, record: Record) -> bytes:
        """Give the record's bytes, framing included. Lone surrogates in its texts are written as U+FFFD."""
        name = type(record).__name__
        plain = to_avro(record)
        try:
            return self._write(name, plain)
        except UnicodeEncodeError:
            return self._write(name, _scalar(plain))

    def _write(self, name: str, plain: dict[str, Any]) -> bytes:
        out = BytesIO()
        out.write(self._heads[name])
        fastavro.schemaless_writer(out, self._current[name].parsed, plain)
        return out.getvalue()

    @overload
    def decode(self, cls: type[_R], data: bytes) -> _R: ...
    @overload
    def decode(self, cls: None, data: bytes) -> Record: ...
    def decode(self, cls: type[_R] | None, data: bytes) -> Record:
        """Give the record of a class, or of any class for None, that the bytes hold.

        Raises UnknownSchemaError if their schema is not known, and RecordDecodeError if they are broken, longer than
        `record_bytes_max`, or another record than asked for.
        """
        if len(data) > self._record_bytes_max:
            raise RecordDecodeError(f"A record of {len(data)} bytes is too long, over {self._record_bytes_max}")
        writer, start = self._writer_of(data)
        name = cls.__name__ if cls else writer.name
        if writer.name != name or name not in self._current:
            raise RecordDecodeError(f"The bytes are of schema {writer.name}, not {cls.__name__ if cls else 'a record'}")
        plain = _read(writer, self._current[name], data, start)
        return from_avro(RECORD_CLASSES[name], plain)

    def _writer_of(self, data: bytes) -> tuple[_Schema, int]:
        """Give the schema that the bytes were written with, and where the record begins."""
        if data.startswith(_SINGLE_OBJECT) and len(data) >= 10:
            schema = self._by_fingerprint.get(data[2:10])
            if schema is None:
                raise UnknownSchemaError(
                    f"No known schema has the fingerprint {data[2:10].hex()}; is Trawl up to date?"
                )
            return schema, 10
        if data.startswith(_REGISTRY) and len(data) >= _REGISTRY_HEAD_BYTES:
            schema_id = int.from_bytes(data[1:_REGISTRY_HEAD_BYTES], "big")
            if schema_id not in self._by_id:
                raise UnknownSchemaError(f"No schema of the registry is known by the id {schema_id}")
            return self._by_id[schema_id], _REGISTRY_HEAD_BYTES
        raise RecordDecodeError(f"{len(data)} bytes that begin with {data[:10].hex(' ')!r} are no framed Avro record")


def fingerprint(text: str) -> bytes:
    """Give the CRC-64-AVRO fingerprint of a schema's Parsing Canonical Form: eight bytes, little endian."""
    return _parse(text).fingerprint


def _parse(text: str) -> _Schema:
    try:
        schema = _without_logical_types(json.loads(text))
        parsed = parse_schema(schema)
        canonical = to_parsing_canonical_form(parsed)
        name = fullname(cast("dict[str, Any]", schema))
    except (ValueError, TypeError, KeyError, AttributeError, SchemaParseException, RecursionError) as error:
        raise UnknownSchemaError(f"Not an Avro schema of a record: {error}: {text:.200}") from error
    namespace, _, short = name.rpartition(".")
    digest = bytes.fromhex(fastavro.schema.fingerprint(canonical, "CRC-64-AVRO"))
    return _Schema(parsed, short if namespace == NAMESPACE else name, digest)


def _without_logical_types(schema: Any) -> Any:
    """Give the schema without its logical types, since records hold times as integers and fastavro would convert."""
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return [_without_logical_types(item) for item in schema] if isinstance(schema, list) else schema


def _read(writer: _Schema, reader: _Schema, data: bytes, start: int) -> dict[str, Any]:
    stream = BytesIO(data)
    stream.seek(start)
    same = writer.fingerprint == reader.fingerprint
    try:
        plain = fastavro.schemaless_reader(stream, writer.parsed, None if same else reader.parsed)
    except _BROKEN as error:
        raise RecordDecodeError(f"{reader.name}: {len(data)} bytes are damaged: {error!r:.200}") from error
    if stream.tell() != len(data):
        raise RecordDecodeError(f"{reader.name}: {len(data) - stream.tell()} bytes follow after its end")
    return cast("dict[str, Any]", plain)


def _scalar(value: Any) -> Any:
    if isinstance(value, str):
        return scalar_text(value)
    if isinstance(value, list):
        return [_scalar(item) for item in value]
    return {key: _scalar(item) for key, item in value.items()} if isinstance(value, dict) else value
