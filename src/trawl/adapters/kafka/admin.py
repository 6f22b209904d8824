"""The topics of the topology at a broker: made on purpose, and checked."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from trawl.adapters.kafka.connection import client_options, named_errors, start
from trawl.errors import TopicError
from trawl.pipeline import PARTITIONS, TOPICS, Topic
from trawl.settings import KafkaSettings

_HOUR_MS: Final = 3_600_000
_EXISTS: Final = 36
"""The code by which a broker says that a topic is there already: someone else made it meanwhile."""
_SHOWN_MAX: Final = 5
_WAIT_SECONDS: Final = 0.05


class Topics:
    """Makes missing topics and names every difference from the topology; deletes and changes nothing."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: AIOKafkaAdminClient | None = None

    async def close(self) -> None:
        """Disconnect."""
        if self._admin is not None:
            admin, self._admin = self._admin, None
            await admin.close()

    async def create(self) -> list[str]:
        """Make the topics that are missing; their names. Raises KafkaError."""
        with named_errors(self._settings, "making topics"):
            admin = await self._connected()
            known = set(await admin.list_topics())
            missing = [topic for topic in TOPICS if topic.name not in known]
            if not missing:
                return []
            answer = await admin.create_topics([self._new(topic) for topic in missing])
            made = [error[0] for error in answer.topic_errors if error[1] == 0]
            for error in answer.topic_errors:
                if error[1] not in {0, _EXISTS}:
                    raise TopicError(f"the topic {error[0]} cannot be made: {error[2]}")
            await self._wait_for(admin, {topic.name for topic in missing})
        return made

    async def differences(self) -> list[str]:
        """Every difference from the topology, in words; none if all is as it should be. Raises KafkaError."""
        with named_errors(self._settings, "looking at topics"):
            admin = await self._connected()
            known = set(await admin.list_topics())
            there = [topic.name for topic in TOPICS if topic.name in known]
            counts = {found["topic"]: len(found["partitions"]) for found in await admin.describe_topics(there)}
            settings = await self._told(admin, there)
        found: list[str] = []
        for topic in TOPICS:
            if topic.name not in known:
                found.append(f"{topic.name} is missing")
                continue
            wanted = self.partitions(topic)
            if counts[topic.name] != wanted:
                found.append(f"{topic.name} has {counts[topic.name]} partitions, not {wanted}")
            found += [
                f"{topic.name} has {name}={settings[topic.name].get(name)}, not {value}"
                for name, value in self.settings(topic).items()
                if settings[topic.name].get(name) != value
            ]
        return found

    async def require(self) -> None:
        """Raise TopicError if a topic is missing or has another number of partitions."""
        wrong = [text for text in await self.differences() if text.endswith("missing") or "partitions" in text]
        if wrong:
            more = f" and {len(wrong) - _SHOWN_MAX} more" if len(wrong) > _SHOWN_MAX else ""
            told = "; ".join(wrong[:_SHOWN_MAX])
            raise TopicError(f"{told}{more}: make topics with `trawl topics`, or set kafka.partitions as they are")

    def partitions(self, topic: Topic) -> int:
        """How many partitions a topic gets."""
        return self._settings.partitions if topic.partitions == PARTITIONS else topic.partitions

    def settings(self, topic: Topic) -> dict[str, str]:
        """The settings of a topic, as a broker names them."""
        return {
            "cleanup.policy": "compact" if topic.compacted else "delete",
            "retention.ms": str(topic.retention_hours * _HOUR_MS) if topic.retention_hours else "-1",
            "compression.type": "producer",
            "max.message.bytes": str(self._settings.record_bytes_max),
            "min.insync.replicas": str(max(1, self._settings.replication_factor - 1)),
        }

    def _new(self, topic: Topic) -> NewTopic:
        return NewTopic(
            name=topic.name,
            num_partitions=self.partitions(topic),
            replication_factor=self._settings.replication_factor,
            topic_configs=self.settings(topic),
        )

    async def _wait_for(self, admin: AIOKafkaAdminClient, names: set[str]) -> None:
        """Wait until the broker that answers knows topics that were just made; it learns of them a moment later."""
        async with asyncio.timeout(self._settings.request_seconds_max):
            while not names <= set(await admin.list_topics()):  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(_WAIT_SECONDS)

    @staticmethod
    async def _told(admin: AIOKafkaAdminClient, names: list[str]) -> Mapping[str, Mapping[str, Any]]:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        found: dict[str, dict[str, Any]] = {name: {} for name in names}
        for answer in await admin.describe_configs(resources):
            for resource in answer.resources:
                found[resource[3]] = {entry[0]: entry[1] for entry in resource[4]}
        return found

    async def _connected(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            admin = AIOKafkaAdminClient(**client_options(self._settings))
            try:
                await start(admin, self._settings)
            except BaseException:
                await admin.close()
                raise
            self._admin = admin
        return self._admin
