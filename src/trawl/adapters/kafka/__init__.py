"""Records over Kafka (extra `kafka`): codec, producer, topics."""

from trawl.adapters.kafka.admin import Topics
from trawl.adapters.kafka.codec import RecordCodec, open_codec
from trawl.adapters.kafka.producer import RecordProducer

__all__ = ["RecordCodec", "RecordProducer", "Topics", "open_codec"]
