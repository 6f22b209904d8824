"""The indexer's service: documents in batches, embedded and written together."""

from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from services.common.run import Context, Service
from services.common.stores import opensearch, redis
from services.common.worker import Message, Work
from trawl.adapters.embedders import open_embedder
from trawl.adapters.opensearch import OpenSearchPageStore, OpenSearchSearchIndex
from trawl.adapters.redis import RedisFingerprintIndex
from trawl.indexer.stage import IndexerStage
from trawl.kinds import Stage
from trawl.records import Record, UniqueDocument

TOPICS = ("trawl.unique",)


async def _step(stage: IndexerStage, records: Sequence[Record]) -> list[Sequence[Record]]:
    return await stage.step_batch(cast("Sequence[UniqueDocument]", records))


def _all_together(_: Message) -> Any:
    return "batch"


async def build(context: Context) -> Service:
    """Wire the indexer to OpenSearch, the embedder and the fingerprints in Redis."""
    settings = context.settings
    embedder = open_embedder(settings.embed)
    context.exit.push_async_callback(embedder.close)
    client, search = await redis(context), await opensearch(context)
    stage = IndexerStage(
        pages=OpenSearchPageStore(search, settings.opensearch),
        index=OpenSearchSearchIndex(search, settings.opensearch),
        embedder=embedder,
        fingerprints=RedisFingerprintIndex(client, settings.redis),
        settings=settings.index,
        clock=context.clock,
    )
    work = Work(
        stage=Stage.INDEXER,
        topics=TOPICS,
        step=partial(_step, stage),
        lane_of=_all_together,
        batch_max=settings.service.batch_max,
        in_flight_max=settings.service.in_flight_max,
    )
    return Service(work=work)
