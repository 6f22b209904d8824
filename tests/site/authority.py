"""A certificate authority made at start, and a TLS context for each host name that is asked for."""

import datetime as dt
import ipaddress
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.site.model import Tls

_NAMES_PER_CERTIFICATE = 64
_DAY = dt.timedelta(days=1)
Key = ec.EllipticCurvePrivateKey


class Authority:
    """Signs certificates for any host name under `folder/ca.pem`; one leaf key serves all hosts, which is fast."""

    def __init__(self, folder: Path) -> None:
        self.ca_file = folder / "ca.pem"
        self._folder = folder
        self._key, self._certificate = _root("Trawl test authority")
        self._other_key, self._other_certificate = _root("An authority that nobody trusts")
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())
        self._contexts: dict[tuple[str, Tls], ssl.SSLContext] = {}
        self._shared: dict[str, tuple[str, ...]] = {}
        self.ca_file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def share(self, hosts: Sequence[str]) -> None:
        """Let these hosts share certificates of up to 64 names: a context costs 1.5 ms and 100 kB, of a page's 3 ms."""
        for start in range(0, len(hosts), _NAMES_PER_CERTIFICATE):
            names = tuple(hosts[start : start + _NAMES_PER_CERTIFICATE])
            self._shared.update((name, names) for name in names)

    def context(self, host: str, tls: Tls = "good") -> ssl.SSLContext:
        """The server-side TLS context of a host, made at its first use."""
        names = self._shared.get(host, (host,)) if tls == "good" else (host,)
        if (names[0], tls) not in self._contexts:
            self._contexts[names[0], tls] = self._make_context(
                ("wrong.invalid",) if tls == "wrong-name" else names, tls
            )
        return self._contexts[names[0], tls]

    def pem(self, names: Sequence[str], tls: Tls = "good") -> Path:
        """A file with the key and a new certificate; to be read at once, the next one gets the same name."""
        certificate = self._sign(names, tls)
        pem = self._folder / "leaf.pem"
        pem.write_bytes(_private_pem(self._leaf_key) + certificate.public_bytes(serialization.Encoding.PEM))
        return pem

    def _make_context(self, names: Sequence[str], tls: Tls) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pem(names, tls))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _sign(self, names: Sequence[str], tls: Tls) -> x509.Certificate:
        trusted = tls != "untrusted"
        issuer = self._certificate if trusted else self._other_certificate
        now = dt.datetime.now(dt.UTC)
        until = now - _DAY if tls == "expired" else now + 30 * _DAY
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name(names[0][:64]))
            .issuer_name(issuer.subject)
            .public_key(self._leaf_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * _DAY)
            .not_valid_after(until)
            .add_extension(
                x509.SubjectAlternativeName([one for name in names for one in _alternative_names(name)]), critical=False
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(_issued_by(issuer), critical=False)
        )
        return builder.sign(self._key if trusted else self._other_key, hashes.SHA256())


def _alternative_names(host: str) -> list[x509.GeneralName]:
    if host in {"localhost", "127.0.0.1"}:
        return [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    try:
        return [x509.IPAddress(ipaddress.ip_address(host.strip("[]")))]
    except ValueError:
        return [x509.DNSName(host)]


def _root(name: str) -> tuple[Key, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 60 * _DAY)
        .not_valid_after(now + 365 * _DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_ca_usage(), critical=True)
    )
    return key, builder.sign(key, hashes.SHA256())


def _ca_usage() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )


def _issued_by(issuer: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _private_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
