"""The duplicate gate's service: partitions side by side, the documents of one in order."""

from collections.abc import Sequence
from functools import partial

from services.common.run import Context, Service
from services.common.stores import redis
from services.common.worker import Message, Work
from trawl.adapters.redis import RedisFingerprintIndex
from trawl.dedup.stage import DedupStage
from trawl.kinds import Stage
from trawl.records import Record

TOPICS = ("trawl.documents",)


async def _step(stage: DedupStage, records: Sequence[Record]) -> list[Sequence[Record]]:
    return [await stage.step(record) for record in records]  # type: ignore[arg-type]  # the topic's record


def _by_partition(message: Message) -> int:
    return message.partition


async def build(context: Context) -> Service:
    """Wire the duplicate gate to the fingerprints in Redis."""
    client = await redis(context)
    index = RedisFingerprintIndex(client, context.settings.redis)
    stage = DedupStage(index, context.settings.dedup, context.clock)
    work = Work(
        stage=Stage.DEDUP,
        topics=TOPICS,
        step=partial(_step, stage),
        lane_of=_by_partition,
        batch_max=context.settings.service.batch_max,
        in_flight_max=context.settings.service.in_flight_max,
    )
    return Service(work=work)
