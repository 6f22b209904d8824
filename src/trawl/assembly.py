"""Wiring: stages and adapters put together for a folder on this machine, by plain constructor calls."""

import os
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

from trawl.adapters.access_file import read_access
from trawl.adapters.botauth import open_signer
from trawl.adapters.clocks import SystemClock
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.folder import FORMATS, FolderTap
from trawl.adapters.folder.forget import DEAD_LETTERS, forget
from trawl.adapters.http import CurlHttpClient, SystemResolver
from trawl.adapters.memory import MemoryPolitenessStore, MemoryRobotsStore
from trawl.adapters.processes import ProcessPool
from trawl.adapters.sqlite import (
    Database,
    FolderLock,
    SqliteFingerprintIndex,
    SqliteFrontierStore,
    SqliteHydrationStore,
    SqlitePageStore,
    SqlitePolitenessStore,
    SqliteRobotsStore,
    SqliteSearchIndex,
    SqliteSpillQueue,
)
from trawl.browsing import open_browser
from trawl.dedup.stage import DedupStage
from trawl.embedded import Counts, EmbeddedCrawl, Stages, longest_delay_ms, waiting_origins
from trawl.errors import FetchRefusedError, StoreError
from trawl.extractor.stage import ExtractorStage
from trawl.extractor.work import extract_page
from trawl.fetcher.stage import FetcherStage
from trawl.frontier.admission import canonical_rules
from trawl.frontier.score import staleness
from trawl.frontier.stage import FrontierStage
from trawl.inbox import Inbox
from trawl.indexer.stage import IndexerStage
from trawl.kinds import Purpose, RenderMode, RobotsState
from trawl.plain import to_json
from trawl.ports import CrawlProgress, OriginState, Renderer
from trawl.records import (
    DeadLetter,
    Evidence,
    ExtractedDocument,
    FetchedPage,
    FetchOutcome,
    FetchTask,
    Millis,
    Seed,
)
from trawl.rules import Rules, delay_seconds
from trawl.settings import Settings
from trawl.url import canonical, fetch_id, origin_of, request_key

OnPage: TypeAlias = Callable[[ExtractedDocument, str], Awaitable[None]]
"""Told each document that was written, and the URL that it duplicates (empty for a unique one)."""

_DETAILS_MAX = 5
_LACKING = "pages of earlier runs that are unchanged have no {}, which was not asked for then; --fresh writes all anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """What is to be crawled, and where the results go."""

    folder: Path
    """The output folder; made if it is not there."""
    seeds: tuple[Seed, ...]
    """Where to start; all of one crawl id."""
    settings: Settings = field(default_factory=Settings)
    """Every limit and policy."""
    formats: frozenset[str] = frozenset(FORMATS)
    """Of `markdown`, `html` and `jsonl`."""
    inline_html: bool = False
    """Whether raw HTML stands in `pages.jsonl` too."""
    fresh: bool = False
    """Whether what the folder holds is forgotten first."""


class CrawlRun:
    """One run of a crawl in a folder: an async context that holds the folder's lock.

    Raises StoreError if the folder is in use, its database is newer or damaged, or the disk is full.
    """

    def __init__(self, plan: CrawlPlan, *, on_page: OnPage | None = None, renderer: Renderer | None = None) -> None:
        """The renderer is asked for pages as `browser.render` says; without one the settings' browser is opened."""
        self.plan = plan
        self._renderer = renderer
        self._on_page = on_page
        self._crawl_id = plan.seeds[0].crawl_id if plan.seeds else "default"
        self._began = time.monotonic()
        self._exit = AsyncExitStack()
        self.notes: list[str] = []
        """What the summary says besides."""

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._exit.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    @property
    def counts(self) -> Counts:
        """What happened in this run so far."""
        return self._crawl.counts

    @property
    def queued(self) -> int:
        """URLs that wait, as of the last look."""
        return self._crawl.queued

    async def run(self) -> None:
        """Crawl to the end; a crawl that was done is visited again."""
        await self._store.release_leases()
        narrower = await self._frontier.begin(self.plan.seeds)
        refreshed = await self._is_done() and await self._store.readmit(
            self._crawl_id, self._clock.now_ms(), staleness=staleness
        )
        if narrower or refreshed:
            await self._frontier.call_off(self._crawl_id)
        await self._crawl.run(self.plan.seeds)

    async def _is_done(self) -> bool:
        """Whether an earlier run did all that can be done now: a host that does not answer keeps no other waiting."""
        progress = await self._store.progress(self._crawl_id)
        if not progress.outcomes or not progress.queued or self._spent(progress):
            return bool(progress.outcomes)
        waiting = await waiting_origins(self._store)
        delay_ms = longest_delay_ms(waiting)  # for that a run waits as well
        now_ms = self._clock.now_ms()
        soon_ms = now_ms + max(round(1000 * self.plan.settings.embedded.patience_seconds), delay_ms)
        next_ms = await self._store.next_event_ms(now_ms)
        if next_ms is None or next_ms > soon_ms:
            return True
        return all(_is_silent(origin, soon_ms) for origin in waiting)

    def stop(self) -> None:
        """Finish what is in flight and return from `run`."""
        self._crawl.stop()

    async def summary(self, *, interrupted: bool = False) -> dict[str, Any]:
        """What this run did and what is left, as plain values; ends the extraction processes, to count their CPU."""
        await self._pool.close()
        progress = await self._store.progress(self._crawl_id)
        counts, seconds = self.counts, time.monotonic() - self._began
        outcomes = counts.outcomes
        pages = sum(outcomes[name] for name in ("indexed", "duplicate", "unchanged"))
        left = progress.queued + progress.leased
        spent = self._spent(progress)
        return {
            "dir": str(self.plan.folder),
            "crawl_id": self._crawl_id,
            "finished": not interrupted and (spent or not left),
            "interrupted": interrupted,
            "pages": pages,
            "indexed": outcomes["indexed"],
            "duplicates": outcomes["duplicate"],
            "unchanged": outcomes["unchanged"],
            "aliases": outcomes["alias"],
            "refused": _reasons(progress.reasons, "refused"),
            "failed": _reasons(progress.reasons, "failed"),
            "skipped": dict(progress.refusals),
            "retried": _reasons(counts.reasons.items(), "retry"),
            "queued": left,
            "limit_reached": spent,
            "documents": await self._pages.size(),
            "chunks": await self._index.size(),
            "fetched": counts.fetched,
            "bytes": counts.bytes,
            "rendered": await self._rendered(),
            "dead_letters": counts.dead_letters,
            "politeness_violations": counts.violations,
            "seconds": round(seconds, 3),
            "pages_s": round(pages / seconds, 2),
            "cpu_seconds": self._cpu(),
            "notes": self.notes,
            "details": await self._details() if not pages else [],
        }

    async def _rendered(self) -> dict[str, Any]:
        """What browsers did in this run: pages, those that they added nothing to or failed on, their seconds."""
        counts = self.counts
        return {
            "pages": counts.rendered,
            "shells": sum(counts.shells.values()),
            "not_rendered": dict(counts.not_rendered.most_common()),
            "seconds": round(counts.render_ms / 1000, 3),
            "hosts": await self._hydration.headless(),
        }

    def _spent(self, progress: CrawlProgress) -> bool:
        """Whether the crawl has had as many pages as it may."""
        return bool(self.plan.seeds) and 0 < self.plan.seeds[0].pages_max <= progress.charged

    async def _details(self) -> list[str]:
        """Why not one page was fetched: what became of the seeds."""
        rules = canonical_rules(self.plan.settings)
        found = []
        for seed in self.plan.seeds[:_DETAILS_MAX]:
            url = canonical(seed.url, rules)
            row = await self._store.request(request_key(self._crawl_id, url), url)
            if row is not None and row.reason:
                found.append(_about(seed.url, row.detail or row.reason))
        return found

    # Opening and closing

    async def _open(self) -> None:
        plan, settings, exit_ = self.plan, self.plan.settings, self._exit
        exit_.enter_context(FolderLock(plan.folder))
        if plan.fresh:
            forget(plan.folder)
        database = exit_.enter_context(closing(Database(plan.folder, group_seconds=settings.embedded.commit_seconds)))
        self._clock = SystemClock()
        self._store = SqliteFrontierStore(database)
        self._pages = SqlitePageStore(database)
        self._index = SqliteSearchIndex(database)
        tap = FolderTap(
            database,
            formats=plan.formats,
            inline_html=plan.inline_html,
            name_chars_max=settings.url.name_chars_max,
            on_page=self._on_page,
        )
        tap.open()
        exit_.callback(tap.close)
        self.notes.extend(_LACKING.format(name) for name in tap.lacking)
        http, resolver = CurlHttpClient(settings.fetch), SystemResolver(settings.fetch)
        exit_.push_async_callback(http.close)
        exit_.push_async_callback(resolver.close)
        renderer = self._renderer or open_browser(settings, resolver)
        if renderer is not None:
            exit_.push_async_callback(renderer.close)
        workers = settings.embedded.extract_workers or max(os.cpu_count() or 1, 1)
        extract = partial(extract_page, settings=settings.extract)
        self._pool = ProcessPool(extract, workers, settings.extract.seconds_max)
        exit_.push_async_callback(self._pool.close)
        await self._pool.start()
        robots = SqliteRobotsStore(database)
        rules = Rules(robots, self._clock, settings.robots, settings.fetch.user_agent)
        fingerprints = SqliteFingerprintIndex(database)
        self._embedder = WordllamaEmbedder()
        self._hydration = SqliteHydrationStore(database)
        self._frontier = FrontierStage(self._store, rules, self._clock, settings, hydration=self._hydration)
        stages = Stages(
            frontier=self._frontier,
            fetcher=FetcherStage(
                http,
                resolver,
                SqlitePolitenessStore(database),
                robots,
                self._clock,
                settings,
                access=read_access(settings.fetch.access_file, os.environ),
                signer=open_signer(settings.fetch),
                renderer=renderer,
            ),
            extractor=ExtractorStage(
                settings.extract,
                self._clock,
                agent=settings.fetch.user_agent,
                require=settings.compliance.require,
                run=self._pool,
                renders=settings.browser.render == "auto",
            ),
            dedup=DedupStage(fingerprints, settings.dedup, self._clock, tap=tap),
            indexer=IndexerStage(
                pages=self._pages,
                index=self._index,
                embedder=self._embedder,
                fingerprints=fingerprints,
                settings=settings.index,
                clock=self._clock,
            ),
        )
        self._crawl = EmbeddedCrawl(
            stages,
            self._store,
            Inbox(SqliteSpillQueue(database), settings.embedded.inbox_records_max),
            self._clock,
            settings.embedded,
            extract_concurrency=2 * workers,
            on_letter=self._keep_letter,
        )

    def _keep_letter(self, letter: DeadLetter) -> None:
        with (self.plan.folder / DEAD_LETTERS).open("ab") as file:
            file.write(to_json(letter) + b"\n")

    def _cpu(self) -> dict[str, float]:
        """CPU seconds so far: of this process, the embedding in it, and the extraction processes that have ended."""
        times = os.times()
        return {
            "main": round(times.user + times.system, 3),
            "embed": round(self._embedder.cpu_seconds, 3),
            "workers": round(times.children_user + times.children_system, 3),
        }


class Network:
    """Single fetches outside a crawl, by the same fetcher: robots.txt is obeyed, politeness kept in memory."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._access = read_access(settings.fetch.access_file, os.environ)
        self._signer = open_signer(settings.fetch)
        self._robots = MemoryRobotsStore()
        self._rules = Rules(
            self._robots,
            self._clock,
            settings.robots,
            settings.fetch.user_agent,
            statements=settings.compliance.statements,
        )

    async def __aenter__(self) -> Self:
        self._http, self._resolver = CurlHttpClient(self._settings.fetch), SystemResolver(self._settings.fetch)
        self._renderer = open_browser(self._settings, self._resolver)
        self._fetcher = FetcherStage(
            self._http,
            self._resolver,
            MemoryPolitenessStore(),
            self._robots,
            self._clock,
            self._settings,
            access=self._access,
            signer=self._signer,
            renderer=self._renderer,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renderer is not None:
            await self._renderer.close()
        await self._http.close()
        await self._resolver.close()

    async def robots_answer(self, url: str) -> dict[str, Any]:
        """What robots.txt says of a canonical URL, with the rule, its group and the delay."""
        origin, agent = origin_of(url), self._settings.fetch.user_agent
        await self._fetch_robots(origin)
        entry, robots = await self._rules.entry(origin), await self._rules.robots(origin)
        ruling = await self._rules.ruling(origin, url)
        verdict = robots.verdict(agent, url)
        asked = robots.pace(agent).delay_seconds(self._clock.now_ms())
        return {
            "url": url,
            "robots_txt": f"{origin}/robots.txt",
            "status": (entry.status or None) if entry else None,
            "state": str(entry.state) if entry else "unknown",
            "allowed": ruling.allowed,
            "reason": ruling.reason or None,
            "rule": verdict.rule,
            "line": verdict.line,
            "group": verdict.group,
            "crawl_delay_seconds": robots.crawl_delay(agent),
            "asked_delay_seconds": asked,
            "delay_seconds": delay_seconds(asked, self._settings.politeness),
            "sitemaps": list(robots.sitemaps),
            "detail": ruling.detail or (entry.detail if entry else "") or None,
        }

    async def evidence_beforehand(self, url: str) -> tuple[Evidence, ...]:
        """What the operator's policy and robots.txt say of a canonical URL and of the use of what is there."""
        origin = origin_of(url)
        await self._fetch_robots(origin)
        return await self._rules.statements(origin, url)

    async def page(self, url: str, mode: RenderMode = RenderMode.STATIC) -> FetchedPage:
        """The page of a canonical URL, at the end of its redirects; raises FetchRefusedError with the reason."""
        for _ in range(self._settings.fetch.redirects_max + 1):
            await self._fetch_robots(origin_of(url))
            target = ""
            for record in await self._fetcher.step(_task(url, Purpose.PAGE, self._clock.now_ms(), mode)):
                if isinstance(record, FetchedPage):
                    return record
                if isinstance(record, FetchOutcome):
                    target = record.redirect_target
                    if not target:
                        raise FetchRefusedError(_about(url, record.detail or record.reason, " was not fetched"))
            url = canonical(target)
        raise FetchRefusedError(f"{url} was not fetched: too many redirects")

    async def seen_page(self, url: str) -> FetchedPage:
        """The page of a canonical URL as `browser.render` says: fetched, shown if it is a shell, or always shown.

        Raises FetchRefusedError with the reason.
        """
        wanted = self._settings.browser.render
        if wanted == "always":
            return await self.page(url, RenderMode.HEADLESS)
        page = await self.page(url)
        shell = extract_page(page, self._settings.extract).shell if wanted == "auto" else ""
        return await self.page(url, RenderMode.HEADLESS) if shell else page

    async def _fetch_robots(self, origin: str) -> None:
        if await self._robots.get(origin) is None:
            await self._fetcher.step(_task(f"{origin}/robots.txt", Purpose.ROBOTS, self._clock.now_ms()))
            self._rules.forget(origin)


async def crawl_status(folder: Path) -> dict[str, Any]:
    """Where the crawl in a folder stands; raises StoreError if there is none."""
    with closing(Database(folder, read_only=True)) as database:
        store, now_ms = SqliteFrontierStore(database), SystemClock().now_ms()
        progress = await store.progress("default")
        hosts = await store.origins(20)
        return {
            "dir": str(folder),
            "queued": progress.queued,
            "leased": progress.leased,
            "charged": progress.charged,
            "documents": await SqlitePageStore(database).size(),
            "chunks": await SqliteSearchIndex(database).size(),
            "outcomes": dict(progress.outcomes),
            "refusals": dict(progress.refusals),
            "reasons": dict(progress.reasons),
            "hosts": [
                {
                    "origin": host.origin,
                    "queued": host.queued,
                    "leased": host.leased,
                    "admitted": host.admitted,
                    "robots": str(host.robots),
                    "waits_seconds": max(host.blocked_until_ms - now_ms, 0) / 1000,
                }
                for host in hosts
            ],
        }


def newest_folder(below: Path = Path("crawls")) -> Path:
    """The crawl that was written to last; raises StoreError if there is none."""
    found = sorted(below.glob("*/trawl.sqlite"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise StoreError(f"there is no crawl below {below}/; name its folder, or crawl first: trawl crawl https://…")
    return found[-1].parent


def _about(url: str, why: str, said: str = "") -> str:
    """One line for people that names a URL once, and why it brought no page."""
    return why if url in why else f"{url}{said}: {why}"


def _is_silent(origin: OriginState, soon_ms: Millis) -> bool:
    """Whether a host would not serve what is queued: it failed, gives no robots.txt, or is to be left alone."""
    return origin.robots is RobotsState.UNAVAILABLE or origin.failures > 0 or origin.blocked_until_ms > soon_ms


def _task(url: str, purpose: Purpose, now_ms: Millis, mode: RenderMode = RenderMode.STATIC) -> FetchTask:
    key = request_key("", url)
    return FetchTask(
        fetch_id=fetch_id(key, purpose, mode, now_ms),
        crawl_id="",
        request_key=key,
        url=url,
        purpose=purpose,
        render_mode=mode,
        scheduled_at_ms=now_ms,
        released_at_ms=now_ms,
    )


def _reasons(counts: Iterable[tuple[str, int]], kind: str) -> dict[str, int]:
    """Of counts by `class:reason` those of one class, most frequent first."""
    prefix = f"{kind}:"
    found = {name.removeprefix(prefix): count for name, count in counts if name.startswith(prefix)}
    return dict(sorted(found.items(), key=lambda item: -item[1]))
