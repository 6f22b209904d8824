"""Fetching robots.txt, in every state it is found in."""

import time
from collections.abc import Sequence

import pytest

from tests.fetching import QUICK, Names, Rig, links_of, outcome_of, robots_task, task, with_fetch, with_politeness
from tests.site import FakeWeb, Reply, Site, sequence
from tests.site.responders import delays, limits, redirects
from tests.site.responders import robots as states
from tests.site.responders.pages import html
from trawl.kinds import Found, OutcomeClass, Purpose, RobotsState
from trawl.ports import RobotsEntry
from trawl.records import FetchedPage, FetchOutcome, Record
from trawl.robots import allowed
from trawl.url import origin_of

HOST = "a.test"
PAGE = html("A page", "Some words.")


def serve(web: FakeWeb, robots: object, **pages: object) -> None:
    web.add(Site(HOST, {"/robots.txt": robots, "/page": PAGE, **pages}))  # type: ignore[dict-item]


async def ask(rig: Rig, **fields: object) -> tuple[FetchOutcome, RobotsEntry]:
    url = rig.url(HOST)
    outcome = outcome_of(await rig.stage.step(robots_task(url, **fields)))
    entry = await rig.robots.get(url[:-1])
    assert entry is not None
    return outcome, entry


async def visit(rig: Rig, path: str) -> Sequence[Record]:
    return await rig.stage.step(task(rig.url(HOST, path)))


EXPECTED = {
    "ok": (RobotsState.RULES, "rules"),
    "closed": (RobotsState.RULES, "rules"),
    "empty": (RobotsState.RULES, "rules"),
    "missing": (RobotsState.ALLOW_ALL, "allow_all"),
    "forbidden": (RobotsState.ALLOW_ALL, "allow_all"),
    "unauthorised": (RobotsState.ALLOW_ALL, "allow_all"),
    "gone": (RobotsState.ALLOW_ALL, "allow_all"),
    "busy": (RobotsState.UNAVAILABLE, "http_429"),
    "error": (RobotsState.UNAVAILABLE, "http_500"),
    "unavailable": (RobotsState.UNAVAILABLE, "http_503"),
    "timeout": (RobotsState.UNAVAILABLE, "first_byte_timeout"),
    "reset": (RobotsState.UNAVAILABLE, "truncated"),
    "truncated": (RobotsState.UNAVAILABLE, "truncated"),
    "redirect": (RobotsState.RULES, "rules"),
    "redirect-loop": (RobotsState.ALLOW_ALL, "allow_all"),
    "redirect-to-private": (RobotsState.UNAVAILABLE, "address_refused"),
    "html": (RobotsState.RULES, "rules"),
    "binary": (RobotsState.RULES, "rules"),
    "huge": (RobotsState.RULES, "rules"),
    "endless": (RobotsState.RULES, "rules"),
}


@pytest.mark.parametrize("name", EXPECTED)
async def test_each_state_of_robots_is_stored_and_told(fake_web: FakeWeb, name: str) -> None:
    fake_web.add(states.site(HOST, states.STATES[name]))
    async with Rig(fake_web) as rig:
        outcome, entry = await ask(rig)
    state, reason = EXPECTED[name]
    assert (outcome.outcome, outcome.terminal, outcome.purpose) == (OutcomeClass.ROBOTS, True, Purpose.ROBOTS)
    assert outcome.robots is not None
    assert (outcome.robots.state, outcome.reason) == (state, reason)
    assert (entry.state, outcome.robots.expires_at_ms) == (state, entry.expires_at_ms)
    assert outcome.robots.origin == entry.origin
    if state is RobotsState.UNAVAILABLE:
        assert entry.body == b""
        assert HOST in entry.detail or "169.254" in entry.detail


@pytest.mark.parametrize(
    ("robots", "reason"),
    [
        (Reply(500, b"<h1>Error</h1>User-agent: *\nAllow: /"), "http_500"),
        (Reply(503, b"User-agent: *\nAllow: /\n", "text/plain"), "http_503"),
        (Reply(429, b"User-agent: *\nAllow: /\n", "text/plain"), "http_429"),
        (delays.never(), "first_byte_timeout"),
    ],
)
async def test_case_3_and_5_while_robots_is_unavailable_nothing_else_is_fetched(
    fake_web: FakeWeb, robots: Reply, reason: str
) -> None:
    serve(fake_web, robots)
    async with Rig(fake_web) as rig:
        assert (await ask(rig))[1].reason == reason
        page = outcome_of(await visit(rig, "/page"))
    assert (page.outcome, page.reason, page.terminal) == (OutcomeClass.RETRY, "robots_unavailable", False)
    assert fake_web.hits(HOST, "/page") == []


async def test_the_last_good_copy_serves_while_robots_is_unavailable(fake_web: FakeWeb) -> None:
    serve(fake_web, sequence(states.rules(), Reply(503, b"User-agent: *\nAllow: /\n")))
    async with Rig(fake_web, with_politeness(QUICK, backoff_seconds=0.01)) as rig:
        await ask(rig)
        outcome, entry = await ask(rig)
        assert (entry.state, entry.failures) == (RobotsState.UNAVAILABLE, 1)
        assert outcome.robots is not None
        assert outcome.robots.expires_at_ms - outcome.at_ms == 600_000
        assert isinstance((await visit(rig, "/page"))[0], FetchedPage)
        assert outcome_of(await visit(rig, "/private/x")).reason == "robots_disallowed"


async def test_robots_is_asked_at_the_next_address_where_the_first_is_dead(fake_web: FakeWeb) -> None:
    serve(fake_web, states.rules())
    async with Rig(fake_web) as rig:
        rig.names.listed[HOST] = ("127.0.0.9", "127.0.0.1")
        outcome, entry = await ask(rig)
        assert (entry.state, outcome.address) == (RobotsState.RULES, "127.0.0.1")
        assert isinstance((await visit(rig, "/page"))[0], FetchedPage)


async def test_robots_beyond_the_cap_is_cut_and_a_cut_line_dropped(fake_web: FakeWeb) -> None:
    fake_web.add(states.site(HOST, states.STATES["huge"]))
    async with Rig(fake_web) as rig:
        _, entry = await ask(rig)
    assert len(entry.body) == 512_000
    assert not allowed(entry.body, "trawl", "/early/x")
    assert allowed(entry.body, "trawl", "/late/x")


async def test_an_html_page_in_place_of_robots_allows_everything(fake_web: FakeWeb) -> None:
    serve(fake_web, html("Home", "Disallow: nothing here"))
    async with Rig(fake_web) as rig:
        await ask(rig)
        assert isinstance((await visit(rig, "/page"))[0], FetchedPage)


@pytest.mark.parametrize(("hops", "state"), [(5, RobotsState.RULES), (6, RobotsState.ALLOW_ALL)])
async def test_five_redirects_of_robots_are_followed_without_asking_robots(
    fake_web: FakeWeb, hops: int, state: RobotsState
) -> None:
    chain = redirects.chain(hops - 1, "/real")
    serve(fake_web, redirects.redirect("/hop/1"), **chain, **{"/real": states.rules(states.CLOSED)})
    async with Rig(fake_web) as rig:
        await rig.rules(rig.url(HOST), states.CLOSED)
        assert (await ask(rig))[1].state is state


async def test_robots_may_live_on_another_host_whose_slots_it_takes(fake_web: FakeWeb) -> None:
    async with Rig(fake_web, with_politeness(QUICK, delay_seconds=0.2)) as rig:
        serve(fake_web, redirects.redirect(rig.url("b.test", "/r.txt")))
        fake_web.add(Site("b.test", {"/r.txt": states.rules()}))
        _, entry = await ask(rig)
        assert (entry.state, entry.body) == (RobotsState.RULES, states.RULES.encode())
        assert (await rig.politeness.state(f"host:b.test:{fake_web.port}")).last_start_ms > 0


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/hostname", "redirect_scheme"),
        ("http://10.0.0.1/robots.txt", "address_refused"),
        (None, "redirect_invalid"),
    ],
)
async def test_case_27_robots_that_leads_out_of_the_web_is_unavailable(
    fake_web: FakeWeb, location: str | None, reason: str
) -> None:
    serve(fake_web, redirects.redirect(location))
    async with Rig(fake_web) as rig:
        _, entry = await ask(rig)
    assert (entry.state, entry.reason, entry.body) == (RobotsState.UNAVAILABLE, reason, b"")


async def test_a_host_that_does_not_resolve_or_must_not_be_fetched_is_said(fake_web: FakeWeb) -> None:
    async with Rig(fake_web, with_fetch(QUICK, allow_networks=())) as rig:
        outcome, entry = await ask(rig)
        assert (entry.state, entry.reason) == (RobotsState.UNAVAILABLE, "address_refused")
        assert "--allow-network 127.0.0.1" in outcome.detail
        rig.names = Names({HOST: ()})
        rig.stage._hops._resolver = rig.names
        assert (await ask(rig))[1].reason == "dns_not_found"
    assert fake_web.log.total == 0


async def test_sitemaps_come_before_the_outcome_by_host_and_only_for_a_crawl(fake_web: FakeWeb) -> None:
    lines = (
        "Sitemap: /s.xml\nSitemap: http://b.test/t.xml\nSitemap: ftp://c.test/\nSitemap: http://[\nSitemap: /u.xml\n"
    )
    serve(fake_web, states.rules("User-agent: *\nDisallow:\n" + lines))
    async with Rig(fake_web) as rig:
        records = await rig.stage.step(robots_task(rig.url(HOST)))
        here, there = links_of(records)
        assert isinstance(records[-1], FetchOutcome)
        assert [link.url for link in here.links] == [rig.url(HOST, "/s.xml"), rig.url(HOST, "/u.xml")]
        assert [link.url for link in there.links] == ["http://b.test/t.xml"]
        assert all(
            (link.purpose, link.found) == (Purpose.SITEMAP, Found.ROBOTS) for link in (*here.links, *there.links)
        )
        assert (here.crawl_id, here.target_host) == ("test", f"{HOST}:{fake_web.port}")
        assert links_of(await rig.stage.step(robots_task(rig.url(HOST), crawl_id=""))) == []


async def test_robots_waits_for_the_hosts_slot_and_is_put_off_beyond_the_horizon(fake_web: FakeWeb) -> None:
    serve(fake_web, states.rules())
    async with Rig(fake_web, with_politeness(QUICK, delay_seconds=60.0)) as rig:
        await ask(rig)
        outcome, entry = await ask(rig)
    assert (outcome.outcome, outcome.terminal, outcome.robots) == (OutcomeClass.DEFERRED, False, None)
    assert outcome.deferred_until_ms is not None
    assert entry.state is RobotsState.RULES
    assert len(fake_web.hits(HOST)) == 1


async def test_a_busy_robots_parks_the_host_as_long_as_it_asks(fake_web: FakeWeb) -> None:
    serve(fake_web, limits.busy(3600))
    async with Rig(fake_web) as rig:
        outcome, entry = await ask(rig)
        assert outcome.retry_after_ms == 3_600_000
        assert entry.expires_at_ms - outcome.at_ms == 3_600_000
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).blocked_until_ms > outcome.at_ms + 3_500_000


async def test_outside_the_hours_of_robots_txt_a_page_waits_and_robots_txt_does_not(fake_web: FakeWeb) -> None:
    minute = time.time() // 60 % 1440
    clock = [f"{int(at % 1440) // 60:02}{int(at % 1440) % 60:02}" for at in (minute + 60, minute + 120, minute - 60)]
    async with Rig(fake_web) as rig:
        fake_web.add(Site("hours.test", {"/": html("A page", "Some words. " * 50), "/robots.txt": states.rules("")}))
        url = rig.url("hours.test")
        await rig.rules(url, f"User-agent: *\nVisit-time: {clock[0]}-{clock[1]}\n")
        outcome = await rig.outcome(url)
        assert (outcome.outcome, outcome.reason, outcome.terminal) == (OutcomeClass.DEFERRED, "visit_time", False)
        assert 58 * 60_000 <= (outcome.deferred_until_ms or 0) - outcome.at_ms <= 60 * 60_000
        assert "welcomes visits at other hours" in outcome.detail
        assert fake_web.hits("hours.test") == []
        assert outcome_of(await rig.stage.step(robots_task(url))).outcome is OutcomeClass.ROBOTS
        await rig.rules(url, f"User-agent: *\nVisit-time: {clock[2]}-{clock[1]}\n")
        rig.stage._rules.forget(origin_of(url))
        assert (await rig.page(url)).status == 200
