"""What robots.txt says of a URL now: the one place where a stored entry becomes a verdict (RFC 9309, section 2.3.1)."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from trawl.compliance.policy import OwnPolicy
from trawl.compliance.preferences import Preferences
from trawl.compliance.statements import of_robots, unavailable
from trawl.kinds import RobotsState
from trawl.ports import Clock, RobotsEntry, RobotsStore
from trawl.records import Evidence, Millis
from trawl.robots import Pace, Robots, product_token
from trawl.settings import PolitenessSettings, RobotsSettings

_ENTRIES_MAX = 4096
_EMPTY = Robots.parse(b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """A verdict on one URL."""

    allowed: bool
    reason: str = ""
    """Why not: robots_disallowed, robots_unavailable, robots_unknown."""
    detail: str = ""
    """One line for people: the rule, its line and its group, or why robots.txt is unavailable."""
    expires_ms: Millis = 0
    """When robots.txt is fetched again; 0 if it is unknown."""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A stored entry, and what was made of it for us."""

    entry: RobotsEntry
    robots: Robots
    pace: Pace
    preferences: Preferences


class Rules:
    """Verdicts from a RobotsStore, with the parsed rules of recently used origins kept in memory."""

    def __init__(
        self,
        store: RobotsStore,
        clock: Clock,
        settings: RobotsSettings,
        agent: str,
        *,
        statements: Sequence[str] = (),
    ) -> None:
        """The statements are the operator's own policy; raises SettingsError for what is none."""
        self._store = store
        self._clock = clock
        self._settings = settings
        self._agent = agent
        self._own = OwnPolicy(statements)
        self._token = product_token(agent)
        self._parsed: OrderedDict[str, _Parsed] = OrderedDict()
        self._bytes = 0

    def forget(self, origin: str) -> None:
        """Read the origin's entry anew at the next use; call it when its robots.txt was fetched."""
        gone = self._parsed.pop(origin, None)
        self._bytes -= len(gone.entry.body) if gone is not None else 0

    async def ruling(self, origin: str, url: str) -> Ruling:
        """Whether this URL of that origin may be fetched now."""
        found = await self._entry(origin)
        if found is None:
            return Ruling(allowed=False, reason="robots_unknown", detail=f"robots.txt of {origin} is not known yet")
        entry, robots = found.entry, found.robots
        if entry.state is RobotsState.UNAVAILABLE and not self._serves(entry):
            detail = f"robots.txt of {origin} is unavailable ({entry.detail or entry.reason}), so nothing is fetched"
            allowed = entry.good_at_ms is not None and self._settings.after_last_good == "allow"
            reason = "" if allowed else "robots_unavailable"
            return Ruling(allowed=allowed, reason=reason, detail=detail, expires_ms=entry.expires_at_ms)
        verdict = robots.verdict(self._agent, url)
        if verdict.allowed:
            return Ruling(allowed=True, expires_ms=entry.expires_at_ms)
        detail = f"robots.txt line {verdict.line}: {verdict.rule} (group {verdict.group})"
        return Ruling(allowed=False, reason="robots_disallowed", detail=detail, expires_ms=entry.expires_at_ms)

    async def robots(self, origin: str) -> Robots:
        """The origin's parsed rules; empty rules if there are none."""
        found = await self._entry(origin)
        return found.robots if found else _EMPTY

    async def statements(self, origin: str, url: str) -> tuple[Evidence, ...]:
        """What is said beforehand of a canonical URL: by the operator's policy, and by the origin's robots.txt."""
        own = tuple(self._own.of(url, self._clock.now_ms()))
        return (*own, *await self._of_robots(origin, url))

    async def _of_robots(self, origin: str, url: str) -> tuple[Evidence, ...]:
        found = await self._entry(origin)
        if found is None:
            return ()
        entry = found.entry
        if entry.state is RobotsState.UNAVAILABLE and not self._serves(entry):
            ruling = await self.ruling(origin, url)
            return () if ruling.allowed else (unavailable(ruling.detail, entry.fetched_at_ms),)
        seen_at_ms = entry.good_at_ms or entry.fetched_at_ms
        return tuple(of_robots(found.robots, found.preferences, self._token, url, seen_at_ms))

    async def asked_delay(self, origin: str) -> float:
        """The seconds between two requests that the origin's rules ask of us now, unclamped; 0 if they ask for none.

        The longer of Crawl-delay and of what keeps to each Request-rate that holds at this time of the day.
        """
        found = await self._entry(origin)
        return found.pace.delay_seconds(self._clock.now_ms()) if found else 0.0

    async def opens_ms(self, origin: str) -> Millis:
        """When the origin's Visit-time lets us in next; now, if it does or there is none."""
        found, now_ms = await self._entry(origin), self._clock.now_ms()
        return found.pace.opens_ms(now_ms) if found else now_ms

    async def entry(self, origin: str) -> RobotsEntry | None:
        """The origin's stored entry."""
        found = await self._entry(origin)
        return found.entry if found else None

    def _serves(self, entry: RobotsEntry) -> bool:
        if entry.good_at_ms is None:
            return False
        return self._clock.now_ms() - entry.good_at_ms <= 1000 * self._settings.last_good_seconds_max

    async def _entry(self, origin: str) -> "_Parsed | None":
        cached = self._parsed.get(origin)
        if cached is not None and cached.entry.expires_at_ms > self._clock.now_ms():
            self._parsed.move_to_end(origin)
            return cached
        entry = await self._store.get(origin)
        if entry is None or entry.state is RobotsState.UNKNOWN:
            return None
        robots = Robots.parse(entry.body) if entry.body else _EMPTY
        self.forget(origin)
        preferences = Preferences(robots.extensions(self._agent))
        self._parsed[origin] = parsed = _Parsed(entry, robots, robots.pace(self._agent), preferences)
        self._bytes += len(entry.body)
        while len(self._parsed) > 1 and (
            len(self._parsed) > _ENTRIES_MAX or self._bytes > self._settings.parsed_bytes_max
        ):
            self.forget(next(iter(self._parsed)))
        return parsed


def delay_seconds(asked: float | None, settings: PolitenessSettings) -> float:
    """The least time between two fetches of a host whose robots.txt asks for one, which is clamped."""
    return max(settings.delay_seconds, min(asked or 0.0, settings.crawl_delay_seconds_max))
