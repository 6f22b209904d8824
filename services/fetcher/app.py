"""The fetcher's service: hundreds of fetches under way, each on its own; a slow host holds no other back."""

import os
from collections.abc import Sequence

from services.common.run import Context, Service
from services.common.stores import redis
from services.common.worker import Message, Work
from trawl.adapters.access_file import read_access
from trawl.adapters.botauth import open_signer
from trawl.adapters.http import CurlHttpClient, SystemResolver
from trawl.adapters.redis import RedisFetchMarkers, RedisPolitenessStore, RedisRobotsStore
from trawl.fetcher.stage import FetcherStage
from trawl.kinds import Stage
from trawl.ports import FetchMarkers
from trawl.records import FetchedPage, FetchOutcome, FetchTask, Record

TOPICS = ("trawl.fetch-tasks",)


class Fetching:
    """Fetches each task once: one that is delivered again after its results were acknowledged is left out."""

    def __init__(self, stage: FetcherStage, markers: FetchMarkers) -> None:
        self._stage = stage
        self._markers = markers
        self._brought: set[int] = set()

    async def step(self, records: Sequence[Record]) -> list[Sequence[Record]]:
        """The results of one task."""
        return [await self._one(record) for record in records]

    async def _one(self, record: Record) -> Sequence[Record]:
        if not isinstance(record, FetchTask):
            raise TypeError(f"the fetcher takes no {type(record).__name__}")
        if await self._markers.done(_try_of(record)):
            return ()
        results = await self._stage.step(record)
        if any(isinstance(result, FetchedPage) or _is_final(result) for result in results):
            self._brought.add(_try_of(record))
        return results

    async def done(self, records: Sequence[Record]) -> None:
        """Remember tasks whose results are with Kafka."""
        for record in records:
            if isinstance(record, FetchTask) and _try_of(record) in self._brought:
                await self._markers.mark(_try_of(record))
                self._brought.discard(_try_of(record))


def _is_final(record: Record) -> bool:
    return isinstance(record, FetchOutcome) and record.terminal


def _try_of(task: FetchTask) -> int:
    """A retry of a visit has the fetch id of the try before."""
    return (task.fetch_id + task.attempt * 0x9E3779B97F4A7C15) & 0x7FFF_FFFF_FFFF_FFFF


def _alone(message: Message) -> tuple[str, int, int]:
    return message.topic, message.partition, message.offset


async def build(context: Context) -> Service:
    """Wire the fetcher to HTTP and Redis."""
    settings = context.settings
    client = await redis(context)
    http, resolver = CurlHttpClient(settings.fetch), SystemResolver(settings.fetch)
    context.exit.push_async_callback(http.close)
    context.exit.push_async_callback(resolver.close)
    politeness, robots = RedisPolitenessStore(client, settings.redis), RedisRobotsStore(client, settings.robots)
    access, signer = read_access(settings.fetch.access_file, os.environ), open_signer(settings.fetch)
    stage = FetcherStage(http, resolver, politeness, robots, context.clock, settings, access=access, signer=signer)
    fetching = Fetching(stage, RedisFetchMarkers(client, settings.redis))
    work = Work(
        stage=Stage.FETCHER,
        topics=TOPICS,
        step=fetching.step,
        done=fetching.done,
        lane_of=_alone,
        in_flight_max=settings.service.in_flight_max,
    )
    return Service(work=work)
