"""The fetcher stage against the fake web: what every answer of the web becomes."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.fetching import (
    FAR_MS,
    QUICK,
    Rig,
    links_of,
    outcome_of,
    robots_task,
    task,
    with_fetch,
    with_politeness,
)
from tests.relay import relay
from tests.site import FakeWeb, Reply, Site, sequence
from tests.site.responders import bombs, delays, faults, limits, redirects
from tests.site.responders.pages import html, validated
from trawl.adapters.http import SystemResolver
from trawl.kinds import Found, OutcomeClass, Purpose, RobotsState
from trawl.ports import HttpFailure, HttpRequest, HttpResponse, RobotsEntry
from trawl.records import FetchedPage, Hop, Seed, Validators
from trawl.url import canonical, origin_of

HOST = "a.test"
PAGE = html("A page", "Some words. " * 50)
SLOW = with_politeness(QUICK, delay_seconds=0.3)


def serve(web: FakeWeb, pages: Mapping[str, object], host: str = HOST) -> None:
    web.add(Site(host, {"/good": PAGE, **pages}))  # type: ignore[dict-item]


# Pages


async def test_a_page_carries_what_robots_txt_and_its_headers_say_of_its_use(fake_web: FakeWeb) -> None:
    fields = (
        ("X-Robots-Tag", "other: noindex"),
        ("x-robots-tag", "nofollow"),
        ("Content-Usage", "train-ai=n"),
        ("Content-Usage", "search=y"),
    )
    serve(fake_web, {"/": replace(PAGE, headers=fields), "/moved": redirects.redirect("/")})
    async with Rig(fake_web) as rig:
        url = rig.url(HOST)
        await rig.rules(url, "User-agent: trawl\nAllow: /$\nContent-Signal: ai-input=no\n")
        for start in (url, rig.url(HOST, "/moved")):
            page = await rig.page(start)
            assert [(one.source, one.rule, one.purpose, one.allowed) for one in page.evidence] == [
                ("robots.txt", "line 2: Allow: /$", "fetch", True),
                ("robots.txt", "line 3: content-signal: ai-input=no", "ai-input", False),
                ("x-robots-tag", "nofollow", "follow", False),
                ("content-usage", "train-ai=n, search=y", "ai-train", False),
                ("content-usage", "train-ai=n, search=y", "index", True),
                ("content-usage", "train-ai=n, search=y", "snippet", True),
            ]
            assert page.evidence[2].seen_at_ms >= page.fetched_at_ms > 0


async def test_a_page_carries_what_was_asked_and_what_came(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": validated(PAGE, etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")})
    async with Rig(fake_web) as rig:
        url = rig.url(HOST)
        page = await rig.page(url, depth=3, found=Found.SITEMAP, tags=("t",), scheduled_at_ms=5, released_at_ms=6)
    assert (page.url, page.final_url, page.status, page.chain) == (url, url, 200, ())
    assert (page.depth, page.found, page.tags) == (3, Found.SITEMAP, ("t",))
    assert (page.scheduled_at_ms, page.released_at_ms) == (5, 6)
    assert page.body.inline == PAGE.body
    assert (page.body.encoding, page.body.size_bytes) == ("identity", len(PAGE.body))
    assert page.content_type == "text/html; charset=utf-8"
    assert [header.value for header in page.headers if header.name == "etag"] == ['"v1"']
    assert (page.http_version, page.address) == ("1.1", "127.0.0.1")
    assert page.timings.total_ms >= page.timings.first_byte_ms > 0
    assert abs(page.fetched_at_ms - time.time() * 1000) < 30_000


@pytest.mark.parametrize("reply", [Reply(204, content_type=None), Reply(200, b""), Reply(203, b"x")])
async def test_any_2xx_is_a_page_even_an_empty_one(fake_web: FakeWeb, reply: Reply) -> None:
    serve(fake_web, {"/": reply})
    async with Rig(fake_web) as rig:
        assert (await rig.page(rig.url(HOST))).body.inline == reply.body


async def test_what_has_not_changed_is_unchanged_and_keeps_its_validators(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": validated(PAGE, etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")})
    held = Validators(etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
    async with Rig(fake_web) as rig:
        same = await rig.outcome(rig.url(HOST), validators=held)
        assert (same.outcome, same.reason, same.status, same.terminal) == (
            OutcomeClass.UNCHANGED,
            "not_modified",
            304,
            True,
        )
        assert same.validators == held
        assert (await rig.page(rig.url(HOST), validators=Validators(etag='"v0"'))).status == 200


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (OutcomeClass.ALIAS, OutcomeClass.ALIAS),
        (OutcomeClass.DISCOVERED, OutcomeClass.DISCOVERED),
        (OutcomeClass.DUPLICATE, OutcomeClass.DUPLICATE),
        (OutcomeClass.WITHDRAWN, OutcomeClass.WITHDRAWN),
        (OutcomeClass.INDEXED, OutcomeClass.UNCHANGED),
        (OutcomeClass.UNCHANGED, OutcomeClass.UNCHANGED),
        (OutcomeClass.FAILED, OutcomeClass.UNCHANGED),
    ],
)
async def test_what_brought_no_page_before_brings_none_if_nothing_has_changed(
    fake_web: FakeWeb, before: OutcomeClass, now: OutcomeClass
) -> None:
    serve(fake_web, {"/": validated(PAGE, etag='"v1"')})
    async with Rig(fake_web) as rig:
        same = await rig.outcome(rig.url(HOST), validators=Validators(etag='"v1"'), last_outcome=before)
        assert (same.outcome, same.reason, same.status) == (now, "not_modified", 304)


async def test_a_304_that_was_not_asked_for_is_a_failure(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": Reply(304, content_type=None)})
    async with Rig(fake_web) as rig:
        outcome = await rig.outcome(rig.url(HOST))
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.FAILED, "http_304")


# Statuses and failures


@pytest.mark.parametrize(
    ("reply", "reason", "price", "told"),
    [
        (limits.payment_required("USD 0.01"), "payment_required", "USD 0.01", "to be paid: USD 0.01; nothing was paid"),
        (Reply(402), "payment_required", "", "asks to be paid; nothing was paid"),
        (Reply(402, headers=(("crawler-price", "9" * 300),)), "payment_required", "9" * 100, "9" * 100),
        (Reply(403, headers=(("crawler-error", "CrawlerForbidden"),)), "crawler_forbidden", "", "CrawlerForbidden"),
        (Reply(403, headers=(("cf-mitigated", "challenge"),)), "bot_challenge", "", "prove that they are people"),
        (Reply(503, headers=(("CF-Mitigated", "Challenge"),)), "bot_challenge", "", "prove that they are people"),
        (Reply(403), "http_403", "", "answered 403"),
    ],
)  # fmt: skip
async def test_what_a_site_says_to_crawlers_is_final_and_nothing_else_is_tried(
    fake_web: FakeWeb, reply: Reply, reason: str, price: str, told: str
) -> None:
    serve(fake_web, {"/": reply})
    async with Rig(fake_web) as rig:
        outcome = await rig.outcome(rig.url(HOST))
    assert (outcome.outcome, outcome.terminal, outcome.status) == (OutcomeClass.REFUSED, True, reply.status)
    assert (outcome.reason, outcome.price) == (reason, price)
    assert told in outcome.detail
    assert len(fake_web.hits(HOST)) == 1


@pytest.mark.parametrize(
    ("status", "outcome", "terminal"),
    [
        (400, OutcomeClass.FAILED, True),
        (401, OutcomeClass.REFUSED, True),
        (403, OutcomeClass.REFUSED, True),
        (404, OutcomeClass.FAILED, True),
        (408, OutcomeClass.RETRY, False),
        (410, OutcomeClass.FAILED, True),
        (418, OutcomeClass.FAILED, True),
        (429, OutcomeClass.RETRY, False),
        (451, OutcomeClass.REFUSED, True),
        (500, OutcomeClass.RETRY, False),
        (503, OutcomeClass.RETRY, False),
        (599, OutcomeClass.RETRY, False),
        (999, OutcomeClass.FAILED, True),
        (300, OutcomeClass.FAILED, True),
    ],
)
async def test_each_status_has_its_outcome(
    fake_web: FakeWeb, status: int, outcome: OutcomeClass, *, terminal: bool
) -> None:
    serve(fake_web, {"/": Reply(status, b"<h1>Error</h1>")})
    async with Rig(fake_web) as rig:
        found = await rig.outcome(rig.url(HOST))
    assert (found.outcome, found.reason, found.status, found.terminal) == (outcome, f"http_{status}", status, terminal)
    assert str(status) in found.detail
    assert found.url in found.detail


@pytest.mark.parametrize(
    ("page", "reason", "outcome"),
    [
        (delays.never(), "first_byte_timeout", OutcomeClass.RETRY),
        (delays.stalled(PAGE, 100), "idle_timeout", OutcomeClass.RETRY),
        (faults.truncated(PAGE, 100), "truncated", OutcomeClass.RETRY),
        (faults.hang_up(), "connection_lost", OutcomeClass.RETRY),
        (faults.garbage(), "protocol_error", OutcomeClass.RETRY),
        (delays.endless_headers(), "headers_too_large", OutcomeClass.FAILED),
        (bombs.bomb("gzip", 50_000_000), "decode_ratio", OutcomeClass.FAILED),
        (delays.endless(), "body_too_large", OutcomeClass.FAILED),
        (faults.content_encoding_lie(bytes(range(256))), "bad_encoding", OutcomeClass.FAILED),
    ],
)
async def test_case_25_and_43_each_failure_has_its_outcome_and_gives_its_permit_back(
    fake_web: FakeWeb, page: object, reason: str, outcome: OutcomeClass
) -> None:
    serve(fake_web, {"/": page})
    async with Rig(fake_web, with_fetch(QUICK, body_bytes_max=10_000_000)) as rig:
        found = await rig.outcome(rig.url(HOST))
        assert (found.outcome, found.reason, found.terminal) == (outcome, reason, outcome is OutcomeClass.FAILED)
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).in_flight == 0
        assert (await rig.page(rig.url(HOST, "/good"))).status == 200


async def test_the_status_decides_where_only_the_error_page_is_broken(fake_web: FakeWeb) -> None:
    bomb = replace(bombs.bomb("gzip", 50_000_000), status=404)
    cut = replace(PAGE, status=403, claimed_bytes=10_000)
    serve(fake_web, {"/bomb": bomb, "/cut": cut})
    async with Rig(fake_web) as rig:
        assert (await rig.outcome(rig.url(HOST, "/bomb"))).reason == "http_404"
        assert (await rig.outcome(rig.url(HOST, "/cut"))).reason == "http_403"


async def test_case_43_a_cancelled_fetch_gives_its_permit_back(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": delays.never()})
    async with Rig(fake_web) as rig:
        running = asyncio.create_task(rig.records(rig.url(HOST)))
        await asyncio.sleep(0.1)
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).in_flight == 1
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await rig.page(rig.url(HOST, "/good"))).status == 200


async def test_an_expired_task_is_dropped_without_a_request(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web) as rig:
        found = await rig.outcome(rig.url(HOST), expires_at_ms=1)
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.DEFERRED, "expired", False)
    assert fake_web.hits(HOST) == []


async def test_a_name_that_does_not_resolve_is_tried_again(fake_web: FakeWeb) -> None:
    async with Rig(fake_web) as rig:
        rig.names.listed["gone.test"] = ()
        found = await rig.outcome(rig.url("gone.test"))
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.RETRY, "dns_not_found", False)


async def test_only_tasks_are_taken(fake_web: FakeWeb) -> None:
    async with Rig(fake_web) as rig:
        with pytest.raises(TypeError, match="Seed"):
            await rig.stage.step(Seed(url="http://a.test/"))


# Redirects


@pytest.mark.parametrize("status", redirects.REDIRECT_STATUSES)
async def test_redirects_on_one_host_are_followed_hop_by_hop(fake_web: FakeWeb, status: int) -> None:
    serve(fake_web, {**redirects.chain(3, "/good?a=1&utm_source=x#part", status=status), "/good": PAGE})
    async with Rig(fake_web) as rig:
        page = await rig.page(rig.url(HOST, "/hop/1"))
        assert page.final_url == rig.url(HOST, "/good?a=1")
        assert page.url == rig.url(HOST, "/hop/1")
        assert page.chain == tuple(Hop(url=rig.url(HOST, f"/hop/{n}"), status=status) for n in (1, 2, 3))
    assert fake_web.hits(HOST)[-1].target == "/good?a=1&utm_source=x"


async def test_ten_redirects_are_followed_and_eleven_are_not(fake_web: FakeWeb) -> None:
    serve(fake_web, {**redirects.chain(10, "/good"), **redirects.chain(11, "/good", prefix="/long/")})
    async with Rig(fake_web) as rig:
        assert len((await rig.page(rig.url(HOST, "/hop/1"))).chain) == 10
        found = await rig.outcome(rig.url(HOST, "/long/1"))
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.FAILED, "too_many_redirects", True)


async def test_hops_of_earlier_hosts_count_and_close_loops(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/x": redirects.redirect("/good"), "/back": redirects.redirect("http://b.test/")})
    earlier = tuple(Hop(url=f"http://h{n}.test/", status=301) for n in range(9))
    async with Rig(fake_web) as rig:
        assert len((await rig.page(rig.url(HOST, "/x"), chain=earlier)).chain) == 10
        more = (*earlier, Hop(url="http://b.test/", status=302))
        assert (await rig.outcome(rig.url(HOST, "/x"), chain=more)).reason == "too_many_redirects"
        loop = await rig.outcome(rig.url(HOST, "/back"), chain=more[-1:])
    assert loop.reason == "redirect_loop"


@pytest.mark.parametrize(
    ("pages", "reason", "outcome"),
    [
        (redirects.loop("/start", "/b", "/c"), "redirect_loop", OutcomeClass.FAILED),
        (redirects.loop("/start"), "redirect_loop", OutcomeClass.FAILED),
        ({"/start": redirects.redirect("/grow/"), **redirects.growing()}, "too_many_redirects", OutcomeClass.FAILED),
        ({"/start": redirects.redirect(None)}, "redirect_invalid", OutcomeClass.FAILED),
        ({"/start": redirects.redirect("http://[broken")}, "redirect_invalid", OutcomeClass.FAILED),
        ({"/start": redirects.redirect("/" + "a" * 20_000)}, "redirect_invalid", OutcomeClass.FAILED),
        ({"/start": redirects.redirect("file:///etc/hostname")}, "redirect_scheme", OutcomeClass.REFUSED),
        ({"/start": redirects.redirect("javascript:alert(1)")}, "redirect_scheme", OutcomeClass.REFUSED),
    ],
)
async def test_case_27_a_redirect_that_leads_nowhere_ends_with_its_reason(
    fake_web: FakeWeb, pages: dict[str, object], reason: str, outcome: OutcomeClass
) -> None:
    serve(fake_web, pages)
    async with Rig(fake_web) as rig:
        found = await rig.outcome(rig.url(HOST, "/start"))
    assert (found.outcome, found.reason, found.terminal) == (outcome, reason, True)


async def test_a_redirect_to_another_host_ends_the_visit_and_hands_its_chain_over(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/start": redirects.redirect("/next"), "/next": redirects.redirect("http://b.test/x?y#z", 301)})
    async with Rig(fake_web) as rig:
        url = rig.url(HOST, "/start")
        earlier = (Hop(url="http://c.test/", status=307),)
        records = await rig.records(url, chain=earlier, chain_request_key=77, depth=2, purpose=Purpose.FEED)
        alone = links_of(await rig.records(url))[0]
    (links,), found = links_of(records), outcome_of(records)
    assert (links.target_host, links.chain_request_key, alone.chain_request_key) == (
        "b.test",
        77,
        task(url).request_key,
    )
    assert links.chain == (
        *earlier,
        Hop(url=url, status=302),
        Hop(url=url.replace("/start", "/next"), status=301),
    )
    (link,) = links.links
    assert (link.url, link.depth, link.purpose, link.found) == ("http://b.test/x?y", 2, Purpose.FEED, Found.REDIRECT)
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.ALIAS, "redirect_other_host", True)
    assert found.redirect_target == "http://b.test/x?y"
    assert rig.names.asked.count("b.test") == 0


async def test_http_to_https_of_one_host_is_followed_if_its_robots_are_known(fake_web: FakeWeb) -> None:
    pages = {"/start": redirects.redirect("https://a.test/good"), "/good": PAGE}
    serve(fake_web, pages)
    settings = with_fetch(QUICK, proxy=fake_web.proxy, ca_file=str(fake_web.ca_file))
    async with Rig(fake_web, settings) as rig:
        unknown = await rig.records("http://a.test/start")
        assert outcome_of(unknown).reason == "redirect_other_origin"
        assert links_of(unknown)[0].target_host == "a.test"
        await rig.rules("https://a.test/", "User-agent: *\nDisallow: /good\n")
        assert (await rig.outcome("http://a.test/start")).reason == "robots_disallowed"
    async with Rig(fake_web, settings) as rig:
        await rig.rules("https://a.test/", "User-agent: *\nAllow: /\n")
        page = await rig.page("http://a.test/start")
    assert (page.final_url, page.chain[0].url) == ("https://a.test/good", "http://a.test/start")


async def test_a_redirect_sends_the_etag_on_but_no_date_and_extra_fields_to_their_host(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/start": redirects.redirect("/good")})
    fields = (f"{HOST}:{fake_web.port}: X-Secret: s", "b.test: X-Other: o")
    async with Rig(fake_web, with_fetch(QUICK, headers=fields)) as rig:
        held = Validators(etag='"v"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
        await rig.page(rig.url(HOST, "/start"), validators=held)
    first, second = (request.headers for request in fake_web.hits(HOST))
    assert (first["if-none-match"], "if-modified-since" in first, first["x-secret"]) == ('"v"', True, "s")
    assert (second["if-none-match"], "if-modified-since" in second, second["x-secret"]) == ('"v"', False, "s")
    assert "x-other" not in first


# Safety


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1", "fd00::1"])
async def test_a_private_address_is_refused_and_the_reason_says_what_to_do(fake_web: FakeWeb, address: str) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web, with_fetch(QUICK, allow_networks=())) as rig:
        rig.names.listed[HOST] = (address,)
        found = await rig.outcome(rig.url(HOST))
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.REFUSED, "address_refused", True)
    assert f"--allow-network {address}" in found.detail
    assert fake_web.hits(HOST) == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost"])
async def test_every_spelling_of_loopback_is_refused(fake_web: FakeWeb, host: str) -> None:
    settings = with_fetch(QUICK, allow_networks=())
    resolver = SystemResolver(settings.fetch)
    async with Rig(fake_web, settings, resolver=resolver) as rig:
        assert (await rig.outcome(f"http://{host}:{fake_web.port}/")).reason == "address_refused"
    await resolver.close()
    assert fake_web.log.total == 0


async def test_a_redirect_to_a_refused_address_of_the_same_name_is_refused(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/start": redirects.redirect("/good")})
    async with Rig(fake_web) as rig:
        resolve = rig.names.resolve
        answers = iter([("127.0.0.1",), ("169.254.169.254",)])

        async def rebinding(host: str) -> object:
            rig.names.listed[host] = next(answers)
            return await resolve(host)

        rig.names.resolve = rebinding  # type: ignore[method-assign,assignment]
        found = await rig.outcome(rig.url(HOST, "/start"))
    assert found.reason == "address_refused"
    assert [request.path for request in fake_web.hits(HOST)] == ["/start"]


async def test_a_rebinding_name_is_only_ever_fetched_from_the_checked_address(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    other = FakeWeb(Site(HOST, {"/": "a secret"}), address="127.0.0.2")
    async with other, Rig(fake_web, with_fetch(QUICK, allow_networks=("127.0.0.1",))) as rig:
        rig.names.listed[HOST] = ("127.0.0.2", "127.0.0.1")
        page = await rig.page(rig.url(HOST))
    assert (page.address, page.body.inline) == ("127.0.0.1", PAGE.body)
    assert other.log.total == 0


@pytest.mark.parametrize("port", [22, 25, 6667])
async def test_a_port_of_another_protocol_is_refused(fake_web: FakeWeb, port: int) -> None:
    async with Rig(fake_web) as rig:
        found = await rig.outcome(f"http://a.test:{port}/")
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.REFUSED, "port_refused", True)


async def test_through_a_proxy_no_name_is_looked_up_but_a_written_address_is_judged(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE}, "10.0.0.1")
    serve(fake_web, {"/": PAGE}, "inside.test")
    through = with_fetch(QUICK, proxy=fake_web.proxy, allow_networks=())
    async with Rig(fake_web, through) as rig:
        page = await rig.page("http://inside.test/")
        assert (page.address, list(rig.names.asked)) == ("", [])
        for host in ("10.0.0.1", "0x7f.1", "[::ffff:a9fe:a9fe]", "localhost", "x.localhost"):
            outcome = await rig.outcome(canonical(f"http://{host}/"))
            assert outcome.reason == "address_refused", host
    async with Rig(fake_web, with_fetch(through, allow_networks=("10.0.0.0/8",))) as rig:
        assert (await rig.page("http://10.0.0.1/")).status == 200


DEAD = ("127.0.0.9", "127.0.0.8", "127.0.0.7", "127.0.0.6")
"""Loopback addresses at which nothing listens."""


async def test_another_try_takes_the_next_address_first(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web, with_fetch(QUICK, addresses_tried_max=1)) as rig:
        rig.names.listed[HOST] = (DEAD[0], "127.0.0.1")
        assert (await rig.outcome(rig.url(HOST), attempt=1)).reason == "connect_failed"
        assert (await rig.page(rig.url(HOST), attempt=2)).address == "127.0.0.1"


async def test_where_an_address_is_dead_the_next_one_is_tried_in_the_same_fetch(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web) as rig:
        rig.names.listed[HOST] = (*DEAD[:2], "127.0.0.1")
        assert (await rig.page(rig.url(HOST))).address == "127.0.0.1"
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).failures == 0


@pytest.mark.parametrize(("dead", "tried"), [(DEAD[:2], 2), (DEAD, 3)])
async def test_at_most_so_many_addresses_are_tried_and_count_as_one_failure(
    fake_web: FakeWeb, dead: tuple[str, ...], tried: int
) -> None:
    async with Rig(fake_web) as rig:
        rig.names.listed[HOST] = dead
        asked = record_addresses(rig)
        assert (await rig.outcome(rig.url(HOST))).reason == "connect_failed"
        assert asked == list(dead[:tried])
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).failures == 1


async def test_a_dead_address_is_remembered_and_comes_last(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web) as rig:
        rig.names.listed[HOST] = (DEAD[0], "127.0.0.1")
        asked = record_addresses(rig)
        for attempt in (1, 1, 3):
            await rig.page(rig.url(HOST), attempt=attempt)
        assert asked == [DEAD[0], *["127.0.0.1"] * 3]


async def test_only_a_connection_that_was_not_made_leads_to_the_next_address(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": Reply(500)})
    async with Rig(fake_web) as rig:
        rig.names.listed[HOST] = ("127.0.0.1", DEAD[0])
        asked = record_addresses(rig)
        assert (await rig.outcome(rig.url(HOST))).reason == "http_500"
        assert asked == ["127.0.0.1"]


async def test_every_address_that_is_tried_keeps_the_gap_of_the_host(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web, with_politeness(QUICK, delay_seconds=0.3, horizon_seconds=0.1)) as rig:
        rig.names.listed[HOST] = (DEAD[0], "127.0.0.1")
        page = await rig.page(rig.url(HOST))
        assert page.timings.gap_required_ms == 300
        assert page.timings.gap_actual_ms is not None
        assert page.timings.gap_actual_ms >= 300


def record_addresses(rig: Rig) -> list[str]:
    """The addresses that requests go to from now on, in order."""
    asked: list[str] = []
    fetch = rig.http.fetch

    async def recorded(request: HttpRequest) -> HttpResponse | HttpFailure:
        asked.append(request.address)
        return await fetch(request)

    rig.http.fetch = recorded  # type: ignore[method-assign]
    return asked


# Politeness


async def test_the_gap_counts_from_when_a_request_left_not_from_when_its_connection_was_begun(
    fake_web: FakeWeb,
) -> None:
    serve(fake_web, {"/one": PAGE, "/two": PAGE})
    settings = with_fetch(SLOW, ca_file=str(fake_web.ca_file))
    async with relay(fake_web.https_port, connect_seconds=0.4) as way, Rig(fake_web, settings) as rig:
        await rig.page(f"https://{HOST}:{way.port}/one")
        await rig.page(f"https://{HOST}:{way.port}/two")
    assert min(fake_web.gaps(HOST)) >= 0.29


async def test_starts_on_one_host_keep_their_gap_and_say_so(fake_web: FakeWeb) -> None:
    serve(fake_web, {f"/{n}": PAGE for n in range(4)})
    settings = with_politeness(SLOW, per_host_concurrency=4)
    async with Rig(fake_web, settings) as rig:
        pages = await asyncio.gather(*(rig.page(rig.url(HOST, f"/{n}")) for n in range(4)))
    gaps = sorted(page.timings.gap_actual_ms or 0 for page in pages)
    assert gaps[0] == 0
    assert all(gap >= 300 for gap in gaps[1:])
    assert all(page.timings.gap_required_ms == 300 for page in pages)
    assert min(fake_web.gaps(HOST)) > 0.2


async def test_a_slot_beyond_the_horizon_puts_the_task_off(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web, with_politeness(QUICK, delay_seconds=60.0)) as rig:
        await rig.page(rig.url(HOST))
        found = await rig.outcome(rig.url(HOST))
        assert (found.outcome, found.terminal) == (OutcomeClass.DEFERRED, False)
        assert found.deferred_until_ms is not None
        assert 58_000 < found.deferred_until_ms - found.at_ms <= 60_000
        assert (await rig.politeness.state(f"host:{HOST}:{fake_web.port}")).in_flight == 0
    assert len(fake_web.hits(HOST)) == 1


async def test_hosts_on_one_address_keep_the_gap_of_the_address(fake_web: FakeWeb) -> None:
    hosts = [f"h{n}.test" for n in range(4)]
    fake_web.add(*(Site(host, {"/": PAGE}) for host in hosts))
    async with Rig(fake_web, with_politeness(SLOW, address_delay_seconds=0.2)) as rig:
        await asyncio.gather(*(rig.page(rig.url(host)) for host in hosts))
    times = sorted(request.at_seconds for host in hosts for request in fake_web.hits(host))
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.1


async def test_redirect_hops_take_slots_too(fake_web: FakeWeb) -> None:
    serve(fake_web, redirects.chain(2, "/good"))
    async with Rig(fake_web, SLOW) as rig:
        await rig.page(rig.url(HOST, "/hop/1"))
    assert len(fake_web.hits(HOST)) == 3
    assert min(fake_web.gaps(HOST)) > 0.2


async def test_a_hop_whose_slot_is_too_far_goes_to_the_queue_with_its_chain(fake_web: FakeWeb) -> None:
    serve(fake_web, redirects.chain(2, "/good"))
    async with Rig(fake_web, with_politeness(QUICK, delay_seconds=60.0)) as rig:
        records = await rig.records(rig.url(HOST, "/hop/1"))
    (links,), found = links_of(records), outcome_of(records)
    assert links.links[0].url == rig.url(HOST, "/hop/2")
    assert links.chain == (Hop(url=rig.url(HOST, "/hop/1"), status=302),)
    assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.ALIAS, "redirect_deferred", True)


@pytest.mark.parametrize(("status", "form"), [(429, "seconds"), (503, "date")])
async def test_case_1_retry_after_parks_the_whole_host(fake_web: FakeWeb, status: int, form: str) -> None:
    busy = limits.busy(2, status) if form == "seconds" else limits.busy_until(2, status)
    serve(fake_web, {"/": sequence(busy, PAGE)})
    settings = with_politeness(QUICK, horizon_seconds=5.0, per_host_concurrency=3)
    async with Rig(fake_web, settings) as rig:
        found = await rig.outcome(rig.url(HOST))
        assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.RETRY, f"http_{status}", False)
        assert found.retry_after_ms is not None
        assert 1000 < found.retry_after_ms <= 3000
        await asyncio.gather(rig.page(rig.url(HOST)), rig.page(rig.url(HOST, "/good")))
    assert fake_web.gaps(HOST)[0] >= 1.99


async def test_case_1_a_slot_given_before_the_429_is_not_used(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": limits.busy(30)})
    settings = with_politeness(SLOW, per_host_concurrency=3)
    async with Rig(fake_web, settings) as rig:
        tasks = [rig.outcome(rig.url(HOST)), rig.outcome(rig.url(HOST, "/good")), rig.outcome(rig.url(HOST, "/good"))]
        first, *others = await asyncio.gather(*tasks)
    assert first.reason == "http_429"
    assert all(other.outcome is OutcomeClass.DEFERRED for other in others)
    assert all((other.deferred_until_ms or 0) - other.at_ms > 28_000 for other in others)
    assert len(fake_web.hits(HOST)) == 1


async def test_case_1_a_retry_after_beyond_the_cap_ends_the_visit_and_is_not_shortened(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": limits.busy(str(10**9))})
    async with Rig(fake_web) as rig:
        found = await rig.outcome(rig.url(HOST))
        assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.FAILED, "retry_after_too_long", True)
        assert found.retry_after_ms == 10**12
        other = await rig.outcome(rig.url(HOST, "/good"))
    assert (other.deferred_until_ms or 0) > found.at_ms + 10**12 - 1000


async def test_a_busy_host_without_retry_after_is_left_alone_longer_each_time(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": limits.busy()})
    settings = with_politeness(QUICK, backoff_seconds=0.2, horizon_seconds=5.0)
    async with Rig(fake_web, settings) as rig:
        for _ in range(4):
            assert (await rig.outcome(rig.url(HOST))).retry_after_ms is None
    first, second, third = fake_web.gaps(HOST)
    assert first > 0.19
    assert second > 0.39
    assert third > 0.79


async def test_a_host_that_never_answers_opens_the_breaker(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": faults.hang_up()})
    settings = with_politeness(QUICK, breaker_failures=3, breaker_seconds=60.0)
    async with Rig(fake_web, settings) as rig:
        reasons = [(await rig.outcome(rig.url(HOST))).reason for _ in range(4)]
    assert reasons == ["connection_lost"] * 3 + ["politeness"]


async def test_case_13_crawl_delay_sets_the_gap_and_is_clamped(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    settings = with_politeness(QUICK, crawl_delay_seconds_max=0.5)
    async with Rig(fake_web, settings) as rig:
        await rig.rules(rig.url(HOST), "User-agent: *\nCrawl-delay: 0.3\n")
        assert (await rig.page(rig.url(HOST))).timings.gap_required_ms == 300
        await rig.page(rig.url(HOST))
        await rig.rules(rig.url("b.test"), "User-agent: *\nCrawl-delay: 10\n")
        fake_web.add(Site("b.test", {"/": PAGE}))
        assert (await rig.page(rig.url("b.test"))).timings.gap_required_ms == 500
    assert fake_web.gaps(HOST)[0] > 0.2


async def test_the_delay_follows_the_response_time(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": delays.delayed(PAGE, 0.2)})
    async with Rig(fake_web, with_politeness(QUICK, adaptive_factor=2.0)) as rig:
        await rig.page(rig.url(HOST))
        assert (await rig.page(rig.url(HOST))).timings.gap_required_ms >= 390


async def test_a_task_does_not_start_before_its_time(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web) as rig:
        begun = rig.clock.now_ms()
        await rig.page(rig.url(HOST), not_before_ms=begun + 300)
        assert rig.clock.now_ms() - begun >= 300
        far = await rig.outcome(rig.url(HOST), not_before_ms=begun + 60_000)
    assert far.deferred_until_ms == begun + 60_000


# robots.txt at every hop


async def test_what_robots_disallows_is_refused_with_the_line(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/start": redirects.redirect("/private/x"), "/private/x": PAGE})
    async with Rig(fake_web) as rig:
        await rig.rules(rig.url(HOST), "User-agent: *\nDisallow: /private/\n")
        for path in ("/private/x", "/start"):
            found = await rig.outcome(rig.url(HOST, path))
            assert (found.outcome, found.reason, found.terminal) == (OutcomeClass.REFUSED, "robots_disallowed", True)
            assert "Disallow: /private/" in found.detail
    assert [request.path for request in fake_web.hits(HOST)] == ["/start"]


async def test_nothing_is_fetched_while_robots_is_unknown_or_unavailable(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    async with Rig(fake_web) as rig:
        url = rig.url(HOST)
        unknown = outcome_of(await rig.stage.step(task(url)))
        assert (unknown.outcome, unknown.reason, unknown.terminal) == (OutcomeClass.RETRY, "robots_unknown", False)
        await rig.robots.put(
            RobotsEntry(origin=origin_of(url), state=RobotsState.UNAVAILABLE, expires_at_ms=FAR_MS, reason="http_503")
        )
        closed = await rig.outcome(url)
        assert (closed.outcome, closed.reason, closed.terminal) == (OutcomeClass.RETRY, "robots_unavailable", False)
    assert fake_web.hits(HOST) == []


async def test_the_agents_own_group_wins(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE})
    settings = with_fetch(QUICK, user_agent="MyCrawler/1.0 (+https://me.test)")
    async with Rig(fake_web, settings) as rig:
        await rig.rules(rig.url(HOST), "User-agent: *\nDisallow: /\n\nUser-agent: mycrawler\nDisallow: /private/\n")
        assert (await rig.page(rig.url(HOST))).status == 200
    assert fake_web.hits(HOST)[0].headers["user-agent"].startswith("MyCrawler/1.0")


async def test_a_robots_task_makes_its_host_known(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/": PAGE, "/robots.txt": Reply(200, b"User-agent: *\nDisallow: /x\n")})
    async with Rig(fake_web) as rig:
        url = rig.url(HOST)
        assert outcome_of(await rig.stage.step(task(url))).reason == "robots_unknown"
        await rig.stage.step(robots_task(url))
        assert isinstance((await rig.stage.step(task(url)))[0], FetchedPage)
        assert outcome_of(await rig.stage.step(task(url + "x"))).reason == "robots_disallowed"
