import os
import subprocess
import sys

from bench.services import ServicesCrawl, _differences, _idle
from bench.services_stack import Cpu, cpu_of, spent
from trawl.ports import CrawlProgress

BURN = "import time\nwhile time.process_time() < 0.4: pass\n"


def test_cpu_of_a_child_that_has_ended_counts_below_its_parent() -> None:
    run = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])"
    code = f"{run}; print('done', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        before = cpu_of({"one": process.pid})
        assert process.stdout.readline() == b"done\n"
        used = spent(before, cpu_of({"one": process.pid}))["one"]
    assert used.own < 0.35
    assert 0.35 <= used.below < 3
    assert used.total == used.own + used.below


def test_cpu_of_this_process_is_its_own() -> None:
    found = cpu_of({"me": os.getpid()})["me"]
    assert found.own > 0


def crawled(documents: int) -> ServicesCrawl:
    return ServicesCrawl(
        progress=CrawlProgress(outcomes=(("indexed", 7), ("duplicate", 2), ("failed", 1))),
        documents=documents,
        chunks=20,
        seconds=1.0,
        services={"indexer": Cpu(1.0, 0.5)},
        servers={},
        kafka_bytes={},
        redis_bytes=0,
    )


def test_crawls_that_brought_as_much_differ_in_nothing_and_others_are_an_error() -> None:
    summary = {"pages": 9, "documents": 7, "chunks": 20}
    assert _differences(summary, crawled(documents=7)) == {}
    assert "'documents': 6" in _differences(summary, crawled(documents=6))["error"]
    assert crawled(documents=7).urls == 10


def test_waits_are_told_by_their_middle_and_their_worst_twentieth() -> None:
    waits = [(number / 100, 1 + number / 100) for number in range(1, 101)]
    told = _idle(waits)
    assert told["hosts"] == 100
    assert 0.5 <= told["written_p50_s"] <= 0.51
    assert 1.95 <= told["searchable_p95_s"] <= 1.97
