"""A crawl that is killed, or stopped by Ctrl-C, goes on where it was: nothing lost, nothing doubled."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.running import TRAWL, Corpus, environment
from tests.site.process import WebProcess

PAGES = 2_000
KILLS = 20
IN_FLIGHT = 8
"""Fetches of the host at the same time, which is how many of its pages can be leased at the same time."""
ORPHAN_SECONDS_MAX = 10


def start(web: WebProcess, out: Path, *options: str, host: str = "tiny.test") -> subprocess.Popen[str]:
    """A crawl of the tiny site that goes on while the test does."""
    pace = ("--delay", "0", "--per-host-concurrency", str(IN_FLIGHT))
    reach = ("--proxy", web.proxy, "--ca-file", str(web.ca_file))
    command = [*TRAWL, "crawl", f"http://{host}/", "--out", str(out), *pace, *reach, *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a crawl to end by itself."""
    out, err = process.communicate(timeout=110)
    return process.returncode, out, err


def until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    """Wait for a condition; False if the crawl has ended before."""
    while not condition():
        if process.poll() is not None:
            return False
        time.sleep(0.005)
    return True


def children(pid: int) -> set[int]:
    """Processes that a process has started."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {int(child) for child, parent in (line.split() for line in listed.splitlines()) if int(parent) == pid}


def alive(pids: set[int]) -> set[int]:
    """Those of the processes that still run."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    running = {
        int(pid) for pid, state in (line.split()[:2] for line in listed.splitlines()) if not state.startswith("Z")
    }
    return pids & running


@pytest.fixture(scope="module")
def tiny_web() -> Iterator[WebProcess]:
    with WebProcess(f"tiny:tiny.test:{PAGES}", "tiny:small.test:300") as web:
        yield web


@pytest.fixture(scope="module")
def undisturbed(tiny_web: WebProcess, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """The tiny site crawled without any trouble."""
    out = tmp_path_factory.mktemp("undisturbed")
    code, _, err = finish(start(tiny_web, out, "--json"))
    assert code == 0, err
    corpus = Corpus(out)
    assert len(corpus.rows) == PAGES
    corpus.consistent()
    return corpus


def moments(kills: int, seed: int) -> list[int]:
    """After how many more requests each run is killed: at once, in the middle, and all over the crawl."""
    pick = random.Random(seed)
    return [pick.randint(0, PAGES // kills) for _ in range(kills)]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1 + 2 * bool(os.environ.get("TRAWL_SOAK"))))
def test_case_39_twenty_kills_lose_and_double_nothing(
    tiny_web: WebProcess, undisturbed: Corpus, tmp_path: Path, seed: int
) -> None:
    tiny_web.clear()
    workers: set[int] = set()
    killed = 0
    for more in moments(KILLS, seed):
        process = start(tiny_web, tmp_path)
        goal = tiny_web.total() + more
        if until(lambda goal=goal: tiny_web.total() >= goal, process):  # type: ignore[misc]
            time.sleep(random.Random(more).uniform(0, 0.05))
            workers |= children(process.pid)
            killed += 1
        process.kill()
        process.communicate()
    code, _, err = finish(start(tiny_web, tmp_path, "--json"))
    assert code == 0, err
    assert killed == KILLS
    corpus = Corpus(tmp_path)
    corpus.consistent()
    assert corpus.identities == undisturbed.identities
    assert corpus.files("markdown") == undisturbed.files("markdown")
    for table in ("page", "chunk", "vector", "request"):
        assert corpus.count(table) == undisturbed.count(table)
    hits = Counter(hit.path for hit in tiny_web.hits("tiny.test"))
    again = sum(count - 1 for path, count in hits.items() if path != "/robots.txt")
    # A page is in flight until it is indexed; what was done within one commit of 20 ms may be forgotten as well.
    assert again <= killed * 2 * IN_FLIGHT
    until_gone(workers)


def until_gone(pids: set[int]) -> None:
    """Workers end soon after the process that started them was killed."""
    deadline = time.monotonic() + ORPHAN_SECONDS_MAX
    while alive(pids):
        assert time.monotonic() < deadline, "a killed crawl leaves its workers behind"
        time.sleep(0.1)


def test_ctrl_c_finishes_what_is_in_flight_and_says_how_to_go_on(tiny_web: WebProcess, tmp_path: Path) -> None:
    tiny_web.clear()
    process = start(tiny_web, tmp_path, host="small.test")
    assert until(lambda: tiny_web.total() > 60, process)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert code == 130
    assert "stopping" in err
    assert "Traceback" not in err
    left = re.search(r"interrupted: (\d+) URLs are left; run the same command again to go on", out)
    assert left is not None, out
    corpus = Corpus(tmp_path)
    corpus.consistent()
    asked = {hit.path for hit in tiny_web.hits("small.test")} - {"/robots.txt"}
    assert len(corpus.rows) == len(asked), "what was fetched is written"
    code, out, err = finish(start(tiny_web, tmp_path, "--json", host="small.test"))
    assert code == 0, err
    hits = Counter(hit.path for hit in tiny_web.hits("small.test"))
    assert set(hits.values()) == {1}, "nothing is fetched twice after a graceful stop"
    after = Corpus(tmp_path)
    assert len(after.rows) == 300
    after.consistent()


def test_ctrl_c_twice_stops_at_once_and_loses_nothing(tiny_web: WebProcess, tmp_path: Path) -> None:
    tiny_web.clear()
    process = start(tiny_web, tmp_path, host="small.test")
    assert until(lambda: tiny_web.total() > 60, process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, _, err = finish(process)
    assert code == 130
    assert time.monotonic() - began < 5
    assert "Traceback" not in err
    code, out, err = finish(start(tiny_web, tmp_path, "--json", host="small.test"))
    assert code == 0, (out, err)
    after = Corpus(tmp_path)
    assert len(after.rows) == 300
    after.consistent()


@pytest.mark.parametrize("number", [signal.SIGTERM])
def test_a_service_manager_s_stop_is_graceful_too(tiny_web: WebProcess, tmp_path: Path, number: signal.Signals) -> None:
    tiny_web.clear()
    process = start(tiny_web, tmp_path, "--json", host="small.test")
    assert until(lambda: tiny_web.total() > 20, process)
    process.send_signal(number)
    code, out, err = finish(process)
    assert code == 130, err
    assert '"interrupted": true' in out
    Corpus(tmp_path).consistent()


def test_the_installed_command_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("trawl")
    said = [subprocess.run([*one, "--version"], capture_output=True, check=True).stdout for one in ([script], TRAWL)]
    assert said[0] == said[1]
