"""What every client of Kafka is told, and what its errors mean."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiokafka import errors as broker
from aiokafka.conn import collect_hosts, create_conn

from trawl.errors import (
    KafkaError,
    KafkaRefusedError,
    KafkaUnavailableError,
    RecordTooLargeError,
    SettingsError,
    TopicError,
)
from trawl.settings import KafkaSettings

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_REFUSALS: Final = (
    broker.AuthenticationFailedError,
    broker.SaslAuthenticationFailed,
    broker.TopicAuthorizationFailedError,
    broker.GroupAuthorizationFailedError,
    broker.ClusterAuthorizationFailedError,
    broker.UnsupportedSaslMechanismError,
    broker.IllegalSaslStateError,
)


def client_options(settings: KafkaSettings) -> dict[str, Any]:
    """The options of connection and security of any aiokafka client; raises SettingsError."""
    protocol = settings.security_protocol
    if protocol not in PROTOCOLS:
        raise SettingsError(
            f"kafka.security_protocol = {protocol!r} cannot be used; it is one of {', '.join(PROTOCOLS)}"
        )
    for server in settings.bootstrap_servers:
        _, colon, port = server.rpartition(":")
        if colon and not (port.isdecimal() and 0 < int(port) < 65536) and not server.endswith("]"):
            raise SettingsError(f"kafka.bootstrap_servers: {server!r} is no HOST:PORT")
    options: dict[str, Any] = {
        "bootstrap_servers": list(settings.bootstrap_servers),
        "security_protocol": protocol,
        "request_timeout_ms": int(1000 * settings.request_seconds_max),
    }
    if protocol.endswith("SSL"):
        options["ssl_context"] = tls_context(settings)
    if protocol.startswith("SASL"):
        if settings.sasl_mechanism not in MECHANISMS:
            raise SettingsError(
                f"kafka.sasl_mechanism = {settings.sasl_mechanism!r} cannot be used; it is one of"
                f" {', '.join(MECHANISMS)}"
            )
        options["sasl_mechanism"] = settings.sasl_mechanism
        options["sasl_plain_username"] = settings.username
        options["sasl_plain_password"] = settings.password
    return options


def tls_context(settings: KafkaSettings) -> ssl.SSLContext:
    """What a broker's certificate is checked against; raises SettingsError."""
    try:
        return ssl.create_default_context(cafile=settings.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"kafka.ca_file = {settings.ca_file!r} cannot be used: {error}") from error


async def start(client: Any, settings: KafkaSettings) -> None:
    """Start a client. It tells of every failure that it could not bootstrap; this raises why, a refusal first."""
    try:
        await client.start()
    except broker.KafkaConnectionError as error:
        raise await _why(settings) or error from error


async def _why(settings: KafkaSettings) -> BaseException | None:
    """What a connection to the brokers raises; None if one of them lets us in by now."""
    options = client_options(settings)
    servers = collect_hosts(options.pop("bootstrap_servers"))
    found: list[BaseException] = []
    for host, port, _ in servers:
        try:
            (await create_conn(host, port, **options)).close()
        except (broker.KafkaError, OSError, TimeoutError) as error:
            found.append(error)
        else:
            return None
    return min(found, key=lambda error: not isinstance(error, _REFUSALS), default=None)


@contextmanager
def named_errors(settings: KafkaSettings, what: str) -> Iterator[None]:
    """Raise what a client of Kafka raises as the KafkaError that says what to do."""
    servers = ", ".join(settings.bootstrap_servers)
    try:
        yield
    except KafkaError:
        raise
    except _REFUSALS as error:
        raise KafkaRefusedError(
            f"{what}: Kafka at {servers} refuses: {error}; look at kafka.security_protocol, kafka.sasl_mechanism,"
            f" kafka.username and kafka.password, and at the rights of that name"
        ) from error
    except broker.UnknownTopicOrPartitionError as error:
        raise TopicError(f"{what}: a topic is missing at {servers}; make the topics with `trawl topics`") from error
    except (broker.MessageSizeTooLargeError, broker.RecordListTooLargeError) as error:
        raise RecordTooLargeError(
            f"{what}: a record is larger than Kafka at {servers} takes ({error}); raise max.message.bytes of the topic"
            f" to kafka.record_bytes_max, or lower kafka.inline_bytes_max"
        ) from error
    except (broker.KafkaError, OSError, TimeoutError) as error:
        raise KafkaUnavailableError(
            f"{what}: Kafka does not answer at {servers}: {error or type(error).__name__}; is it running, and are"
            f" kafka.bootstrap_servers right?"
        ) from error
