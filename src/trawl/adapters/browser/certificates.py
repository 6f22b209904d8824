"""The operator's own certificate authorities, as Chromium can be told of them."""

import base64
import hashlib
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from trawl.errors import SettingsError


def pins_of(ca_file: str) -> list[str]:
    """Arguments by which Chromium trusts chains that hold one of the file's certificates; raises SettingsError.

    Chromium reads no file of authorities; it takes hashes of public keys (SPKI) whose issuer it need not know.
    """
    if not ca_file:
        return []
    try:
        found = x509.load_pem_x509_certificates(Path(ca_file).read_bytes())
    except (OSError, ValueError) as error:
        raise SettingsError(f"fetch.ca_file = {ca_file!r} cannot be used by the browser: {error}") from None
    keys = (one.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for one in found)
    hashes = (base64.b64encode(hashlib.sha256(key).digest()).decode("ascii") for key in keys)
    return [f"--ignore-certificate-errors-spki-list={','.join(hashes)}"]
