"""The adapters of every state port; a new adapter joins by one line in each registry.

A registry maps the adapter's name to a function that opens it on a folder. Opening the same folder again, after
`close`, gives the same state if the adapter is in DURABLE. An adapter whose name begins with that of a server keeps its
state there, under a prefix made from the folder.
"""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest
import pytest_asyncio
import xxhash

from tests.s3 import BUCKET, S3Server, s3_running
from trawl.adapters.blobs import FileBlobStore
from trawl.adapters.memory import (
    MemoryBlobStore,
    MemoryFetchMarkers,
    MemoryFingerprintIndex,
    MemoryFrontierStore,
    MemoryHydrationStore,
    MemoryPageStore,
    MemoryPolitenessStore,
    MemoryRobotsStore,
    MemorySearchIndex,
    MemorySpillQueue,
)
from trawl.adapters.opensearch import OpenSearchClient, OpenSearchPageStore, OpenSearchSearchIndex
from trawl.adapters.opensearch import connect as connect_opensearch
from trawl.adapters.opensearch.client import NotThereError
from trawl.adapters.redis import (
    RedisClient,
    RedisFetchMarkers,
    RedisFingerprintIndex,
    RedisFrontierStore,
    RedisHydrationStore,
    RedisPolitenessStore,
    RedisRobotsStore,
)
from trawl.adapters.redis import connect as connect_redis
from trawl.adapters.s3 import S3BlobStore
from trawl.adapters.sqlite import (
    Database,
    SqliteFingerprintIndex,
    SqliteFrontierStore,
    SqliteHydrationStore,
    SqlitePageStore,
    SqlitePolitenessStore,
    SqliteRobotsStore,
    SqliteSearchIndex,
    SqliteSpillQueue,
)
from trawl.adapters.sqlite.database import FILE_NAME
from trawl.ports import (
    BlobStore,
    FetchMarkers,
    FingerprintIndex,
    FrontierStore,
    HydrationStore,
    PageStore,
    PolitenessStore,
    RobotsStore,
    SearchIndex,
    SpillQueue,
)
from trawl.settings import BlobSettings, Settings

T = TypeVar("T")


@dataclass
class Opened(Generic[T]):
    """An adapter with what closes it."""

    store: T
    close: Callable[[], None] = lambda: None
    closing: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """What is closed besides, in the test's own loop."""

    async def aclose(self) -> None:
        """Close all of it."""
        self.close()
        for close in self.closing:
            await close()


Open = Callable[[Path], Opened[T]]


def _memory(make: Callable[[], T]) -> Open[T]:
    return lambda _: Opened(make())


@cache
def _empty_database() -> bytes:
    """A database just made; to copy it takes a tenth of the time that making it takes."""
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder))
        database.close()
        return database.path.read_bytes()


def _sqlite(make: Callable[[Database], T], *, group_seconds: float = 0.0) -> Open[T]:
    def opened(folder: Path) -> Opened[T]:
        if not (folder / FILE_NAME).exists():
            (folder / FILE_NAME).write_bytes(_empty_database())
        database = Database(folder, group_seconds=group_seconds)
        # No test here pulls the plug, and waiting for the disk at each close would take most of the time.
        database.connection.execute("PRAGMA synchronous = OFF")
        return Opened(make(database), database.close)

    return opened


SERVERS: dict[str, str] = {}
"""The URLs of the servers that run, by the beginning of the names of their adapters."""
_FIXTURES = {"redis": "redis_server", "cluster": "redis_cluster", "opensearch": "opensearch_server", "s3": "s3_server"}


def _redis(make: Callable[[RedisClient, Settings], T], *, server: str = "redis") -> Open[T]:
    def opened(folder: Path) -> Opened[T]:
        prefix = f"t{xxhash.xxh3_64_hexdigest(str(folder).encode())}"
        place = replace(Settings().redis, url=SERVERS[server], cluster=server == "cluster", prefix=prefix)
        settings = Settings(redis=place)
        client = connect_redis(settings.redis)
        return Opened(make(client, settings), closing=[client.close])

    return opened


def _opensearch(make: Callable[[OpenSearchClient, Settings], T]) -> Open[T]:
    def opened(folder: Path) -> Opened[T]:
        prefix = f"t{xxhash.xxh3_64_hexdigest(str(folder).encode())}"
        settings = Settings(opensearch=replace(Settings().opensearch, url=SERVERS["opensearch"], prefix=prefix))
        client = connect_opensearch(settings.opensearch)
        return Opened(make(client, settings), closing=[partial(_deleted, client, prefix), client.close])

    return opened


def _s3(folder: Path) -> Opened[BlobStore]:
    name = xxhash.xxh3_64_hexdigest(str(folder).encode())
    settings = BlobSettings(
        url=f"s3://{BUCKET}/{name}", s3_endpoint=SERVERS["s3"], s3_access_key="key", s3_secret_key="secret"
    )
    return Opened(S3BlobStore(settings))


async def _deleted(client: OpenSearchClient, prefix: str) -> None:
    """A node has room for a thousand shards only."""
    await client.ask("DELETE", f"/{prefix}-*")
    with contextlib.suppress(NotThereError):
        await client.ask("DELETE", f"/_index_template/{prefix}-*")


FRONTIERS: dict[str, Open[FrontierStore]] = {
    "memory": _memory(MemoryFrontierStore),
    "sqlite": _sqlite(SqliteFrontierStore),
    "sqlite grouped": _sqlite(SqliteFrontierStore, group_seconds=0.005),
    "redis": _redis(lambda client, _: RedisFrontierStore(client, shards=1)),
    "cluster": _redis(lambda client, _: RedisFrontierStore(client, shards=1), server="cluster"),
}
SPILLS: dict[str, Open[SpillQueue]] = {
    "memory": _memory(MemorySpillQueue),
    "sqlite": _sqlite(SqliteSpillQueue),
    "sqlite grouped": _sqlite(SqliteSpillQueue, group_seconds=0.005),
}
POLITENESS: dict[str, Open[PolitenessStore]] = {
    "memory": _memory(MemoryPolitenessStore),
    "sqlite": _sqlite(SqlitePolitenessStore),
    "sqlite grouped": _sqlite(SqlitePolitenessStore, group_seconds=0.005),
    "redis": _redis(lambda client, settings: RedisPolitenessStore(client, settings.redis)),
    "cluster": _redis(lambda client, settings: RedisPolitenessStore(client, settings.redis), server="cluster"),
}
ROBOTS: dict[str, Open[RobotsStore]] = {
    "memory": _memory(MemoryRobotsStore),
    "sqlite": _sqlite(SqliteRobotsStore),
    "sqlite grouped": _sqlite(SqliteRobotsStore, group_seconds=0.005),
    "redis": _redis(lambda client, settings: RedisRobotsStore(client, settings.robots)),
    "cluster": _redis(lambda client, settings: RedisRobotsStore(client, settings.robots), server="cluster"),
}
HYDRATION: dict[str, Open[HydrationStore]] = {
    "memory": _memory(MemoryHydrationStore),
    "sqlite": _sqlite(SqliteHydrationStore),
    "sqlite grouped": _sqlite(SqliteHydrationStore, group_seconds=0.005),
    "redis": _redis(lambda client, settings: RedisHydrationStore(client, settings.browser)),
    "cluster": _redis(lambda client, settings: RedisHydrationStore(client, settings.browser), server="cluster"),
}
MARKERS: dict[str, Open[FetchMarkers]] = {
    "memory": _memory(MemoryFetchMarkers),
    "redis": _redis(lambda client, settings: RedisFetchMarkers(client, settings.redis)),
    "cluster": _redis(lambda client, settings: RedisFetchMarkers(client, settings.redis), server="cluster"),
}
FINGERPRINTS: dict[str, Open[FingerprintIndex]] = {
    "memory": _memory(MemoryFingerprintIndex),
    "sqlite": _sqlite(SqliteFingerprintIndex),
    "sqlite grouped": _sqlite(SqliteFingerprintIndex, group_seconds=0.005),
    "redis": _redis(lambda client, settings: RedisFingerprintIndex(client, settings.redis)),
    "cluster": _redis(lambda client, settings: RedisFingerprintIndex(client, settings.redis), server="cluster"),
    "redis ten tables": _redis(
        lambda client, settings: RedisFingerprintIndex(client, replace(settings.redis, fingerprint_tables=10))
    ),
}
PAGES: dict[str, Open[PageStore]] = {
    "memory": _memory(MemoryPageStore),
    "sqlite": _sqlite(SqlitePageStore),
    "sqlite grouped": _sqlite(SqlitePageStore, group_seconds=0.005),
    "opensearch": _opensearch(lambda client, settings: OpenSearchPageStore(client, settings.opensearch)),
}
BLOBS: dict[str, Open[BlobStore]] = {
    "memory": _memory(MemoryBlobStore),
    "files": lambda folder: Opened(FileBlobStore(folder / "blobs")),
    "s3": _s3,
}
SEARCHES: dict[str, Open[SearchIndex]] = {
    "memory": _memory(MemorySearchIndex),
    "sqlite": _sqlite(SqliteSearchIndex),
    "sqlite grouped": _sqlite(SqliteSearchIndex, group_seconds=0.005),
    "opensearch": _opensearch(
        lambda client, settings: OpenSearchSearchIndex(client, settings.opensearch, refresh=True)
    ),
}
DURABLE = frozenset({"sqlite", "sqlite grouped", "files", "redis", "redis ten tables", "cluster", "opensearch", "s3"})

_REGISTRIES: dict[str, dict[str, Any]] = {
    "frontier": FRONTIERS,
    "spill": SPILLS,
    "politeness": POLITENESS,
    "robots": ROBOTS,
    "hydration": HYDRATION,
    "markers": MARKERS,
    "fingerprints": FINGERPRINTS,
    "pages": PAGES,
    "blobs": BLOBS,
    "index": SEARCHES,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `frontier` runs over all adapters of the port; for `durable_frontier` over the lasting."""
    for name, registry in _REGISTRIES.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, list(registry), indirect=True)
        if f"durable_{name}" in metafunc.fixturenames:
            metafunc.parametrize(f"durable_{name}", [item for item in registry if item in DURABLE], indirect=True)


class Reopening(Generic[T]):
    """A store that can be closed and opened again on the same folder."""

    def __init__(self, open_: Open[T], folder: Path) -> None:
        self._open = open_
        self._folder = folder
        self._opened = open_(folder)
        self._before: list[Opened[T]] = []

    @property
    def store(self) -> T:
        """The store as it is open now."""
        return self._opened.store

    def reopen(self) -> T:
        """Close and open again."""
        self._opened.close()
        self._before.append(self._opened)
        self._opened = self._open(self._folder)
        return self.store

    async def aclose(self) -> None:
        """Close for good."""
        await self._opened.aclose()
        for opened in self._before:
            for close in opened.closing:
                await close()


def _served(request: pytest.FixtureRequest) -> str:
    """The name of an adapter, once the server that it needs runs."""
    name = str(request.param)
    for server, fixture in _FIXTURES.items():
        if name.startswith(server):
            SERVERS[server] = request.getfixturevalue(fixture).url
    return name


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def served(request: pytest.FixtureRequest) -> str:
    """The name of an adapter whose server runs: for property tests, which open it for each of their examples."""
    return _served(request)


def _fixture(name: str) -> tuple[Any, Any]:
    async def plain(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
        opened = _REGISTRIES[name][_served(request)](tmp_path)
        yield opened.store
        await opened.aclose()

    async def durable(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Reopening[Any]]:
        reopening: Reopening[Any] = Reopening(_REGISTRIES[name][_served(request)], tmp_path)
        yield reopening
        await reopening.aclose()

    return pytest_asyncio.fixture(name=name)(plain), pytest_asyncio.fixture(name=f"durable_{name}")(durable)


_frontier, _durable_frontier = _fixture("frontier")
_spill, _durable_spill = _fixture("spill")
_politeness, _durable_politeness = _fixture("politeness")
_robots, _durable_robots = _fixture("robots")
_hydration, _durable_hydration = _fixture("hydration")
_markers, _durable_markers = _fixture("markers")
_fingerprints, _durable_fingerprints = _fixture("fingerprints")
_pages, _durable_pages = _fixture("pages")
_blobs, _durable_blobs = _fixture("blobs")
_index, _durable_index = _fixture("index")
