"""Cases of other crawlers' users, by their number, as whole crawls: what counts is what the server saw.

Case 1 and 13 are in test_politeness, 3, 5 and 6 in test_bad_input, 39 in test_resume.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.running import TRAWL, Corpus, crawl, environment, through
from tests.site import FakeWeb, Reply, Site
from tests.site.message import Request
from tests.site.process import WebProcess
from tests.site.responders import bombs, delays, redirects, robots, sitemaps, traps
from tests.site.responders.mirrors import article

SOAK = bool(os.environ.get("TRAWL_SOAK"))
RSS_MB_MAX = 500


MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""
"""Runs a command and prints its peak memory; from a small process, since a child inherits the peak of its parent."""


def measured(*command: str) -> tuple[int, float]:
    """Run a command: its exit code, and the peak memory in MB of its largest process."""
    line = [sys.executable, "-c", MEASURE, *TRAWL, *command]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, check=False)
    units_per_mb = 1024 * (1024 if sys.platform == "darwin" else 1)
    return done.returncode, int(done.stdout.splitlines()[-1]) / units_per_mb


def test_cases_15_and_16_seeds_and_links_are_judged_by_the_same_named_group(web: FakeWeb, tmp_path: Path) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: trawl\nDisallow: /private/\n"
    links = ["/open", "/private/linked"]
    pages = {"/": article("g", links=links), "/open": article("o"), "/private/linked": article("l"),
             "/private/seed": article("s")}  # fmt: skip
    web.add(Site("group.test", {"/robots.txt": robots.rules(rules), **pages}))
    ran = crawl(web, "http://group.test/", "http://group.test/private/seed", out=tmp_path)
    assert [hit.path for hit in web.hits("group.test")] == ["/robots.txt", "/", "/open"]
    assert ran.summary["refused"] == {"robots_disallowed": 1}
    assert ran.summary["skipped"] == {"robots_disallowed": 1}
    agents = {hit.headers["user-agent"] for hit in web.hits("group.test")}
    assert len(agents) == 1
    assert agents.pop().startswith("trawl/")


def test_cases_18_and_19_links_resolve_against_the_base_and_the_final_url(web: FakeWeb, tmp_path: Path) -> None:
    pages = {
        "/foo/bar": article("bar", links=["page.php"], head='<base href="/"><base href="/second/">'),
        "/page.php": article("page"),
        "/go/x": redirects.redirect("/docs/a/"),
        "/docs/a/": article("a", links=["b"]),
        "/docs/a/b": article("b"),
    }
    web.add(Site("base.test", pages))
    crawl(web, "http://base.test/foo/bar", "http://base.test/go/x", out=tmp_path)
    asked = {hit.path for hit in web.hits("base.test")} - {"/robots.txt"}
    assert asked == {"/foo/bar", "/page.php", "/go/x", "/docs/a/", "/docs/a/b"}


def test_cases_21_and_23_sitemaps_however_they_are_packed_and_quoted(web: FakeWeb, tmp_path: Path) -> None:
    stems = ("file.xml.gz", "coded.xml.gz", "both.xml.gz", "list.txt.gz", "index-cdata.xml")
    listed = {stem: f"/by/{stem}" for stem in stems}
    variants = {
        f"/{stem}": sitemaps.gz_variants(listed[stem], stem="/s")[f"/s-{stem}"] for stem in stems if "gz" in stem
    }
    quoted = {
        "/index-cdata.xml": sitemaps.index("/set-cdata.xml", cdata=True),
        "/set-cdata.xml": sitemaps.urlset(listed["index-cdata.xml"], cdata=True),
    }
    named = "".join(f"Sitemap: http://packed.test/{stem}\n" for stem in stems)
    pages = {path: article(path) for path in ("/", *listed.values())}
    web.add(Site("packed.test", {"/robots.txt": robots.rules(named), **variants, **quoted, **pages}))
    crawl(web, "http://packed.test/", out=tmp_path)
    assert Corpus(tmp_path).urls == {f"http://packed.test{path}" for path in pages}


@pytest.mark.parametrize("entry", ["sitemap", "url"])
def test_sitemaps_without_an_end_are_left(web: FakeWeb, tmp_path: Path, entry: str) -> None:
    def next_map(request: Request) -> Reply:
        number = int(request.path.removeprefix("/sitemap-").removesuffix(".xml"))
        outer = "sitemapindex" if entry == "sitemap" else "urlset"
        text = f"<{outer}><{entry}><loc>http://deep.test/sitemap-{number + 1}.xml</loc></{entry}></{outer}>"
        return Reply(body=text.encode(), content_type="application/xml")

    rules = robots.rules("Sitemap: http://deep.test/sitemap-0.xml\n")
    web.add(Site("deep.test", {"/robots.txt": rules, "/": article("home")}, fallback=next_map))
    ran = crawl(web, "http://deep.test/", out=tmp_path)
    maps = [hit.path for hit in web.hits("deep.test") if hit.path.endswith(".xml")]
    assert len(maps) == (4 if entry == "sitemap" else 5)
    assert ran.summary["skipped"] == {"sitemap_too_deep": 1}


@pytest.mark.timeout(1200)
def test_case_24_an_index_of_thirty_times_fifty_thousand_urls_costs_no_memory(web: FakeWeb, tmp_path: Path) -> None:
    pages = {"/full.xml": sitemaps.large(first=10**7), **sitemaps.large_index(30, 50_000 if SOAK else 2_000)}
    web.add(Site("large.test", pages, fallback=article("page")))
    options = ("--max-pages", "5", "--out", str(tmp_path), "--delay", "0", *through(web), "--json")
    code, rss_mb = measured("crawl", "http://large.test/big/index.xml", "http://large.test/full.xml", *options)
    assert code == 0
    assert rss_mb < 300
    asked = [hit.path for hit in web.hits("large.test")]
    assert sum(path.startswith("/page/") for path in asked) == 5
    assert sum(path.endswith(".xml") for path in asked) == 32


@pytest.mark.parametrize("kind", bombs.KINDS)
def test_case_25_a_bomb_ends_typed_and_the_memory_stays(web: FakeWeb, tmp_path: Path, kind: str) -> None:
    page, sitemap = bombs.bomb(kind, chunked=True), bombs.gzip_file()
    links = ["/bomb", "/map.xml.gz", "/good"]
    web.add(
        Site(
            "bomb.test", {"/": article("b", links=links), "/bomb": page, "/map.xml.gz": sitemap, "/good": article("g")}
        )
    )
    options = ("--out", str(tmp_path), "--delay", "0", *through(web), "--json")
    code, rss_mb = measured("crawl", "http://bomb.test/", *options)
    assert code == 0
    assert rss_mb < 350
    corpus = Corpus(tmp_path)
    assert corpus.outcome("http://bomb.test/bomb") in {("failed", "decode_ratio"), ("failed", "body_too_large")}
    assert corpus.urls >= {"http://bomb.test/", "http://bomb.test/good"}
    assert len(web.hits("bomb.test", "/bomb")) == 1, "it is not tried again"


def test_case_27_only_http_at_every_hop(web: FakeWeb, tmp_path: Path) -> None:
    places = (
        "file:///etc/hostname",
        "ftp://x.test/a",
        "gopher://x.test/",
        "javascript:1",
        "data:text/html,<p>x",
        "//[",
    )
    pages = {f"/{n}": redirects.redirect(place) for n, place in enumerate(places)}
    pages |= {"/chain": redirects.redirect("/0"), "/": article("s", links=[*pages, *places, "/chain"])}
    web.add(Site("scheme.test", pages))
    ran = crawl(web, "http://scheme.test/", out=tmp_path)
    assert Corpus(tmp_path).urls == {"http://scheme.test/"}
    told = {url: (outcome, reason) for url, outcome, reason in Corpus(tmp_path).outcomes()}
    assert told["http://scheme.test/0"] == told["http://scheme.test/chain"] == ("refused", "redirect_scheme")
    assert {outcome for url, (outcome, _) in told.items() if url != "http://scheme.test/"} <= {"refused", "failed"}
    assert ran.summary["dead_letters"] == 0


def test_case_40_what_a_killed_crawl_held_is_fetched_by_the_next_run_at_once(web: FakeWeb, tmp_path: Path) -> None:
    held = [f"/held/{n}" for n in range(10)]
    slow = {path: delays.delayed(article(path), 30) for path in held}
    site = Site("held.test", {"/": article("h", links=held), **slow})
    web.add(site)
    options = ("--out", str(tmp_path), "--delay", "0", "--per-host-concurrency", "10", *through(web))
    with subprocess.Popen(
        [*TRAWL, "crawl", "http://held.test/", *options], env=environment(), stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 30
        while len(web.hits("held.test")) < 12 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert len(web.hits("held.test")) == 12
    site.pages.update({path: article(path) for path in held})
    began = time.monotonic()
    ran = crawl(web, "http://held.test/", "--per-host-concurrency", "10", out=tmp_path)
    assert time.monotonic() - began < 20, "no lease of ten minutes is waited for"
    assert ran.summary["pages"] in {10, 11}, "the seed too, if it was not yet indexed"
    assert Corpus(tmp_path).urls == {f"http://held.test{path}" for path in ("/", *held)}


def test_case_45_an_infinite_calendar_stops_at_its_limit(web: FakeWeb, tmp_path: Path) -> None:
    trap = traps.all_traps()
    web.add(Site("trap.test", {"/": article("t", links=traps.ENTRANCES), **trap}))
    ran = crawl(web, "http://trap.test/", "--max-pages", "50", "--per-host-concurrency", "8", out=tmp_path)
    assert (ran.summary["pages"], ran.summary["finished"]) == (50, True)
    assert len(Corpus(tmp_path).rows) == 50
    again = crawl(web, "http://trap.test/", "--max-pages", "50", "--per-host-concurrency", "8", out=tmp_path)
    assert again.summary["pages"] == 50
    assert len(Corpus(tmp_path).rows) == 50


@pytest.mark.timeout(7200 if SOAK else 300)
def test_case_48_memory_does_not_grow_with_the_pages(tmp_path: Path) -> None:
    sizes = (2_000, 200_000) if SOAK else (150, 1_200)
    found = []
    for size in sizes:
        with WebProcess(f"tiny:tiny.test:{size}", log=False) as web:
            options = (
                "--delay",
                "0",
                "--per-host-concurrency",
                "16",
                "--proxy",
                web.proxy,
                "--ca-file",
                str(web.ca_file),
            )
            out = tmp_path / str(size)
            code, rss_mb = measured("crawl", "http://tiny.test/", "--out", str(out), *options, "--json")
            assert code == 0
            found.append(rss_mb)
        assert len(Corpus(out).rows) == size
    assert found[1] < RSS_MB_MAX
    assert found[1] - found[0] < 60 + (sizes[1] - sizes[0]) / 1000, "a kilobyte a page and what warming up takes"


def test_case_12_and_10_rules_hold_byte_by_byte_at_admission_and_at_release(web: FakeWeb, tmp_path: Path) -> None:
    rules = "User-agent: *\nDisallow:\nDisallow: /wp-admin\nDisallow: /*%2F*\nDisallow: /en-uk/*q=*relevance*\n"
    open_ = ["/a/b", "/wp", "/en-uk/s?q=all"]
    closed = ["/wp-admin/x", "/a%2Fb", "/en-uk/s?q=%3Arelevance%3Aall"]
    pages: dict[str, Reply] = {path: article(path) for path in (*open_, *closed)}
    web.add(
        Site("bytes.test", {"/robots.txt": robots.rules(rules), "/": article("b", links=[*open_, *closed]), **pages})
    )
    crawl(web, "http://bytes.test/", *(f"http://bytes.test{path}" for path in closed), out=tmp_path)
    assert {hit.target for hit in web.hits("bytes.test")} == {"/robots.txt", "/", *open_}
