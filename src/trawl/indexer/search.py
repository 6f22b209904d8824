"""What is made of found chunks before people see them (pure).

The fusion of full text and vectors is the search index's own (`trawl.adapters.fusion`, or OpenSearch's).
"""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from trawl.fingerprint import normalise
from trawl.ports import Hit

SNIPPET_CHARS_MAX: Final = 240

_WORD: Final = re.compile(r"\w+")


def by_document(hits: Iterable[Hit], *, limit: int, per_document_max: int = 1) -> list[Hit]:
    """The best hits in order, at most `limit`, and no more than `per_document_max` of one document."""
    taken: Counter[int] = Counter()
    kept: list[Hit] = []
    for hit in hits:
        if len(kept) >= limit:
            break
        if taken[hit.chunk.document_key] < per_document_max:
            taken[hit.chunk.document_key] += 1
            kept.append(hit)
    return kept


def snippet(text: str, query: str, *, chars_max: int = SNIPPET_CHARS_MAX) -> str:
    """One line of at most `chars_max` characters from where the text holds most of the query's distinct words.

    Cut at word ends, with an ellipsis where text is left out.
    """
    line = " ".join(text.split())
    if len(line) <= chars_max:
        return line
    wanted = set(normalise(query).split())
    found = [(match.start(), word) for match in _WORD.finditer(line) if (word := normalise(match[0])) in wanted]
    start = _word_start(line, max(0, _densest(found, chars_max) - chars_max // 4))
    room = chars_max - (2 if start else 0) - 2
    end = min(len(line), start + room)
    if end < len(line):
        end = max(line.rfind(" ", start, end + 1), start) or end
        end = end if end > start else start + room
    return ("… " if start else "") + line[start:end].rstrip() + (" …" if end < len(line) else "")


def _densest(found: list[tuple[int, str]], chars_max: int) -> int:
    """The offset of the first of the matches in the window that holds most distinct words; 0 without any."""
    best_offset, best_count = 0, 0
    window: Counter[str] = Counter()
    first = 0
    for offset, word in found:
        window[word] += 1
        while offset - found[first][0] > chars_max // 2:
            window[found[first][1]] -= 1
            window += Counter()  # drops the words whose count fell to none
            first += 1
        if len(window) > best_count:
            best_offset, best_count = found[first][0], len(window)
    return best_offset


def _word_start(line: str, offset: int) -> int:
    """The start of the first word at or behind an offset, if one begins soon, else the offset."""
    if offset == 0:
        return 0
    space = line.find(" ", offset - 1, offset + 40)
    return space + 1 if space >= 0 else offset
