"""Emphasis that CommonMark reads as it was meant: markers are placed last, when their surroundings are known (pure).

While inline content is collected, an emphasised range stands between two control characters. `resolve` replaces them
by markers where the rules of CommonMark 6.2 (left- and right-flanking runs) let them open and close, and drops them
where they would be read as literal characters or pair up wrongly: the text is worth more than its weight.
"""

import re
import unicodedata
from typing import Final

OPEN: Final = {"**": "\x01", "*": "\x03", "~~": "\x05"}
CLOSE: Final = {"**": "\x02", "*": "\x04", "~~": "\x06"}
CONTROLS: Final = "\x00\x01\x02\x03\x04\x05\x06\x07"

_MARKER: Final = re.compile(r"( ?[\x01-\x06] ?)")
_MARKERS: Final = {
    **{sign: marker for marker, sign in OPEN.items()},
    **{sign: marker for marker, sign in CLOSE.items()},
}
_OPENERS: Final = frozenset(OPEN.values())


def resolve(text: str) -> str:
    """The text with markers for its control characters; white space at the inner edge of a range moves outside."""
    pieces = _pieces(text)
    pairs = _pairs(pieces)
    _merge(pieces, pairs)
    while fallen := [(start, end) for start, end in pairs.items() if not _stands(pieces, start, end)]:
        for start, end in fallen:  # what stood next to a dropped marker may not stand any more, so look again
            pieces[start] = pieces[end] = ""
            del pairs[start]
    out = [_MARKERS.get(piece, piece) for piece in pieces]
    return re.sub(" {2,}", " ", "".join(out)).strip(" ")


def _pieces(text: str) -> list[str]:
    """Texts and control characters in turn, white space moved out of ranges."""
    pieces: list[str] = []
    for index, part in enumerate(_MARKER.split(text)):
        if index % 2 == 0:
            pieces.append(part)
            continue
        sign = part.strip(" ")
        space = " " if part != sign else ""
        pieces.extend((space, sign) if sign in _OPENERS else (sign, space))
    return [piece for piece in pieces if piece]


def _pairs(pieces: list[str]) -> dict[int, int]:
    """The index of the closing control for each opening one; unpaired and empty ranges, and like within like, go."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for index, piece in enumerate(pieces):
        if piece in _OPENERS:
            if any(pieces[other] == piece for other in stack):
                stack.append(-index - 1)
                continue
            stack.append(index)
        elif piece in _MARKERS and stack:
            start = stack.pop()
            if start < 0 or not any(inner.strip(" ") and inner not in _MARKERS for inner in pieces[start:index]):
                pieces[-start - 1 if start < 0 else start] = pieces[index] = ""
            else:
                pairs[start] = index
    return pairs


def _merge(pieces: list[str], pairs: dict[int, int]) -> None:
    """Two neighbouring ranges of one kind become one."""
    starts = {end: start for start, end in pairs.items()}
    for start in sorted(pairs):
        before = start - 1
        while before >= 0 and not pieces[before]:
            before -= 1
        if before in starts and _MARKERS[pieces[before]] == _MARKERS[pieces[start]]:
            first, end = starts.pop(before), pairs.pop(start)
            pieces[before] = pieces[start] = ""
            pairs[first] = end
            starts[end] = first


def _stands(pieces: list[str], start: int, end: int) -> bool:
    """Whether the markers of this range will open and close by the flanking rules, and touch none but their own."""
    before, after = _char(pieces, start, -1), _char(pieces, start, 1)
    last, following = _char(pieces, end, -1), _char(pieces, end, 1)
    if before in CLOSE.values() or following in _OPENERS:
        return False
    touching = (before in _OPENERS) + (following in CLOSE.values())
    if touching == 1 or (after in _MARKERS) != (last in _MARKERS):
        return False
    opens = not after.isspace() and (not _is_punctuation(after) or before.isspace() or _is_punctuation(before))
    closes = not last.isspace() and (not _is_punctuation(last) or following.isspace() or _is_punctuation(following))
    return opens and closes


def _char(pieces: list[str], index: int, step: int) -> str:
    """The character next to a control, or the control there; a space at the ends."""
    index += step
    while 0 <= index < len(pieces):
        if pieces[index]:
            found = pieces[index][0 if step > 0 else -1]
            return found if found != "\x07" else "`"
        index += step
    return " "


def _is_punctuation(char: str) -> bool:
    return char in _MARKERS or unicodedata.category(char)[0] in "PS"
