"""No part of a name or password is ever shown, however the address is written."""

import pytest

from trawl.adapters.masked import masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("https://search.example.com:9200", "https://search.example.com:9200"),
        ("redis://[::1]:6379", "redis://[::1]:6379"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("rediss://user:hunter2@redis.example.com:6380/1", "rediss://redis.example.com:6380/1"),
        ("redis://user:hun@ter2@redis.example.com", "redis://redis.example.com"),
        ("redis://redis.example.com/0?password=hunter2", "redis://redis.example.com/0"),
        ("redis://redis.example.com/0?password=hun@ter2", "redis://…"),
        ("redis://:hun/ter2@redis.example.com", "redis://…"),
        ("redis://:hun#ter2@redis.example.com", "redis://…"),
        ("redis://:hun?ter2@redis.example.com", "redis://…"),
        ("redis://user:hunter2", "redis://…"),
        ("user:hunter2@redis.example.com", "…"),
    ],
)
def test_what_is_shown_of_an_address(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert "hun" not in masked(url)
    assert "ter2" not in masked(url)
