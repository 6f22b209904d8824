"""Retry-After."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.fetcher.retry_after import SECONDS_MAX, retry_after_ms

NOW_MS = 1_750_000_000_000


@given(st.integers(0, 10**9))
def test_seconds_are_read(seconds: int) -> None:
    assert retry_after_ms(f" {seconds} ", NOW_MS) == 1000 * seconds


@given(st.integers(-(10**6), 10**7))
def test_a_date_is_the_time_until_then_and_never_negative(seconds: int) -> None:
    text = formatdate(NOW_MS / 1000 + seconds, usegmt=True)
    assert retry_after_ms(text, NOW_MS) == max(0, 1000 * seconds)


@pytest.mark.parametrize(
    "text",
    ["Sun, 15 Jun 2025 15:07:40 GMT", "Sunday, 15-Jun-25 15:07:40 GMT", "Sun Jun 15 15:07:40 2025"],
)
def test_the_three_forms_of_a_date_are_read(text: str) -> None:
    assert retry_after_ms(text, NOW_MS) == 60_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.5", 2000), ("2.0", 2000), ("0", 0), ("9" * 40, 1000 * SECONDS_MAX), ("1000000000000", 1000 * SECONDS_MAX)],
)
def test_odd_numbers_are_never_read_as_less(text: str, expected: int) -> None:
    assert retry_after_ms(text, NOW_MS) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "-5", "1,5", "٣", "1e3", "0x10", "1.2.3", "Foo, 99 Bar 2025 99:99:99 GMT"]
)
def test_nonsense_says_nothing(text: str) -> None:
    assert retry_after_ms(text, NOW_MS) is None


@given(st.text())
def test_no_text_is_an_error(text: str) -> None:
    found = retry_after_ms(text, NOW_MS)
    assert found is None or 0 <= found <= 1000 * SECONDS_MAX
