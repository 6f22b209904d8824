"""Signed requests, checked by a server with an implementation of its own (RFC 9421)."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import http_sf
import pytest
from click.testing import CliRunner
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from tests import relay
from tests.fetching import QUICK, Rig, robots_task, with_fetch
from tests.site import FakeWeb, Reply, Request, Site
from tests.site.responders import redirects, robots
from trawl.adapters.botauth import open_signer
from trawl.adapters.botauth.signing import WebBotAuth, directory, make_key, read_key, thumbprint
from trawl.cli.main import cli
from trawl.errors import SettingsError
from trawl.settings import FetchSettings

AGENT = "https://bot.example"
RFC_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----
"""
"""test-key-ed25519 of RFC 9421, appendix B.1.4."""


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verify(
    fields: Mapping[str, str],
    components: Mapping[str, str],
    keys: Mapping[str, bytes],
    *,
    label: str,
    tag: str | None,
    now: float,
) -> str:
    """The name of the key with which a message was signed; raises InvalidSignature or AssertionError.

    `components` are the derived components; what else is covered is looked up in the fields.
    """
    inputs: Any = http_sf.parse(fields["signature-input"].encode(), tltype="dictionary")
    signatures: Any = http_sf.parse(fields["signature"].encode(), tltype="dictionary")
    covered, parameters = inputs[label]
    if tag is not None:
        assert parameters["tag"] == tag
        assert parameters["created"] <= now < parameters["expires"]
        assert parameters["alg"] == "ed25519"
        assert len(base64.b64decode(parameters["nonce"])) >= 32
    lines = []
    for name, flags in covered:
        written = f'"{name}"' + "".join(f";{flag}" for flag in flags)
        lines.append(f"{written}: {components[name] if name.startswith('@') else fields[name]}")
    said = fields["signature-input"].partition(f"{label}=")[2]
    lines.append(f'"@signature-params": {said.partition(", sig")[0]}')
    key_id = str(parameters["keyid"])
    Ed25519PublicKey.from_public_bytes(keys[key_id]).verify(signatures[label][0], "\n".join(lines).encode())
    return key_id


def test_the_checker_agrees_with_the_rfcs_own_example() -> None:
    fields = {
        "date": "Tue, 20 Apr 2021 02:07:55 GMT",
        "content-type": "application/json",
        "content-length": "18",
        "signature-input": 'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length")'
        ';created=1618884473;keyid="test-key-ed25519"',
        "signature": "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu"
        "4A0w6vuQv5lIp5WPpBKRCw==:",
    }
    parts = {"@method": "POST", "@path": "/foo", "@authority": "example.com"}
    keys = {"test-key-ed25519": decoded("JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs")}
    assert verify(fields, parts, keys, label="sig-b26", tag=None, now=0) == "test-key-ed25519"
    with pytest.raises(InvalidSignature):
        verify(fields, {**parts, "@path": "/bar"}, keys, label="sig-b26", tag=None, now=0)


def test_a_key_is_named_by_its_thumbprint(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(RFC_KEY)
    key = read_key(tmp_path / "key.pem")
    assert thumbprint(key) == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U"  # as in the draft's examples


class Checker:
    """What a site does with signed requests: it looks the key up in the directory, and checks."""

    def __init__(self, published: dict[str, Any]) -> None:
        self.keys = {key["kid"]: decoded(key["x"]) for key in published["keys"]}
        self.nonces: set[str] = set()

    def __call__(self, page: Reply) -> Callable[[Request], Reply]:
        def reply(request: Request) -> Reply:
            try:
                self.check(request)
            except (InvalidSignature, AssertionError, KeyError) as error:
                return Reply(status=403, body=repr(error).encode())
            return page

        return reply

    def check(self, request: Request) -> None:
        assert request.headers["signature-agent"] == f'"{AGENT}"'
        parts = {"@authority": request.headers["host"]}
        verify(request.headers, parts, self.keys, label="sig1", tag="web-bot-auth", now=time.time())
        nonce = request.headers["signature-input"].partition('nonce="')[2].partition('"')[0]
        assert nonce not in self.nonces
        self.nonces.add(nonce)


async def test_every_hop_is_signed_for_its_host(fake_web: FakeWeb, tmp_path: Path) -> None:
    key = make_key(tmp_path / "key.pem")
    checked = Checker(directory([key]))
    rules = robots.rules("User-agent: *\nDisallow:\n")
    pages = {
        "/robots.txt": checked(rules),
        "/a": checked(redirects.redirect("/b")),
        "/b": checked(redirects.redirect("/c?x=1")),
        "/c?x=1": checked(Reply(body=b"<p>read")),
    }
    fake_web.add(Site("a.test", pages), Site("b.test", pages))
    settings = with_fetch(QUICK, botauth_key_file=str(tmp_path / "key.pem"), botauth_agent_url=AGENT)
    async with Rig(fake_web, settings, signer=open_signer(settings.fetch)) as rig:
        for host in ("a.test", "b.test"):
            (outcome,) = await rig.stage.step(robots_task(rig.url(host)))
            assert getattr(outcome, "status", 0) == 200
            assert (await rig.page(rig.url(host, "/a"))).status == 200
    assert len(checked.nonces) == 8


async def test_a_signature_for_another_host_a_stale_one_and_none_at_all_are_refused(fake_web: FakeWeb) -> None:
    key = Ed25519PrivateKey.generate()
    checked = Checker(directory([key]))
    fake_web.add(Site("a.test", {"/": checked(Reply(body=b"read"))}))

    class Elsewhere(WebBotAuth):
        def fields(self, url: str) -> tuple[tuple[str, str], ...]:
            return super().fields(url.replace("a.test", "b.test"))

    strangers = WebBotAuth(Ed25519PrivateKey.generate(), agent_url=AGENT)
    for signer in (None, Elsewhere(key, agent_url=AGENT), WebBotAuth(key, agent_url=AGENT, valid_seconds=0), strangers):
        async with Rig(fake_web, signer=signer) as rig:
            assert (await rig.outcome(rig.url("a.test"))).status == 403
    async with Rig(fake_web, signer=WebBotAuth(key, agent_url=AGENT)) as rig:
        assert (await rig.page(rig.url("a.test"))).status == 200


def test_the_commands_make_a_key_and_its_directory(tmp_path: Path) -> None:
    paths = [tmp_path / "one.pem", tmp_path / "two.pem"]
    for path in paths:
        made = CliRunner().invoke(cli, ["botauth", "keygen", str(path)], standalone_mode=False)
        assert made.return_value == 0, made.output
        assert path.stat().st_mode & 0o777 == 0o600
        assert "PRIVATE" not in made.output
    again = CliRunner().invoke(cli, ["botauth", "keygen", str(paths[0])], standalone_mode=False)
    assert isinstance(again.exception, SettingsError)
    arguments = ["botauth", "directory", *map(str, paths), "--authority", "bot.example"]
    shown = CliRunner().invoke(cli, arguments, standalone_mode=False).output
    head, _, body = shown.partition("\n\n")
    published = json.loads(body)
    assert all(set(key) == {"kty", "crv", "x", "kid", "use"} for key in published["keys"])
    keys = {key["kid"]: decoded(key["x"]) for key in published["keys"]}
    lines = [line.partition(": ")[::2] for line in head.splitlines()]
    assert lines[0] == ("Content-Type", "application/http-message-signatures-directory+json")
    fields = {
        name: ", ".join(value for other, value in lines if other.lower() == name)
        for name in ("signature-input", "signature")
    }
    found = {
        verify(
            fields,
            {"@authority": "bot.example"},
            keys,
            label=label,
            tag="http-message-signatures-directory",
            now=time.time() + 29 * 86_400,
        )
        for label in ("sig1", "sig2")
    }
    assert found == set(keys)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (FetchSettings(botauth_key_file="/nowhere/key.pem"), "cannot be read"),
        (FetchSettings(botauth_key_file=relay.__file__), "no Ed25519 key"),
        (FetchSettings(botauth_key_file=__file__, botauth_agent_url="http://bot.example"), "https://HOST"),
    ],
)
def test_what_cannot_sign_is_said_at_the_start(settings: FetchSettings, told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        open_signer(settings)
    assert open_signer(FetchSettings()) is None
