"""The share of a rendered text that only scripts brought."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.extractor.hydration import hydrated_share

STATIC = "one two three four five six seven eight nine ten"
ADDED = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


def test_text_that_was_there_before_is_no_hydration() -> None:
    assert hydrated_share(STATIC, STATIC.upper()) == 0.0


def test_a_page_that_was_empty_is_hydrated_whole() -> None:
    assert hydrated_share("", ADDED) == 1.0


def test_half_of_the_text_is_a_half() -> None:
    assert hydrated_share(STATIC, f"{STATIC} {ADDED}") == 0.5


def test_order_does_not_count_and_neither_does_what_scripts_took_away() -> None:
    moved = "six seven eight nine ten. one two three four five"
    assert hydrated_share(STATIC, moved) == 0.0
    assert hydrated_share(f"{STATIC} {ADDED}", STATIC) == 0.0


def test_one_changed_word_costs_one_word() -> None:
    assert hydrated_share(STATIC, STATIC.replace("five", "FIFTY")) == pytest.approx(0.1)


def test_scripts_without_spaces_are_compared_by_characters() -> None:
    assert hydrated_share("東京都に住んでいます", "東京都に住んでいます大阪府に行きました") == pytest.approx(
        9 / 19, abs=0.06
    )


def test_a_rendered_page_without_text_brought_nothing() -> None:
    assert hydrated_share(STATIC, "") == 0.0


@given(st.text(max_size=300), st.text(max_size=300))
def test_it_is_a_share_and_a_text_is_never_new_to_itself(static: str, rendered: str) -> None:
    assert 0.0 <= hydrated_share(static, rendered) <= 1.0
    assert hydrated_share(rendered, rendered) == 0.0
