"""Web Bot Auth: requests signed so that a site can check who asks.

Sources: RFC 9421 (HTTP Message Signatures), draft-meunier-web-bot-auth-architecture, and
draft-meunier-http-message-signatures-directory; the key's name is its JWK thumbprint (RFC 7638, RFC 8037).
"""

import base64
import hashlib
import json
import os
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from http_message_signatures import HTTPMessageSigner, MappingKeyResolver
from http_message_signatures.algorithms import ED25519

from trawl.errors import SettingsError
from trawl.settings import FetchSettings

DIRECTORY_PATH: Final = "/.well-known/http-message-signatures-directory"
DIRECTORY_TYPE: Final = "application/http-message-signatures-directory+json"
_LABEL: Final = "sig1"
_TAG: Final = "web-bot-auth"
_DIRECTORY_TAG: Final = "http-message-signatures-directory"
_NONCE_BYTES: Final = 32


class WebBotAuth:
    """A Signer with one Ed25519 key: every request says who sends it, where to check that, and until when.

    Signed are the authority that is asked and, if there is one, the address of the key directory; so a signature that
    somebody copies serves for the same host only, and not for long.
    """

    def __init__(self, key: Ed25519PrivateKey, *, agent_url: str = "", valid_seconds: int = 60) -> None:
        self._agent = json.dumps(agent_url, ensure_ascii=True) if agent_url else ""  # a string of RFC 9651 is alike
        self._valid = timedelta(seconds=valid_seconds)
        self.key_id = thumbprint(key)
        resolver = MappingKeyResolver(public_keys={}, private_keys={self.key_id: key})
        self._signer = HTTPMessageSigner(signature_algorithm=ED25519, key_resolver=resolver)

    def fields(self, url: str) -> tuple[tuple[str, str], ...]:
        """The header fields for one request to a URL, made when it is sent."""
        agent = {"Signature-Agent": self._agent} if self._agent else {}
        message = SimpleNamespace(method="GET", url=url, headers=agent)
        covered = ("@authority", *(["signature-agent"] if agent else []))
        return self._signed(message, covered, _TAG)

    def directory_fields(self, authority: str, label: str = _LABEL) -> tuple[tuple[str, str], ...]:
        """What the answer with the key directory says, so that nobody else can offer this key as theirs."""
        request = SimpleNamespace(method="GET", url=f"https://{authority}{DIRECTORY_PATH}", headers={})
        message = SimpleNamespace(status_code=200, url=request.url, request=request, headers={})
        return self._signed(message, ('"@authority";req',), _DIRECTORY_TAG, label)

    def _signed(
        self, message: Any, covered: tuple[str, ...], tag: str, label: str = _LABEL
    ) -> tuple[tuple[str, str], ...]:
        now = datetime.now(UTC)
        self._signer.sign(
            message,
            key_id=self.key_id,
            created=now,
            expires=now + self._valid,
            nonce=base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode(),
            label=label,
            tag=tag,
            covered_component_ids=covered,
        )
        return tuple(message.headers.items())


def signer_of(settings: FetchSettings) -> WebBotAuth:
    """The signer that the settings describe; raises SettingsError."""
    url = settings.botauth_agent_url
    if url and (urlsplit(url).scheme != "https" or not url.isascii() or not url.isprintable()):
        raise SettingsError(f"fetch.botauth_agent_url = {url!r} cannot be used; it takes https://HOST")
    key = read_key(Path(settings.botauth_key_file))
    return WebBotAuth(key, agent_url=url, valid_seconds=max(1, round(settings.botauth_valid_seconds)))


def make_key(path: Path) -> Ed25519PrivateKey:
    """A new key in a new file that only its owner may read; raises SettingsError if there is one already."""
    key = Ed25519PrivateKey.generate()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SettingsError(f"{path} is there already; a key that sites know is not written over") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key


def read_key(path: Path) -> Ed25519PrivateKey:
    """The key in a PEM file (PKCS 8); raises SettingsError."""
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise SettingsError(f"the key {path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it has a password
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise SettingsError(f"{path} holds no Ed25519 key without a password; make one: trawl botauth keygen FILE")
    return key


def directory(keys: list[Ed25519PrivateKey]) -> dict[str, Any]:
    """The key directory that a site looks these keys up in: a JWK Set (RFC 7517)."""
    return {"keys": [{**_jwk(key), "kid": thumbprint(key), "use": "sig"} for key in keys], "purpose": "crawl"}


def thumbprint(key: Ed25519PrivateKey) -> str:
    """The SHA-256 thumbprint of the public key (RFC 7638, section 3), in base64url."""
    required = json.dumps(_jwk(key), sort_keys=True, separators=(",", ":"))
    return _base64url(hashlib.sha256(required.encode()).digest())


def _jwk(key: Ed25519PrivateKey) -> dict[str, str]:
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return {"kty": "OKP", "crv": "Ed25519", "x": _base64url(public)}


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
