"""What could not be handled."""

from dataclasses import dataclass

from trawl.kinds import Stage
from trawl.records.parts import Millis, Payload


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A record that a stage could not handle, kept whole for inspection and replay."""

    stage: Stage
    """The stage that gave up."""
    reason: str
    """The typed reason."""
    topic: str
    """The topic that the record came from."""
    partition: int = -1
    """Its partition; -1 outside Kafka."""
    offset: int = -1
    """Its offset; -1 outside Kafka."""
    key: bytes = b""
    """Its key."""
    payload: Payload = Payload()
    """Its bytes."""
    error: str = ""
    """The exception's text and traceback, bounded."""
    at_ms: Millis = 0
    """When it happened."""
