"""Links: what they resolve to and what they say about themselves."""

from hypothesis import given
from hypothesis import strategies as st

from trawl.extractor.links import PageLinks, Resolver, meta_statements, page_links
from trawl.extractor.tree import Page, parse
from trawl.kinds import Found, Purpose


def page_of(html: str) -> Page:
    return parse(html.encode(), nodes_max=100_000, depth_max=150)


def links_of(html: str, url: str = "https://example.com/foo/bar", *, links_max: int = 100) -> PageLinks:
    page = page_of(html)
    return page_links(page, Resolver(url, page.all("base")), links_max=links_max, anchor_chars_max=50)


def urls(html: str, url: str = "https://example.com/foo/bar") -> list[str]:
    return [link.url for link in links_of(html, url).links]


def test_case_18_links_are_resolved_against_the_first_base() -> None:
    html = '<head><base href="/"><base href="/other/"></head><a href="page.php">x</a>'
    assert urls(html) == ["https://example.com/page.php"]
    assert urls('<base target=_top><base href="//cdn.example/x/"><a href="y">x</a>') == ["https://cdn.example/x/y"]
    assert urls('<base href="javascript:0"><a href="y">x</a>') == ["https://example.com/foo/y"]


def test_case_19_links_are_resolved_against_the_final_url() -> None:
    assert urls('<a href="b">x</a>', "https://example.com/docs/a/") == ["https://example.com/docs/a/b"]


def test_only_http_links_to_other_documents_are_kept_once() -> None:
    html = """<a href="#top">a</a><a href="mailto:x@y.z">b</a><a href="javascript:void(0)">c</a><a href="tel:1">d</a>
    <a href=" /x#frag ">e</a><a href="/x">f</a><a href="ftp://h/x">g</a><a href="http://[bad">h</a><a>i</a>
    <a href="">j</a><map><area href="/area" alt="A"></map>"""
    assert urls(html) == ["https://example.com/x", "https://example.com/area"]


def test_a_link_tells_its_words_and_its_rel() -> None:
    html = '<a href="/a" rel="NoFollow UGC">Two\n <b>words</b></a><a href="/b"><img src=i alt="Picture"></a>'
    first, second = links_of(html).links
    assert (first.anchor, first.rel) == ("Two words", ("nofollow", "ugc"))
    assert second.anchor == "Picture"
    assert len(links_of(f'<a href="/a">{"word " * 50}</a>').links[0].anchor) <= 50


def test_a_later_anchor_with_words_replaces_an_earlier_one_without() -> None:
    (link,) = links_of('<a href="/a"><img src=i></a><a href="/a">Words</a>').links
    assert link.anchor == "Words"


def test_the_head_names_canonical_feeds_translations_and_neighbours() -> None:
    found = links_of(
        """<head><link rel=canonical href="/foo/canonical#x">
        <link rel=alternate type="application/rss+xml" href="/feed">
        <link rel=alternate hreflang=de href="/de/"><link rel=next href="?page=2"><link rel=stylesheet href="/s.css">
        <link rel="alternate stylesheet" href="/t.css"><link rel=preload href="/u.js"></head>"""
    )
    assert found.canonical == "https://example.com/foo/canonical"
    assert found.feeds == ("https://example.com/feed",)
    assert found.alternates == (("de", "https://example.com/de/"),)
    kinds = {link.url: (link.found, link.purpose) for link in found.links}
    assert kinds == {
        "https://example.com/foo/canonical": (Found.CANONICAL, Purpose.PAGE),
        "https://example.com/feed": (Found.FEED, Purpose.FEED),
        "https://example.com/de/": (Found.ALTERNATE, Purpose.PAGE),
        "https://example.com/foo/bar?page=2": (Found.LINK, Purpose.PAGE),
    }


def test_a_meta_refresh_to_another_page_is_a_link() -> None:
    for content in ("0; url=/new", "0;URL='/new'", "5 , /new"):
        assert links_of(f'<meta http-equiv=Refresh content="{content}">').refresh == "https://example.com/new"
    assert links_of('<meta http-equiv=refresh content="300">').refresh == ""


def test_an_iframe_is_not_a_link() -> None:
    assert urls('<iframe src="/frame"></iframe>') == []


def test_links_are_capped_and_the_cap_is_told() -> None:
    found = links_of("".join(f'<a href="/{i}">x</a>' for i in range(50)), links_max=10)
    assert len(found.links) == 10
    assert found.truncated


def test_meta_elements_that_may_be_statements_are_read_raw() -> None:
    html = """<meta name=trawl content=nofollow><meta name=ROBOTS content=" NoIndex, max-snippet:50">
    <meta property=x content=y><meta name=tdm-reservation content=1><meta name=empty><meta charset=utf-8>
    <meta name=citation_author content=A><meta name=og:title content=T><meta name=tdm-reservation content=0>"""
    assert meta_statements(page_of(html)) == (
        ("robots", "NoIndex, max-snippet:50"),
        ("tdm-reservation", "1"),
        ("tdm-reservation", "0"),
        ("trawl", "nofollow"),
    )


def test_no_number_of_meta_elements_and_no_length_hides_a_statement() -> None:
    crowd = "<meta name=other content=x>" * 300 + "<meta name=citation_author content=x>" * 300
    long = "noindex, " + "all, " * 2000
    found = meta_statements(page_of(f"{crowd}<meta name=robots content='{long}'>"))
    assert (found[0][0], found[0][1][:7]) == ("robots", "noindex")
    assert len(found) == 101
    assert sum(len(content) for _, content in found) < 3000


@given(st.text(max_size=60))
def test_any_href_gives_an_absolute_http_url_or_nothing(href: str) -> None:
    url = Resolver("https://example.com/a/b", [])(href)
    assert url == "" or url.startswith(("http://", "https://"))
