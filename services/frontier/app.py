"""The frontier's service: each replica owns the shards of hosts whose partitions it has, and releases their fetches."""

import asyncio
import logging
from collections.abc import Sequence

from services.common.progress import Place
from services.common.run import Context, Service
from services.common.stores import redis
from services.common.worker import Message, Work
from services.frontier.releasing import Releasing
from trawl.adapters.redis import RedisFrontierStore, RedisRobotsStore, ShardLeases
from trawl.errors import SettingsError, StaleEpochError
from trawl.frontier.stage import FrontierStage
from trawl.kinds import Stage
from trawl.pipeline import HOST_SHARDS
from trawl.records import FetchOutcome, Record
from trawl.rules import Rules

_LOG = logging.getLogger(__name__)
TOPICS = ("trawl.seeds", "trawl.discovered", "trawl.outcomes", "trawl.control")
_OWNED_BY = "trawl.discovered"
"""The partitions of this topic say whose shards they are; those of outcomes are always given out alike."""


class Owning:
    """The frontier stage for the shards that this replica owns."""

    def __init__(
        self,
        stage: FrontierStage,
        store: RedisFrontierStore,
        leases: ShardLeases,
        releasing: Releasing,
        context: Context,
    ) -> None:
        self._stage = stage
        self._store = store
        self._leases = leases
        self._releasing = releasing
        self._patience = context.patience
        self._partitions = context.settings.kafka.partitions
        self._owned: frozenset[int] = frozenset()
        self._taken = 0  # how often shards were taken over
        self._taking = asyncio.Lock()

    async def assigned(self, places: frozenset[Place]) -> None:
        """Take over the shards of these partitions, at once: whoever had them before can change nothing any more."""
        mine = {partition for topic, partition in places if topic == _OWNED_BY}
        self._owned = frozenset(shard for shard in range(HOST_SHARDS) if shard % self._partitions in mine)
        await self._take_over()

    async def _take_over(self, after: int | None = None) -> None:
        """Own what is assigned; not if that was done since the given number of times: epochs would fence each other."""
        async with self._taking:
            if after is not None and after != self._taken:
                return
            owned = self._owned
            epochs = await self._patience.until_done("Redis", lambda: self._leases.acquire(owned))
            self._store.own(epochs)
            self._taken += 1
        _LOG.info("%d shards of hosts are owned", len(epochs))

    async def step(self, records: Sequence[Record]) -> list[Sequence[Record]]:
        """The results of each record."""
        return [await self._one(record) for record in records]

    async def _one(self, record: Record) -> Sequence[Record]:
        taken = self._taken
        try:
            results = await self._stage.step(record)
        except StaleEpochError:
            # Redis may have lost the epoch with its memory; if another replica has the shard, the group has said so.
            await self._take_over(taken)
            results = await self._stage.step(record)
        if isinstance(record, FetchOutcome):
            self._releasing.ended(record.fetch_id)
        self._releasing.wake()
        return results


def _by_partition(message: Message) -> int:
    return message.partition


async def build(context: Context) -> Service:
    """Wire the frontier to its state in Redis."""
    settings = context.settings
    if settings.browser.render != "never":
        raise SettingsError(
            f"browser.render = {settings.browser.render!r} is not served by the services, which have no browser yet;"
            " trawl crawl --render has one"
        )
    client = await redis(context)
    store, leases = RedisFrontierStore(client, shards=HOST_SHARDS, forgets_done=True), ShardLeases(client)
    rules = Rules(RedisRobotsStore(client, settings.robots), context.clock, settings.robots, settings.fetch.user_agent)
    stage = FrontierStage(store, rules, context.clock, settings)
    releasing = Releasing(stage, store, context)
    owning = Owning(stage, store, leases, releasing, context)
    work = Work(
        stage=Stage.FRONTIER,
        topics=TOPICS,
        step=owning.step,
        lane_of=_by_partition,
        batch_max=settings.service.batch_max,
        in_flight_max=settings.service.in_flight_max,
    )
    return Service(work=work, on_assigned=owning.assigned, loops=(releasing.run,))
