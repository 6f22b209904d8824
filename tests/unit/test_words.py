import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.adapters.words import TERMS_MAX, indexable, terms, words


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("robots.txt and more", [("robots",), ("txt",), ("more",)]),
        ("全文検索", [("全", "文"), ("文", "検"), ("検", "索")]),
        ("水", [("水",)]),
        ("the 検索 engine", [("検", "索"), ("engine",)]),
        ("C3検索", [("C3",), ("検", "索")]),
        ("b b b c", [("b",), ("c",)]),
        ("ＡＢ", [("AB",)]),
        ("How do I log in?", [("log",)]),
        ("The Who", [("The",), ("Who",)]),
        ('"AND" (OR) *', [("AND",), ("OR",)]),
        ("", []),
        ("?!", []),
    ],
)
def test_terms_of_a_query(query: str, expected: list[tuple[str, ...]]) -> None:
    assert terms(query) == expected


def test_a_long_query_is_cut() -> None:
    assert len(terms(" ".join(f"w{n}" for n in range(1000)))) == TERMS_MAX
    assert len(terms("".join(map(chr, range(0x4E00, 0x4F00))))) == TERMS_MAX


@given(st.text())
def test_terms_hold_nothing_that_a_query_language_could_read(query: str) -> None:
    for term in terms(query):
        assert 1 <= len(term) <= 2
        assert all(word and not set(word) & set(" \"'()*:^+-{}\0") for word in term)


@given(st.text())
def test_indexing_is_idempotent_but_for_spaces(text: str) -> None:
    once = indexable(text)
    assert indexable(once).split() == once.split()


@given(st.text(st.characters(codec="ascii")))
def test_plain_text_is_indexed_as_it_is(text: str) -> None:
    assert indexable(text) == text


def test_unspaced_scripts_are_indexed_by_character() -> None:
    assert indexable("使用全文search").split() == ["使", "用", "全", "文", "search"]
    assert words("東京Tower") == ["東", "京", "tower"]


def test_words_are_folded() -> None:
    assert words("Zürich, ZU\u0308RICH foo_bar") == ["zurich", "zurich", "foo", "bar"]
