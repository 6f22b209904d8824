"""What passes between a worker process and its parent."""

import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import RECORD_TYPES, records_of
from trawl.adapters.worker import LENGTH_BYTES, packed


@dataclass(frozen=True, slots=True)
class Nothing:
    """A record without a field."""


@dataclass
class Open:
    """A dataclass that is no record: it has no slots, and more than its fields."""

    one: int = 1


def unpacked(message: bytes) -> Any:
    """What a message holds."""
    assert int.from_bytes(message[:LENGTH_BYTES], "big") == len(message) - LENGTH_BYTES
    return pickle.loads(message[LENGTH_BYTES:])


@pytest.mark.parametrize("cls", RECORD_TYPES)
@given(data=st.data())
def test_a_record_arrives_as_it_was_sent(cls: type, data: st.DataObject) -> None:
    record = data.draw(records_of(cls))
    back = unpacked(packed((record, [record])))
    assert back == (record, [record])
    assert back[0] is back[1][0]
    assert hash(back[0]) == hash(record)
    assert replace(back[0]) == record


def test_what_is_no_record_is_pickled_as_ever() -> None:
    wide = Open()
    wide.two = 2  # type: ignore[attr-defined]
    back = unpacked(packed((Nothing(), wide, {"a": {1}}, len)))
    assert back == (Nothing(), wide, {"a": {1}}, len)
    assert back[1].two == 2
