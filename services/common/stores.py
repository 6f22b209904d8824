"""Connections to the servers that hold state, opened for a service and closed with it."""

from services.common.run import Context
from trawl.adapters.opensearch import OpenSearchClient
from trawl.adapters.opensearch import connect as connect_opensearch
from trawl.adapters.redis import RedisClient
from trawl.adapters.redis import connect as connect_redis


async def redis(context: Context) -> RedisClient:
    """A client of Redis, once it answers and keeps what it is told."""
    client = connect_redis(context.settings.redis)
    context.exit.push_async_callback(client.close)
    await context.patience.until_done("Redis", client.check)
    context.watch.add("Redis", client.check)
    return client


async def opensearch(context: Context) -> OpenSearchClient:
    """A client of OpenSearch, once it answers."""
    client = connect_opensearch(context.settings.opensearch)
    context.exit.push_async_callback(client.close)
    await context.patience.until_done("OpenSearch", client.check)
    context.watch.add("OpenSearch", client.check)
    return client
