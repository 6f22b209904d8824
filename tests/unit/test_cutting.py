"""Content-defined cut points."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trawl.indexer.cutting import Place, Span, Strength, cut, line_places, sentence_places

texts = st.text(st.sampled_from("ab. !?\n\t。é漢"), min_size=1, max_size=500)


@settings(max_examples=200)
@given(texts, st.integers(1, 80))
def test_spans_cover_the_text_without_gaps_and_within_the_size(text: str, size_max: int) -> None:
    for places in (sentence_places(text, start=0, size_max=size_max), line_places(text, size_max=size_max)):
        offsets = [place.offset for place in places]
        assert offsets == sorted(set(offsets))
        assert all(0 < offset < len(text) for offset in offsets)
        spans = cut(text, places, size_max)
        assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
        assert spans[-1].end == len(text)
        assert all(span.end - span.start <= size_max for span in spans)


def test_a_text_without_places_is_one_span_however_long() -> None:
    assert cut("x" * 100, [], 10) == [Span(0, 100)]
    assert cut("short", [Place(2, Strength.BLOCK)], 10) == [Span(0, 5)]


def test_stronger_places_are_cut_first() -> None:
    text = "x" * 40
    places = [Place(12, Strength.WORD), Place(20, Strength.BLOCK), Place(28, Strength.SENTENCE)]
    assert cut(text, places, 30) == [Span(0, 20), Span(20, 40)]


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ('He said "stop." Then he left! Why? Nobody knows…  End.', ["Then", "Why", "Nobody", "End"]),
        ("Version 3.11 of e.g. this is fine. Next one.", ["Next"]),
        ("一つ目の文。二つ目の文！三つ目", ["二つ目", "三つ目"]),
        ("line one\n  line two\n\nline three", ["line two", "line three"]),
    ],
)
def test_sentences_begin_where_a_reader_would_say(text: str, starts: list[str]) -> None:
    places = sentence_places(text, start=0, size_max=1000)
    assert len(places) == len(starts)
    assert all(text[place.offset :].startswith(start) for place, start in zip(places, starts, strict=True))


def test_places_are_counted_from_the_start_of_the_longer_text() -> None:
    assert sentence_places("One. Two.", start=100, size_max=50) == [Place(105, Strength.SENTENCE)]


def test_lines_after_blank_ones_are_stronger() -> None:
    places = line_places("a\nb\n\nc\n", size_max=50)
    assert places == [
        Place(2, Strength.SENTENCE),
        Place(4, Strength.SENTENCE),
        Place(5, Strength.BLOCK),
    ]


def test_words_and_halves_of_words_are_places_only_where_nothing_better_is() -> None:
    places = sentence_places("Short one. " + "Aa bb " * 3 + "c" * 25 + ". Last.", start=0, size_max=12)
    strengths = [place.strength for place in places]
    assert strengths.count(Strength.SENTENCE) == 2
    assert places[0] == Place(11, Strength.SENTENCE)
    assert strengths.count(Strength.WORD) >= 5


@pytest.mark.parametrize("grown", [1, 37, 400])
def test_cuts_far_from_an_edit_stay_however_much_the_text_grew(grown: int) -> None:
    survived, total = 0, 0
    for seed in range(50):
        rng = random.Random(seed)
        units = ["".join(rng.choices("abcdefghij", k=rng.randint(20, 160))) + ". " for _ in range(100)]
        at = rng.randrange(100)
        edited = [*units[:at], "y" * grown + ". " + units[at], *units[at + 1 :]]
        before, after = pieces(units), pieces(edited)
        survived += len(before & after)
        total += len(before)
    assert survived / total > 0.85


def pieces(units: list[str]) -> set[str]:
    text = "".join(units)
    ends = np.cumsum([len(unit) for unit in units]).tolist()
    places = [Place(end, Strength.SENTENCE) for end in ends[:-1]]
    return {text[span.start : span.end] for span in cut(text, places, 1600)}
