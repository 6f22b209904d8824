"""What the fake web serves is what its names say: charsets, bombs, traps, mirrors, sitemaps and feeds."""

import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import urljoin
from xml.etree import ElementTree as ET

import cramjam
import pytest
import zstandard

from tests.site import FakeWeb, Page, Site
from tests.site.clients import browser, exchange, links_of
from tests.site.responders import (
    bombs,
    charsets,
    feeds,
    mirrors,
    sitemaps,
    traps,
)

PATHS = ("/a", "/b?x=1&y=2", "https://other.test/c")


@pytest.mark.parametrize("name", charsets.CASES)
def test_pages_in_each_charset_hold_their_text(name: str) -> None:
    case = charsets.CASES[name]
    assert case.text in case.page.body[len(case.before) :].decode(case.encoding)


_DECODERS: dict[str, Callable[[bytes], int]] = {
    "gzip": lambda body: len(gzip.decompress(body)),
    "br": lambda body: len(cramjam.brotli.decompress(body)),
    "zstd": lambda body: len(zstandard.ZstdDecompressor().decompressobj().decompress(body)),
    "deflate": lambda body: len(zlib.decompress(body)),
    "nested": lambda body: len(gzip.decompress(gzip.decompress(body))),
}


@pytest.mark.parametrize("kind", bombs.KINDS)
def test_bombs_are_valid_and_grow_to_what_they_claim(kind: str) -> None:
    assert _DECODERS[kind](bombs.bomb(kind, 5_000_000).body) == 5_000_000


@pytest.mark.parametrize("kind", bombs.KINDS)
async def test_bombs_of_300_mb_fit_into_300_kb_with_and_without_length(fake_web: FakeWeb, kind: str) -> None:
    assert len(bombs.bomb(kind).body) <= 310_000
    for chunked in (False, True):
        fake_web.add(Site("x.test", {"/": bombs.bomb(kind, 5_000_000, chunked=chunked)}))
        answer = await exchange(fake_web, "GET / HTTP/1.1\nHost: x.test\nConnection: close\n\n")
        assert (b"Transfer-Encoding: chunked" in answer) is chunked
        assert b"Content-Encoding: " in answer


def test_a_gzip_bomb_decodes_to_its_end() -> None:
    decoder = zlib.decompressobj(31)
    total = 0
    pending = bombs.gzip_zeros()
    while not decoder.eof:
        total += len(decoder.decompress(pending, 1 << 20))
        pending = decoder.unconsumed_tail
    assert total == bombs.BOMB_BYTES


async def test_traps_always_lead_to_new_urls_of_hardly_new_pages(fake_web: FakeWeb) -> None:
    fake_web.add(Site("x.test", traps.all_traps()))
    async with browser(fake_web) as client:
        for entrance in traps.ENTRANCES:
            seen, url = set(), "http://x.test" + entrance
            for _ in range(12):
                assert url not in seen, f"the trap at {entrance} ends"
                seen.add(url)
                response = await client.get(url)
                assert response.status_code == 200
                url = next(new for new in _resolved(url, response.content) if new not in seen)


def _resolved(url: str, body: bytes) -> Iterator[str]:
    return (urljoin(url, link.replace("&amp;", "&")) for link in links_of(body))


def test_mirrors_repeat_and_near_duplicates_change_as_much_as_asked() -> None:
    assert mirrors.article(1) == mirrors.article(1)
    words = mirrors.near_duplicate(1, 0).body.split()
    for share in (0.001, 0.01, 0.1, 0.5):
        other = mirrors.near_duplicate(1, share).body.split()
        changed = sum(a != b for a, b in zip(words, other, strict=True)) / len(words)
        assert 0.3 * share <= changed <= 1.1 * share + 2 / len(words)
    assert len({page.body for page in map(mirrors.article, range(200))}) == 200
    assert len({site.host for site in mirrors.mirror_sites("a.test", "b.test")}) == 2


async def test_gz_sitemaps_arrive_in_four_ways_with_the_same_urls(fake_web: FakeWeb) -> None:
    fake_web.add(Site("x.test", sitemaps.gz_variants(*PATHS)))
    expected = [b"http://x.test/a", b"http://x.test/b?x=1&amp;y=2", b"https://other.test/c"]
    for path, layers in (("file.xml", 1), ("coded.xml", 1), ("both.xml", 2), ("list.txt", 1)):
        request = f"GET /sitemap-{path}.gz HTTP/1.1\nHost: x.test\nConnection: close\n\n"
        head, _, body = (await exchange(fake_web, request)).partition(b"\r\n\r\n")
        assert (b"Content-Encoding: gzip" in head) is (path in {"coded.xml", "both.xml"})
        for _ in range(layers):
            body = gzip.decompress(body)
        found = body.replace(b"&", b"&amp;").split() if path == "list.txt" else re.findall(rb"<loc>(.*?)</loc>", body)
        assert found == expected, path


@pytest.mark.parametrize("cdata", [False, True])
async def test_sitemaps_and_indexes_are_xml_with_absolute_urls(fake_web: FakeWeb, cdata: bool) -> None:
    urlset = sitemaps.urlset(*PATHS, lastmod="2026-01-01", priority=0.5, cdata=cdata)
    pages = {"/s": urlset, "/i": sitemaps.index(*PATHS, cdata=cdata)}
    fake_web.add(Site("x.test", pages))
    async with browser(fake_web) as client:
        for path in pages:
            body = (await client.get("https://x.test" + path)).content
            assert (b"CDATA" in body) is cdata
            locs = [(node.text or "").strip() for node in ET.fromstring(body).findall(".//{*}loc")]
            assert locs == ["https://x.test/a", "https://x.test/b?x=1&y=2", "https://other.test/c"]


async def test_large_sitemaps_are_streamed_and_distinct(fake_web: FakeWeb) -> None:
    fake_web.add(Site("x.test", sitemaps.large_index(2, 50_000)))
    async with browser(fake_web) as client:
        locs = []
        for number in range(2):
            response = await client.get(f"http://x.test/big/{number}.xml")
            assert response.headers["transfer-encoding"] == "chunked"
            locs += re.findall(rb"<loc>(.*?)</loc>", response.content)
    assert len(set(locs)) == 100_000


async def test_feeds_are_xml_that_names_every_path(fake_web: FakeWeb) -> None:
    pages: dict[str, Page] = {
        "/rss": feeds.rss(*PATHS),
        "/rss-cdata": feeds.rss(*PATHS, cdata=True),
        "/rss-guid": feeds.rss(*PATHS, guid_only=True),
        "/atom": feeds.atom(*PATHS),
        "/rdf": feeds.rdf(*PATHS),
    }
    fake_web.add(Site("x.test", pages))
    async with browser(fake_web) as client:
        for path in pages:
            tree = ET.fromstring((await client.get("http://x.test" + path)).content)
            found = {value for node in tree.iter() for value in (node.text, node.get("href"))}
            assert {"http://x.test/a", "http://x.test/b?x=1&y=2", "https://other.test/c"} <= found, path
