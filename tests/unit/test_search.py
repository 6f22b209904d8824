"""Hits for people: one a document, and a line that shows why."""

from hypothesis import given
from hypothesis import strategies as st

from trawl.indexer.search import by_document, snippet
from trawl.ports import Chunk, Hit


def hit(document_key: int, score: float) -> Hit:
    chunk = Chunk(
        chunk_id=int(score * 10),
        document_key=document_key,
        crawl_id="c",
        url="",
        title="",
        heading_path=(),
        text="",
        position=0,
        fetched_at_ms=0,
    )
    return Hit(chunk=chunk, score=score)


def test_a_document_is_shown_by_its_best_hits_only() -> None:
    hits = [hit(1, 0.9), hit(1, 0.8), hit(2, 0.7), hit(1, 0.6), hit(3, 0.5)]
    assert [h.score for h in by_document(hits, limit=10)] == [0.9, 0.7, 0.5]
    assert [h.score for h in by_document(hits, limit=10, per_document_max=2)] == [0.9, 0.8, 0.7, 0.5]
    assert [h.score for h in by_document(hits, limit=2)] == [0.9, 0.7]
    assert by_document(hits, limit=0) == []


def test_a_snippet_shows_the_words_that_were_asked_for() -> None:
    text = "filler words here. " * 50 + "The Crawl-Delay is honoured\nby every host. " + "more filler follows. " * 50
    line = snippet(text, "crawl delay honoured", chars_max=100)
    assert "The Crawl-Delay is honoured by every host." in line
    assert line.startswith("… ")
    assert line.endswith(" …")


def test_a_snippet_of_a_text_without_the_words_is_its_beginning() -> None:
    assert snippet("one two three " * 50, "absent", chars_max=20) == "one two three one …"
    assert snippet("short\n text", "x") == "short text"


def test_a_snippet_prefers_more_distinct_words_to_more_matches() -> None:
    text = "alpha alpha alpha alpha. " + "x " * 200 + "alpha beta gamma. " + "y " * 200
    assert "alpha beta gamma" in snippet(text, "alpha beta gamma", chars_max=60)


@given(st.text(st.sampled_from("ab é漢\n"), max_size=300), st.text(max_size=20), st.integers(10, 60))
def test_a_snippet_is_one_bounded_line_of_the_text(text: str, query: str, chars_max: int) -> None:
    line = snippet(text, query, chars_max=chars_max)
    assert len(line) <= chars_max
    assert "\n" not in line
    assert line.removeprefix("… ").removesuffix(" …") in " ".join(text.split())
