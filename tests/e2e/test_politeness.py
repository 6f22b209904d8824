"""Politeness as the server sees it: gaps, pauses and concurrency by its own clock."""

import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

from tests.e2e.running import TRAWL, Corpus, crawl, environment, through, trawl
from tests.site import FakeWeb, Site
from tests.site.responders import delays, limits, robots
from tests.site.responders.mirrors import article

CLOCK = 0.06
"""Seconds by which a gap may look shorter at the server, which sees a request a little after it was sent."""


def site(host: str, pages: int = 5, rules: str = "User-agent: *\nAllow: /\n", seconds: float = 0) -> Site:
    """Pages that `/` links to, each answered after some seconds."""
    paths = [f"/{n}" for n in range(1, pages)]
    found = {"/": article(host, links=paths), **{path: article(f"{host}{path}") for path in paths}}
    slow = {path: delays.delayed(page, seconds) for path, page in found.items()}
    return Site(host, {"/robots.txt": robots.rules(rules), **(slow if seconds else found)})


def test_gaps_are_never_below_the_delay_robots_txt_included(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("slow.test", 6))
    options = ("--per-host-concurrency", "4")
    ran = crawl(web, "http://slow.test/", *options, out=tmp_path, delay=0.3)
    assert ran.summary["pages"] == 6
    assert ran.summary["politeness_violations"] == 0
    gaps = web.gaps("slow.test")
    assert len(gaps) == 6
    assert min(gaps) >= 0.3 - CLOCK
    assert max(gaps) < 3, "and the crawl does not dawdle"


def test_case_13_a_crawl_delay_is_kept_and_a_longer_one_clamped(web: FakeWeb, tmp_path: Path) -> None:
    web.add(
        site("asks.test", 4, "User-agent: *\nCrawl-delay: 0.5\n"),
        site("greedy.test", 3, "User-agent: *\nCrawl-delay: 900\n"),
    )
    variables = {"TRAWL_POLITENESS_CRAWL_DELAY_SECONDS_MAX": "1"}
    ran = crawl(web, "http://asks.test/", "http://greedy.test/", out=tmp_path, env=variables)
    assert ran.summary["pages"] == 7
    assert min(web.gaps("asks.test")) >= 0.5 - CLOCK
    assert min(web.gaps("greedy.test")) >= 1 - CLOCK
    assert max(web.gaps("greedy.test")) < 5
    assert "http://greedy.test" in ran.err
    assert "clamped" in ran.err


def test_a_slow_host_is_asked_less_often(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("tired.test", 4, seconds=0.3))
    variables = {"TRAWL_POLITENESS_ADAPTIVE_FACTOR": "3"}
    ran = crawl(web, "http://tired.test/", out=tmp_path, delay=0.01, env=variables)
    assert ran.summary["pages"] == 4
    pages = [hit.at_seconds for hit in web.hits("tired.test") if hit.path != "/robots.txt"]
    learned = [later - earlier for earlier, later in pairwise(pages)][1:]
    assert min(learned) >= 0.45, "the smoothed response time is on its way to 0.3 s, times 3"


def test_seeds_and_links_of_one_host_share_its_slots(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("one.test", 5))
    seeds = [f"http://one.test/{path}" for path in ("", "1", "2", "3", "4")]
    crawl(web, *seeds, out=tmp_path, delay=0.3)
    assert len(web.hits("one.test")) == 6
    assert min(web.gaps("one.test")) >= 0.3 - CLOCK


def test_both_schemes_of_a_host_share_its_slots(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("both.test", 3))
    crawl(web, "http://both.test/", "https://both.test/", out=tmp_path, delay=0.3)
    hits = web.hits("both.test")
    assert {hit.scheme for hit in hits} == {"http", "https"}
    assert min(web.gaps("both.test")) >= 0.3 - CLOCK


def test_case_1_retry_after_parks_the_whole_host(web: FakeWeb, tmp_path: Path) -> None:
    pages = {"/": article("b", links=["/busy", "/other"]), "/other": article("other"), "/third": article("third")}
    web.add(
        Site("seconds.test", {**pages, "/busy": limits.busy_at_first(article("late"), retry_after=2)}),
        Site("date.test", {**pages, "/busy": limits.busy_at_first(article("late"), retry_after=2, status=503)}),
    )
    options = ("--max-depth", "1", "--per-host-concurrency", "2")
    ran = crawl(web, "http://seconds.test/", "http://date.test/", "http://seconds.test/third", *options, out=tmp_path,
                env={"TRAWL_EMBEDDED_PATIENCE_SECONDS": "10"})  # fmt: skip
    assert ran.code == 0
    for host in ("seconds.test", "date.test"):
        hits = web.hits(host)
        refused = next(hit for hit in hits if hit.path == "/busy")
        later = [hit for hit in hits if hit.at_seconds > refused.at_seconds + 0.3]
        assert later, host
        assert min(hit.at_seconds for hit in later) - refused.at_seconds >= 2 - CLOCK
        assert f"http://{host}/busy" in {row["url"] for row in Corpus(tmp_path).rows}


def test_case_1_a_retry_after_beyond_the_cap_ends_the_fetch_and_is_not_shortened(web: FakeWeb, tmp_path: Path) -> None:
    pages = {"/": article("far", links=["/busy"]), "/busy": limits.busy(7200)}
    web.add(Site("far.test", pages))
    variables = {"TRAWL_POLITENESS_RETRY_AFTER_SECONDS_MAX": "3600"}
    ran = crawl(web, "http://far.test/", out=tmp_path, env=variables)
    assert ran.summary["failed"] == {"retry_after_too_long": 1}
    before = web.log.total
    again = crawl(web, "http://far.test/", out=tmp_path, env=variables)
    assert web.log.total == before, "the host asked for two hours, and gets them from the next run too"
    assert again.code in {0, 1}


def test_hosts_behind_a_proxy_are_crawled_side_by_side(web: FakeWeb, tmp_path: Path) -> None:
    hosts = [f"h{n}.test" for n in range(12)]
    web.add(*(site(host, 2) for host in hosts))
    variables = {"TRAWL_POLITENESS_ADDRESS_DELAY_SECONDS": "5"}
    ran = crawl(web, *(f"http://{host}/" for host in hosts), out=tmp_path, delay=0.3, env=variables)
    assert ran.summary["pages"] == 24
    assert ran.summary["seconds"] < 12, "36 requests at one every 5 s of an address would take 3 minutes"
    for host in hosts:
        assert min(web.gaps(host)) >= 0.3 - CLOCK


def test_names_that_share_an_address_share_its_slots_without_a_proxy(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("127.0.0.1", 3), site("localhost", 3))
    urls = (f"http://127.0.0.1:{web.port}/", f"http://localhost:{web.port}/")
    variables = {"TRAWL_POLITENESS_ADDRESS_DELAY_SECONDS": "0.2"}
    options = ("--delay", "0.2", "--allow-network", "127.0.0.0/8", "--allow-network", "::1/128", "--json")
    ran = trawl("crawl", *urls, "--out", tmp_path, *options, env=variables)
    assert ran.summary["pages"] == 6, ran.err
    times = [hit.at_seconds for hit in web.hits()]
    assert len(times) == 8
    assert times[-1] - times[0] >= 7 * 0.2 - 0.1, "a rate of the address; each host alone would be done in 0.6 s"


def test_per_host_concurrency_is_the_most_in_flight_at_once(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("wide.test", 12, seconds=0.2), site("narrow.test", 4, seconds=0.2))
    crawl(web, "http://wide.test/", "--per-host-concurrency", "3", out=tmp_path / "wide")
    assert web.log.in_flight_max("wide.test") == 3
    crawl(web, "http://narrow.test/", out=tmp_path / "narrow")
    assert web.log.in_flight_max("narrow.test") == 1


def test_a_delay_longer_than_the_crawl_s_patience_is_waited_for(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("patient.test", 3), site("asked.test", 2, "User-agent: *\nCrawl-delay: 1.5\n"))
    urls = ("http://patient.test/", "http://asked.test/")
    ran = crawl(web, *urls, out=tmp_path, delay=1, env={"TRAWL_EMBEDDED_PATIENCE_SECONDS": "0.2"})
    assert (ran.summary["pages"], ran.summary["queued"]) == (5, 0)
    assert min(web.gaps("patient.test")) >= 1 - CLOCK
    assert min(web.gaps("asked.test")) >= 1.5 - CLOCK


def test_a_second_run_keeps_the_gap_to_the_last_fetch_of_the_first(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("twice.test", 1))
    codes = [crawl(web, "http://twice.test/", out=tmp_path, delay=4).code for _ in range(2)]
    assert codes == [0, 0]
    assert len(web.hits("twice.test", "/")) == 2
    assert min(web.gaps("twice.test")) >= 4 - CLOCK


def test_every_fetch_says_who_asks_and_how_to_reach_them(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("who.test", 3))
    crawl(web, "http://who.test/", out=tmp_path)
    agents = Counter(hit.headers["user-agent"] for hit in web.hits("who.test"))
    (agent,) = agents
    assert agent.startswith("trawl/")
    assert "+https://" in agent


def test_another_delay_holds_at_once_for_hosts_that_are_known(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("anew.test", 8))
    crawl(web, "http://anew.test/", "--max-pages", "1", out=tmp_path, delay=2)
    began = len(web.gaps("anew.test"))
    ran = crawl(web, "http://anew.test/", out=tmp_path, delay=0.3)
    assert ran.summary["documents"] == 8
    gaps = web.gaps("anew.test")[began + 1 :]
    assert min(gaps) >= 0.3 - CLOCK
    assert max(gaps) < 1.5, "the delay of 2 s is forgotten"


def test_a_crawl_delay_is_kept_over_kill_9(web: FakeWeb, tmp_path: Path) -> None:
    web.add(site("killed.test", 12, "User-agent: *\nCrawl-delay: 1.5\n"))
    command = ["http://killed.test/", "--out", tmp_path, *through(web), "--json"]
    lazy = environment(TRAWL_EMBEDDED_COMMIT_SECONDS="2", TRAWL_POLITENESS_HORIZON_SECONDS="0.05")
    for wanted in range(3, 7):  # the first two hits are robots.txt and the page that shows that it is known
        running = subprocess.Popen([*TRAWL, "crawl", *map(str, command)], env=lazy, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while len(web.hits("killed.test")) < wanted and time.monotonic() < until:
            time.sleep(0.002)
        running.kill()
        running.wait()
    assert len(web.hits("killed.test")) >= 6
    assert min(web.gaps("killed.test")) >= 1.5 - CLOCK
