"""Everything that goes wrong at once: each fetch ends with a typed record, none hangs, good hosts are not disturbed."""

import asyncio
import random
import time

from tests.fetching import QUICK, Rig, with_fetch, with_politeness
from tests.site import FakeWeb, Site
from tests.site.responders.pages import html
from tests.site.sites.misbehaving import everything
from trawl.records import DiscoveredLinks, FetchedPage, FetchOutcome

BAD = "bad.test"
FETCHES = 1000
REASONS = {
    "bad_encoding",
    "body_too_large",
    "connection_lost",
    "decode_ratio",
    "first_byte_timeout",
    "headers_too_large",
    "idle_timeout",
    "protocol_error",
    "redirect_invalid",
    "redirect_loop",
    "redirect_other_host",
    "redirect_scheme",
    "too_many_redirects",
    "truncated",
}
"""What the misbehaving site provokes, besides statuses."""


async def test_a_thousand_hostile_fetches_all_end_typed_and_disturb_nobody(fake_web: FakeWeb) -> None:
    pages = {path: page for path, page in everything(BAD).items() if not path.startswith(("/bomb/", "/busy/"))}
    paths = [path for path in pages if not path.endswith("*")]
    fake_web.add(Site(BAD, pages), Site("good.test", {"/": html("Good", "Words. " * 100)}))
    settings = with_politeness(
        with_fetch(QUICK, body_bytes_max=3_000_000, first_byte_seconds_max=2.0, idle_seconds_max=1.5),
        per_host_concurrency=1000,
        breaker_failures=0,
        backoff_seconds=0.0,
    )
    asked = random.Random(1).choices(paths, k=FETCHES - len(paths)) + paths
    seen: set[str] = set()
    async with Rig(fake_web, settings) as rig:
        queue = iter(asked)

        async def hostile() -> None:
            for path in queue:
                *links, last = await rig.records(rig.url(BAD, path))
                assert isinstance(last, FetchedPage | FetchOutcome)
                assert all(isinstance(link, DiscoveredLinks) for link in links)
                if isinstance(last, FetchOutcome):
                    assert last.reason, path
                    assert last.detail or last.reason == "not_modified", path
                    seen.add(last.reason)

        async def good() -> None:
            for _ in range(50):
                assert (await rig.page(rig.url("good.test"))).status == 200
                await asyncio.sleep(0.02)

        begun = time.monotonic()
        await asyncio.gather(good(), *(hostile() for _ in range(100)))
        assert time.monotonic() - begun < 60
        assert (await rig.politeness.state(f"host:{BAD}:{fake_web.port}")).in_flight == 0
        assert len(rig.http._idle[""]) <= 101
    typed = {reason for reason in seen if not reason.startswith("http_")}
    assert typed >= REASONS - {"bad_encoding", "decode_ratio"}
    assert typed <= REASONS | {
        "address_refused",
        "connect_failed",
        "payment_required",
        "port_refused",
        "retry_after_too_long",
        "total_timeout",
    }
