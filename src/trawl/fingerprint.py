"""Exact and near-duplicate fingerprints of extracted text (pure).

Two texts are the same when their normalised forms are (`content_sha256`), and nearly the same when their 64-bit
SimHash values differ in few bits: Charikar, "Similarity estimation techniques from rounding algorithms" (STOC 2002);
Manku, Jain and Das Sarma, "Detecting near-duplicates for web crawling" (WWW 2007), whose block permutation is `bands`.

Features are shingles of three tokens. A token is a word, or one character of a script that is written without spaces,
so Chinese or Thai text is shingled by its character trigrams. Single words as features would make unrelated texts of
one language alike (17 differing bits on average instead of 32).

Fingerprints of different versions are never compared: `FINGERPRINT_VERSION` changes with anything here that changes a
value, and is stored with each of them.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import xxhash

FINGERPRINT_VERSION: Final = 1
NEAR_DUPLICATE_TOKENS_MIN: Final = 40
NEAR_DUPLICATE_BITS_MAX: Final = 3
SIMHASH_BITS: Final = 64
BAND_THRESHOLD_MAX: Final = 7

_SHINGLE_TOKENS: Final = 3
_MARKS_MAX: Final = 30
_MARKS_END: Final = 0x20000
_VOTE_ROWS_MAX: Final = 8192
_MASK: Final = (1 << SIMHASH_BITS) - 1
_SIGN: Final = 1 << (SIMHASH_BITS - 1)

# Operators carry meaning (C++ is not C, and < is not >), yet bars and tildes are mostly table and list decoration.
_KEPT_ASCII: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789$+<=>")
_ASCII_FOLD: Final = bytes(
    c if c >= 0x80 else ord(chr(c).lower()) if chr(c).lower() in _KEPT_ASCII else 0x20 for c in range(256)
)
_ZERO_WIDTH_SPACE: Final = "\u200b"
_VARIATION_SELECTORS: Final = frozenset(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))

# Scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana, bopomofo, Han and its extensions.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af]"
)


@dataclass(frozen=True, slots=True)
class SimHash:
    """A 64-bit SimHash.

    `value` is a signed 64-bit integer (the range of an Avro long and of an SQLite INTEGER), `tokens` the number of
    tokens it was made of, and `version` the `FINGERPRINT_VERSION` that made it.
    """

    value: int
    tokens: int
    version: int


def normalise(text: str) -> str:
    """The form in which two texts are compared: compatibility characters unified, case folded, words by one space.

    Letters, marks, digits, currency signs and operators stay; punctuation, decoration and white space between them
    become one space; invisible characters go. Idempotent.
    """
    return b" ".join(_words(_fold(text))).decode("utf-8")


def content_sha256(text: str) -> str:
    """The SHA-256 of the normalised text, as 64 hexadecimal digits."""
    return hashlib.sha256(normalise(text).encode("utf-8")).hexdigest()


def simhash64(text: str) -> SimHash:
    """The SimHash of a text of any length; an empty text has value 0 and no tokens.

    Each distinct shingle votes on each bit of its xxh3 hash with weight 1 + floor(log2(occurrences)): sub-linear, so a
    phrase repeated in every row of a table does not outvote the rest, and integral, so the value is the same on every
    machine.
    """
    tokens = _tokens(text)
    value = _vote(map(xxhash.xxh3_64_intdigest, _shingles(tokens)))
    return SimHash(_signed(value), len(tokens), FINGERPRINT_VERSION)


def hamming(a: int, b: int) -> int:
    """The number of bits, 0 to 64, in which two SimHash values (signed or unsigned) differ."""
    return ((a ^ b) & _MASK).bit_count()


def near_duplicates(
    a: SimHash,
    b: SimHash,
    *,
    bits_max: int = NEAR_DUPLICATE_BITS_MAX,
    tokens_min: int = NEAR_DUPLICATE_TOKENS_MIN,
) -> bool:
    """Whether two fingerprints may be called near-duplicates.

    Never across versions, and never when either text is shorter than `tokens_min` tokens: a consent page or a stub
    says too little for its fingerprint to mean anything, so only equality of its text counts.
    """
    return a.version == b.version and min(a.tokens, b.tokens) >= tokens_min and hamming(a.value, b.value) <= bits_max


def bands(value: int, threshold: int = NEAR_DUPLICATE_BITS_MAX) -> tuple[int, ...]:
    """The `threshold + 1` blocks of a SimHash value, each tagged with its index, as non-negative 64-bit-safe integers.

    By the pigeonhole principle two values that differ in at most `threshold` bits have at least one band in common
    (Manku et al., section 3). Bands of different thresholds must not be mixed in one index. With threshold 0 the only
    band is the signed value itself. Raises ValueError for a threshold outside 0 to 7.
    """
    if not 0 <= threshold <= BAND_THRESHOLD_MAX:
        raise ValueError(f"a band threshold must be 0 to {BAND_THRESHOLD_MAX} bits, not {threshold}")
    if threshold == 0:
        return (_signed(value & _MASK),)
    blocks = threshold + 1
    edges = [SIMHASH_BITS * i // blocks for i in range(blocks + 1)]
    return tuple(
        (index << 32) | ((value >> low) & ((1 << (high - low)) - 1))
        for index, (low, high) in enumerate(pairwise(edges))
    )


def stream_safe(text: str) -> str:
    """The text with at most 30 marks in a row upon one character (UAX #15, Stream-Safe Text Format).

    Normalisation sorts the marks of a run, in quadratic time; no language writes so many.
    """
    if text.isascii():
        return text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    at = np.flatnonzero(_is_mark()[np.minimum(codes, _MARKS_END)])
    if not (at[_MARKS_MAX:] - at[:-_MARKS_MAX] == _MARKS_MAX).any():
        return text  # as ever: looking so costs a hundredth of what the pattern does
    return _marks_run().sub(r"\1", text)


@cache
def _is_mark() -> npt.NDArray[np.bool_]:
    """For each code point below `_MARKS_END`, and for all others together, whether it is a combining mark."""
    marks = np.zeros(_MARKS_END + 1, dtype=np.bool_)
    marks[[code for code in range(0x300, _MARKS_END) if unicodedata.combining(chr(code))]] = True
    return marks


@cache
def _marks_run() -> re.Pattern[str]:
    marks = "".join(map(chr, np.flatnonzero(_is_mark()).tolist()))
    return re.compile(f"([{marks}]{{{_MARKS_MAX}}})[{marks}]+")


@lru_cache(maxsize=1)  # a text is hashed exactly, then by its shingles
def _fold(text: str) -> str:
    """The text by NFKC, its characters outside ASCII folded, spaced or dropped; ASCII is left to `_words`."""
    text = stream_safe(text)
    while not text.isascii():
        folded = unicodedata.normalize("NFKC", text)
        for char in _beyond_ascii(folded):
            replacement = _replacement(char)
            if replacement != char:
                folded = folded.replace(char, replacement)
        if folded == text:  # folding can make a new compatibility form, so once is not always enough
            break
        text = folded
    return text


def _beyond_ascii(text: str) -> list[str]:
    """The distinct characters of a text that are not ASCII: few, so they are looked at one by one."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    return [chr(code) for code in set(codes[codes >= 0x80].tolist())]


@lru_cache(maxsize=65_536)
def _replacement(char: str) -> str:
    """What one character outside ASCII becomes: its case folding, a space, or nothing."""
    category = unicodedata.category(char)
    if char in _VARIATION_SELECTORS or (category == "Cf" and char != _ZERO_WIDTH_SPACE):
        return ""  # a soft hyphen or a joiner stands inside a word, and a selector only chooses a glyph
    if category[0] in "PZ" or category in ("Cc", "Cf", "Cs", "Co", "Sk", "So"):
        return " "
    return char.casefold()


@lru_cache(maxsize=1)
def _words(folded: str) -> list[bytes]:
    """The words of a folded text as UTF-8, its ASCII part folded on the way."""
    return folded.encode("utf-8").translate(_ASCII_FOLD).split()


def _tokens(text: str) -> list[bytes]:
    """The words of the normalised text as UTF-8; characters of unspaced scripts one by one."""
    folded = _fold(text)
    if any(map(_UNSPACED.match, _beyond_ascii(folded))):
        folded = _UNSPACED.sub(r" \g<0> ", folded)
    return _words(folded)


def _shingles(tokens: list[bytes]) -> Iterable[bytes]:
    """Every three neighbouring tokens joined by a space; a shorter text is one shingle."""
    if len(tokens) < _SHINGLE_TOKENS:
        return [b" ".join(tokens)] if tokens else []
    return map(b" ".join, zip(tokens, tokens[1:], tokens[2:], strict=False))


def _vote(hashes: Iterable[int]) -> int:
    """The unsigned value whose bits are set where the weighted majority of distinct hashes has them set; a tie is 0."""
    distinct, counts = np.unique(np.fromiter(hashes, dtype=np.uint64), return_counts=True)
    octets = distinct.astype(">u8").view(np.uint8).reshape(-1, 8)
    weights = np.frexp(counts)[1].astype(np.float32)  # frexp's exponent of n is exactly 1 + floor(log2(n))
    votes = np.zeros(SIMHASH_BITS)
    for start in range(0, len(weights), _VOTE_ROWS_MAX):  # in blocks, so that a huge text needs little memory
        rows = np.unpackbits(octets[start : start + _VOTE_ROWS_MAX], axis=1).astype(np.float32)
        votes += weights[start : start + _VOTE_ROWS_MAX] @ rows  # sums of small integers: exact in any order
    majority = 2 * votes > weights.sum(dtype=np.float64)
    return int.from_bytes(np.packbits(majority).tobytes(), "big")


def _signed(value: int) -> int:
    """The two's complement reading of an unsigned 64-bit integer."""
    return value - (1 << SIMHASH_BITS) if value & _SIGN else value
