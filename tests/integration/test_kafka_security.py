"""A broker that asks for a name and a password, and gives not every name every right."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from devstack.process import free_port
from tests.servers import KafkaServer
from trawl.adapters.kafka import RecordProducer, Topics, open_codec, standing
from trawl.adapters.kafka.connection import client_options
from trawl.errors import KafkaError, KafkaRefusedError
from trawl.pipeline import TOPICS
from trawl.records import Seed
from trawl.settings import KafkaSettings


class GuardedKafka(KafkaServer):
    """Clients say who they are (SASL/PLAIN); `owner` may do everything, `guest` nothing."""

    name = "guarded-kafka"

    def _properties(self) -> str:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        own = 'username="owner" password="right"'
        names = 'user_owner="right" user_guest="right"'
        changed = {
            "listeners": f"SASL_PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"SASL_PLAINTEXT://{self.bootstrap}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{login} {own} {names};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:owner;User:ANONYMOUS",
        }
        kept = [line for line in super()._properties().splitlines() if line.partition("=")[0] not in changed]
        return "\n".join([*kept, *(f"{name}={value}" for name, value in changed.items()), ""])


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with GuardedKafka(tmp_path_factory.mktemp("guarded"), free_port(), free_port()) as server:
        yield server


def as_user(server: KafkaServer, name: str, password: str = "right") -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=(server.bootstrap,),
        security_protocol="SASL_PLAINTEXT",
        username=name,
        password=password,
        partitions=2,
        request_seconds_max=5.0,
    )


async def told(settings: KafkaSettings, *, sends: bool = True) -> Mapping[str, KafkaError]:
    """What each part of the adapter raises."""
    found: dict[str, KafkaError] = {}
    topics, codec = Topics(settings), await open_codec(settings, blobs=None)
    producer = RecordProducer(settings, codec)

    async def send() -> None:
        await producer.open()
        if sends:
            await producer.send([Seed(url="http://a.test/")])

    parts: dict[str, Any] = {
        "create": topics.create,
        "send": send,
        "standing": lambda: standing(settings, seconds=0),
    }
    for name, act in parts.items():
        try:
            await act()
        except KafkaError as error:
            found[name] = error
    await topics.close()
    await producer.close()
    return found


async def test_the_right_name_and_password_are_let_in(guarded: GuardedKafka) -> None:
    settings = as_user(guarded, "owner")
    assert await told(settings) == {}
    topics = Topics(settings)
    assert await topics.differences() == []
    await topics.close()
    assert sum((await standing(settings, seconds=0)).records.values()) == 1
    assert len(TOPICS) == len((await standing(settings, seconds=0)).records)


@pytest.mark.parametrize(("name", "password"), [("owner", "wrong"), ("nobody", "right")])
async def test_a_wrong_name_or_password_is_refused_with_the_settings_to_look_at(
    guarded: GuardedKafka, name: str, password: str
) -> None:
    found = await told(as_user(guarded, name, password))
    assert set(found) == {"create", "send", "standing"}
    for error in found.values():
        assert isinstance(error, KafkaRefusedError), repr(error)
        assert "kafka.password" in str(error)
        assert "wrong" not in str(error)


async def test_a_name_without_rights_is_refused_and_not_told_to_make_topics(guarded: GuardedKafka) -> None:
    await told(as_user(guarded, "owner"))  # they are there
    found = await told(as_user(guarded, "guest"))
    assert set(found) == {"create", "send", "standing"}
    assert isinstance(found["send"], KafkaRefusedError), repr(found["send"])
    assert "rights of that name" in str(found["send"])


async def test_a_client_that_speaks_plainly_to_a_guarded_broker_is_told(guarded: GuardedKafka) -> None:
    plain = replace(as_user(guarded, "owner"), security_protocol="PLAINTEXT")
    found = await told(plain, sends=False)
    assert set(found) == {"create", "send", "standing"}
    assert all("kafka." in str(error) for error in found.values())


def test_the_options_of_connection_are_those_of_the_settings() -> None:
    options = client_options(KafkaSettings(security_protocol="SASL_SSL", username="u", password="p"))
    assert (options["sasl_plain_username"], options["sasl_plain_password"]) == ("u", "p")
    assert options["ssl_context"].check_hostname
    assert "ssl_context" not in client_options(KafkaSettings(security_protocol="SASL_PLAINTEXT"))
