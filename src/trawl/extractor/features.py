"""Segments as numbers: the matrix that the learned scorer reads, one row a segment (pure).

Everything is computed for a whole page at once; only what needs the tree or the text is gathered in Python.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from trawl.extractor.boilerplate import FLAG_BITS, is_code_leak, is_consent_text
from trawl.extractor.content import Segment
from trawl.extractor.tree import Node

Matrix = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float64]
Groups = npt.NDArray[np.intp]

_KINDS: Final = (
    "p",
    "li",
    "h1",
    "h2",
    "h3",
    "h4",
    "td",
    "a",
    "div",
    "pre",
    "table",
    "dd",
    "blockquote",
    "section",
    "figcaption",
    "other",
)
_KIND_INDEX: Final = {
    **{kind: index for index, kind in enumerate(_KINDS)},
    "h5": 5, "h6": 5, "th": 6, "dt": 11, "article": 13, "body": 8, "main": 13, "header": 8, "center": 8, "caption": 14,
    "summary": 13, "cite": 12,
}  # fmt: skip
_LEVELS: Final = (0, 1, 2, 3, 5)
"""Ancestors (0 is the container itself) whose totals describe a segment's surroundings."""
_DECORATION: Final = re.compile("[|©»\u203a]")
_ENDS: Final = frozenset(".!?:;…。\uff01\uff1f”\"')")
_MONEY: Final = re.compile("[$€£¥]")

_BITS: Final = np.arange(FLAG_BITS)[:, None]
_NEIGHBOUR_VALUES: Final = 6
_BASE: Final = 23
_SIZES: Final = (len(_KINDS), FLAG_BITS, FLAG_BITS, 6 * len(_LEVELS), 4 * _NEIGHBOUR_VALUES, 8, 8)
"""How many features follow the base, by part: kind, flags, own flags, surroundings, neighbours, place, hints."""
_PARTS: Final = np.cumsum(_SIZES)[:-1]
FEATURES: Final = _BASE + sum(_SIZES)


def groups_of(segments: Sequence[Segment]) -> list[Groups]:
    """For each level, the number of the ancestor that each segment has there; equal numbers are one ancestor."""
    known: tuple[dict[Node, int], ...] = tuple({} for _ in _LEVELS)
    itself, above, second, third, fifth = known
    lines = []
    for segment in segments:
        node = segment.container  # the root stands for those above it
        one = node.parent or node
        two = one.parent or one
        three = two.parent or two
        four = three.parent or three
        five = four.parent or four
        lines.append(
            (
                itself.setdefault(node, len(itself)),
                above.setdefault(one, len(above)),
                second.setdefault(two, len(second)),
                third.setdefault(three, len(third)),
                fifth.setdefault(five, len(fifth)),
            )
        )
    return list(np.array(lines, dtype=np.intp).T)


def _row(segment: Segment) -> tuple[float, ...]:
    text, chars = segment.text, segment.chars
    attrs = segment.container.attrs
    first = text[:1]
    ascii_only = text.isascii()
    return (
        chars,
        min(segment.link_chars, chars),
        segment.links,
        segment.images,
        text.count(" ") + 1,
        text.count(",") if ascii_only else text.count(",") + text.count("、") + text.count("\uff0c"),
        text.count(". ") if ascii_only else text.count(". ") + text.count("。"),
        text[-1:] in _ENDS,
        first.isupper(),
        first.isdigit(),
        text.isupper(),
        chars < 200 and ("$" in text if ascii_only else _MONEY.search(text) is not None),
        segment.depth,
        "ook" in text and is_consent_text(text),
        ("{" in text or "=" in text or ";" in text) and segment.kind != "pre" and is_code_leak(text),
        text.count("|") if ascii_only else len(_DECORATION.findall(text)),
        text.count("?"),
        len(attrs),
        "itemprop" in attrs,
        _KIND_INDEX.get(segment.kind, 15),
        segment.flags,
        segment.own,
    )


def matrix(segments: Sequence[Segment], groups: Sequence[Groups], hints: Sequence[float]) -> Matrix:
    """Features of a page's segments, shape (segments, FEATURES); `hints` are eight numbers about the whole page."""
    raw = np.array(list(map(_row, segments)), dtype=np.float64).T.copy()
    chars, links = raw[0], raw[1]
    density = links / np.maximum(chars, 1)
    repeats = _occurrences(list(map(_signature, segments)))
    copies = _occurrences([segment.text for segment in segments])
    total = max(chars.sum(), 1.0)
    columns = np.zeros((FEATURES, len(segments)), dtype=np.float32)
    base = columns[:_BASE]
    _fill_base(base, raw, density, repeats, copies)
    rest = iter(np.split(columns[_BASE:], _PARTS))
    kinds = next(rest)
    kinds[raw[19].astype(np.intp), np.arange(len(segments))] = 1
    _fill_bits(next(rest), raw[20])
    _fill_bits(next(rest), raw[21])
    _fill_surroundings(next(rest), groups, chars, links, total, repeats)
    _fill_neighbours(next(rest), base, kinds, density)
    _fill_places(next(rest), chars, links, total, _first_heading(segments))
    next(rest)[:] = np.array(hints)[:, None]
    return np.ascontiguousarray(columns.T)


def _occurrences(values: Sequence[object]) -> Vector:
    """How often each value occurs among them."""
    counts = Counter(values)
    return np.array([counts[value] for value in values], dtype=np.float64)


def _fill_base(out: Matrix, raw: Vector, density: Vector, repeats: Vector, copies: Vector) -> None:
    """A segment's own text, links and attributes."""
    chars, words = raw[0], np.maximum(raw[4], 1)
    out[2] = density
    out[[0, 1, 3, 4, 6, 15, 16]] = np.log1p(raw[[0, 4, 2, 3, 6, 15, 16]])
    out[5] = raw[5] / words * 5
    out[7:12] = raw[7:12]
    out[12] = raw[12] / 10
    out[13:15] = raw[13:15]
    out[17] = np.minimum(raw[17], 6) / 3
    out[18] = raw[18]
    out[19] = np.log1p(repeats)
    out[20] = np.log1p(copies)
    out[21] = chars / words / 5
    out[22] = chars < 1


def _fill_bits(out: Matrix, values: Vector) -> None:
    out[:] = (values.astype(np.int64) >> _BITS) & 1


def _signature(segment: Segment) -> tuple[str, str | None, str | None]:
    container = segment.container
    parent = container.parent
    return (container.tag, container.attrs.get("class"), parent.attrs.get("class") if parent is not None else None)


def _first_heading(segments: Sequence[Segment]) -> int:
    """The index of the first h1, or of the first h2, else 0."""
    for wanted in ("h1", "h2"):
        for index, segment in enumerate(segments):
            if segment.kind == wanted and segment.chars > 3:
                return index
    return 0


def _fill_surroundings(
    out: Matrix, groups: Sequence[Groups], chars: Vector, links: Vector, total: float, repeats: Vector
) -> None:
    """Totals of the ancestor at each level: text, link density, segments, share of the page, long text, evenness."""
    sizes = [int(numbers.max()) + 1 for numbers in groups]
    # the levels are counted as one, each with numbers of its own: most pages are small, so calls are what costs
    numbers = np.concatenate([level + start for level, start in zip(groups, (0, *np.cumsum(sizes)), strict=False)])
    size, levels = sum(sizes), len(groups)

    def summed(weights: Vector) -> Vector:
        totals: Vector = np.bincount(numbers, np.tile(weights, levels), size).astype(np.float64, copy=False)
        return totals

    text, count = summed(chars), np.bincount(numbers, minlength=size)
    filled = np.maximum(text, 1)
    long = summed(np.where((chars > 80) & (links < 0.3 * chars), chars, 0.0))
    columns = np.array(
        [
            np.log1p(text), summed(links) / filled, np.log1p(count), text / total, long / filled,
            summed(np.log1p(repeats)) / count,
        ]
    )  # fmt: skip
    out.reshape(levels, len(columns), -1)[:] = columns[:, numbers].reshape(len(columns), levels, -1).swapaxes(0, 1)


def _fill_neighbours(out: Matrix, base: Matrix, kinds: Matrix, density: Vector) -> None:
    """What stands one and two segments before and after."""
    count = len(density)
    padded = np.zeros((_NEIGHBOUR_VALUES, count + 4), dtype=np.float32)
    padded[:4, 2:-2] = base[[0, 2, 6, 7]]
    padded[4, 2:-2] = kinds[2:6].sum(axis=0)
    padded[5, 2:-2] = density > 0.5
    for place, start in enumerate((0, 1, 3, 4)):
        out[place * _NEIGHBOUR_VALUES :][:_NEIGHBOUR_VALUES] = padded[:, start : start + count]


def _fill_places(out: Matrix, chars: Vector, links: Vector, total: float, first_heading: int) -> None:
    """Where a segment stands on its page, and how much there is."""
    count = len(chars)
    index = np.arange(count)
    out[0] = position = index / count
    out[1] = 1 - position
    out[2] = np.cumsum(chars) / total
    out[3] = np.log1p(total)
    out[4] = links.sum() / total
    out[5] = np.log1p(count)
    out[6] = np.clip((index - first_heading) / 30, -1, 1)
    out[7] = index >= first_heading
