from dataclasses import replace
from typing import Any

from trawl.kinds import RobotsState
from trawl.ports import RobotsEntry, RobotsStore

ENTRY = RobotsEntry(
    origin="https://a.example",
    state=RobotsState.RULES,
    body=b"\xef\xbb\xbfUser-agent: *\nDisallow: /\xff\0",
    status=200,
    fetched_at_ms=1,
    expires_at_ms=2,
    good_at_ms=3,
    failures=4,
    reason="http_503",
    detail="ü",
)


async def test_an_entry_comes_back_whole(robots: RobotsStore) -> None:
    assert await robots.get(ENTRY.origin) is None
    await robots.put(ENTRY)
    assert await robots.get(ENTRY.origin) == ENTRY


async def test_an_entry_is_replaced(robots: RobotsStore) -> None:
    newer = replace(ENTRY, state=RobotsState.UNAVAILABLE, body=b"", good_at_ms=None)
    await robots.put(ENTRY)
    await robots.put(newer)
    assert await robots.get(ENTRY.origin) == newer


async def test_origins_differ_by_scheme_host_and_port(robots: RobotsStore) -> None:
    await robots.put(ENTRY)
    assert await robots.get("http://a.example") is None
    assert await robots.get("https://a.example:8443") is None


async def test_entries_outlive_the_process(durable_robots: Any) -> None:
    await durable_robots.store.put(ENTRY)
    assert await durable_robots.reopen().get(ENTRY.origin) == ENTRY
