"""The bytes of bodies that are on their way through one process, held to a limit."""

import asyncio

from trawl.records import ExtractedDocument, FetchedPage, Record, UniqueDocument


class BodyBytes:
    """Counts the bodies between the stages; `room` waits while they are over the limit."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._roomy = asyncio.Event()
        self._roomy.set()
        self.held = 0

    def add(self, record: Record) -> None:
        """The record begins to wait."""
        self.held += body_bytes(record)
        if self.held > self._bytes_max:
            self._roomy.clear()

    def remove(self, record: Record) -> None:
        """The record was worked on, and what came of it waits already."""
        self.held -= body_bytes(record)
        if self.held <= self._bytes_max:
            self._roomy.set()

    async def room(self) -> None:
        """Wait until less than the limit is held."""
        await self._roomy.wait()


def body_bytes(record: Record) -> int:
    """The raw bodies that a record carries, in bytes."""
    match record:
        case FetchedPage():
            static = record.static_render
            return len(record.body.inline) + (len(static.body.inline) if static is not None else 0)
        case ExtractedDocument():
            return len(record.html.inline)
        case UniqueDocument():
            return len(record.document.html.inline)
        case _:
            return 0
