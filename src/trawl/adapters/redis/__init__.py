"""Hot state in Redis, 7 or newer, or Redis Cluster (extra `redis`): shared by the processes of the services."""

from trawl.adapters.redis.client import RedisClient, Script, connect
from trawl.adapters.redis.fingerprints import RedisFingerprintIndex
from trawl.adapters.redis.frontier import RedisFrontierStore
from trawl.adapters.redis.hydration import RedisHydrationStore
from trawl.adapters.redis.politeness import RedisFetchMarkers, RedisPolitenessStore, RedisRobotsStore
from trawl.adapters.redis.shards import ShardLeases

__all__ = [
    "RedisClient",
    "RedisFetchMarkers",
    "RedisFingerprintIndex",
    "RedisFrontierStore",
    "RedisHydrationStore",
    "RedisPolitenessStore",
    "RedisRobotsStore",
    "Script",
    "ShardLeases",
    "connect",
]
