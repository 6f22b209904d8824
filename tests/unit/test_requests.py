"""The header fields that a request sends."""

import pytest

from trawl.errors import SettingsError
from trawl.fetcher.requests import RequestFields, extra_header
from trawl.kinds import Purpose
from trawl.records import Validators
from trawl.settings import FetchSettings


def sent(
    host: str, *headers: str, purpose: Purpose = Purpose.PAGE, validators: Validators = Validators()
) -> dict[str, str]:
    return dict(RequestFields(FetchSettings(headers=headers)).fields(f"http://{host}/", purpose, validators))


def test_case_15_the_crawler_says_who_it_is() -> None:
    agent = sent("a.test")["User-Agent"]
    assert agent.startswith("trawl/")
    assert "+https://" in agent


def test_extra_fields_go_to_their_host_only() -> None:
    headers = ("a.test: Authorization: Bearer x:y", "a.test:8080: X-One: 1", "[::1]:80: X-Two: 2")
    assert sent("a.test", *headers)["Authorization"] == "Bearer x:y"
    assert sent("a.test:8080", *headers)["X-One"] == "1"
    assert sent("[::1]:80", *headers)["X-Two"] == "2"
    for host in ("b.test", "www.a.test", "a.test.evil.test", "a.test:81"):
        assert set(sent(host, *headers)) == {"User-Agent", "Accept", "Accept-Language"}


def test_an_extra_field_replaces_ours_of_the_same_name() -> None:
    assert sent("a.test", "a.test: user-agent: me")["user-agent"] == "me"
    assert "User-Agent" not in sent("a.test", "a.test: user-agent: me")


def test_validators_are_sent_and_cannot_smuggle_a_field() -> None:
    fields = sent("a.test", validators=Validators(etag='"a"\r\nX: 1', last_modified="Thu, 01 Jan 2026 00:00:00 GMT"))
    assert fields["If-None-Match"] == '"a"X: 1'
    assert fields["If-Modified-Since"] == "Thu, 01 Jan 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.test",
        "a.test: X",
        "a.test X: 1",
        "a.test: X Y: 1",
        "a.test: X: a\nb",
        "a.test: Host: b",
        "http://a.test: X: 1",
    ],
)
def test_a_malformed_extra_field_is_said(text: str) -> None:
    with pytest.raises(SettingsError, match=r"fetch\.headers"):
        extra_header(text)


def test_the_error_never_shows_the_value() -> None:
    with pytest.raises(SettingsError) as raised:
        extra_header("a.test: Bad Name: s3cret")
    assert "s3cret" not in str(raised.value)
