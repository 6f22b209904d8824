"""The commands besides `crawl`, and what `--help` promises."""

import json
import os
import re
import subprocess
import sys
import traceback
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.e2e.running import Corpus, Ran, crawl, environment, serving, through, trawl
from tests.site import FakeWeb, Reply, Site, altered, with_headers
from tests.site.responders import redirects, robots
from tests.site.responders.mirrors import article
from tests.site.responders.pages import html
from tests.site.sites import tiny
from trawl.adapters.sqlite import Database

PAGE = html("Lanterns", "The keeper lights nine lanterns each evening at dusk.", links=["/next"]).body
OPTIONS = {
    "crawl": (
        "URL", "--from-file", "--out", "--format", "--max-depth", "--max-pages", "--scope", "host|domain|prefix|any",
        "--allow-domain", "--delay", "--per-host-concurrency", "--fetch-workers", "--extract-workers",
        "--index-workers", "--user-agent", "--header", "--proxy", "--ca-file", "--allow-network", "--fresh", "--json",
    ),
    "extract": ("FILE|URL|-", "--format", "markdown|text|json|html", "--json"),
    "search": ("QUERY", "--dir", "--limit", "--json"),
    "status": ("DIR", "--json"),
    "robots": ("URL", "--json"),
    "url": ("URL", "--json"),
}  # fmt: skip


@pytest.mark.parametrize("command", OPTIONS)
def test_help_names_every_option(command: str) -> None:
    ran = trawl(command, "--help")
    assert ran.code == 0
    missing = [option for option in OPTIONS[command] if option not in ran.out]
    assert missing == []


def test_help_lists_commands_and_exit_codes() -> None:
    ran = trawl("--help")
    assert ran.code == 0
    assert all(f"\n  {command}" in ran.out for command in OPTIONS)
    assert "Exit codes" in ran.out
    assert all(re.search(rf"^ +{code}  ", ran.out, re.MULTILINE) for code in (0, 1, 2, 3, 130))
    assert trawl("--version").out.startswith("trawl ")
    unknown = trawl("crwal")
    assert unknown.code == 2
    assert "crwal" in unknown.err


# extract


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_bytes(PAGE)
    return path


def test_extract_prints_a_file_in_each_format(page: Path) -> None:
    assert trawl("extract", page).out.startswith("# Lanterns\n")
    text = trawl("extract", page, "--format", "text").out
    assert "nine lanterns" in text
    assert "#" not in text
    markup = trawl("extract", page, "--format", "html").out
    assert "<h1>Lanterns</h1>" in markup
    for option in (("--format", "json"), ("--json",)):
        found = trawl("extract", page, *option, "--url", "http://x.test/a/").summary
        assert found["title"] == "Lanterns"
        assert found["links"] == ["http://x.test/next"]
        assert found["markdown"].startswith("# Lanterns")


def test_extract_reads_standard_input_and_other_kinds_of_files(tmp_path: Path) -> None:
    assert trawl("extract", "-", given=PAGE).out.startswith("# Lanterns\n")
    (tmp_path / "notes.md").write_text("# Notes\n\nTwo *words*.\n", encoding="utf-8")
    assert trawl("extract", tmp_path / "notes.md").out.startswith("# Notes\n\nTwo *words*.")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n" + bytes(range(256)) * 20)
    ran = trawl("extract", tmp_path / "paper.pdf")
    assert (ran.code, ran.out) == (1, "")
    assert "binary_body" in ran.err
    assert trawl("extract", "-", given="").code == 1


def test_extract_fetches_a_url_and_obeys_robots_txt(web: FakeWeb) -> None:
    web.add(
        Site("x.test", {"/robots.txt": robots.rules("User-agent: *\nDisallow: /no\n"), "/no": article("no"),
                        "/go": redirects.redirect("http://y.test/end")}),
        Site("y.test", {"/end": html("Lanterns", "The keeper lights nine lanterns.", links=["n"])}),
    )  # fmt: skip
    ran = trawl("extract", "http://x.test/go", *through(web), "--json")
    assert ran.summary["title"] == "Lanterns"
    assert ran.summary["links"] == ["http://y.test/n"]
    refused = trawl("extract", "http://x.test/no", *through(web))
    assert refused.code in {1, 2}
    assert "robots.txt" in refused.err
    assert web.hits("x.test", "/no") == []
    missing = trawl("extract", "http://y.test/none", *through(web))
    assert missing.code in {1, 2}
    assert "404" in missing.err
    private = trawl("extract", f"{web.url}/")
    assert "--allow-network" in private.err


def test_extract_of_what_is_not_there_says_so(tmp_path: Path) -> None:
    ran = trawl("extract", tmp_path / "none.html")
    assert ran.code == 2
    assert "none.html" in ran.err


# search and status


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Ran]]:
    """A crawl in `crawls/shelf.test` below a folder of its own."""
    below = tmp_path_factory.mktemp("work")
    pages = {
        "/": html("Shelf", "A shelf of books about the sea.", links=["/whales", "/knots", "/copy", "/gone", "/shut"]),
        "/whales": html("Whales", "The blue whale is the largest animal that has ever lived on Earth."),
        "/knots": html("Knots", "A bowline makes a loop that neither slips nor jams; a reef knot joins two lines."),
        "/copy": html("Whales", "The blue whale is the largest animal that has ever lived on Earth."),
        "/robots.txt": robots.rules("User-agent: *\nDisallow: /shut\n"),
    }
    with serving(Site("shelf.test", pages)) as web:
        ran = trawl("crawl", "http://shelf.test/", "--delay", "0", *through(web), "--json", cwd=below)
        assert ran.code == 0, ran.err
        yield below, ran


def test_results_go_below_crawls_by_host_if_no_folder_is_named(crawled: tuple[Path, Ran]) -> None:
    below, ran = crawled
    assert ran.summary["dir"] == "crawls/shelf.test"
    assert len(Corpus(below / "crawls" / "shelf.test").rows) == 4


def test_search_finds_by_words_and_by_meaning_in_the_newest_crawl(crawled: tuple[Path, Ran]) -> None:
    below, _ = crawled
    ran = trawl("search", "bowline", "--json", cwd=below)
    assert ran.answer[0]["url"] == "http://shelf.test/knots"
    assert {"score", "url", "title", "heading_path", "text", "position", "chunk_id", "document_key"} <= set(
        ran.answer[0]
    )
    meaning = trawl("search", "biggest", "creature", "--limit", "1", "--json", cwd=below)
    assert [hit["title"] for hit in meaning.answer] == ["Whales"]
    people = trawl("search", "bowline", cwd=below)
    assert "1. Knots" in people.out
    assert "http://shelf.test/knots" in people.out


@pytest.mark.parametrize(
    "query", ['"', "a AND", "(", "*", "NEAR(", "col:x", "-", "'; drop table chunk; --", "日本", "x" * 5000]
)
def test_search_takes_any_text_for_a_question(crawled: tuple[Path, Ran], query: str) -> None:
    below, _ = crawled
    ran = trawl("search", "--json", "--", query, cwd=below)
    assert ran.code in {0, 1}
    assert "Traceback" not in ran.err
    assert isinstance(ran.answer, list)


def test_a_page_that_holds_escape_sequences_steers_no_terminal(tmp_path: Path) -> None:
    hostile = "Lanterns &#27;[2J &#27;]0;owned&#7; \u202egnp.exe \x9b2J"
    page = f"<!doctype html><title>{hostile}</title><h1>{hostile}</h1><p>The keeper lights lanterns at dusk {hostile}."
    price = with_headers(altered(html("Pay"), status=402), ("crawler-price", "USD \x9b2J 1"))
    with serving(Site("shelf.test", {"/": page, "/paid": price})) as web:
        crawl(web, "http://shelf.test/", out=tmp_path / "corpus")
        told = [
            trawl("crawl", "http://shelf.test/paid", "--out", tmp_path / "paid", *through(web)),
            trawl("search", "lanterns", "--dir", tmp_path / "corpus"),
            trawl("status", tmp_path / "corpus"),
            trawl("policy", "http://shelf.test/", *through(web)),
        ]
    for ran in told:
        assert ran.out, ran.err
        assert not [char for char in ran.out + ran.err if char != "\n" and unicodedata.category(char) in {"Cc", "Cf"}]
    assert "Lanterns \ufffd[2J" in told[1].out


def test_search_without_a_crawl_says_what_to_do(tmp_path: Path) -> None:
    for command in (("search", "x"), ("search", "x", "--dir", "nowhere"), ("status",), ("status", "nowhere")):
        ran = trawl(*command, cwd=tmp_path)
        assert ran.code == 3, command
        assert "there is no crawl" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_status_tells_queue_hosts_outcomes_refusals_and_duplicates(crawled: tuple[Path, Ran]) -> None:
    below, _ = crawled
    found = trawl("status", "crawls/shelf.test", "--json", cwd=below).summary
    assert found["queued"] == found["leased"] == 0
    assert found["outcomes"] == {"indexed": 3, "duplicate": 1, "failed": 1}
    assert found["refusals"] == {"robots_disallowed": 1}
    assert found["reasons"]["failed:http_404"] == 1
    assert found["reasons"]["duplicate:exact_duplicate"] == 1
    assert [host["origin"] for host in found["hosts"]] == ["http://shelf.test"]
    people = trawl("status", cwd=below).out
    assert "3 documents" in people
    assert "0 URLs queued, 0 in flight" in people
    assert "http_404" in people
    assert "http://shelf.test" in people


# robots and url


def test_robots_tells_rule_group_and_delay(web: FakeWeb) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: trawl\nDisallow: /private/\nCrawl-delay: 7\n"
    web.add(Site("r.test", {"/robots.txt": robots.rules(rules)}), Site("none.test", {}))
    ran = trawl("robots", "http://r.test/private/x", *through(web), "--json")
    assert ran.code == 1
    found = ran.summary
    assert (found["allowed"], found["group"], found["line"]) == (False, "trawl", 5)
    assert "/private/" in found["rule"]
    assert (found["crawl_delay_seconds"], found["delay_seconds"]) == (7, 7)
    people = trawl("robots", "http://r.test/open", *through(web))
    assert people.code == 0
    assert "allowed" in people.out
    other = trawl("robots", "http://r.test/open", "--user-agent", "other/1", *through(web), "--json")
    assert (other.code, other.summary["group"]) == (1, "*")
    missing = trawl("robots", "http://none.test/", *through(web), "--json").summary
    assert (missing["allowed"], missing["status"]) == (True, 404)


def test_policy_tells_what_is_permitted_and_who_says_so(web: FakeWeb) -> None:
    rules = "User-agent: *\nDisallow: /private/\nContent-Signal: ai-train=no\n"
    page = article("p")
    html = page.body.replace(b"<head>", b"<head><meta name=tdm-reservation content=1><meta name=other content=noindex>")
    said = Reply(body=html, content_type="text/html", headers=(("X-Robots-Tag", "noindex"), ("X-Robots-Tag", "x: all")))
    web.add(Site("p.test", {"/robots.txt": robots.rules(rules), "/": said, "/plain": page}))
    ran = trawl("policy", "http://p.test/", *through(web), "--json")
    assert ran.code == 0, ran.err
    found = ran.summary
    assert {use: one["allowed"] for use, one in found["uses"].items()} == {
        "fetch": None, "follow": None, "index": False, "snippet": None, "ai-input": False, "ai-train": False
    }  # fmt: skip
    assert found["uses"]["index"]["because"]["source"] == "x-robots-tag"
    assert {one["source"] for one in found["evidence"]} == {"robots.txt", "x-robots-tag", "meta tdm-reservation"}
    assert all(one["seen_at_ms"] > 1_700_000_000_000 for one in found["evidence"])
    people = trawl("policy", "http://p.test/plain", *through(web))
    assert people.code == 0
    assert "  ai-train  no         robots.txt: line 3: content-signal: ai-train=no" in people.out
    assert "  index     yes        nobody has said anything" in people.out
    refused = trawl("policy", "http://p.test/private/x", *through(web))
    assert refused.code == 1
    assert "  fetch     no         robots.txt: line 2: Disallow: /private/" in refused.out
    assert "  not fetched: http://p.test/private/x: robots.txt line 2" in refused.out


def test_a_search_can_be_for_what_may_be_used_so(web: FakeWeb, tmp_path: Path) -> None:
    closed = article("closed")
    closed = Reply(body=closed.body, content_type="text/html; charset=utf-8", headers=(("X-Robots-Tag", "noai"),))
    web.add(Site("use.test", {"/": article("open", links=["/closed"]), "/closed": closed}))
    assert crawl(web, "http://use.test/", out=tmp_path).code == 0

    def found(*options: str) -> set[str]:
        ran = trawl("search", "--dir", tmp_path, "--json", "--limit", "100", *options, "article about words")
        return {hit["url"] for hit in ran.answer}

    assert found() == found("--use", "snippet") == {"http://use.test/", "http://use.test/closed"}
    assert found("--use", "ai-train") == found("--use", "ai-input") == {"http://use.test/"}


def test_what_must_be_permitted_is_not_indexed_without_it_and_a_licence_permits(web: FakeWeb, tmp_path: Path) -> None:
    closed = article("closed", links=["/licensed/a"])
    closed = Reply(body=closed.body, content_type="text/html; charset=utf-8", headers=(("X-Robots-Tag", "noai"),))
    licensed = Reply(body=article("a").body, content_type="text/html", headers=closed.headers)
    web.add(Site("own.test", {"/": article("open", links=["/closed"]), "/closed": closed, "/licensed/a": licensed}))
    config = tmp_path / "trawl.toml"
    statement = "http://own.test/licensed/ ai-train=allow: licence 7"
    config.write_text(f"[compliance]\nrequire = ['ai-train']\nstatements = ['{statement}']\n", "utf-8")
    ran = crawl(web, "http://own.test/", "--config", config, out=tmp_path / "own")
    assert ran.code == 0, ran.err
    found = trawl("search", "--dir", tmp_path / "own", "--json", "--limit", "100", "article about words").answer
    assert {hit["url"] for hit in found} == {"http://own.test/", "http://own.test/licensed/a"}
    reasons = trawl("status", tmp_path / "own", "--json").summary["reasons"]
    assert reasons["withdrawn:use_forbidden"] == 1
    told = trawl("policy", "http://own.test/licensed/a", "--config", config, *through(web)).out
    assert f"  ai-train  yes        policy: {statement}" in told
    assert "  ai-input  no         x-robots-tag: noai" in told
    config.write_text("[compliance]\nrequire = ['training']\n", "utf-8")
    wrong = crawl(web, "http://own.test/", "--config", config, out=tmp_path / "wrong")
    assert wrong.code == 2
    assert "compliance.require names 'training'" in wrong.err


def test_url_tells_canonical_form_key_template_and_scope() -> None:
    ran = trawl("url", "HTTP://Example.COM:80/a/../p/17?utm_source=x&b=2#frag", "--json")
    found = ran.summary
    assert found["canonical"] == "http://example.com/p/17?b=2"
    assert len(found["request_key"]) == 16
    assert found["in_scope"] is True
    assert found["trap"] is None
    other = trawl("url", "http://b.test/", "--seed", "http://a.test/", "--json").summary
    assert other["in_scope"] is False
    people = trawl("url", "http://example.com/p/17")
    assert "canonical" in people.out
    assert trawl("url", "no url").code == 2


# where settings come from


def test_a_setting_is_read_from_file_variable_and_option_in_rising_order(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("set.test", {"/": article("s")}))
    config = tmp_path / "trawl.toml"
    config.write_text('[fetch]\nuser_agent = "file/1"\n', encoding="utf-8")
    other = tmp_path / "other.toml"
    other.write_text('[fetch]\nuser_agent = "other/1"\n', encoding="utf-8")
    steps: list[tuple[tuple[str | Path, ...], dict[str, str], str]] = [
        ((), {"TRAWL_SETTINGS": str(other)}, "other/1"),
        (("--config", config), {"TRAWL_SETTINGS": str(other)}, "file/1"),
        (("--config", config), {"TRAWL_FETCH_USER_AGENT": "variable/1"}, "variable/1"),
        (("--config", config, "--user-agent", "option/1"), {"TRAWL_FETCH_USER_AGENT": "variable/1"}, "option/1"),
    ]
    for number, (options, variables, agent) in enumerate(steps):
        web.log.clear()
        crawl(web, "http://set.test/", *options, out=tmp_path / str(number), env=variables)
        assert {hit.headers["user-agent"] for hit in web.hits("set.test")} == {agent}


def test_output_that_nobody_reads_is_no_error(crawled: tuple[Path, Ran]) -> None:
    below, _ = crawled
    command = f"{sys.executable} -m trawl status --json | true"
    done = subprocess.run(
        ["sh", "-c", command], cwd=below, env=environment(), capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr
    assert json.loads(trawl("status", "--json", cwd=below).out)["queued"] == 0


# What a person may get wrong


def test_a_variable_that_names_no_setting_is_told_with_the_closest_one(tmp_path: Path) -> None:
    ran = trawl("url", "http://a.test/", env={"TRAWL_POLITENESS_DELAY_SECOND": "3"}, cwd=tmp_path)
    assert ran.code == 2
    assert "did you mean TRAWL_POLITENESS_DELAY_SECONDS?" in ran.err
    assert trawl("url", "http://a.test/", env={"TRAWL_SOMETHING_ELSE": "3"}, cwd=tmp_path).code == 0


def test_an_empty_query_is_an_error(tmp_path: Path) -> None:
    ran = trawl("search", " ", cwd=tmp_path)
    assert (ran.code, ran.err) == (2, "trawl: the query is empty; say what to search for\n")


def test_a_page_that_cannot_be_fetched_is_exit_code_1_with_one_reason(tmp_path: Path) -> None:
    ran = trawl("extract", "http://127.0.0.1:8/", cwd=tmp_path)
    assert ran.code == 1
    assert ran.err.count("--allow-network 127.0.0.1") == 1


def test_lines_of_a_list_that_are_no_urls_are_noted_and_the_rest_is_crawled(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("list.test", {"/": article("one"), "/two#part": article("two")}))
    listed = tmp_path / "urls.txt"
    listed.write_text("# mine\nhttp://list.test/  # the first\nlist.test\n\nhttp://list.test/#x\n", encoding="utf-8")
    ran = crawl(web, "--from-file", listed, out=tmp_path / "out")
    assert ran.code == 0
    assert ran.summary["pages"] == 1
    (note,) = ran.summary["notes"]
    assert f"line 3 of {listed}: 'list.test' cannot be crawled" in note
    assert "did you mean https://list.test?" in note
    listed.write_text("list.test\n", encoding="utf-8")
    none = crawl(web, "--from-file", listed, out=tmp_path / "out")
    assert (none.code, none.out) == (2, "")


def test_a_limit_that_is_reached_says_how_much_is_left(web: FakeWeb, tmp_path: Path) -> None:
    web.add(tiny("tiny.test", 30))
    ran = trawl("crawl", "http://tiny.test/", "--max-pages", "5", "--delay", "0", "--out", tmp_path, *through(web))
    assert "the limit of --max-pages is reached" in ran.out
    assert "URLs are left" in ran.out
    more = crawl(web, "http://tiny.test/", "--max-pages", "100", out=tmp_path)
    assert (more.summary["queued"], more.summary["limit_reached"], more.summary["documents"]) == (0, False, 30)


# Reading where nothing can be written


def test_a_crawl_can_be_read_in_a_folder_that_nobody_may_write_to(web: FakeWeb) -> None:
    web.add(Site("ro.test", {"/": article("heron")}))
    with TemporaryDirectory(prefix="trawl-test-") as name:
        folder = Path(name)
        crawl(web, "http://ro.test/", out=folder)
        folder.chmod(0o555)
        try:
            child = os.fork()
            if not child:
                os._exit(_read_as_nobody(folder))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        finally:
            folder.chmod(0o755)


def _read_as_nobody(folder: Path) -> int:
    """Search without the right to write; 0 if the page was found."""
    try:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        with closing(Database(folder, read_only=True)) as database:
            return 0 if database.connection.execute("SELECT count(*) FROM chunk").fetchone()[0] else 1
    except BaseException:  # noqa: BLE001 - this process is a copy of the test runner and must not go on as one
        traceback.print_exc()
        return 2
