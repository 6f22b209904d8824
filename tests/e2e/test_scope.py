"""What the scope of a command lets in: redirects, sitemaps; and what a later run visits again."""

from pathlib import Path

from tests.e2e.running import Corpus, crawl
from tests.site import FakeWeb, Site
from tests.site.responders import redirects, robots, sitemaps
from tests.site.responders.mirrors import article

DOCS = "http://docs.test/docs/"


def test_a_redirect_of_a_page_does_not_lead_out_of_the_folder_in_scope(web: FakeWeb, tmp_path: Path) -> None:
    pages = {
        "/docs/": article("docs", links=["x", "y"]),
        "/docs/x": redirects.redirect("/blog/no"),
        "/docs/y": redirects.redirect("/docs/z"),
        "/docs/z": article("inside"),
        "/blog/no": article("outside"),
    }
    web.add(Site("docs.test", pages))
    ran = crawl(web, DOCS, "--scope", "prefix", out=tmp_path)
    corpus = Corpus(tmp_path)
    assert ran.summary["refused"] == {"out_of_scope": 1}
    assert corpus.outcome(f"{DOCS}x") == ("refused", "out_of_scope")
    assert corpus.outcome(f"{DOCS}y") == ("alias", "redirect_other_path")
    assert corpus.urls == {DOCS, f"{DOCS}z"}
    assert web.log.hits("docs.test", "/blog/no") == []


def test_a_seed_that_redirects_beside_its_folder_takes_the_scope_along(web: FakeWeb, tmp_path: Path) -> None:
    pages = {
        "/docs/": redirects.redirect("/manual/v2/"),
        "/manual/v2/": article("manual", links=["/manual/v2/more", "/blog/no"]),
        "/manual/v2/more": article("more"),
        "/blog/no": article("outside"),
    }
    web.add(Site("docs.test", pages))
    crawl(web, DOCS, "--scope", "prefix", out=tmp_path)
    assert Corpus(tmp_path).urls == {"http://docs.test/manual/v2/", "http://docs.test/manual/v2/more"}


def test_sitemaps_of_the_site_are_read_beside_the_folder_in_scope(web: FakeWeb, tmp_path: Path) -> None:
    pages = {
        "/robots.txt": robots.rules("User-agent: *\nAllow: /\nSitemap: http://docs.test/sitemap.xml\n"),
        "/sitemap.xml": redirects.redirect("/maps/index.xml"),
        "/maps/index.xml": sitemaps.index("http://docs.test/maps/1.xml"),
        "/maps/1.xml": sitemaps.urlset("http://docs.test/docs/only-in-map", "http://docs.test/blog/no"),
        "/docs/": article("docs"),
        "/docs/only-in-map": article("found"),
        "/blog/no": article("outside"),
    }
    web.add(Site("docs.test", pages))
    crawl(web, DOCS, "--scope", "prefix", out=tmp_path)
    assert Corpus(tmp_path).urls == {DOCS, f"{DOCS}only-in-map"}
    assert web.log.hits("docs.test", "/blog/no") == []


def test_a_host_that_is_down_keeps_no_other_from_being_visited_again(web: FakeWeb, tmp_path: Path) -> None:
    site = Site("up.test", {"/": article("before", links=["http://down.test/"])})
    web.add(site)
    web.add(Site("down.test", {"/": article("down")}, reachable=False))
    first = crawl(web, "http://up.test/", "--scope", "any", out=tmp_path).summary
    assert (first["pages"], first["queued"]) == (1, 1)
    site.pages["/"] = article("after", links=["http://down.test/"])
    again = crawl(web, "http://up.test/", "--scope", "any", out=tmp_path).summary
    assert again["indexed"] == 1
    assert again["queued"] == 1
