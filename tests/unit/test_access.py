"""Rules of the access file: who gets credentials, and how hosts are reached."""

import logging
from pathlib import Path
from typing import Any

import pytest

from trawl.access import PLAIN, Access, AccessRules
from trawl.adapters.access_file import read_access
from trawl.errors import SettingsError

SECRET = "canary-5f1c"


def rules(*tables: dict[str, Any], proxies: dict[str, Any] | None = None, **environ: str) -> AccessRules:
    return AccessRules.compile({"rule": list(tables), "proxies": proxies or {}}, environ)


def names(access: Access) -> dict[str, str]:
    return dict(access.fields)


def test_without_rules_every_url_is_reached_plainly() -> None:
    assert AccessRules().of("https://a.test/") is PLAIN
    assert not PLAIN.signed_in


@pytest.mark.parametrize(
    ("pattern", "theirs", "others"),
    [
        (
            "a.test",
            ["https://a.test/", "https://a.test/x?y"],
            ["http://a.test/", "https://b.a.test/", "https://a.test:8443/", "https://xa.test/", "https://a.test.evil.test/"],
        ),
        ("*.a.test", ["https://b.a.test/", "https://c.b.a.test/"], ["https://a.test/", "https://ba.test/", "http://b.a.test/"]),
        ("http://a.test", ["http://a.test/"], ["https://a.test/", "http://a.test:8080/"]),
        ("https://a.test:8443", ["https://a.test:8443/"], ["https://a.test/", "http://a.test:8443/"]),
        ("a.test:8443", ["https://a.test:8443/"], ["https://a.test/", "http://a.test:8443/"]),
        ("A.Test", ["https://a.test/"], []),
        ("münchen.test", ["https://xn--mnchen-3ya.test/"], []),
        ("[2001:db8::1]", ["https://[2001:db8::1]/"], ["https://[2001:db8::2]/"]),
    ],
)  # fmt: skip
def test_credentials_go_to_the_origins_that_are_named(pattern: str, theirs: list[str], others: list[str]) -> None:
    found = rules({"hosts": [pattern], "bearer": SECRET})
    for url in theirs:
        assert names(found.of(url)) == {"Authorization": f"Bearer {SECRET}"}, url
        assert found.of(url).signed_in
    for url in others:
        assert found.of(url).fields == (), url


def test_a_proxy_and_a_profile_hold_for_both_schemes() -> None:
    found = rules({"hosts": ["a.test"], "proxy": "p", "impersonate": "chrome"}, proxies={"p": "http://p.test:3128"})
    for scheme in ("http", "https"):
        access = found.of(f"{scheme}://a.test/")
        assert (access.proxy, access.impersonate) == ("http://p.test:3128", "chrome")
    assert found.of("https://b.test/").proxy is None


def test_of_rules_that_match_the_later_one_counts() -> None:
    found = rules(
        {"hosts": ["*.test"], "proxy": "p", "impersonate": "chrome"},
        {"hosts": ["a.test"], "proxy": "direct", "headers": {"X-Key": "1"}, "cookies": {"a": "1", "b": "2"}},
        {"hosts": ["https://a.test"], "headers": {"x-key": "2"}},
        proxies={"p": "socks5://p.test"},
    )
    access = found.of("https://a.test/")
    assert (access.proxy, access.impersonate) == ("", "chrome")
    assert names(access) == {"x-key": "2", "Cookie": "a=1; b=2"}


def test_a_country_is_reached_through_its_proxy() -> None:
    proxies = {
        "one": {"url": "http://fr.test:1", "country": "fr"},
        "two": {"url": "http://de.test:1", "country": "DE", "user": "u@x", "password": {"variable": "PROXY_PASSWORD"}},
        "three": {"url": "http://de2.test:1", "country": "DE"},
    }
    found = rules({"hosts": ["*.de"], "country": "de"}, proxies=proxies, PROXY_PASSWORD="a:b/c")
    assert found.of("http://x.de/").proxy == "http://u%40x:a%3Ab%2Fc@de.test:1"


def test_basic_credentials_are_sent_as_utf_8() -> None:
    found = rules({"hosts": ["a.test"], "basic": {"user": "jörg", "password": {"variable": "P"}}}, P="pä:ss")
    assert names(found.of("https://a.test/")) == {"Authorization": "Basic asO2cmc6cMOkOnNz"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"hosts": []}, "no hosts"),
        ({"hosts": "a.test"}, "list of texts"),
        ({"hosts": ["a.test/path"]}, "a.test/path"),
        ({"hosts": ["*"]}, r"'\*'"),
        ({"hosts": ["a.*"]}, r"a\.\*"),
        ({"hosts": ["ftp://a.test"]}, "ftp"),
        ({"hosts": ["a.test:99999"]}, "port"),
        ({"hosts": ["*.de"], "bearer": SECRET}, r"all of \*\.de"),
        ({"hosts": ["*.github.io"], "cookies": {"a": SECRET}}, r"all of \*\.github\.io"),
        ({"hosts": ["a.test"], "bearer": SECRET, "basic": {"user": "u"}}, "both basic and bearer"),
        ({"hosts": ["a.test"], "basic": {"user": "u:v", "password": SECRET}}, "colon"),
        ({"hosts": ["a.test"], "basic": {"name": SECRET}}, "'name'"),
        ({"hosts": ["a.test"], "bearer": {"variable": "NOT_SET"}}, "NOT_SET"),
        ({"hosts": ["a.test"], "bearer": {"file": SECRET}}, "variable"),
        ({"hosts": ["a.test"], "bearer": 5}, "a text"),
        ({"hosts": ["a.test"], "headers": {"X Y": SECRET}}, "X Y"),
        ({"hosts": ["a.test"], "headers": {"Host": SECRET}}, "Host"),
        ({"hosts": ["a.test"], "headers": {"X": f"{SECRET}\r\nY: 1"}}, "line break"),
        ({"hosts": ["a.test"], "cookies": {"a": f"{SECRET};b"}}, "cookie"),
        ({"hosts": ["a.test"], "cookies": [SECRET]}, "no table"),
        ({"hosts": ["a.test"], "proxy": "nowhere"}, "nowhere"),
        ({"hosts": ["a.test"], "country": "DE"}, "wants a proxy in DE"),
        ({"hosts": ["a.test"], "country": "Germany"}, "two letters"),
        ({"hosts": ["a.test"], "country": "FR", "proxy": "p"}, "both proxy and country"),
        ({"hosts": ["a.test"], "impersonate": "a b"}, "browser"),
        ({"hosts": ["a.test"], "pasword": SECRET}, "'pasword'"),
    ],
)
def test_what_cannot_be_used_is_said_without_the_secret(table: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as raised:
        rules(table, proxies={"p": {"url": "http://p.test", "country": "FR"}})
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("url", ["ftp://p.test", f"nonsense:{SECRET}@x", f"ftp://u:{SECRET}@p.test", "http://p.test:0"])
def test_a_proxy_that_cannot_be_used_is_said_without_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match=r"proxies\.p\.url") as raised:
        rules(proxies={"p": url})
    assert SECRET not in str(raised.value)


def test_secrets_are_not_shown() -> None:
    found = rules({"hosts": ["a.test"], "bearer": SECRET, "proxy": "p"}, proxies={"p": f"http://u:{SECRET}@p.test"})
    assert SECRET not in repr(found.of("https://a.test/"))
    assert SECRET not in repr(vars(found))


def test_the_file_is_read_and_open_ones_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "access.toml"
    file.write_text(f'[[rule]]\nhosts = ["a.test"]\nbearer = "{SECRET}"\n')
    file.chmod(0o600)
    with caplog.at_level(logging.WARNING):
        assert read_access(str(file), {}).of("https://a.test/").signed_in
        assert not caplog.text
        file.chmod(0o644)
        read_access(str(file), {})
    assert "chmod 600" in caplog.text
    assert read_access("", {}).of("https://a.test/") is PLAIN


@pytest.mark.parametrize(
    "text", [f'[[rule]]\nbearer = "{SECRET}', f'token = "{SECRET}"', f'[rule]\nbearer = "{SECRET}"', None]
)
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "access.toml"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match="access file") as raised:
        read_access(str(file), {})
    assert SECRET not in str(raised.value)


def test_a_browser_that_nobody_knows_is_said_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    for profile in ("chrome", "firefox", "safari", "edge", "chrome131"):
        file.write_text(f'[[rule]]\nhosts = ["a.test"]\nimpersonate = "{profile}"\n')
        assert read_access(str(file), {}).profiles == {profile}
    file.write_text('[[rule]]\nhosts = ["a.test"]\nimpersonate = "mosaic"\n')
    with pytest.raises(SettingsError, match="mosaic"):
        read_access(str(file), {})
