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

_BASE: Final = 23
FEATURES: Final = _BASE + len(_KINDS) + 2 * FLAG_BITS + 6 * len(_LEVELS) + 6 * 4 + 8 + 8


def groups_of(segments: Sequence[Segment]) -> list[npt.NDArray[np.intp]]:
    """For each level, the number of the ancestor that each segment has there; equal numbers are one ancestor."""
    rows: dict[Node, tuple[int, ...]] = {}
    lines = []
    for segment in segments:
        line = rows.get(segment.container)
        if line is None:
            line = rows[segment.container] = _ancestors(segment.container)
        lines.append(line)
    table = np.array(lines, dtype=np.int64)
    return [np.unique(table[:, level], return_inverse=True)[1] for level in range(len(_LEVELS))]


def _ancestors(node: Node) -> tuple[int, ...]:
    """The identities of the ancestors at each level; the root stands for those above it."""
    found = [id(node)]
    current = node
    for _ in range(_LEVELS[-1]):
        current = current.parent or current
        found.append(id(current))
    return tuple(found[level] for level in _LEVELS)


def _row(segment: Segment) -> tuple[float, ...]:
    text = segment.text
    attrs = segment.container.attrs
    return (
        segment.chars,
        min(segment.link_chars, segment.chars),
        segment.links,
        segment.images,
        text.count(" ") + 1,
        text.count(",") + text.count("、") + text.count("\uff0c"),
        text.count(". ") + text.count("。"),
        text[-1:] in _ENDS,
        text[:1].isupper(),
        text[:1].isdigit(),
        text.isupper(),
        segment.chars < 200 and _MONEY.search(text) is not None,
        segment.depth,
        "ook" in text and is_consent_text(text),
        ("{" in text or "=" in text or ";" in text) and segment.kind != "pre" and is_code_leak(text),
        len(_DECORATION.findall(text)),
        text.count("?"),
        len(attrs),
        "itemprop" in attrs,
        _KIND_INDEX.get(segment.kind, 15),
        segment.flags,
        segment.own,
    )


def matrix(segments: Sequence[Segment], groups: list[npt.NDArray[np.intp]], hints: Sequence[float]) -> Matrix:
    """Features of a page's segments, shape (segments, FEATURES); `hints` are eight numbers about the whole page."""
    count = len(segments)
    raw = np.array([_row(segment) for segment in segments], dtype=np.float64)
    chars, links = raw[:, 0], raw[:, 1]
    words = raw[:, 4]
    density = links / np.maximum(chars, 1)
    signatures = list(map(_signature, segments))
    counts = Counter(signatures)
    repeats = np.array([counts[signature] for signature in signatures])
    texts = Counter(segment.text for segment in segments)
    copies = np.array([texts[segment.text] for segment in segments])
    position = np.arange(count) / max(count, 1)
    total = max(chars.sum(), 1.0)
    first = _first_heading(segments)
    base = np.column_stack(
        [
            np.log1p(chars), np.log1p(words), density, np.log1p(raw[:, 2]), np.log1p(raw[:, 3]),
            raw[:, 5] / np.maximum(words, 1) * 5, np.log1p(raw[:, 6]), raw[:, 7], raw[:, 8], raw[:, 9], raw[:, 10],
            raw[:, 11], raw[:, 12] / 10, raw[:, 13], raw[:, 14], np.log1p(raw[:, 15]), np.log1p(raw[:, 16]),
            np.minimum(raw[:, 17], 6) / 3, raw[:, 18], np.log1p(repeats), np.log1p(copies),
            chars / np.maximum(words, 1) / 5,
            (chars < 1).astype(float),
        ]
    )  # fmt: skip
    kinds = np.eye(len(_KINDS))[raw[:, 19].astype(int)]
    flags = _bits(raw[:, 20])
    own = _bits(raw[:, 21])
    around = [_surroundings(numbers, chars, links, total, repeats) for numbers in groups]
    neighbours = _neighbours(base[:, [0, 2, 6, 7]], kinds[:, 2:6].sum(axis=1), density)
    places = np.column_stack(
        [
            position, 1 - position, np.cumsum(chars) / total, np.full(count, np.log1p(total)),
            np.full(count, links.sum() / total),
            np.full(count, np.log1p(count)), np.clip((np.arange(count) - first) / 30, -1, 1), np.arange(count) >= first,
        ]
    )  # fmt: skip
    page = np.tile(np.array(hints), (count, 1))
    return np.column_stack([base, kinds, flags, own, *around, neighbours, places, page]).astype(np.float32)


def _bits(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return ((values.astype(np.int64)[:, None] >> np.arange(FLAG_BITS)) & 1).astype(np.float64)


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


def _surroundings(
    numbers: npt.NDArray[np.intp],
    chars: npt.NDArray[np.float64],
    links: npt.NDArray[np.float64],
    total: float,
    repeats: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Totals of the ancestor at one level: text, link density, segments, share of the page, long text, evenness."""
    size = int(numbers.max()) + 1
    text = np.bincount(numbers, chars, size)
    linked = np.bincount(numbers, links, size)
    count = np.bincount(numbers, minlength=size)
    long = np.bincount(numbers, np.where((chars > 80) & (links < 0.3 * chars), chars, 0.0), size)
    headings = np.bincount(numbers, np.log1p(repeats), size) / count
    share = text / total
    columns = [
        np.log1p(text),
        linked / np.maximum(text, 1),
        np.log1p(count),
        share,
        long / np.maximum(text, 1),
        headings,
    ]
    return np.column_stack([column[numbers] for column in columns])


def _neighbours(
    base: npt.NDArray[np.float64], heading: npt.NDArray[np.float64], density: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """What stands one and two segments before and after."""
    values = np.column_stack([base, heading, density > 0.5])
    padded = np.pad(values, ((2, 2), (0, 0)))
    count = len(values)
    return np.column_stack([padded[2 + offset : 2 + offset + count] for offset in (-2, -1, 1, 2)])
