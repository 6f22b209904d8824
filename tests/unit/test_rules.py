"""Verdicts from stored robots.txt, and what is kept of them in memory."""

from dataclasses import replace

from trawl.adapters.clocks import ManualClock
from trawl.adapters.memory import MemoryRobotsStore
from trawl.kinds import RobotsState
from trawl.ports import RobotsEntry
from trawl.rules import Rules
from trawl.settings import RobotsSettings


class Counting(MemoryRobotsStore):
    """A store that counts how often it is asked."""

    asked = 0

    async def get(self, origin: str) -> RobotsEntry | None:
        """The entry."""
        self.asked += 1
        return await super().get(origin)


async def test_parsed_rules_are_kept_up_to_their_bytes_the_latest_used_longest() -> None:
    store, settings = Counting(), replace(RobotsSettings(), parsed_bytes_max=250)
    rules = Rules(store, ManualClock(0), settings, "trawl")
    for host in "abc":
        body = f"User-agent: *\nCrawl-delay: 7\nDisallow: /{host}\n".ljust(100, "#").encode()
        entry = RobotsEntry(origin=f"http://{host}", state=RobotsState.RULES, body=body, expires_at_ms=10**9)
        await store.put(entry)
        assert await rules.asked_delay(f"http://{host}") == 7
    store.asked = 0
    assert not (await rules.ruling("http://c", "http://c/c")).allowed
    assert (await rules.ruling("http://b", "http://b/c")).allowed
    assert store.asked == 0
    assert not (await rules.ruling("http://a", "http://a/a")).allowed
    assert store.asked == 1, "the oldest had to leave"


async def test_one_robots_txt_larger_than_the_limit_is_kept_alone() -> None:
    store, settings = Counting(), replace(RobotsSettings(), parsed_bytes_max=10)
    rules = Rules(store, ManualClock(0), settings, "trawl")
    body = b"User-agent: *\nDisallow: /a\n"
    await store.put(RobotsEntry(origin="http://a", state=RobotsState.RULES, body=body, expires_at_ms=10**9))
    for _ in range(2):
        assert not (await rules.ruling("http://a", "http://a/a")).allowed
    assert store.asked == 1


async def test_the_delay_that_is_asked_for_follows_the_time_of_the_day() -> None:
    store, clock = Counting(), ManualClock(0)
    rules = Rules(store, clock, RobotsSettings(), "trawl")
    body = b"User-agent: *\nCrawl-delay: 2\nRequest-rate: 1/10 0000-0100\n"
    await store.put(RobotsEntry(origin="http://a", state=RobotsState.RULES, body=body, expires_at_ms=10**9))
    assert await rules.asked_delay("http://a") == 10
    clock.advance(3_600)
    assert await rules.asked_delay("http://a") == 2
    assert await rules.asked_delay("http://b") == 0


async def test_a_robots_txt_that_cannot_be_had_is_a_statement_of_its_own() -> None:
    store, clock = Counting(), ManualClock(10**9)
    rules = Rules(store, clock, replace(RobotsSettings(), last_good_seconds_max=100), "trawl")
    body = b"User-agent: *\nAllow: /\nContent-Usage: train-ai=n\n"
    away = RobotsEntry(
        origin="http://a", state=RobotsState.UNAVAILABLE, fetched_at_ms=10**9, expires_at_ms=2 * 10**9, detail="503"
    )
    await store.put(away)
    (found,) = await rules.statements("http://a", "http://a/")
    assert (found.source, found.purpose, found.allowed, found.seen_at_ms) == ("robots.txt", "fetch", False, 10**9)
    assert "503" in found.rule
    rules.forget("http://a")
    await store.put(replace(away, body=body, good_at_ms=10**9 - 50_000))
    kept = await rules.statements("http://a", "http://a/")
    assert [(one.purpose, one.allowed, one.seen_at_ms) for one in kept] == [
        ("fetch", True, 10**9 - 50_000),
        ("ai-train", False, 10**9 - 50_000),
    ]
    assert await rules.statements("http://b", "http://b/") == ()
