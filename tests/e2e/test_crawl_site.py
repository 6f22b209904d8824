"""One crawl of one site, looked at from every side: what is fetched, what is written, what is told."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.running import Corpus, Ran, crawl, front_matter, serving, through, trawl
from tests.site import FakeWeb, Reply, Site, with_headers
from tests.site.responders import feeds, limits, redirects, robots, sitemaps
from tests.site.responders.mirrors import article
from tests.site.responders.pages import html, text

SHOP = "http://shop.test"
LONG = "/long/" + "a-very-long-name-" * 12
ROW_FIELDS = {
    "url", "url_canonical", "fetched_at", "status", "content_type", "content_sha256", "simhash", "render_mode",
    "final_url", "response_headers", "extracted", "text", "html_compressed", "crawl_source",
}  # fmt: skip
PHRASE = "The zeppelin museum of Friedrichshafen closes for the winter."
PRODUCT = '<script type="application/ld+json">{"@type":"Product","name":"Lamp"}</script>'


def shop() -> list[Site]:
    """A site with something of everything that the output must get right, and the hosts that it points at."""
    links = (
        "/a", "/b", "/copy", "/moved", "/away", "/Case", "/case", "/x?a=1", "/x_a_1", LONG, "/noindex", "/hidden",
        "/missing", "/cart/full", "https://shop.test/secure", "http://other.test/", "http://sub.shop.test/",
        "mailto:a@shop.test", "javascript:void(0)", "/a#part", "/a?utm_source=mail",
    )  # fmt: skip
    pages = {
        "/robots.txt": robots.rules("User-agent: *\nDisallow: /cart/\nSitemap: http://shop.test/map.xml\n"),
        "/map.xml": sitemaps.urlset("/only-in-map", "/a"),
        "/only-in-map": article("map"),
        "/": article("home", links=links),
        "/a": article("a", head=PRODUCT),
        "/b": article("b"),
        "/copy": article("a", links=["/behind-copy"]),
        "/behind-copy": article("behind"),
        "/moved": redirects.redirect("/hop", 301),
        "/hop": redirects.redirect("/end", 302),
        "/end": html("End", "A lamp.", f"{PHRASE} Every Friday."),
        "/away": redirects.redirect("http://other.test/landing"),
        "/Case": article("upper"),
        "/case": article("lower"),
        "/x?a=1": article("query"),
        "/x_a_1": article("same name"),
        LONG: article("long"),
        "/noindex": article("noindex", head='<meta name="robots" content="noindex">'),
        "/hidden": html("Hidden", "Follow none of these.", head='<meta name="robots" content="nofollow">',
                        links=["/never"]),
        "/never": article("never"),
        "/cart/full": article("cart"),
        "/secure": article("secure"),
    }  # fmt: skip
    return [
        Site("shop.test", pages),
        Site("other.test", {"/": article("other"), "/landing": article("landing")}),
        Site("sub.shop.test", {"/": article("sub")}),
    ]


@dataclass(frozen=True, slots=True)
class Crawled:
    web: FakeWeb
    ran: Ran
    corpus: Corpus


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    out = tmp_path_factory.mktemp("shop")
    with serving(*shop()) as web:
        header = "SHOP.test: X-Key: secret"
        ran = crawl(web, f"{SHOP}/", "--header", header, "--scope", "domain", "--max-depth", "3", out=out)
        yield Crawled(web, ran, Corpus(out))


EXPECTED = {
    f"{SHOP}{path}"
    for path in ("/", "/a", "/b", "/copy", "/behind-copy", "/moved", "/Case", "/case", "/x?a=1", "/x_a_1",
                 LONG, "/hidden", "/only-in-map")
} | {"https://shop.test/secure", "http://sub.shop.test/"}  # fmt: skip


def test_every_page_in_scope_has_one_row_and_no_other(crawled: Crawled) -> None:
    assert crawled.ran.code == 0, crawled.ran.err
    assert crawled.corpus.urls == EXPECTED
    crawled.corpus.consistent()


def test_the_last_line_of_standard_output_counts_what_happened(crawled: Crawled) -> None:
    summary = crawled.ran.summary
    assert summary["finished"]
    assert not summary["interrupted"]
    assert (summary["pages"], summary["indexed"], summary["duplicates"]) == (15, 14, 1)
    assert summary["documents"] == 14
    assert summary["queued"] == summary["dead_letters"] == summary["politeness_violations"] == 0
    assert summary["failed"] == {"http_404": 1}
    assert summary["skipped"]["out_of_scope"] >= 1
    assert summary["skipped"]["robots_disallowed"] == 1
    assert summary["skipped"]["nofollow"] == 1


def test_rows_hold_the_minimum_record(crawled: Crawled) -> None:
    for row in crawled.corpus.rows:
        assert row.keys() >= ROW_FIELDS
        assert row["status"] == 200
        assert row["fetched_at"].endswith("Z")
        assert len(row["content_sha256"]) == 64
        assert len(row["simhash"]) == 16
        assert row["render_mode"] == "static"
        assert row["response_headers"]["content-type"] == "text/html; charset=utf-8"
    row = crawled.corpus.row(f"{SHOP}/a")
    assert row["extracted"]["schema.org/Product"]
    assert row["crawl_source"] in {"link", "sitemap"}
    assert crawled.corpus.row(f"{SHOP}/only-in-map")["crawl_source"] == "sitemap"


def test_markdown_has_front_matter_and_the_raw_body_stands_beside_it(crawled: Crawled) -> None:
    markdown = crawled.corpus.markdown(f"{SHOP}/b")
    fields = front_matter(markdown)
    row = crawled.corpus.row(f"{SHOP}/b")
    assert fields["url"] == f"{SHOP}/b"
    assert fields["title"] == row["title"]
    assert fields["fetched_at"] == row["fetched_at"]
    assert row["text"][:60] in markdown.replace("\\", "")
    reply = article("b")
    assert (crawled.corpus.folder / row["html_compressed"]).read_bytes() == reply.body


def test_files_are_named_after_the_url_and_never_shared(crawled: Crawled) -> None:
    names = crawled.corpus.files("markdown")
    assert {"http_shop.test_.md", "http_shop.test_b.md", "https_shop.test_secure.md"} <= names
    assert len({name.lower() for name in names}) == len(names) == 14
    assert max(map(len, names)) <= 153
    pairs = ((f"{SHOP}/Case", f"{SHOP}/case"), (f"{SHOP}/x?a=1", f"{SHOP}/x_a_1"))
    for one, other in pairs:
        assert crawled.corpus.markdown(one) != crawled.corpus.markdown(other)
        assert front_matter(crawled.corpus.markdown(one))["url"] == one


def test_a_duplicate_has_a_row_and_no_file_and_its_links_are_followed(crawled: Crawled) -> None:
    rows = [crawled.corpus.row(f"{SHOP}{path}") for path in ("/a", "/copy")]
    (unique,) = (row for row in rows if row["duplicate_of"] is None)
    (copy,) = (row for row in rows if row["duplicate_of"] is not None)
    assert copy["duplicate_of"] == unique["url"]
    assert copy["markdown_file"] is None
    assert copy["content_sha256"] == unique["content_sha256"]
    assert f"{SHOP}/behind-copy" in crawled.corpus.urls


def test_redirects_are_recorded_and_owned_by_their_end(crawled: Crawled) -> None:
    row = crawled.corpus.row(f"{SHOP}/moved")
    assert row["final_url"] == f"{SHOP}/end"
    assert row["redirects"] == [f"{SHOP}/moved", f"{SHOP}/hop"]
    assert front_matter(crawled.corpus.markdown(f"{SHOP}/moved"))["requested_url"] == f"{SHOP}/moved"
    assert row["markdown_file"] == "markdown/http_shop.test_end.md"


def test_a_redirect_to_a_host_out_of_scope_is_not_followed(crawled: Crawled) -> None:
    assert crawled.web.hits("other.test") == []
    assert crawled.corpus.outcome(f"{SHOP}/away") == ("alias", "redirect_other_host")


def test_what_may_not_be_indexed_or_followed_is_not(crawled: Crawled) -> None:
    assert crawled.corpus.outcome(f"{SHOP}/noindex") == ("withdrawn", "noindex")
    assert crawled.web.hits("shop.test", "/never") == []
    assert crawled.web.hits("shop.test", "/cart/full") == []


def test_a_header_goes_to_its_host_only(crawled: Crawled) -> None:
    assert all(hit.headers.get("x-key") == "secret" for hit in crawled.web.hits("shop.test", "/b"))
    assert all("x-key" not in hit.headers for hit in crawled.web.hits("sub.shop.test"))
    assert crawled.web.hits("sub.shop.test")


def test_each_url_is_asked_for_once_and_robots_txt_first(crawled: Crawled) -> None:
    for host in ("shop.test", "sub.shop.test"):
        hits = crawled.web.hits(host)
        assert len({hit.url for hit in hits}) == len(hits)
        assert hits[0].path == "/robots.txt"


def test_search_finds_a_page_by_a_phrase_of_its_body(crawled: Crawled) -> None:
    found = trawl("search", PHRASE, "--dir", crawled.corpus.folder, "--json", "--limit", "1")
    assert found.code == 0
    assert [hit["url"] for hit in found.answer] == [f"{SHOP}/end"]


# Where a crawl ends


def chain_of_pages(host: str, *, extra: tuple[str, ...] = ()) -> Site:
    """`/` -> /1 -> /2 -> … -> /9."""
    pages = {f"/{n}": article(f"{host}{n}", links=[f"/{n + 1}"]) for n in range(1, 10)}
    return Site(host, {"/": article(host, links=["/1", *extra]), **pages})


@pytest.mark.parametrize("depth", [0, 2])
def test_max_depth_is_the_number_of_steps_from_the_seed(web: FakeWeb, tmp_path: Path, depth: int) -> None:
    web.add(chain_of_pages("deep.test"))
    ran = crawl(web, "http://deep.test/", "--max-depth", str(depth), out=tmp_path)
    assert ran.summary["pages"] == depth + 1
    assert Corpus(tmp_path).urls == {"http://deep.test/", *(f"http://deep.test/{n}" for n in range(1, depth + 1))}


def test_max_pages_is_exact_also_with_many_fetches_in_flight(web: FakeWeb, tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(40)]
    web.add(Site("many.test", {"/": article("many", links=links), **{link: article(link) for link in links}}))
    options = ("--max-pages", "7", "--per-host-concurrency", "8")
    ran = crawl(web, "http://many.test/", *options, out=tmp_path)
    assert (ran.code, ran.summary["pages"], ran.summary["finished"]) == (0, 7, True)
    assert len(Corpus(tmp_path).rows) == 7
    assert len(web.hits("many.test")) == 8


SCOPES = {
    "prefix": {"http://www.wide.test/docs/", "http://www.wide.test/docs/b"},
    "host": {"http://www.wide.test/docs/", "http://www.wide.test/docs/b", "http://www.wide.test/top"},
    "domain": {"http://www.wide.test/docs/", "http://www.wide.test/docs/b", "http://www.wide.test/top",
               "http://blog.wide.test/"},
    "any": {"http://www.wide.test/docs/", "http://www.wide.test/docs/b", "http://www.wide.test/top",
            "http://blog.wide.test/", "http://foreign.test/"},
}  # fmt: skip


def wide() -> list[Site]:
    links = ["/docs/b", "/top", "http://blog.wide.test/", "http://foreign.test/"]
    pages = {"/docs/": article("docs", links=links), "/docs/b": article("b"), "/top": article("top")}
    return [
        Site("www.wide.test", pages),
        Site("blog.wide.test", {"/": article("blog")}),
        Site("foreign.test", {"/": article("foreign")}),
    ]


@pytest.mark.parametrize("scope", SCOPES)
def test_scope(web: FakeWeb, tmp_path: Path, scope: str) -> None:
    web.add(*wide())
    ran = crawl(web, "http://www.wide.test/docs/", "--scope", scope, out=tmp_path)
    assert ran.code == 0
    assert Corpus(tmp_path).urls == SCOPES[scope]


def test_an_allowed_domain_is_in_scope_besides(web: FakeWeb, tmp_path: Path) -> None:
    web.add(*wide())
    crawl(web, "http://www.wide.test/docs/", "--allow-domain", "foreign.test", out=tmp_path)
    assert Corpus(tmp_path).urls == SCOPES["host"] | {"http://foreign.test/"}


def test_a_seed_that_redirects_to_another_host_widens_the_scope(web: FakeWeb, tmp_path: Path) -> None:
    web.add(
        Site("bare.test", {"/": redirects.to_host("www.bare.test")}),
        Site("www.bare.test", {"/": article("www", links=["/in"]), "/in": article("in")}),
    )
    crawl(web, "http://bare.test/", out=tmp_path)
    corpus = Corpus(tmp_path)
    assert corpus.urls == {"http://www.bare.test/", "http://www.bare.test/in"}
    assert corpus.row("http://www.bare.test/")["redirects"] == ["http://bare.test/"]


# What a crawl starts from


def test_urls_come_from_the_command_a_file_and_standard_input(web: FakeWeb, tmp_path: Path) -> None:
    web.add(*(Site(f"{name}.test", {"/": article(name)}) for name in ("one", "two", "three")))
    listed = tmp_path / "urls.txt"
    listed.write_text("# seeds\n\nhttp://two.test/\nhttp://one.test/\n", encoding="utf-8-sig")
    crawl(web, "http://one.test/", "--from-file", listed, out=tmp_path / "file")
    assert Corpus(tmp_path / "file").urls == {"http://one.test/", "http://two.test/"}
    crawl(web, "--from-file", "-", out=tmp_path / "input", given="http://three.test/\r\nhttp://two.test/\n")
    assert Corpus(tmp_path / "input").urls == {"http://three.test/", "http://two.test/"}


def test_sitemaps_feeds_and_url_lists_are_seeds_too(web: FakeWeb, tmp_path: Path) -> None:
    paths = {kind: [f"/{kind}/{n}" for n in range(3)] for kind in ("map", "rss", "atom", "rdf", "list")}
    pages = {path: article(path) for some in paths.values() for path in some}
    starts = {
        "/index.xml": sitemaps.index("/map.xml.gz"),
        "/map.xml.gz": sitemaps.gz_variants(*paths["map"])["/sitemap-file.xml.gz"],
        "/rss.xml": feeds.rss(*paths["rss"]),
        "/atom.xml": feeds.atom(*paths["atom"]),
        "/rdf.xml": feeds.rdf(*paths["rdf"]),
        "/urls.txt": sitemaps.text_list(*paths["list"]),
    }
    web.add(Site("seeds.test", {**pages, **starts}))
    seeds = [f"http://seeds.test{path}" for path in starts if path != "/map.xml.gz"]
    ran = crawl(web, *seeds, out=tmp_path)
    corpus = Corpus(tmp_path)
    assert ran.code == 0
    assert corpus.urls == {f"http://seeds.test{path}" for path in pages}
    sources = {row["url"].split("/")[3]: row["crawl_source"] for row in corpus.rows}
    assert sources == {"map": "sitemap", "rss": "feed", "atom": "feed", "rdf": "feed", "list": "url_list"}


# Who asks, and for what


def test_the_user_agent_is_sent_and_its_token_chooses_the_robots_group(web: FakeWeb, tmp_path: Path) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: finder\nDisallow: /private\nAllow: /\n"
    pages = {"/": article("ua", links=["/private", "/open"]), "/private": article("p"), "/open": article("o")}
    web.add(Site("ua.test", {"/robots.txt": robots.rules(rules), **pages}))
    agent = "Finder/2.0 (+https://finder.example/bot)"
    crawl(web, "http://ua.test/", "--user-agent", agent, out=tmp_path / "finder")
    assert Corpus(tmp_path / "finder").urls == {"http://ua.test/", "http://ua.test/open"}
    assert {hit.headers["user-agent"] for hit in web.hits("ua.test")} == {agent}
    ran = crawl(web, "http://ua.test/", out=tmp_path / "default")
    assert ran.code == 1
    assert ran.summary["refused"] == {"robots_disallowed": 1}
    assert "robots.txt" in ran.summary["details"][0]


def test_only_the_formats_that_are_asked_for_are_written(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("form.test", {"/": article("form")}))
    crawl(web, "http://form.test/", "--format", "markdown", out=tmp_path / "m")
    kinds = {path.name for path in (tmp_path / "m").iterdir() if not path.name.startswith((".", "trawl.sqlite"))}
    assert kinds == {"markdown"}
    crawl(web, "http://form.test/", "--format", "jsonl", out=tmp_path / "j")
    kinds = {path.name for path in (tmp_path / "j").iterdir() if not path.name.startswith((".", "trawl.sqlite"))}
    assert kinds == {"pages.jsonl"}
    row = Corpus(tmp_path / "j").row("http://form.test/")
    assert (row["markdown_file"], row["html_compressed"]) == (None, "")


def test_loopback_is_crawled_directly_when_it_is_allowed(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("local.test", {"/": article("local", links=["/next"]), "/next": article("next")}))
    ran = trawl("crawl", f"{web.url}/", "--out", tmp_path, "--delay", "0", "--allow-network", "127.0.0.0/8", "--json")
    assert ran.code == 0, ran.err
    assert Corpus(tmp_path).urls == {f"{web.url}/", f"{web.url}/next"}


# Again


class Changing:
    """A site of which a second visit finds: a page unchanged, one changed, one gone, one new, one gone duplicate."""

    def __init__(self) -> None:
        self.etag = {"/same": '"1"'}
        self.site = Site("again.test", {})
        self.first()

    def first(self) -> None:
        self.site.pages = {
            "/": article("home", links=["/same", "/news", "/gone", "/plain"]),
            "/same": Reply(body=article("same").body, etag='"1"'),
            "/news": Reply(body=article("old news").body, last_modified="Thu, 01 Jan 2026 00:00:00 GMT"),
            "/gone": article("gone"),
            "/plain": article("plain"),
        }

    def second(self) -> None:
        self.site.pages |= {
            "/": article("home", links=["/same", "/news", "/gone", "/plain", "/new"]),
            "/news": Reply(body=article("fresh news").body, last_modified="Fri, 02 Jan 2026 00:00:00 GMT"),
            "/new": article("new"),
        }
        del self.site.pages["/gone"]


@pytest.fixture(scope="module")
def visited_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeWeb, Ran, Corpus, Corpus]]:
    out, site = tmp_path_factory.mktemp("again"), Changing()
    with serving(site.site) as web:
        assert crawl(web, "http://again.test/", out=out).summary["indexed"] == 5
        before = Corpus(out)
        assert len(before.urls) == 5
        site.second()
        web.log.clear()
        ran = crawl(web, "http://again.test/", out=out)
        yield web, ran, before, Corpus(out)


Twice = tuple[FakeWeb, Ran, Corpus, Corpus]


def test_a_second_run_visits_every_page_again_conditionally(visited_twice: Twice) -> None:
    web, ran, _, _ = visited_twice
    assert ran.code == 0
    assert {hit.path for hit in web.hits("again.test")} - {"/robots.txt"} == {
        "/", "/same", "/news", "/gone", "/plain", "/new",
    }  # fmt: skip
    assert web.hits("again.test", "/same")[0].headers["if-none-match"] == '"1"'
    assert web.hits("again.test", "/news")[0].headers["if-modified-since"].startswith("Thu, 01 Jan")
    assert ran.summary["unchanged"] == 3
    assert ran.summary["failed"] == {"http_404": 1}


def test_a_second_run_neither_loses_nor_doubles_a_page(visited_twice: Twice) -> None:
    _, ran, before, after = visited_twice
    assert after.urls == before.urls | {"http://again.test/new"}
    assert ran.summary["documents"] == 6
    after.consistent()


def test_a_second_run_brings_changed_pages_up_to_date(visited_twice: Twice) -> None:
    _, _, before, after = visited_twice
    url = "http://again.test/news"
    assert before.row(url)["content_sha256"] != after.row(url)["content_sha256"]
    words = article("fresh news").body.decode().split("<p>")[1][:50]
    assert words in after.markdown(url)
    found = trawl("search", words, "--dir", after.folder, "--json", "--limit", "3").answer
    assert url in {hit["url"] for hit in found}
    stale = article("old news").body.decode().split("<p>")[1][:50]
    found = trawl("search", stale, "--dir", after.folder, "--json", "--limit", "3").answer
    assert all(stale not in hit["text"] for hit in found)


def test_a_duplicate_comes_back_when_its_original_changes(web: FakeWeb, tmp_path: Path) -> None:
    shared, etag = article("shared").body, '"1"'
    pages = {"/": article("home", links=["/one", "/two"]), "/one": Reply(body=shared, etag=etag)}
    web.add(Site("twins.test", {**pages, "/two": Reply(body=shared, etag=etag)}))
    assert crawl(web, "http://twins.test/", out=tmp_path).summary["duplicates"] == 1
    twins = {row["url"]: row["duplicate_of"] for row in Corpus(tmp_path).rows}
    (original,) = set(twins.values()) - {None}
    copy = next(url for url, of in twins.items() if of)
    path = original.removeprefix("http://twins.test")
    web.add(Site("twins.test", {**pages, "/two": Reply(body=shared, etag=etag), path: article("another text")}))
    crawl(web, "http://twins.test/", out=tmp_path)
    corpus = Corpus(tmp_path)
    corpus.consistent()
    assert {row["url"]: row["duplicate_of"] for row in corpus.rows}[copy] is None
    assert corpus.markdown(copy)


def test_a_page_lives_on_when_the_redirect_that_found_it_first_is_gone(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("moved.test", {"/old": redirects.redirect("/a"), "/a": article("first text")}))
    crawl(web, "http://moved.test/old", out=tmp_path)
    web.add(Site("moved.test", {"/a": article("second text")}))
    crawl(web, "http://moved.test/old", "http://moved.test/a", out=tmp_path)
    corpus = Corpus(tmp_path)
    assert corpus.urls == {"http://moved.test/a"}
    assert article("second text").body.decode().split("<p>")[1][:50] in corpus.markdown("http://moved.test/a")
    corpus.consistent()


def test_fresh_begins_anew_and_leaves_other_files_alone(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("fresh.test", {"/": article("one", links=["/old"]), "/old": article("old")}))
    crawl(web, "http://fresh.test/", out=tmp_path)
    mine = (tmp_path / "mine.txt", tmp_path / "markdown" / "mine.md", tmp_path / "html" / "sub" / "mine.html")
    for file in mine:
        file.parent.mkdir(exist_ok=True)
        file.write_text("mine", encoding="utf-8")
    web.add(Site("fresh.test", {"/": article("two")}))
    ran = crawl(web, "http://fresh.test/", "--fresh", out=tmp_path)
    assert ran.summary["indexed"] == 1
    corpus = Corpus(tmp_path)
    assert corpus.urls == {"http://fresh.test/"}
    assert [file.read_text(encoding="utf-8") for file in mine] == ["mine"] * 3
    for file in mine:
        file.unlink()
    mine[-1].parent.rmdir()
    corpus.consistent()


def test_a_format_that_earlier_runs_did_not_write_is_noted(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("form.test", {"/": article("one")}))
    assert crawl(web, "http://form.test/", "--format", "markdown", out=tmp_path).summary["notes"] == []
    for _ in range(2):
        (note,) = crawl(web, "http://form.test/", "--format", "markdown,html", out=tmp_path).summary["notes"]
        assert "have no html" in note
    fresh = crawl(web, "http://form.test/", "--format", "markdown,html", "--fresh", out=tmp_path)
    assert fresh.summary["notes"] == []


# How a crawl is told


def test_without_json_lines_for_people_say_where_the_results_are(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("told.test", {"/": article("told", links=["/busy"]), "/busy": limits.busy(10**9)}))
    out = tmp_path / "with space"
    ran = trawl("crawl", "http://told.test/", "--out", out, "--delay", "0", *through(web))
    assert ran.code == 0
    assert "1 page" in ran.out
    assert f"trawl search 'your question' --dir '{out}'" in ran.out
    assert "retry_after_too_long" in ran.out
    assert f"crawling into {out}" in ran.err


def test_no_page_at_all_is_exit_code_1_and_says_why(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("none.test", {"/robots.txt": text("")}))
    ran = crawl(web, "http://none.test/", out=tmp_path)
    assert ran.code == 1
    assert ran.summary["pages"] == 0
    assert "404" in ran.summary["details"][0]


def test_headers_that_repeat_are_kept_in_the_row(web: FakeWeb, tmp_path: Path) -> None:
    page = with_headers(article("head"), ("X-Robots-Tag", "noarchive"), ("X-Robots-Tag", "nosnippet"))
    web.add(Site("head.test", {"/": page}))
    crawl(web, "http://head.test/", out=tmp_path)
    headers = Corpus(tmp_path).row("http://head.test/")["response_headers"]
    assert headers["x-robots-tag"] == "noarchive, nosnippet"


def test_pages_that_brought_no_document_bring_none_where_nothing_has_changed(web: FakeWeb, tmp_path: Path) -> None:
    hidden = article("hidden", head='<meta name="robots" content="noindex">')
    listed = "<urlset><url><loc>http://kept.test/other</loc></url></urlset>"
    pages = {
        "/": Reply(body=article("home", links=["/other", "/hidden", "/moved"]).body, etag='"1"'),
        "/other": Reply(body=article("other").body, etag='"2"'),
        "/hidden": Reply(body=hidden.body, etag='"3"'),
        "/moved": redirects.redirect("/other"),
        "/map.xml": Reply(body=listed.encode(), content_type="application/xml", etag='"4"'),
    }
    web.add(Site("kept.test", pages))
    seeds = ("http://kept.test/", "http://kept.test/map.xml")
    first = crawl(web, *seeds, out=tmp_path).summary
    assert (first["pages"], first["aliases"], first["documents"]) == (2, 1, 2)
    again = crawl(web, *seeds, out=tmp_path).summary
    assert (again["pages"], again["unchanged"], again["aliases"], again["documents"]) == (2, 2, 1, 2)
    outcomes = {url.removeprefix("http://kept.test"): outcome for url, outcome, _ in Corpus(tmp_path).outcomes()}
    assert outcomes == {
        "/": "unchanged", "/other": "unchanged", "/hidden": "withdrawn", "/moved": "alias", "/map.xml": "discovered",
    }  # fmt: skip


def test_a_narrower_scope_holds_for_what_an_earlier_run_had_queued(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("near.test", {"/": article("near", links=["http://far.test/", "/more"]), "/more": article("more")}))
    web.add(Site("far.test", {"/": article("far")}))
    wide = crawl(web, "http://near.test/", "--scope", "any", "--max-pages", "1", out=tmp_path)
    assert wide.summary["pages"] == 1
    narrow = crawl(web, "http://near.test/", "--scope", "host", out=tmp_path)
    assert narrow.summary["refused"] == {"out_of_scope": 1}
    assert Corpus(tmp_path).urls == {"http://near.test/", "http://near.test/more"}
    assert web.log.hits("far.test") == []
