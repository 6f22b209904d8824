"""The embedded crawl that the services are compared with, so that its start is not counted.

    python -m bench.services_embedded URL FOLDER

Settings come from variables. It says `ready` on standard output when all is open and the extraction processes run,
crawls after a line on standard input, says `done`, and after another line prints the crawl's summary as JSON.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.measure import ROOT
from bench.services_stack import ONE_THREAD, REST_SECONDS, Cpu, cpu_of
from trawl.assembly import CrawlPlan, CrawlRun
from trawl.records import Seed
from trawl.settings import load

FORMATS: Final = frozenset({"html"})
"""The services keep raw HTML too, and write no other files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedCrawl:
    """What a crawl brought and cost, its start left out."""

    summary: Mapping[str, Any]
    seconds: float
    cpu: Cpu
    """Of the crawling process, and of the extraction processes below it."""


def crawl_embedded(url: str, folder: Path, variables: Mapping[str, str], seconds_max: float) -> EmbeddedCrawl:
    """Crawl in a process of its own; raises RuntimeError if it ends early or takes too long."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.services_embedded", url, str(folder)],
        cwd=ROOT,
        env={**kept, **ONE_THREAD, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    timer = threading.Timer(seconds_max, process.kill)
    timer.start()
    try:
        with process:
            _expect(process, "ready")
            time.sleep(REST_SECONDS)
            before, began = cpu_of({"embedded": process.pid}), time.monotonic()
            _go_on(process)
            _expect(process, "done")
            after, ended = cpu_of({"embedded": process.pid}), time.monotonic()
            _go_on(process)
            summary = json.loads(_line(process))
    finally:
        timer.cancel()
    return EmbeddedCrawl(summary=summary, seconds=ended - began, cpu=after["embedded"] - before["embedded"])


def _line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise RuntimeError("the embedded crawl ended early, or took too long; see above")
    return line


def _expect(process: "subprocess.Popen[str]", word: str) -> None:
    line = _line(process)
    if line != word:
        raise RuntimeError(f"the embedded crawl said {line!r}, not {word!r}")


def _go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


async def _crawl(url: str, folder: Path) -> dict[str, Any]:
    settings = load({}, os.environ)
    plan = CrawlPlan(folder=folder, seeds=(Seed(url=url),), settings=settings, formats=FORMATS, fresh=True)
    async with CrawlRun(plan) as run:
        await _say("ready")
        await run.run()
        await _say("done")
        return await run.summary()


async def _say(word: str) -> None:
    """Tell the parent, and wait for its answer."""
    print(word, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_crawl(sys.argv[1], Path(sys.argv[2])))))
