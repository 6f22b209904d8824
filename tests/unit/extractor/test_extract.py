"""Whole pages: main content, metadata, limits and hostile input."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trawl.extractor.extract import extract_body, extract_html
from trawl.kinds import BlockKind
from trawl.settings import ExtractSettings

URL = "https://example.com/blog/post"
SENTENCES = (
    "The harbour was quiet when the first boats came in, and nobody on the quay expected the storm that followed. "
    "Fishermen mended their nets in the shade, children counted gulls, and the old clock above the market struck nine. "
)
ARTICLE = f"""<!doctype html><html lang="en-gb"><head><meta charset=utf-8><title>The storm - Harbour News</title>
<meta property="og:site_name" content="Harbour News"><meta name=author content="Ann Writer">
<meta name=description content="A storm hits.">
<meta property="article:published_time" content="2024-05-06T07:08:09+02:00">
<link rel=canonical href="/blog/the-storm"><meta property="og:image" content="/img/storm.jpg"></head><body>
<div class="cookie-consent"><p>We use cookies to improve your experience.
Accept all cookies or read our cookie policy.</p></div>
<nav><ul><li><a href="/">Home</a></li><li><a href="/news">News</a></li><li><a href="/about">About us</a></li></ul></nav>
<main><article><h1>The storm</h1><p>{SENTENCES}</p><p>{SENTENCES * 2}</p><h2>What came after</h2><p>{SENTENCES}</p>
<ul><li>Two boats were lost in the harbour that night.</li><li>The <a href="/clock">clock</a> stopped at nine.</li></ul>
<p>{SENTENCES}</p></article></main>
<aside class="related-posts"><h3>Related posts</h3>
<ul><li><a href="/1">Calm seas</a></li><li><a href="/2">Gulls</a></li></ul></aside>
<footer><p>Copyright 2024 Harbour News. All rights reserved.</p><a href="/privacy">Privacy</a></footer>
<script>var leaked = 1;</script></body></html>"""


def test_an_article_is_its_text_without_what_stands_around_it() -> None:
    found = extract_html(ARTICLE.encode(), URL)
    assert "harbour was quiet" in found.text
    assert "Two boats were lost" in found.text
    for noise in ("cookie", "About us", "Calm seas", "All rights reserved", "leaked"):
        assert noise not in found.text
    assert "- The [clock](https://example.com/clock) stopped at nine." in found.markdown
    assert found.confidence > 0.5


def test_a_page_tells_about_itself() -> None:
    found = extract_html(ARTICLE.encode(), URL)
    about = found.metadata
    assert about.title == "The storm"
    assert about.author == "Ann Writer"
    assert about.published == "2024-05-06T05:08:09Z"
    assert about.language == "en-GB"
    assert about.site_name == "Harbour News"
    assert about.description == "A storm hits."
    assert about.images == ("https://example.com/img/storm.jpg",)
    assert found.links.canonical == "https://example.com/blog/the-storm"
    assert json.loads(found.structured)["opengraph"]["og:site_name"] == "Harbour News"


def test_blocks_know_the_headings_above_them() -> None:
    found = extract_html(ARTICLE.encode(), URL)
    lists = [block for block in found.blocks if block.kind is BlockKind.LIST]
    assert lists[0].heading_path[-1] == "What came after"
    assert "\n\n".join(block.markdown for block in found.blocks) == found.markdown


def test_links_can_stay_as_written() -> None:
    found = extract_html(ARTICLE.encode(), URL, None, ExtractSettings(absolute_links=False))
    assert "[clock](/clock)" in found.markdown


def test_case_36_a_listing_keeps_its_items_as_items() -> None:
    cards = "".join(
        f'<div class="card"><h3><a href="/item/{n}">Item number {n}</a></h3><p>A short blurb about the item {n}, '
        f'so that people know what to expect of it.</p><a href="/item/{n}">Read more</a></div>'
        for n in range(12)
    )
    html = (
        f"<body><header><a href=/>Site</a></header><main><h1>All items</h1><div class=grid>{cards}</div></main></body>"
    )
    found = extract_html(html.encode(), "https://example.com/category/things")
    for n in range(12):
        assert f"### [Item number {n}](https://example.com/item/{n})" in found.markdown
        assert f"about the item {n}," in found.text
    assert sum(block.kind is BlockKind.HEADING for block in found.blocks) >= 12


def test_text_that_only_scripts_would_show_is_found_in_noscript() -> None:
    html = f"<body><div id=app></div><noscript><h1>Thread</h1><p>{SENTENCES * 4}</p></noscript></body>"
    assert "harbour was quiet" in extract_html(html, URL).text


@pytest.mark.parametrize(
    ("body", "content_type", "reason"),
    [
        (b"%PDF-1.7\n...", "text/html", "binary_body"),
        (b"\x89PNG\r\n\x1a\n" + bytes(50), "text/html", "binary_body"),
        (bytes(range(256)) * 4, "text/html", "binary_body"),
        (b"{}", "application/json", "unsupported_media_type"),
        (b"a,b", "text/csv", "unsupported_media_type"),
        (b"", "text/html", "empty_body"),
        (b" \n ", "text/plain", "empty_body"),
    ],
)
def test_a_body_without_a_reader_has_a_typed_reason(body: bytes, content_type: str, reason: str) -> None:
    found = extract_body(body, URL, content_type)
    assert found.reason == reason
    assert URL in found.detail


def test_plain_text_and_markdown_pass_through() -> None:
    text = extract_body(b"First *line*\nsecond\n\nNext", URL, "text/plain")
    assert text.text == "First *line*\nsecond\n\nNext"
    assert text.markdown == "First \\*line\\*\\\nsecond\n\nNext"
    source = b"# Title\n\nSome **bold** text\n\n```py\na\n\nb\n```"
    md = extract_body(source, URL, "text/markdown")
    assert md.markdown == source.decode()
    assert md.metadata.title == "Title"
    assert [block.kind for block in md.blocks] == [BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.CODE]


def test_the_text_is_cut_at_its_cap_and_says_so() -> None:
    found = extract_html(ARTICLE.encode(), URL, None, ExtractSettings(text_chars_max=300))
    assert 200 < len(found.text) <= 300
    assert found.truncated


def test_a_page_with_too_many_elements_is_cut_and_says_so() -> None:
    found = extract_html("<p>word</p>" * 5_000, URL, None, ExtractSettings(nodes_max=1_000))
    assert found.truncated
    assert 0 < found.text.count("word") <= 1_000


HOSTILE = {
    "div": "<div>" * 100_000 + "x",
    "inline": "<b><i>" * 50_000 + "x",
    "links": "<a href=/x>" * 50_000 + "x",
    "lists": "<ul><li>" * 50_000 + "x",
    "quotes": "<blockquote>" * 100_000 + "x",
    "tables": "<table><tr><td>" * 20_000 + "x",
    "balanced": "<div>" * 9_000 + "x" + "</div>" * 9_000,
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(200_000)) + ">x",
    "quoted attributes": "<p " + "".join(f'a{i}="1"' for i in range(200_000)) + ">x",
    "entities": "&amp;" * 500_000,
    "comments": "<!--" * 50_000,
    "angles": "<" * 500_000,
    "spans": "<table>" + "<tr><td rowspan=100 colspan=100>x</td></tr>" * 3_000 + "</table>",
    "classes": '<p class="' + "ab " * 100_000 + '">x',
    "microdata": '<div itemscope itemtype="http://schema.org/Product">' * 5_000,
    "rules of style": "<p>" + ".a {" * 200_000,
    "functions": "<p>" + "function(" * 200_000,
    "JSON-LD, closers before the end": '<script type="application/ld+json">{}' + " ;" * 300_000 + "x</script>",
    "JSON-LD, no end of a string": '<script type="application/ld+json">{' + '"\\' * 300_000 + "</script>",
    "JSON-LD, no end of a comment": '<script type="application/ld+json">{' + "<!--" * 200_000 + "</script>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_bounded_in_time_and_do_not_crash(name: str) -> None:
    started = time.process_time()
    extract_html(HOSTILE[name].encode(), URL)
    assert time.process_time() - started < 5


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "<p>",
                "</p>",
                "<table>",
                "<tr>",
                "<td>",
                "<ul>",
                "<li>",
                "<a href=x>",
                "</a>",
                "<b>",
                "<pre>",
                "<h2>",
                "text ",
                "\x00",
                "<!--",
                "-->",
                "<noscript>",
                "<svg>",
                "<template>",
                "<frameset>",
                "&#0;",
                "<dl>",
                "<dt>",
                "<br>",
                "<img src=x>",
            ]
        ),
        max_size=40,
    ).map("".join)
)
def test_any_soup_of_tags_gives_a_result(html: str) -> None:
    found = extract_html(html, URL)
    assert found.reason in ("", "empty_body")
