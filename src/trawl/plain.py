"""Records as plain JSON values and back, by introspection of their dataclasses.

Three forms, each with its inverse:

    to_plain / from_plain   a mapping of JSON values: bytes as base64 text, enumerations as their value, tuples as lists
    to_json  / from_json    the same as UTF-8 bytes of one line
    dump     / load         with the record's name in front and compressed if large: for queues and spill files that
                            hold records of several kinds

Reading is lenient where versions differ and strict otherwise: unknown keys are ignored, missing keys take the field's
default, an unknown enumeration value becomes the first member; a wrong type, a missing required field, or a number that
no Avro schema could hold raises RecordDecodeError, which names record and field. Text is sequences of Unicode scalar
values: a lone surrogate, which no encoding can carry, is written as U+FFFD and refused when read.

Encoders and decoders are built once per class and kept, since queues and stores use them for every record.
"""

import binascii
import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final, Protocol, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import zstandard

from trawl import records
from trawl.errors import RecordDecodeError
from trawl.records import Record

DUMP_COMPRESS_BYTES_MIN: Final = 512
"""Dumps shorter than this are not worth compressing."""
DUMP_BYTES_MAX: Final = 256 * 1024 * 1024
"""A compressed dump that claims to be longer than this is refused before anything is allocated."""

_INT64: Final = range(-(2**63), 2**63)
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


_T = TypeVar("_T", bound=_Dataclass)
_Convert = Callable[[Any], Any]


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """A value is not of its field's type; the text says what was expected and found."""


# ---- records to plain values ------------------------------------------------------------------------------------


def to_plain(record: _Dataclass) -> dict[str, Any]:
    """Give a record as a mapping of JSON values, in the order of its fields."""
    return cast("dict[str, Any]", _encoder(type(record), raw_bytes=False)(record))


def to_avro(record: _Dataclass) -> dict[str, Any]:
    """Give a record as the mapping that an Avro writer wants: as `to_plain`, but bytes stay bytes."""
    return cast("dict[str, Any]", _encoder(type(record), raw_bytes=True)(record))


def to_json(record: _Dataclass) -> bytes:
    """Give a record as one line of JSON in UTF-8, without a line end. NaN and infinities raise ValueError."""
    check = _checker(type(record))
    if check is not None:
        check(record)
    try:
        return _JSON_ENCODER.encode(record)  # as `to_plain` gives it, without making that first
    except UnicodeEncodeError:
        return scalar_text(json.dumps(to_plain(record), ensure_ascii=False, separators=(",", ":"))).encode()


@cache
def _encoder(cls: type, *, raw_bytes: bool) -> _Convert:
    hints = get_type_hints(cls)
    names = tuple(field.name for field in dataclasses.fields(cls))
    converts = [(name, _encode_type(hints[name], raw_bytes=raw_bytes)) for name in names]
    changed = [(name, convert) for name, convert in converts if convert is not None]
    values_of = attrgetter(*names) if len(names) > 1 else lambda record: (getattr(record, names[0]),)

    def encode(record: Any) -> dict[str, Any]:
        plain = dict(zip(names, values_of(record), strict=True))
        for name, convert in changed:
            plain[name] = convert(plain[name])
        return plain

    return encode


def _encode_type(hint: Any, *, raw_bytes: bool) -> _Convert | None:
    """Give the conversion of values of a type, or None where the value stands for itself."""
    if get_origin(hint) in (types.UnionType, Union):
        inner = _encode_type(_without_none(hint), raw_bytes=raw_bytes)
        return None if inner is None else lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        item = _encode_type(get_args(hint)[0], raw_bytes=raw_bytes)
        return list if item is None else lambda values: [item(value) for value in values]
    if dataclasses.is_dataclass(hint):
        return _encoder(cast("type", hint), raw_bytes=raw_bytes)
    if issubclass(hint, StrEnum):
        return attrgetter("_value_")  # a third of the cost of `value`
    if hint is bytes:
        return None if raw_bytes else _base64
    return _finite if hint is float else None


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no place in JSON, nor in a record")
    return value


def _base64(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode("ascii")


_JSON_ENCODER: Final = msgspec.json.Encoder()


@cache
def _checker(cls: type) -> Callable[[Any], None] | None:
    """Give what raises ValueError for a record with a float that no JSON can hold; None if its class has no floats."""
    hints = get_type_hints(cls)
    checks = [(field.name, _check_type(hints[field.name])) for field in dataclasses.fields(cls)]
    needed = [(attrgetter(name), check) for name, check in checks if check is not None]

    def check_all(record: Any) -> None:
        for value_of, check in needed:
            check(value_of(record))

    return check_all if needed else None


def _check_type(hint: Any) -> Callable[[Any], object] | None:
    """Give the check of values of a type, or None where there is nothing to check."""
    if get_origin(hint) in (types.UnionType, Union):
        inner = _check_type(_without_none(hint))
        return None if inner is None else lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        item = _check_type(get_args(hint)[0])
        return None if item is None else lambda values: [item(value) for value in values]
    if dataclasses.is_dataclass(hint):
        return _checker(cast("type", hint))
    return _finite if hint is float else None


def scalar_text(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates with U+FFFD (WebIDL's USVString conversion)."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


# ---- plain values to records ------------------------------------------------------------------------------------


def from_plain(cls: type[_T], mapping: Mapping[str, Any]) -> _T:
    """Build a record of a class from what `to_plain` gave, perhaps by an older or newer version.

    Raises RecordDecodeError, naming record and field.
    """
    return _decode(cls, mapping, raw_bytes=False)


def from_avro(cls: type[_T], mapping: Mapping[str, Any]) -> _T:
    """Build a record of a class from what an Avro reader gave: as `from_plain`, but bytes are bytes."""
    return _decode(cls, mapping, raw_bytes=True)


def from_json(cls: type[_T], data: bytes) -> _T:
    """Build a record of a class from the bytes of a JSON object. Raises RecordDecodeError."""
    try:
        value = json.loads(data.decode())
        if _SURROGATE_ESCAPE.search(data):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise RecordDecodeError(f"{cls.__name__}: not JSON in UTF-8: {error}") from error
    return from_plain(cls, value)


def _decode(cls: type[_T], mapping: Any, *, raw_bytes: bool) -> _T:
    try:
        return cast("_T", _decoder(cls, raw_bytes=raw_bytes)(mapping))
    except _Mismatch as error:
        raise RecordDecodeError(f"{cls.__name__}{error}") from None


@cache
def _decoder(cls: type, *, raw_bytes: bool) -> _Convert:
    hints = get_type_hints(cls)
    converts = tuple(
        (field.name, str if hints[field.name] is str else None, _decode_type(hints[field.name], raw_bytes=raw_bytes))
        for field in dataclasses.fields(cls)
    )
    required = frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    )

    def decode(mapping: Any) -> Any:
        if mapping.__class__ is not dict and not isinstance(mapping, Mapping):
            raise _mismatch("an object", mapping)
        values = {}
        name = ""
        try:
            for name, as_it_is, convert in converts:
                if name in mapping:
                    value = mapping[name]
                    values[name] = value if value.__class__ is as_it_is else convert(value)
        except _Mismatch as error:
            raise _Mismatch(f".{name}{error}") from None
        if not required <= values.keys():
            raise _Mismatch(f".{min(required - values.keys())}: missing, and it has no default")
        return cls(**values)

    return decode


def _decode_type(hint: Any, *, raw_bytes: bool) -> _Convert:
    if get_origin(hint) in (types.UnionType, Union):
        inner = _decode_type(_without_none(hint), raw_bytes=raw_bytes)
        return lambda value: None if value is None else inner(value)
    if get_origin(hint) is tuple:
        return _decode_tuple(_decode_type(get_args(hint)[0], raw_bytes=raw_bytes))
    if dataclasses.is_dataclass(hint):
        return _decoder(cast("type", hint), raw_bytes=raw_bytes)
    if issubclass(hint, StrEnum):
        return _decode_enum(hint)
    if hint is bytes:
        return _raw_bytes if raw_bytes else _bytes
    scalars: dict[Any, _Convert] = {str: _text, bool: _bool, int: _int64, float: _float}
    return scalars[hint]


def _decode_tuple(item: _Convert) -> _Convert:
    def decode(values: Any) -> tuple[Any, ...]:
        if values.__class__ is not list and values.__class__ is not tuple:
            raise _mismatch("a list", values)
        return tuple([item(value) for value in values])

    return decode


def _decode_enum(cls: type[StrEnum]) -> _Convert:
    members = {member.value: member for member in cls}
    unknown = next(iter(cls))

    def decode(value: Any) -> StrEnum:
        if not isinstance(value, str):
            raise _mismatch(f"a value of {cls.__name__}", value)
        return members.get(value, unknown)

    return decode


def _text(value: Any) -> str:
    if value.__class__ is not str:
        raise _mismatch("text", value)
    return value


def _bool(value: Any) -> bool:
    if value.__class__ is not bool:
        raise _mismatch("true or false", value)
    return value


def _int64(value: Any) -> int:
    if value.__class__ is not int or value not in _INT64:
        raise _mismatch("an integer of 64 bits", value)
    return value


def _float(value: Any) -> float:
    if value.__class__ is int and value in _INT64:
        return float(value)
    if value.__class__ is not float or not math.isfinite(value):
        raise _mismatch("a finite number", value)
    return value


def _raw_bytes(value: Any) -> bytes:
    if value.__class__ is not bytes:
        raise _mismatch("bytes", value)
    return value


def _bytes(value: Any) -> bytes:
    try:
        return binascii.a2b_base64(_text(value), strict_mode=True)
    except ValueError:
        raise _mismatch("bytes in base64", value) from None


def _mismatch(expected: str, value: Any) -> _Mismatch:
    return _Mismatch(f": expected {expected}, found {type(value).__name__} {value!r:.60}")


def _without_none(hint: Any) -> Any:
    """Give X of the hint `X | None`; no record has another union."""
    (inner,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
    return inner


# ---- records of any kind in one queue ---------------------------------------------------------------------------


def dump(record: Record) -> bytes:
    """Give a record as its class name, a space and its JSON; as one zstd frame where that is worth it."""
    data = type(record).__name__.encode() + b" " + to_json(record)
    if len(data) < DUMP_COMPRESS_BYTES_MIN:
        return data
    return zstandard.ZstdCompressor(level=1).compress(data)


def load(data: bytes) -> Record:
    """Give back what `dump` was given. Raises RecordDecodeError."""
    if data.startswith(_ZSTD_MAGIC):
        data = _decompress(data)
    name, _, body = data.partition(b" ")
    cls = RECORD_CLASSES.get(name[:64].decode("ascii", "replace"))
    if cls is None:
        raise RecordDecodeError(f"Not the dump of a record: it begins with {data[:32]!r}")
    return from_json(cls, body)


def _decompress(data: bytes) -> bytes:
    try:
        size = zstandard.frame_content_size(data)
        if not 0 <= size <= DUMP_BYTES_MAX:
            raise RecordDecodeError(f"A dump claims {size} bytes; at most {DUMP_BYTES_MAX} are read")
        return zstandard.ZstdDecompressor().decompress(data, max_output_size=DUMP_BYTES_MAX)
    except zstandard.ZstdError as error:
        raise RecordDecodeError(f"A compressed dump of {len(data)} bytes is damaged: {error}") from error


RECORD_CLASSES: Final[Mapping[str, type[Record]]] = types.MappingProxyType(
    {cls.__name__: cls for cls in get_args(records.Record)}
)
"""The classes of `trawl.records.Record` by name, in the order of the union."""
