"""What is known of hosts whose text comes with scripts, in Redis."""

import msgspec

from trawl.adapters.redis.client import RedisClient
from trawl.errors import StoreCorruptError
from trawl.ports import HostHydration
from trawl.settings import BrowserSettings


class RedisHydrationStore:
    """What is known by origin; forgotten when no page of it has ended for as long as a decision holds."""

    def __init__(self, client: RedisClient, settings: BrowserSettings) -> None:
        self._client = client
        self._keep_ms = max(1, int(1000 * settings.decided_seconds))

    async def get(self, origin: str) -> HostHydration | None:
        """What is known of an origin."""
        data = await self._client.ask("GET", self._client.key(f"h:{origin}", "hydration"))
        if data is None:
            return None
        try:
            return msgspec.msgpack.decode(data, type=HostHydration)
        except msgspec.MsgspecError as error:
            raise StoreCorruptError(
                f"what Redis holds of the rendering of {origin} is damaged: {error}; delete its key"
            ) from error

    async def put(self, host: HostHydration) -> None:
        """Store or replace it."""
        key = self._client.key(f"h:{host.origin}", "hydration")
        await self._client.ask("SET", key, msgspec.msgpack.encode(host), "PX", self._keep_ms)
