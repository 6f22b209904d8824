"""What is known of hosts whose text comes with scripts, in plain memory."""

from trawl.ports import HostHydration


class MemoryHydrationStore:
    """What is known by origin."""

    def __init__(self) -> None:
        self.hosts: dict[str, HostHydration] = {}

    async def get(self, origin: str) -> HostHydration | None:
        """What is known of an origin."""
        return self.hosts.get(origin)

    async def put(self, host: HostHydration) -> None:
        """Store or replace it."""
        self.hosts[host.origin] = host
