"""Which pages are rendered: never, always, or where a host's pages show that it is needed."""

from dataclasses import replace
from statistics import median
from typing import Final

from trawl.errors import SettingsError
from trawl.kinds import OutcomeClass, Purpose, RenderMode
from trawl.ports import HostHydration, HydrationStore, Request, RequestRow
from trawl.records import FetchOutcome, Key, Millis
from trawl.settings import BrowserSettings
from trawl.url import origin_of

MODES: Final = ("never", "auto", "always")
_PAGES: Final = frozenset({Purpose.PAGE, Purpose.AUTO})
_PUBLISHED: Final = frozenset({OutcomeClass.INDEXED, OutcomeClass.DUPLICATE, OutcomeClass.UNCHANGED})
_KEYS: Final = 10_000


class Rendering:
    """Decides for each release, and learns from each outcome; raises SettingsError for a mode that is none."""

    def __init__(self, settings: BrowserSettings, store: HydrationStore | None = None) -> None:
        """Without a store nothing is learned of hosts: then only shells are rendered."""
        if settings.render not in MODES:
            raise SettingsError(f"browser.render = {settings.render!r} cannot be used; it is one of {', '.join(MODES)}")
        self._settings = settings
        self._store = store
        self.learns = settings.render == "auto"
        """Whether anything is to be learned from outcomes."""

    async def mode(self, request: Request, row: RequestRow | None, now_ms: Millis) -> RenderMode:
        """How a request is to be fetched; the row is that of its state, which is needed only where this learns."""
        if request.purpose not in _PAGES or self._settings.render == "never":
            return RenderMode.STATIC
        if self._settings.render == "always" or waits_for_browser(row):
            return RenderMode.HEADLESS
        host = await self._host(request.origin, now_ms)
        headless = host.headless or (not host.decided_at_ms and is_sample(request.request_key, host, self._settings))
        return RenderMode.HEADLESS if headless else RenderMode.STATIC

    async def learn(self, outcome: FetchOutcome, row: RequestRow | None) -> None:
        """Take in how a visit ended whose row was this before."""
        if self._store is None or not self.learns or outcome.purpose not in _PAGES or not outcome.terminal:
            return
        before = await self._host(origin_of(outcome.url), outcome.at_ms)
        after = learned(before, outcome, self._settings, was_shell=waits_for_browser(row))
        if after != before:
            await self._store.put(after)

    async def _host(self, origin: str, now_ms: Millis) -> HostHydration:
        known = await self._store.get(origin) if self._store is not None else None
        if known is None or is_old(known, now_ms, self._settings):
            return HostHydration(origin=origin)
        return known


def waits_for_browser(row: RequestRow | None) -> bool:
    """Whether a visit is at the point where a browser is asked: its page was a shell."""
    return row is not None and row.outcome is OutcomeClass.NEEDS_RENDER


def is_old(host: HostHydration, now_ms: Millis, settings: BrowserSettings) -> bool:
    """Whether a host that needed no browser is to be looked at anew; one that needs one is looked at all the time."""
    decided = bool(host.decided_at_ms) and not host.headless
    return decided and now_ms - host.decided_at_ms > 1000 * settings.decided_seconds


def is_sample(key: Key, host: HostHydration, settings: BrowserSettings) -> bool:
    """Whether a page is rendered to compare; which ones depends on their keys alone, so that a replay does the same."""
    return host.sampled < settings.sample_pages_max and key % _KEYS < settings.sample_share * _KEYS


def learned(host: HostHydration, outcome: FetchOutcome, settings: BrowserSettings, *, was_shell: bool) -> HostHydration:
    """What a visit that ended shows of its host, and what follows.

    The median share of the latest pages that were compared decides, whichever they were; a page that was rendered since
    it was a shell is none of them, or a few shells would stand for all. Where most pages are shells that decides, too.
    """
    if was_shell:
        filled = outcome.hydrated is not None and outcome.hydrated > settings.hydrated_share
        host = replace(host, shells=host.shells + filled)
    elif outcome.hydrated is not None:
        shares = (*host.shares, outcome.hydrated)[-settings.sample_pages_max :]
        host = replace(host, shares=shares, sampled=host.sampled + (not host.decided_at_ms))
    elif outcome.outcome in _PUBLISHED:
        tried = not host.decided_at_ms and is_sample(outcome.request_key, host, settings)
        host = replace(host, plain=host.plain + 1, sampled=host.sampled + tried)
    return _decided(host, outcome.at_ms, settings)


def _decided(host: HostHydration, at_ms: Millis, settings: BrowserSettings) -> HostHydration:
    compared = len(host.shares) >= settings.sample_pages_min
    shells = host.shells >= settings.sample_pages_min and host.shells > host.plain
    if host.headless:
        if not compared or median(host.shares) > settings.hydrated_share:
            return host
        return replace(host, headless=False, decided_at_ms=at_ms, shells=0, plain=0)
    if host.decided_at_ms:
        return host
    headless = (compared and median(host.shares) > settings.hydrated_share) or (not compared and shells)
    if headless or compared or host.sampled >= settings.sample_pages_max:
        return replace(host, headless=headless, decided_at_ms=at_ms)
    return host
