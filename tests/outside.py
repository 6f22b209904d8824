"""What somebody has who stands outside the services: a producer, and a look into their stores."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from tests.integration.kafka import sending
from trawl.adapters.kafka import RecordCodec, RecordProducer
from trawl.adapters.opensearch import OpenSearchPageStore, OpenSearchSearchIndex
from trawl.adapters.opensearch import connect as connect_opensearch
from trawl.adapters.redis import RedisFrontierStore
from trawl.adapters.redis import connect as connect_redis
from trawl.ports import BlobStore
from trawl.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """Connections to what a deployment is made of."""

    codec: RecordCodec
    producer: RecordProducer
    frontier: RedisFrontierStore
    pages: OpenSearchPageStore
    index: OpenSearchSearchIndex


@asynccontextmanager
async def outside(settings: Settings, blobs: BlobStore | None = None) -> AsyncIterator[Outside]:
    """Connect to a deployment whose topics are there."""
    async with AsyncExitStack() as stack:
        codec, producer = await stack.enter_async_context(sending(settings.kafka, blobs))
        redis, opensearch = connect_redis(settings.redis), connect_opensearch(settings.opensearch)
        stack.push_async_callback(redis.close)
        stack.push_async_callback(opensearch.close)
        yield Outside(
            codec=codec,
            producer=producer,
            frontier=RedisFrontierStore(redis),
            pages=OpenSearchPageStore(opensearch, settings.opensearch),
            index=OpenSearchSearchIndex(opensearch, settings.opensearch),
        )
