"""Records over Kafka (extra `kafka`): codec, producer, topics, lag, dead letters."""

from trawl.adapters.kafka.admin import Topics
from trawl.adapters.kafka.codec import RecordCodec, open_codec
from trawl.adapters.kafka.lag import GroupLag, Standing, TopicLag, standing
from trawl.adapters.kafka.letters import Letter, Letters, Listing, Replayed
from trawl.adapters.kafka.producer import RecordProducer

__all__ = [
    "GroupLag",
    "Letter",
    "Letters",
    "Listing",
    "RecordCodec",
    "RecordProducer",
    "Replayed",
    "Standing",
    "TopicLag",
    "Topics",
    "open_codec",
    "standing",
]
