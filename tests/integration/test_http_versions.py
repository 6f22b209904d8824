"""HTTP/2 and HTTP/3 as real servers speak them, and the way back when one of them fails."""

import asyncio

import pytest

from tests.fetching import QUICK, Rig, with_fetch
from tests.site import FakeWeb, Reply, Site
from tests.site.http2 import Http2Web
from tests.site.quic import QuicWeb
from trawl.adapters.http.alternatives import ORIGINS_MAX, Alternatives
from trawl.kinds import OutcomeClass
from trawl.ports import HttpFailure, HttpResponse
from trawl.records import Header
from trawl.settings import Settings

HOST = "a.test"
TCP = b"<p>over tcp"
QUIC = b"<p>over quic"


def trusting(web: FakeWeb, **fields: object) -> Settings:
    return with_fetch(QUICK, ca_file=str(web.ca_file), **fields)


# HTTP/2


async def test_http_2_is_spoken_where_it_is_offered_and_one_connection_serves_many(fake_web: FakeWeb) -> None:
    bodies = {f"/{n}": b"<p>%d" % n * 500 for n in range(8)}
    async with (
        Http2Web(bodies).serving(fake_web.authority, HOST) as web,
        Rig(fake_web, trusting(fake_web)) as rig,
    ):
        first = await rig.request(f"https://{HOST}:{web.port}/0")
        assert isinstance(first, HttpResponse), first
        assert (first.http_version, first.address) == ("2", "127.0.0.1")
        found = await asyncio.gather(*(rig.request(f"https://{HOST}:{web.port}{path}") for path in bodies))
        assert [getattr(one, "body", one) for one in found] == list(bodies.values())
        assert web.connections == 1


@pytest.mark.parametrize(
    ("path", "reasons"),
    [
        ("/reset", {"connection_lost", "protocol_error"}),
        ("/goaway", {"connection_lost", "protocol_error"}),
        ("/cut", {"truncated"}),
    ],
)
async def test_what_http_2_ends_early_is_typed_and_the_next_fetch_works(
    fake_web: FakeWeb, path: str, reasons: set[str]
) -> None:
    async with (
        Http2Web({"/": b"<p>whole"}).serving(fake_web.authority, HOST) as web,
        Rig(fake_web, trusting(fake_web)) as rig,
    ):
        url = f"https://{HOST}:{web.port}"
        outcome = await rig.outcome(url + path)
        assert outcome.outcome is OutcomeClass.RETRY
        assert outcome.reason in reasons
        assert (await rig.page(url + "/")).http_version == "2"


# HTTP/3


def offer(port: int, body: bytes = TCP) -> Reply:
    return Reply(body=body, headers=(("Alt-Svc", f'h3=":{port}"; ma=60, h3-29=":{port}"'),))


async def test_http_3_is_spoken_once_it_was_offered_to_the_same_checked_address(fake_web: FakeWeb) -> None:
    port = fake_web.https_port
    fake_web.add(Site(HOST, {"/": offer(port), "/b": offer(port)}))
    async with (
        QuicWeb({"/": QUIC, "/b": QUIC}).serving(fake_web.authority, HOST, port) as web,
        Rig(fake_web, trusting(fake_web)) as rig,
    ):
        pages = [await rig.page(rig.url(HOST, path, scheme="https")) for path in ("/", "/", "/b")]
        assert [page.http_version for page in pages] == ["1.1", "3", "3"]
        assert [page.body.inline for page in pages] == [TCP, QUIC, QUIC]
        assert {page.address for page in pages} == {"127.0.0.1"}
        assert web.asked == ["/", "/b"]


async def test_where_quic_does_not_get_through_tcp_serves_and_quic_is_left_alone(fake_web: FakeWeb) -> None:
    port = fake_web.https_port
    fake_web.add(Site(HOST, {"/": offer(port)}))
    async with Rig(fake_web, trusting(fake_web)) as rig:
        pages = [await rig.page(rig.url(HOST, scheme="https")) for _ in range(3)]
        assert {page.http_version for page in pages} == {"1.1"}
        origin = f"https://{HOST}:{port}"
        assert not rig.http._alternatives.offers(origin, asyncio.get_running_loop().time())


@pytest.mark.parametrize(
    "said",
    [
        'h3="other.test:{port}"',
        'h3=":{other}"',
        'h2=":{port}"',
        "clear",
        'h3=":{port}"; ma=0',
        "h3=:{port}",
        'h3=":99999"',
    ],
)
async def test_an_offer_that_leads_elsewhere_or_is_none_is_not_taken_up(fake_web: FakeWeb, said: str) -> None:
    port = fake_web.https_port
    value = said.format(port=port, other=port + 1)
    fake_web.add(Site(HOST, {"/": Reply(body=TCP, headers=(("Alt-Svc", value),))}))
    async with (
        QuicWeb({"/": QUIC}).serving(fake_web.authority, HOST, port) as web,
        Rig(fake_web, trusting(fake_web)) as rig,
    ):
        for _ in range(2):
            assert (await rig.page(rig.url(HOST, scheme="https"))).body.inline == TCP
        assert web.asked == []


async def test_http_3_can_be_turned_off(fake_web: FakeWeb) -> None:
    port = fake_web.https_port
    fake_web.add(Site(HOST, {"/": offer(port)}))
    async with (
        QuicWeb({"/": QUIC}).serving(fake_web.authority, HOST, port) as web,
        Rig(fake_web, trusting(fake_web, http3=False)) as rig,
    ):
        for _ in range(2):
            await rig.page(rig.url(HOST, scheme="https"))
        assert web.asked == []


async def test_the_limits_hold_over_http_3(fake_web: FakeWeb) -> None:
    port = fake_web.https_port
    fake_web.add(Site(HOST, {"/": offer(port), "/large": offer(port)}))
    large = b"x" * 200_000
    async with (
        QuicWeb({"/large": large, "/": QUIC}).serving(fake_web.authority, HOST, port) as web,
        Rig(fake_web, trusting(fake_web, body_bytes_max=100_000)) as rig,
    ):
        await rig.page(rig.url(HOST, scheme="https"))
        failure = await rig.request(rig.url(HOST, "/large", scheme="https"))
        assert isinstance(failure, HttpFailure)
        assert (failure.reason, failure.status) == ("body_too_large", 200)
        silent = await rig.request(rig.url(HOST, "/never", scheme="https"))
        assert isinstance(silent, HttpFailure)
        assert silent.reason == "first_byte_timeout"
        assert web.asked == ["/large", "/never"]


def test_offers_are_remembered_up_to_a_number() -> None:
    known = Alternatives()
    for number in range(ORIGINS_MAX + 1):
        known.learn(f"https://h{number}.test:443", 443, [Header(name="alt-svc", value='h3=":443"')], 0.0)
    assert not known.offers("https://h0.test:443", 1.0)
    assert known.offers("https://h1.test:443", 1.0)


def test_an_offer_ends_and_one_that_failed_is_tried_again_later() -> None:
    known, origin = Alternatives(), "https://a.test:443"
    known.learn(origin, 443, [Header(name="alt-svc", value='h3=":443"; ma=3600')], 0.0)
    assert known.offers(origin, 3599.0)
    assert not known.offers(origin, 3600.0)
    known.failed(origin, 10.0)
    assert not known.offers(origin, 309.0)
    assert known.offers(origin, 310.0)
