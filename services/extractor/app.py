"""The extractor's service: pages parsed in worker processes, as many as there are cores."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from services.common.run import Context, Service
from services.common.stores import redis
from services.common.worker import Message, Work
from services.extractor.scope import InScope
from trawl.adapters.processes import ProcessPool
from trawl.adapters.redis import RedisFrontierStore
from trawl.extractor.stage import ExtractorStage
from trawl.extractor.work import extract_page
from trawl.kinds import Stage
from trawl.pipeline import HOST_SHARDS
from trawl.ports import BlobStore
from trawl.records import ExtractedDocument, Payload, Record

TOPICS = ("trawl.fetched",)


class Extracting:
    """Extracts each page; links out of scope stay here, and a document names its raw body instead of carrying it."""

    def __init__(self, stage: ExtractorStage, in_scope: InScope, blobs: BlobStore) -> None:
        self._stage = stage
        self._in_scope = in_scope
        self._blobs = blobs

    async def step(self, records: Sequence[Record]) -> list[Sequence[Record]]:
        """The results of one page."""
        return [await self._one(record) for record in records]

    async def _one(self, record: Record) -> Sequence[Record]:
        results = await self._in_scope.keep(await self._stage.step(record))  # type: ignore[arg-type]  # the topic's record
        return [await self._by_reference(result) for result in results]

    async def _by_reference(self, record: Record) -> Record:
        if not isinstance(record, ExtractedDocument) or not record.html.inline:
            return record
        html = record.html
        ref = await self._blobs.put(html.inline)
        return replace(record, html=Payload(ref=ref, encoding=html.encoding, size_bytes=html.size_bytes))


def _alone(message: Message) -> tuple[str, int, int]:
    return message.topic, message.partition, message.offset


async def build(context: Context) -> Service:
    """Wire the extractor to its processes, and to Redis for what crawls allow."""
    settings = context.settings
    client = await redis(context)
    workers = settings.embedded.extract_workers or max(os.cpu_count() or 1, 1)
    pool = ProcessPool(partial(extract_page, settings=settings.extract), workers, settings.extract.seconds_max)
    context.exit.push_async_callback(pool.close)
    await pool.start()
    agent = settings.fetch.user_agent
    require = settings.compliance.require
    stage = ExtractorStage(settings.extract, context.clock, agent=agent, require=require, run=pool, blobs=context.blobs)
    in_scope = InScope(RedisFrontierStore(client, shards=HOST_SHARDS), context.clock, settings)
    extracting = Extracting(stage, in_scope, context.blobs)
    work = Work(
        stage=Stage.EXTRACTOR,
        topics=TOPICS,
        step=extracting.step,
        lane_of=_alone,
        in_flight_max=min(4 * workers, settings.service.in_flight_max),
    )
    return Service(work=work, loops=(in_scope.run,))
