"""How much of a rendered page's text is there only because its scripts ran (pure).

Both texts are compared by shingles of three words, as sets: moved blocks are no difference, and neither is another
letter case. The measure is asymmetric: what scripts took away counts for nothing.
"""

import re
from collections.abc import Iterator
from typing import Final

_WORD: Final = re.compile(r"\w+")
_SHINGLE: Final = 3


def hydrated_share(static: str, rendered: str) -> float:
    """The share of the rendered text, from 0 to 1, that the static text has not; 0 if nothing was rendered.

    A word counts as there if any shingle around it stands in the static text, so that one changed word costs one word.
    """
    words = _words(rendered)
    if not words:
        return 0.0
    size = min(_SHINGLE, len(words))
    known = set(_shingles(_words(static), size))
    there = bytearray(len(words))
    for at, shingle in enumerate(_shingles(words, size)):
        if shingle in known:
            there[at : at + size] = b"\x01" * size
    return round(1 - sum(there) / len(words), 4)


def _words(text: str) -> list[str]:
    """The words in lower case; scripts without spaces give one word a character, or a sentence would be one."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word[0] >= "\u2e80":
            words.extend(word)
        else:
            words.append(word)
    return words


def _shingles(words: list[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[at : at + size]) for at in range(len(words) - size + 1))
