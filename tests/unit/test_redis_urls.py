"""The code in which the fingerprint index in Redis keeps URLs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.adapters.redis.urls import packed_url, unpacked_url

URLS = (
    "https://www.example.com/blog/2024/05/how-to-keep-hot-state-small-and-fast.html",
    "https://docs.example.org/en/latest/reference/settings.html?highlight=redis",
    "http://forum.example.net/viewtopic.php?f=12&t=40871&start=120",
)


@given(url=st.text(max_size=300))
def test_every_text_comes_back(url: str) -> None:
    assert unpacked_url(packed_url(url)) == url


@pytest.mark.parametrize("url", URLS)
def test_an_ordinary_url_takes_less_than_seven_tenths(url: str) -> None:
    assert len(packed_url(url)) < len(url) * 0.7


def test_what_was_stored_can_be_read_for_ever() -> None:
    golden = bytes.fromhex("03709d9a67c09afc5b8b28b4d0a9383bb203a40e108706ec20c9635d06aae82b300645912fa19d")
    assert packed_url(URLS[0]) == golden
    assert unpacked_url(golden) == URLS[0]


def test_bytes_of_something_else_are_refused() -> None:
    with pytest.raises(ValueError, match="no packed URL"):
        unpacked_url(packed_url(URLS[0]) + b"\x00")
