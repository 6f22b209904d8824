"""Bad input gets a clear error or a typed outcome, and the good pages beside it are none the worse for it."""

import contextlib
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.running import TRAWL, Corpus, crawl, environment, serving, through, trawl
from tests.site import FakeWeb, Reply, Site
from tests.site.responders import bombs, delays, robots
from tests.site.responders.bodies import deep
from tests.site.responders.mirrors import article
from tests.site.responders.pages import html
from tests.site.sites import misbehaving, tiny

IMPATIENT = {
    "TRAWL_FETCH_CONNECT_SECONDS_MAX": "2",
    "TRAWL_FETCH_FIRST_BYTE_SECONDS_MAX": "1.5",
    "TRAWL_FETCH_IDLE_SECONDS_MAX": "1",
    "TRAWL_FETCH_TOTAL_SECONDS_MAX": "6",
    "TRAWL_FETCH_ROBOTS_SECONDS_MAX": "2",
    "TRAWL_FRONTIER_ATTEMPTS_MAX": "2",
    "TRAWL_POLITENESS_BREAKER_FAILURES": "1000",
}


# What is asked for


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("example.com", "did you mean https://example.com?"),
        ("http://[broken", "cannot be crawled"),
        ("ftp://files.test/a", "cannot be crawled"),
        ("file:///etc/hostname", "cannot be crawled"),
        ("http://", "cannot be crawled"),
        ("", "cannot be crawled"),
    ],
)
def test_a_seed_that_is_no_url_is_refused_before_anything_is_made(tmp_path: Path, url: str, hint: str) -> None:
    ran = trawl("crawl", "http://good.test/", url, "--out", tmp_path / "out", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert repr(url) in ran.err
    assert not (tmp_path / "out").exists()


BAD_COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "unknown-option": (("--no-such-option",), "no-such-option"),
    "unknown-scope": (("--scope", "galaxy"), "galaxy"),
    "unknown-format": (("--format", "markdown,pdf"), "the formats are markdown, html, jsonl"),
    "negative-delay": (("--delay", "-1"), "-1"),
    "no-workers": (("--fetch-workers", "0"), "fetch-workers"),
    "header-without-host": (("--header", "X-Key: 1"), "HOST: NAME: VALUE"),
    "network-in-words": (("--allow-network", "home"), "CIDR"),
    "missing-authority": (("--ca-file", "nowhere.pem"), "nowhere.pem"),
    "missing-list": (("--from-file", "nowhere.txt"), "nowhere.txt"),
    "missing-config": (("--config", "nowhere.toml"), "nowhere.toml"),
}


@pytest.mark.parametrize("name", BAD_COMMANDS)
def test_a_command_that_cannot_be_used_says_what_is_wrong(tmp_path: Path, name: str) -> None:
    options, said = BAD_COMMANDS[name]
    ran = trawl("crawl", "http://good.test/", *options, cwd=tmp_path)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("document", "variables", "said"),
    [
        ("[fetch]\nbody_bytes_max = 'many'\n", {}, "fetch.body_bytes_max"),
        ("[fetch]\nbody_bytes = 1\n", {}, "fetch.body_bytes"),
        ("[fetching]\nx = 1\n", {}, "[fetching]"),
        ("this is not toml", {}, "settings.toml"),
        ("", {"TRAWL_FETCH_BODY_BYTES_MAX": "many"}, "TRAWL_FETCH_BODY_BYTES_MAX says"),
        ("", {"TRAWL_POLITENESS_DELAY_SECONDS": "-1"}, "TRAWL_POLITENESS_DELAY_SECONDS"),
        ("", {"TRAWL_URL_SORT_QUERY": "maybe"}, "TRAWL_URL_SORT_QUERY"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    tmp_path: Path, document: str, variables: dict[str, str], said: str
) -> None:
    config = tmp_path / "settings.toml"
    config.write_text(document, encoding="utf-8")
    command = ("crawl", "http://good.test/", "--out", tmp_path / "out", "--config", config)
    ran = trawl(*command, env=variables)
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "out").exists()


# Whom it is asked of


def test_a_private_address_is_refused_with_the_option_that_allows_it(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("in.test", {"/": article("in")}))
    urls = (f"{web.url}/", f"http://localhost:{web.port}/", "http://169.254.169.254/latest/", "http://10.0.0.1/")
    ran = trawl("crawl", *urls, "--out", tmp_path, "--delay", "0")
    assert ran.code == 1
    assert "--allow-network 127.0.0.1" in ran.out
    assert "--allow-network 169.254.169.254" in ran.out
    assert "--allow-network 10.0.0.1" in ran.out
    assert web.log.total == 0


def test_a_name_that_does_not_resolve_is_told(tmp_path: Path) -> None:
    ran = trawl("crawl", "http://no-such-host.invalid/", "--out", tmp_path, "--json", env=IMPATIENT)
    assert ran.code == 1
    assert "no-such-host.invalid" in ran.summary["details"][0]


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port of loopback at which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_dead_hosts_cost_the_good_ones_nothing(web: FakeWeb, tmp_path: Path) -> None:
    web.add(
        Site("good.test", {"/": article("good", links=["/more"]), "/more": article("more")}),
        Site("down.test", {}, reachable=False),
        Site("silent.test", {"/robots.txt": delays.never(), "/": article("silent")}),
        Site("error.test", {"/robots.txt": Reply(500, b"User-agent: *\nAllow: /\n"), "/": article("error")}),
        *(
            Site(f"{tls}.test", {"/": article(tls)}, tls=tls)
            for tls in ("expired", "wrong-name", "untrusted", "broken")
        ),
    )
    hosts = ("http://down.test/", "http://silent.test/", "http://error.test/", "https://expired.test/",
             "https://wrong-name.test/", "https://untrusted.test/", "https://broken.test/")  # fmt: skip
    ran = crawl(web, *hosts, "http://good.test/", out=tmp_path, env=IMPATIENT)
    assert ran.code == 0
    corpus = Corpus(tmp_path)
    assert corpus.urls == {"http://good.test/", "http://good.test/more"}
    for host in ("silent.test", "error.test", "expired.test", "untrusted.test"):
        assert web.hits(host, "/") == [], "nothing is fetched of a host whose robots.txt is unknown"
    told = {url: (outcome, reason) for url, outcome, reason in corpus.outcomes() if url in hosts}
    assert set(told) == set(hosts)
    assert {outcome for outcome, _ in told.values()} <= {"refused", "retry", "failed"}, told
    assert all(reason for _, reason in told.values())


def test_a_port_where_nobody_listens_is_told_and_the_other_one_crawled(
    web: FakeWeb, tmp_path: Path, dead_port: int
) -> None:
    web.add(Site("direct.test", {"/": article("direct")}))
    urls = (f"http://127.0.0.1:{dead_port}/", f"{web.url}/")
    options = ("--delay", "0", "--allow-network", "127.0.0.1/32", "--json")
    ran = trawl("crawl", *urls, "--out", tmp_path, *options, env=IMPATIENT)
    assert ran.code == 0
    corpus = Corpus(tmp_path)
    assert corpus.urls == {urls[1]}
    assert corpus.outcome(urls[0])[1] in {"connect_failed", "robots_unavailable"}


def test_a_failing_certificate_is_named_to_whoever_asks_for_that_host_only(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("expired.test", {"/": article("x")}, tls="expired"))
    ran = crawl(web, "https://expired.test/", out=tmp_path, env=IMPATIENT)
    assert ran.code == 1
    assert "certificate" in ran.summary["details"][0].lower()


# What it answers

FAULTS = {
    "/fault/reset": {"truncated", "connection_lost"},
    "/fault/truncated": {"truncated"},
    "/fault/truncated-chunked": {"truncated"},
    "/fault/length-too-long": {"truncated", "idle_timeout", "total_timeout"},
    "/fault/hang-up": {"connection_lost"},
    "/fault/garbage": {"protocol_error"},
    "/fault/headers": {"headers_too_large"},
    "/slow/never": {"first_byte_timeout"},
    "/slow/stalled": {"idle_timeout"},
    "/slow/endless": {"body_too_large"},
    "/slow/endless-headers": {"headers_too_large"},
    "/body/huge": {"body_too_large"},
    "/bomb/gzip": {"body_too_large", "decode_ratio"},
    "/bomb/br-chunked": {"body_too_large", "decode_ratio"},
    "/bomb/zstd": {"body_too_large", "decode_ratio"},
    "/bomb/nested": {"body_too_large", "decode_ratio"},
    "/loop/a": {"redirect_loop"},
    "/chain-11/1": {"too_many_redirects"},
    "/grow/": {"too_many_redirects", "path_too_deep", "redirect_loop"},
    "/to/file": {"redirect_scheme"},
    "/to/javascript": {"redirect_scheme"},
    "/to/invalid": {"redirect_invalid", "invalid_url", "redirect_scheme"},
    "/status/404": {"http_404"},
    "/status/403": {"http_403"},
    "/status/402": {"payment_required"},
    "/status/500": {"http_500"},
    "/status/999": {"http_999"},
    "/mislabelled/png-as-html": set(),
    "/mislabelled/pdf-as-html": set(),
    "/mislabelled/noise-as-html": set(),
}
"""The reasons that each fault may end with; where there is none, anything but a page."""
GOOD = (
    "/target", "/coding/gzip", "/coding/br", "/coding/twice", "/body/chunked", "/body/until-close", "/body/deep",
    "/body/wide", "/mislabelled/html-without-type", "/mislabelled/html-as-nonsense",
    "/broken/attributes", "/broken/entities", "/broken/misnested", "/flaky", "/near/50",
)  # fmt: skip


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Corpus, FakeWeb, int]]:
    """Every fault of one host, and the good pages between them, in one crawl."""
    out = tmp_path_factory.mktemp("bad")
    listed = "\n".join(
        f"http://bad.test{path}"
        for pair in zip([*FAULTS], [*GOOD, "/chain-10/1", "/to/fragment", *FAULTS], strict=False)
        for path in pair
    )
    options = ("--max-depth", "0", "--per-host-concurrency", "16", "--from-file", "-")
    variables = {**IMPATIENT, "TRAWL_FRONTIER_ATTEMPTS_MAX": "3", "TRAWL_POLITENESS_BACKOFF_SECONDS": "0.01"}
    for kind in bombs.KINDS:
        bombs.bomb(kind)  # made before, so that the server does not pause while it makes them
    with serving(misbehaving()) as web:
        ran = crawl(web, *options, out=out, given=listed, env=variables)
        assert ran.summary["dead_letters"] == 0
        yield Corpus(out), web, ran.code


def test_every_fault_of_a_body_or_connection_ends_in_a_typed_outcome(bad: tuple[Corpus, FakeWeb, int]) -> None:
    corpus, _, _ = bad
    told = {url.removeprefix("http://bad.test"): (outcome, reason) for url, outcome, reason in corpus.outcomes()}
    wrong = {
        path: told.get(path)
        for path, reasons in FAULTS.items()
        if told.get(path, ("", ""))[0] not in {"failed", "refused"} or (reasons and told[path][1] not in reasons)
    }
    assert wrong == {}


def test_the_good_pages_between_them_are_all_there(bad: tuple[Corpus, FakeWeb, int]) -> None:
    corpus, _, code = bad
    assert code == 0
    assert {f"http://bad.test{path}" for path in GOOD} - corpus.urls == set()
    for path in ("/chain-10/1", "/to/fragment"):
        assert corpus.outcome(f"http://bad.test{path}") == ("alias", "same_document")
    corpus.consistent()


CRUSHERS = {
    "/deep": deep(100_000),
    "/text": Reply(body=b"<!doctype html><title>Text</title><p>" + b"word " * 10_000_000),
    "/attributes": Reply(body=b"<p " + b" ".join(b"a%d=1" % n for n in range(200_000)) + b">many attributes"),
    "/one-attribute": Reply(body=b"<p title='" + b"x" * 10_000_000 + b"'>one long attribute of a page of few words"),
    "/tables": Reply(body=b"<table><tr><td>" * 30_000 + b"cell"),
    "/lists": Reply(body=b"<ul><li>item " * 50_000),
    "/siblings": Reply(body=b"<p>a" * 1_000_000),
    "/entities": Reply(body=b"<p>" + b"&amp;" * 1_000_000),
    "/script": Reply(body=b'<script type="application/ld+json">' + b"[" * 1_000_000 + b"</script><p>Words stay."),
}


def test_pages_made_to_crush_a_reader_end_typed_and_the_crawl_goes_on(web: FakeWeb, tmp_path: Path) -> None:
    good = [f"/good/{n}" for n in range(10)]
    links = [link for pair in zip(CRUSHERS, good, strict=False) for link in pair] + good
    web.add(Site("crush.test", {"/": article("crush", links=links), **CRUSHERS, **{p: article(p) for p in good}}))
    variables = {
        "TRAWL_FETCH_BODY_BYTES_MAX": "100000000",
        "TRAWL_FETCH_WIRE_BYTES_MAX": "100000000",
        "TRAWL_EXTRACT_SECONDS_MAX": "10",
    }
    ran = crawl(web, "http://crush.test/", "--per-host-concurrency", "4", out=tmp_path, env=variables, seconds=115)
    assert ran.code == 0
    corpus = Corpus(tmp_path)
    assert {f"http://crush.test{path}" for path in good} <= corpus.urls
    told = {url.removeprefix("http://crush.test"): (outcome, reason) for url, outcome, reason in corpus.outcomes()}
    assert set(told) == {"/", *CRUSHERS, *good}
    assert {told[path][0] for path in CRUSHERS} <= {"indexed", "duplicate", "failed"}
    assert all(told[path][1] for path in CRUSHERS if told[path][0] == "failed")
    assert ran.summary["dead_letters"] == 0


# Where it is written


def test_a_folder_that_another_run_holds_is_refused_with_its_process(web: FakeWeb, tmp_path: Path) -> None:
    web.add(Site("slow.test", {"/": delays.delayed(article("slow"), 3)}))
    command = (*TRAWL, "crawl", "http://slow.test/", "--out", str(tmp_path), "--delay", "0", *through(web))
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
        while not web.hits("slow.test"):
            time.sleep(0.02)
        ran = crawl(web, "http://slow.test/", out=tmp_path)
        fresh = crawl(web, "http://slow.test/", "--fresh", out=tmp_path)
        assert first.wait(60) == 0
    assert (ran.code, ran.out) == (fresh.code, fresh.out) == (3, "")
    assert f"in use by another run (process {first.pid})" in ran.err
    assert Corpus(tmp_path).urls == {"http://slow.test/"}


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    database = tmp_path / "trawl.sqlite"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA user_version = 999")
    before = database.read_bytes()
    for command in (("crawl", "http://a.test/", "--out"), ("status",), ("search", "words", "--dir")):
        ran = trawl(*command, tmp_path)
        assert ran.code == 3, command
        assert "newer version" in ran.err
        assert "upgrade" in ran.err
    assert database.read_bytes() == before


def test_a_damaged_database_is_told(web: FakeWeb, tmp_path: Path) -> None:
    (tmp_path / "trawl.sqlite").write_bytes(b"this is no database, whatever its name says " * 100)
    ran = crawl(web, "http://a.test/", out=tmp_path)
    assert ran.code == 3
    assert "damaged" in ran.err
    assert "Traceback" not in ran.err


def test_a_folder_that_is_a_file_or_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        ran = trawl("crawl", "http://a.test/", "--out", out)
        assert ran.code in {2, 3}
        assert "file" in ran.err
        assert "Traceback" not in ran.err


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a command whose files cannot grow beyond a number of bytes."""


@pytest.fixture(params=["small_disk", "file_limit"])
def short_of_space(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, int, Callable[[], None]]]:
    """A folder that fills up, the limit of a file's bytes there (0 is none), and what makes room.

    Where no file system may be mounted the limit of file sizes stands in for both.
    """
    mounted = False
    if request.param == "small_disk":
        command = ["mount", "-t", "tmpfs", "-o", "size=3m", "trawl-test", str(tmp_path)]
        with contextlib.suppress(FileNotFoundError):
            mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0

    def make_room() -> None:
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=200m", str(tmp_path)], check=True)

    yield tmp_path, 0 if mounted else 1_000_000, make_room
    if mounted:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_stops_the_crawl_and_room_lets_it_go_on(
    web: FakeWeb, short_of_space: tuple[Path, int, Callable[[], None]]
) -> None:
    folder, file_bytes_max, make_room = short_of_space
    web.add(tiny("full.test", 400))
    limited = (sys.executable, "-c", LIMITED, str(file_bytes_max)) if file_bytes_max else ()
    options = ("--delay", "0", "--per-host-concurrency", "8", *through(web), "--json")
    done = subprocess.run(
        [*limited, *TRAWL, "crawl", "http://full.test/", "--out", str(folder), *options],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 3, (done.stdout[-500:], done.stderr[-2000:])
    assert ("disk I/O error" if file_bytes_max else "no space left") in done.stderr
    assert file_bytes_max or "run the same command again" in done.stderr
    assert "Traceback" not in done.stderr
    make_room()
    ran = crawl(web, "http://full.test/", "--per-host-concurrency", "8", out=folder)
    assert ran.code == 0, ran.err
    corpus = Corpus(folder)
    assert len(corpus.rows) == 400
    corpus.consistent()


SILENT = {"busy", "error", "unavailable", "timeout", "reset", "truncated", "redirect-to-private"}
"""States of robots.txt in which nothing of the host may be fetched until it can be read."""
RULELESS = {"empty", "missing", "forbidden", "unauthorised", "gone", "redirect-loop", "utf-16", "binary", "html",
            "empty-disallow-first", "huge", "endless"}  # fmt: skip
"""States that close nothing of what is asked for here."""


def test_cases_3_5_and_6_robots_txt_of_every_state_in_one_crawl(web: FakeWeb, tmp_path: Path) -> None:
    web.add(*robots.sites())
    ran = crawl(web, *(f"http://{state}.robots.test/" for state in robots.STATES), out=tmp_path, env=IMPATIENT)
    assert ran.code == 0
    for state in robots.STATES:
        asked = {hit.path for hit in web.hits(f"{state}.robots.test")} - {"/robots.txt", "/robots-moved.txt"}
        wanted = {"/", "/page", "/private/page"} if state in RULELESS else {"/", "/page"}
        assert asked == (set() if state in SILENT | {"closed"} else wanted), state
        told = Corpus(tmp_path).outcome(f"http://{state}.robots.test/")
        if state in SILENT:
            assert told == ("retry", "robots_unavailable"), state
        else:
            assert told == (("refused", "robots_disallowed") if state == "closed" else ("indexed", ""))


def test_a_page_that_claims_to_be_another_site_s_takes_nothing_from_it(web: FakeWeb, tmp_path: Path) -> None:
    honest = html("Lanterns", "The keeper of the tower lights nine lanterns each evening at dusk.")
    target = "http://honest-site.test/"
    claim = f'<link rel="canonical" href="{target}"><meta property="og:url" content="{target}">'
    forged = f"<!doctype html><title>Lanterns</title>{claim}<h1>Lanterns</h1><p>Send money, says this page instead."
    web.add(Site("honest-site.test", {"/": honest}))
    web.add(Site("forger.test", {"/": forged}))
    for seeds in (
        ("http://forger.test/", "http://honest-site.test/"),
        ("http://honest-site.test/", "http://forger.test/"),
    ):
        out = tmp_path / seeds[0].removeprefix("http://").strip("/")
        assert crawl(web, *seeds, out=out).summary["indexed"] == 2
        texts = {row["url"]: row["text"] for row in Corpus(out).rows}
        assert "nine lanterns" in texts["http://honest-site.test/"]
        assert "money" in texts["http://forger.test/"]
