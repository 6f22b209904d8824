"""Sitemaps, feeds and URL lists: every packing and spelling, in bounded memory."""

import gzip
import itertools
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.extractor.dates import epoch_ms, iso_date
from trawl.extractor.feed import read_feed
from trawl.extractor.sitemap import read_sitemap
from trawl.extractor.unpack import Unpacked, unpacked
from trawl.extractor.urllist import read_url_list
from trawl.extractor.work import UrlList, extract_page
from trawl.kinds import Found, Purpose
from trawl.records import FetchedPage, Link, Payload
from trawl.settings import ExtractSettings

SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
<url><loc>https://example.com/a?x=1&amp;y=2</loc><lastmod>2024-05-06T07:08:09+02:00</lastmod><priority>0.8</priority>
<image:image><image:loc>https://example.com/i.png</image:loc></image:image></url>
<url><loc> https://example.com/b </loc><lastmod>yesterday</lastmod><priority>high</priority></url></urlset>"""
TEXT = b"https://example.com/a?x=1&y=2\r\n\r\nhttps://example.com/b\n"


def fetched(body: bytes, *, content_type: str = "", purpose: Purpose = Purpose.SITEMAP) -> FetchedPage:
    return FetchedPage(
        fetch_id=1,
        crawl_id="c",
        request_key=2,
        url="https://example.com/sitemap.xml",
        final_url="https://example.com/sitemap.xml",
        status=200,
        fetched_at_ms=0,
        purpose=purpose,
        content_type=content_type,
        body=Payload(inline=body, size_bytes=len(body)),
    )


def listed(body: bytes, *, content_type: str = "", purpose: Purpose = Purpose.SITEMAP) -> list[Link]:
    worked = extract_page(fetched(body, content_type=content_type, purpose=purpose))
    assert isinstance(worked.found, UrlList)
    links = [link for batch in worked.discovered for link in batch.links]
    assert worked.found.count == len(links)
    return links


def test_a_sitemap_gives_urls_with_lastmod_and_priority() -> None:
    first, second = read_sitemap([SITEMAP])
    assert (first.url, first.priority, first.lastmod_ms) == ("https://example.com/a?x=1&y=2", 0.8, 1714972089000)
    assert (second.url, second.priority, second.lastmod_ms) == ("https://example.com/b", None, None)


@pytest.mark.parametrize("layers", [0, 1, 2])
@pytest.mark.parametrize(
    ("body", "content_type"), [(SITEMAP, "application/xml"), (TEXT, "text/plain"), (SITEMAP, "application/x-gzip")]
)
def test_case_21_every_packing_of_a_sitemap_is_read(layers: int, body: bytes, content_type: str) -> None:
    for _ in range(layers):
        body = gzip.compress(body)
    urls = [link.url for link in listed(body, content_type=content_type)]
    assert urls == ["https://example.com/a?x=1&y=2", "https://example.com/b"]


def test_case_23_cdata_is_unwrapped_in_urlset_and_index() -> None:
    urlset = b"<urlset><url><loc><![CDATA[https://example.com/a?b=1&c=2]]></loc></url></urlset>"
    index = b"<sitemapindex><sitemap><loc>\n<![CDATA[https://example.com/s.xml]]>\n</loc></sitemap></sitemapindex>"
    assert [link.url for link in listed(urlset)] == ["https://example.com/a?b=1&c=2"]
    assert [(link.url, link.purpose) for link in listed(index)] == [("https://example.com/s.xml", Purpose.SITEMAP)]


def big_sitemap(count: int) -> Iterator[bytes]:
    yield b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    for number in range(count):
        yield b"<url><loc>https://example.com/page/%d</loc><lastmod>2024-01-01</lastmod></url>\n" % number
    yield b"</urlset>"


def peak_of(count: int) -> int:
    tracemalloc.start()
    assert sum(1 for _ in read_sitemap(big_sitemap(count))) == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_case_24_reading_50000_urls_takes_no_more_memory_than_reading_500() -> None:
    assert peak_of(50_000) < 2 * peak_of(500) + 200_000


def test_case_24_a_sitemap_is_read_up_to_its_cap_and_says_so() -> None:
    settings = ExtractSettings(sitemap_urls_max=10)
    found = extract_page(fetched(b"".join(big_sitemap(20))), settings).found
    assert isinstance(found, UrlList)
    assert (found.count, found.truncated) == (10, True)


def test_case_25_a_gzip_bomb_stops_at_the_cap() -> None:
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    assert len(bomb) < 1000
    tracemalloc.start()
    data, cut = unpacked(bomb, bytes_max=1_000_000, layers_max=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(data), cut) == (1_000_000, True)
    assert peak < 5_000_000


def test_a_damaged_gzip_gives_what_was_readable() -> None:
    chunks = Unpacked(gzip.compress(SITEMAP * 50)[:-200], bytes_max=10_000_000, layers_max=2)
    assert b"".join(chunks).startswith(SITEMAP[:50])


def test_broken_xml_is_read_up_to_the_damage_and_beyond_where_possible() -> None:
    cut = b"<urlset><url><loc>https://example.com/a</loc></url><url><loc>https://example.com/b</loc></url><url><lo"
    assert [link.url for link in listed(cut)] == ["https://example.com/a", "https://example.com/b"]
    bare = cut.replace(b"/a<", b"/a?x=1&y=2<").removesuffix(b"<url><lo") + b"</urlset>"
    assert [link.url for link in listed(bare)] == ["https://example.com/a?x=1&y=2", "https://example.com/b"]


@given(st.integers(1, 40))
def test_bare_ampersands_are_mended_wherever_chunks_end_and_never_inside_cdata(size: int) -> None:
    body = (
        b"<urlset><url><loc>https://example.com/?x=1&y=2&amp;z=3</loc></url>"
        b"<url><loc><![CDATA[https://example.com/?a=1&b=2]]></loc></url></urlset>"
    )
    urls = [link.url for link in read_sitemap(body[at : at + size] for at in range(0, len(body), size))]
    assert urls == ["https://example.com/?x=1&y=2&z=3", "https://example.com/?a=1&b=2"]


def test_entities_are_neither_loaded_nor_multiplied() -> None:
    evil = b"""<?xml version="1.0"?><!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/hostname"><!ENTITY a "aaaaaaaaaa">
    <!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
    <!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;"><!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;">]>
    <urlset><url><loc>https://example.com/&x;&e;</loc></url><url><loc>https://example.com/b</loc></url></urlset>"""
    links = listed(evil)
    assert all(len(link.url) < 5000 for link in links)
    assert "https://example.com/b" in [link.url for link in links]


def test_a_page_of_html_in_the_place_of_a_sitemap_is_reported() -> None:
    result = extract_page(fetched(b"<!doctype html><title>Not found</title>", content_type="text/html")).found
    assert isinstance(result, UrlList)
    assert result.reason == "not_a_sitemap"
    assert "https://example.com/sitemap.xml" in result.detail


RSS = b"""<rss version="2.0"><channel><title>Site</title><link>https://example.com/</link>
<item><title>One &amp; two</title>
<link>https://example.com/1</link><pubDate>Tue, 02 Jan 2024 10:00:00 GMT</pubDate></item>
<item><title>Guid</title><guid>https://example.com/2</guid></item></channel></rss>"""
ATOM = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://example.com/"/><entry><title>A</title>
<link rel="edit" href="/edit"/><link href="/3"/><updated>2024-01-02T10:00:00Z</updated></entry></feed>"""
RDF = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
xmlns:dc="http://purl.org/dc/elements/1.1/"><item><title>R</title><link>https://example.com/4</link>
<dc:date>2024-01-02</dc:date></item></rdf:RDF>"""


def test_the_three_families_of_feeds_are_read() -> None:
    rss = list(read_feed([RSS], 100))
    assert [(link.url, link.anchor, link.lastmod_ms) for link in rss] == [
        ("https://example.com/1", "One & two", 1704189600000),
        ("https://example.com/2", "Guid", None),
    ]
    assert [link.url for link in listed(ATOM, purpose=Purpose.FEED)] == ["https://example.com/3"]
    (item,) = listed(RDF, purpose=Purpose.FEED)
    assert (item.url, item.lastmod_ms, item.found) == ("https://example.com/4", 1704153600000, Found.FEED)


def test_a_feed_or_sitemap_is_recognised_whatever_it_was_fetched_for() -> None:
    assert len(listed(RSS, purpose=Purpose.AUTO, content_type="text/html")) == 2
    assert len(listed(SITEMAP, purpose=Purpose.PAGE, content_type="text/plain")) == 2
    assert len(listed(TEXT, purpose=Purpose.AUTO, content_type="text/plain")) == 2


@given(st.lists(st.integers(1, 999), max_size=30), st.integers(1, 50))
def test_a_url_list_reads_the_same_however_it_is_cut_into_chunks(numbers: list[int], size: int) -> None:
    urls = [f"https://example.com/{number}" for number in numbers]
    body = "\ufeff# comment\n\nnot a url\n".encode() + "\r\n".join(urls).encode()
    chunks = [b""] + [body[at : at + size] for at in range(0, len(body), size)]
    assert [link.url for link in read_url_list(chunks, Found.URL_LIST)] == urls


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2024-05-06", "2024-05-06"),
        ("2024-05-06T07:08:09+02:00", "2024-05-06T05:08:09Z"),
        ("2024-05-06 07:08", "2024-05-06"),
        ("20240506", "2024-05-06"),
        ("May 6, 2024", "2024-05-06"),
        ("6th of nothing", ""),
        ("Posted on 6 May 2024 by x", "2024-05-06"),
        ("6 mai 2024", "2024-05-06"),
        ("Mon, 06 May 2024 07:08:09 GMT", "2024-05-06T07:08:09Z"),
        ("2024-13-45", ""),
        ("", ""),
    ],
)
def test_dates_are_read_as_pages_write_them(text: str, wanted: str) -> None:
    assert iso_date(text) == wanted


def test_a_date_without_a_zone_is_midnight_utc() -> None:
    assert epoch_ms("2024-05") == epoch_ms("2024-05-01") == 1714521600000


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader_of_dates(text: str) -> None:
    iso_date(text)
    epoch_ms(text)


def test_lists_of_any_bytes_end_without_an_exception() -> None:
    for body, purpose in itertools.product((b"", b"\x1f\x8b", b"<urlset", b"\xff\xfe\x00", b"<rss><item>"), Purpose):
        extract_page(fetched(body, purpose=purpose))
