"""Seeds as people write them with any console producer: URLs a line, or JSON (pure)."""

import json
from enum import StrEnum
from typing import Any, Final, get_type_hints

from trawl.errors import RecordDecodeError
from trawl.plain import from_plain
from trawl.records import RecrawlPolicy, Seed

SEEDS_MAX: Final = 10_000
"""Seeds in one message."""


def is_text(data: bytes) -> bool:
    """Whether bytes are no framed Avro record but text: those begin with 00 or C3 01."""
    return data[:1] != b"\x00" and data[:2] != b"\xc3\x01"


def seeds_of(data: bytes) -> list[Seed]:
    """The seeds of a text: URLs, one a line, or a JSON object, string, or a list of them.

    Raises RecordDecodeError, which says what could be written instead.
    """
    try:
        text = data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise RecordDecodeError(f"a seed of {len(data)} bytes is neither Avro nor text in UTF-8: {error}") from error
    if text[:1] in {"{", "[", '"'}:
        found = [_seed(value) for value in _values(text)]
    else:
        found = [Seed(url=line.strip()) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not found:
        raise RecordDecodeError("a seed is empty; write a URL, or a JSON object with a field url")
    if len(found) > SEEDS_MAX:
        raise RecordDecodeError(f"{len(found)} seeds in one message, over {SEEDS_MAX}; send them in several")
    return found


def _values(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordDecodeError(f"a seed begins like JSON and is none: {error}: {text:.100}") from error
    return value if isinstance(value, list) else [value]


def _seed(value: Any) -> Seed:
    if isinstance(value, str):
        return Seed(url=value)
    if not isinstance(value, dict):
        raise RecordDecodeError(f"a seed in JSON is an object with a field url, or a text, not {value!r:.60}")
    _check(Seed, value, "a seed")
    if isinstance(value.get("recrawl"), dict):
        _check(RecrawlPolicy, value["recrawl"], "the recrawl of a seed")
    return from_plain(Seed, value)


def _check(cls: type, value: dict[str, Any], what: str) -> None:
    """Raise RecordDecodeError for a name or a word that is none: another version may have more, a person erred."""
    hints = get_type_hints(cls)
    unknown = sorted(value.keys() - hints.keys())
    if unknown:
        raise RecordDecodeError(f"{what} has no field {unknown[0]!r:.60}; there are {', '.join(sorted(hints))}")
    for name, hint in hints.items():
        if isinstance(hint, type) and issubclass(hint, StrEnum) and name in value and value[name] not in list(hint):
            raise RecordDecodeError(f"{what} has {name} = {value[name]!r:.60}; it is one of {', '.join(hint)}")
