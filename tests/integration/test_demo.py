"""The bundled demo site has, over a real connection, everything that a crawl should meet."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree as ET

import pytest_asyncio

from tests.site.clients import links_of
from trawl.demo import DemoSite, demo_paths
from trawl.robots import allowed

CLOSED = "/admin/"


@pytest_asyncio.fixture
async def site() -> AsyncIterator[DemoSite]:
    async with DemoSite() as running:
        yield running


async def get(url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers by lower-case name and body; redirects are followed by urllib."""

    def blocking() -> tuple[int, dict[str, str], bytes]:
        request = urllib.request.Request(url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()

    return await asyncio.to_thread(blocking)


async def test_links_reach_every_page_one_dead_end_and_one_other_host(site: DemoSite) -> None:
    waiting, seen, dead, elsewhere = [site.url + "/"], set[str](), set[str](), set[str]()
    while waiting:
        url = waiting.pop()
        if url in seen:
            continue
        seen.add(url)
        status, headers, body = await get(url)
        if status == 404:
            dead.add(urlsplit(url).path)
        elif headers["content-type"].startswith("text/html"):
            links = [urljoin(url, link) for link in links_of(body)]
            waiting += [link for link in links if link.startswith(site.url)]
            elsewhere |= {urlsplit(link).netloc for link in links if not link.startswith(site.url)}
    assert {urlsplit(url).path for url in seen} >= set(demo_paths())
    assert 22 <= len(demo_paths()) <= 30
    assert dead == {"/docs/roadmap"}
    assert elsewhere == {"example.com"}


async def test_the_sitemap_lists_all_open_pages_and_the_feed_the_news(site: DemoSite) -> None:
    sitemap = ET.fromstring((await get(site.url + "/sitemap.xml"))[2])
    locs = {node.text for node in sitemap.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")}
    assert locs == {site.url + path for path in demo_paths() if path != CLOSED}
    feed = ET.fromstring((await get(site.url + "/feed.xml"))[2])
    links = [node.text for node in feed.findall(".//item/link")]
    assert len(links) == 3
    assert set(links) <= locs


async def test_robots_close_one_path_and_name_the_sitemap(site: DemoSite) -> None:
    _, _, robots = await get(site.url + "/robots.txt")
    assert f"Sitemap: {site.url}/sitemap.xml".encode() in robots
    assert b"Crawl-delay" not in robots
    assert not allowed(robots, "trawl", site.url + CLOSED)
    assert all(allowed(robots, "trawl", site.url + path) for path in demo_paths() if path != CLOSED)


async def test_it_has_a_redirect_a_duplicate_a_german_page_and_one_in_latin_1(site: DemoSite) -> None:
    assert (await get(site.url + "/docs/getting-started"))[2] == (await get(site.url + "/docs/quickstart"))[2]
    assert (await get(site.url + "/docs/quickstart/print"))[2] == (await get(site.url + "/docs/quickstart"))[2]
    assert b'<html lang="de">' in (await get(site.url + "/de/"))[2]
    _, headers, people = await get(site.url + "/people")
    assert headers["content-type"] == "text/html"
    assert b'<meta charset="iso-8859-1">' in people
    assert "Zoé Lefèvre".encode("latin-1") in people


async def test_pages_can_be_asked_for_only_if_changed(site: DemoSite) -> None:
    _, headers, _ = await get(site.url + "/docs/api")
    status, _, body = await get(site.url + "/docs/api", **{"If-None-Match": headers["etag"]})
    assert (status, body) == (304, b"")


async def test_what_is_not_http_only_ends_its_connection(site: DemoSite) -> None:
    for nonsense in (b"\r\n\r\n", b"GET /\r\n\r\n", b"x" * 40_000):
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
        writer.write(nonsense)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    assert (await get(site.url + "/"))[0] == 200
