"""What a word is to a full-text search (pure): the same for documents and for queries.

Scripts written without spaces, and Hangul, whose particles grow onto its words, are taken character by character; a
query for a run of them looks for its pairs of neighbours, as Lucene's CJK analyser does.
"""

import re
import unicodedata
from itertools import pairwise
from typing import Final

from trawl.fingerprint import stream_safe

TERMS_MAX: Final = 32
"""Terms of a query that are looked for; a longer query is cut."""
_WORDS_MAX: Final = 128

# Thai, Lao, Myanmar, Hangul, Khmer, kana, bopomofo, Han and its extensions.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u312f\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_RUN: Final = re.compile(f"[{_UNSPACED}]+")
_WORD: Final = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+")


def indexable(text: str) -> str:
    """The text with compatibility forms unified and the characters of unspaced scripts set apart.

    A tokeniser that splits at anything but letters and digits then finds the words that `terms` asks for.
    """
    if text.isascii():
        return text
    return _RUN.sub(lambda run: f" {' '.join(run.group())} ", unicodedata.normalize("NFKC", stream_safe(text)))


_ENGLISH: Final = (
    "a about after all also am an and any are as at be been before but by can could did do does doing for from had has"
    " have having he her here hers him his how i if in into is it its just me my no nor not of off on once only or our"
    " out over own s same she should so some such t than that the their them then there these they this those through"
    " to too under until up very was we were what when where which while who whom why will with would you your"
)
_FUNCTION_WORDS: Final = frozenset(_ENGLISH.split())
"""English words that say how a question is put, not what about; Lucene's and Snowball's lists, shortened."""


def terms(query: str) -> list[tuple[str, ...]]:
    """The terms of a query, each a phrase of one or two words; in order, without repeats, at most `TERMS_MAX`.

    English function words are left out beside other words: in a small corpus "how" and "do" are rare, and would count
    for more than what was asked about. The words hold letters, digits and marks only, so any engine can quote them.
    """
    found: dict[tuple[str, ...], None] = {}
    for match in _WORD.finditer(unicodedata.normalize("NFKC", stream_safe(query))):
        word = match.group()
        if not _RUN.match(word):
            found[(word,)] = None
            continue
        characters = [char for char in word if char.isalnum()]
        found.update(dict.fromkeys(pairwise(characters) if len(characters) > 1 else zip(characters)))
        if len(found) >= _WORDS_MAX:
            break
    telling = [term for term in found if len(term) > 1 or term[0].casefold() not in _FUNCTION_WORDS]
    return (telling or list(found))[:TERMS_MAX]


def words(text: str) -> list[str]:
    """The words of a text: case folded, without diacritics, unspaced scripts by character."""
    folded = indexable(text).casefold()
    if not folded.isascii():
        decomposed = unicodedata.normalize("NFKD", folded)
        folded = unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))
    return re.findall(r"[^\W_]+", folded)
