"""A fetcher over the fake web, for tests: real client, real stores, names that lead where the test says."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from tests.site import FakeWeb
from trawl.access import AccessRules
from trawl.adapters.clocks import SystemClock
from trawl.adapters.http import CurlHttpClient
from trawl.adapters.memory import MemoryPolitenessStore, MemoryRobotsStore
from trawl.fetcher.stage import FetcherStage
from trawl.kinds import Purpose, RobotsState
from trawl.ports import HttpFailure, HttpRequest, HttpResponse, Renderer, Resolution, Resolver, RobotsEntry, Signer
from trawl.records import DiscoveredLinks, FetchedPage, FetchOutcome, FetchTask, Record
from trawl.settings import FetchSettings, PolitenessSettings, Settings
from trawl.url import canonical, origin_of, request_key

LOOPBACK = ("127.0.0.0/8",)
FAR_MS = 1 << 50

QUICK = Settings(
    fetch=FetchSettings(
        allow_networks=LOOPBACK,
        connect_seconds_max=2.0,
        first_byte_seconds_max=1.0,
        idle_seconds_max=0.8,
        total_seconds_max=3.0,
        robots_seconds_max=2.0,
    ),
    politeness=PolitenessSettings(delay_seconds=0.0, adaptive_factor=0.0, address_delay_seconds=0.0),
)
"""Short limits and no delay."""


@dataclass
class Names:
    """A resolver: every name leads to loopback, except those that are listed and literal addresses."""

    listed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: deque[str] = field(default_factory=lambda: deque(maxlen=1000))

    async def resolve(self, host: str) -> Resolution:
        self.asked.append(host)
        addresses = self.listed.get(host, (host,) if host.replace(".", "").isdigit() else ("127.0.0.1",))
        if not addresses:
            return Resolution(error="dns_not_found", detail=f"{host} does not resolve")
        return Resolution(addresses=addresses)


def with_fetch(settings: Settings, **fields: Any) -> Settings:
    return replace(settings, fetch=replace(settings.fetch, **fields))


def with_politeness(settings: Settings, **fields: Any) -> Settings:
    return replace(settings, politeness=replace(settings.politeness, **fields))


class Rig:
    """A fetcher stage and what it is made of; robots.txt of an origin is `allow all` unless the test stores another."""

    def __init__(
        self,
        web: FakeWeb,
        settings: Settings = QUICK,
        *,
        resolver: Resolver | None = None,
        access: AccessRules | None = None,
        signer: Signer | None = None,
        renderer: Renderer | None = None,
    ) -> None:
        self.web = web
        self.settings = settings
        self.names = Names()
        self.clock = SystemClock()
        self.http = CurlHttpClient(settings.fetch)
        self.politeness = MemoryPolitenessStore()
        self.robots = MemoryRobotsStore()
        self.stage = FetcherStage(
            self.http,
            resolver or self.names,
            self.politeness,
            self.robots,
            self.clock,
            settings,
            access=access,
            signer=signer,
            renderer=renderer,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.close()

    def url(self, host: str, path: str = "/", *, scheme: str = "http") -> str:
        """The URL of a fake host; by its port when direct, bare through a proxy."""
        port = self.web.port if scheme == "http" else self.web.https_port
        return f"{scheme}://{host}{path}" if self.settings.fetch.proxy else f"{scheme}://{host}:{port}{path}"

    async def allow(self, url: str) -> None:
        """Let everything of the URL's origin be fetched, unless something is known of it."""
        origin = origin_of(canonical(url))
        if await self.robots.get(origin) is None:
            await self.robots.put(RobotsEntry(origin=origin, state=RobotsState.ALLOW_ALL, expires_at_ms=FAR_MS))

    async def rules(self, url: str, text: str) -> None:
        """Store rules for the URL's origin."""
        entry = RobotsEntry(
            origin=origin_of(url), state=RobotsState.RULES, body=text.encode(), expires_at_ms=FAR_MS, good_at_ms=0
        )
        await self.robots.put(entry)

    async def records(self, url: str, **fields: Any) -> Sequence[Record]:
        """What a task gives; its origin's robots.txt is known."""
        await self.allow(url)
        return await self.stage.step(task(url, **fields))

    async def outcome(self, url: str, **fields: Any) -> FetchOutcome:
        """The outcome of a task that gives no page."""
        return outcome_of(await self.records(url, **fields))

    async def page(self, url: str, **fields: Any) -> FetchedPage:
        """The page that a task gives."""
        records = await self.records(url, **fields)
        assert isinstance(records[0], FetchedPage), records
        assert len(records) == 1
        return records[0]

    async def request(self, url: str, **fields: Any) -> HttpResponse | HttpFailure:
        """One request of the client alone."""
        limits: Mapping[str, Any] = {
            "address": "" if self.settings.fetch.proxy else "127.0.0.1",
            "total_seconds_max": self.settings.fetch.total_seconds_max,
            "body_bytes_max": self.settings.fetch.body_bytes_max,
        }
        return await self.http.fetch(HttpRequest(**{"url": url, **limits, **fields}))


def task(url: str, **fields: Any) -> FetchTask:
    address = canonical(url)
    key = request_key("test", address)
    return FetchTask(**{"fetch_id": key ^ 1, "crawl_id": "test", "request_key": key, "url": address, **fields})


def robots_task(url: str, **fields: Any) -> FetchTask:
    return task(f"{origin_of(canonical(url))}/robots.txt", **{"purpose": Purpose.ROBOTS, **fields})


def outcome_of(records: Sequence[Record]) -> FetchOutcome:
    """The outcome, which comes last."""
    assert isinstance(records[-1], FetchOutcome), records
    assert not any(isinstance(record, FetchOutcome) for record in records[:-1])
    return records[-1]


def links_of(records: Sequence[Record]) -> list[DiscoveredLinks]:
    return [record for record in records if isinstance(record, DiscoveredLinks)]
