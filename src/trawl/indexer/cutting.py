"""Content-defined cut points: where a long text is cut depends on the text around the cut only (pure).

A text comes with the places where it may be cut. It is halved at the permitted place of the best priority, and the
halves again, until every piece is small enough. The priority of a place is how natural a break it is, and among equals
a hash of the words that follow it. As in a treap (Seidel and Aragon, 1996), whose shape depends on priorities alone,
an edit changes the pieces that it touches and leaves the others as they were, however the text grew or shrank before
them; counting characters from the start would move every cut behind an edit.
"""

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import xxhash

MARGIN_SHARE: Final = 4
"""No piece is cut off that is smaller than the size limit divided by this, if there is any other place to cut."""

Offsets: TypeAlias = npt.NDArray[np.int64]
Priorities: TypeAlias = npt.NDArray[np.uint64]

# Possessive, so that no run of dots or spaces is scanned more than once; and begun by one set of characters, for which
# the engine scans a text ten times faster than for alternatives.
_SENTENCE_END: Final = re.compile(
    "[.!?\u2026\u3002\uff01\uff1f\uff61\\n](?:"
    "(?<=[.!?\u2026])(?<![.!?\u2026]{2})[.!?\u2026]*+[\"'\u201d\u2019\u00bb)\\]]*+\\s++(?![a-z])"
    "|(?<=[\u3002\uff01\uff1f\uff61])[\"'\u201d\u2019\u300d\u300f\uff09]*+\\s*+"
    "|(?<=\\n)\\s*+)"
)
_WORD_END: Final = re.compile(r"\s+")


class Strength(IntEnum):
    """How natural it is to cut at a place, best first."""

    BLOCK = 0
    SENTENCE = 1
    WORD = 2


class Place(NamedTuple):
    """An offset, in characters, at which a new piece may begin."""

    offset: int
    strength: Strength


class Span(NamedTuple):
    """A piece of a text from `start` up to, not including, `end`, in characters."""

    start: int
    end: int


def sentence_places(text: str, *, start: int, size_max: int) -> list[Place]:
    """The places inside a prose block whose text begins at `start` of a longer one.

    Sentence ends and line breaks; inside a sentence longer than `size_max` also word ends, and inside a word longer
    than that (an unspaced script, an encoded blob) every half of it.
    """
    offsets = [match.end() for match in _SENTENCE_END.finditer(text)]
    return _places(text, offsets, start=start, size_max=size_max, strength=Strength.SENTENCE)


def line_places(text: str, *, size_max: int) -> list[Place]:
    """The places inside the lines of a table or of code: after blank lines best, then between any two lines."""
    offsets, after_blank = [], set()
    offset = 0
    for line in text.split("\n"):
        offset += len(line) + 1
        offsets.append(offset)
        if not line.strip():
            after_blank.add(offset)
    places = _places(text, offsets, start=0, size_max=size_max, strength=Strength.SENTENCE)
    return [Place(place.offset, Strength.BLOCK) if place.offset in after_blank else place for place in places]


def cut(text: str, places: Sequence[Place], size_max: int) -> list[Span]:
    """The pieces of a text, in order and without gaps, each at most `size_max` characters if the places allow it.

    `places` are distinct, sorted, and lie strictly inside the text.
    """
    if len(text) <= size_max or not places:
        return [Span(0, len(text))]
    positions = np.array([0, *(place.offset for place in places), len(text)], dtype=np.int64)
    priorities = _priorities(text, places)
    margin = size_max // MARGIN_SHARE
    done: list[Span] = []
    pending = [(0, len(positions) - 1)]
    while pending:
        first, last = pending.pop()
        start, end = int(positions[first]), int(positions[last])
        if end - start <= size_max or last == first + 1:
            done.append(Span(start, end))
            continue
        middle = _best_place(positions, priorities, first, last, margin)
        pending += [(middle, last), (first, middle)]
    return done


def _best_place(positions: Offsets, priorities: Priorities, first: int, last: int, margin: int) -> int:
    """The index of the position between two others at which their piece is cut."""
    start, end = positions[first], positions[last]
    low = max(int(np.searchsorted(positions, start + margin, "left")), first + 1)
    high = min(int(np.searchsorted(positions, end - margin, "right")) - 1, last - 1)
    if low <= high:
        return low + int(np.argmin(priorities[low : high + 1]))
    nearest = int(np.searchsorted(positions, (start + end) // 2, "left"))
    return min(max(nearest, first + 1), last - 1)


def _priorities(text: str, places: Sequence[Place]) -> Priorities:
    """One number a position, least first to be cut at: the strength, then the hash of what follows up to the next."""
    digest = xxhash.xxh3_64_intdigest
    ends = [*(offset for offset, _ in places[1:]), len(text)]
    values = [
        (strength << 62) | (digest(text[offset:end].strip().encode("utf-8", "replace")) >> 2)
        for (offset, strength), end in zip(places, ends, strict=True)
    ]
    return np.array([0, *values, 0], dtype=np.uint64)


def _places(text: str, offsets: Iterable[int], *, start: int, size_max: int, strength: Strength) -> list[Place]:
    """Places at these offsets, and finer ones where two neighbours are more than `size_max` apart."""
    places: list[Place] = []
    previous = 0
    inner = [offset for offset in offsets if 0 < offset < len(text)]
    for offset in [*inner, len(text)]:
        if offset - previous > size_max:
            places += (Place(start + fine, Strength.WORD) for fine in _fine_offsets(text, previous, offset, size_max))
        if offset < len(text):
            places.append(Place(start + offset, strength))
        previous = offset
    return places


def _fine_offsets(text: str, low: int, high: int, size_max: int) -> list[int]:
    """Word ends strictly between two offsets, and hard cuts inside words longer than `size_max`."""
    ends = [match.end() for match in _WORD_END.finditer(text, low, high) if low < match.end() < high]
    fine: list[int] = []
    previous = low
    for end in [*ends, high]:
        if end - previous > size_max:
            stride = max(1, size_max // 2)
            fine += range(previous + stride, end, stride)
        if end < high:
            fine.append(end)
        previous = end
    return fine
