"""Hypothesis strategies for records, made from their dataclasses, so that a new field is tested at once."""

import dataclasses
import types
from enum import StrEnum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from trawl.records import Record

R = TypeVar("R")

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(st.characters(codec="utf-8"), max_size=12),
    bytes: st.binary(max_size=12),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
}
RECORD_TYPES: tuple[type[Record], ...] = get_args(Record)


def records_of(cls: type[R]) -> st.SearchStrategy[R]:
    """Instances of a record class with every field drawn from the whole of its type."""
    hints = get_type_hints(cls)
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every record is a dataclass
    return st.builds(cls, **{field.name: values_of(hints[field.name]) for field in fields})


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if get_origin(hint) is types.UnionType:
        return st.one_of(*(st.none() if arm is types.NoneType else values_of(arm) for arm in get_args(hint)))
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if dataclasses.is_dataclass(hint):
        return records_of(hint)  # type: ignore[arg-type]  # mypy: instance or class; hints are classes
    return st.sampled_from(hint) if issubclass(hint, StrEnum) else VALUES[hint]
