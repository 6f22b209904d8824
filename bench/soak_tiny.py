"""Crawls a site of generated tiny pages and holds peak memory to a limit; one JSON line.

    python -m bench.soak_tiny [--pages 200000] [--rss-mb-max 500]

The exit code is 1 if a page is missing or the limit is passed. 200,000 pages take some time; see bench/README.md.
"""

import argparse
import json
import shutil
import sys

from bench.crawl import costs, cpu_split, summary_of, trawl_command
from bench.measure import WORK, cpu_seconds_of, measure
from tests.site.process import WebProcess

_FOLDER = WORK / "soak-tiny"


def main() -> None:
    """Crawl and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--rss-mb-max", type=int, default=500)
    parser.add_argument("--format", default="markdown,jsonl", help="what is written besides the database")
    parser.add_argument("--minutes-max", type=float, default=120.0, help="a crawl that takes longer is ended")
    options = parser.parse_args()
    shutil.rmtree(_FOLDER, ignore_errors=True)
    with WebProcess(f"tiny:tiny.test:{options.pages}", log=False) as web:
        command = trawl_command(web.url + "/", _FOLDER, "--format", options.format)
        measured = measure(command, _FOLDER.with_suffix(".log"), seconds_max=60 * options.minutes_max)
        requests, server_cpu = web.total(), cpu_seconds_of(web.pid)
    summary = summary_of(measured)
    pages = summary.get("pages", 0)
    line = {
        "site_pages": options.pages,
        "pages": pages,
        **costs(measured, pages),
        **cpu_split(measured, summary, pages),
        "rss_mb_max": options.rss_mb_max,
        **{name: summary.get(name) for name in ("indexed", "duplicates", "failed", "dead_letters")},
        "requests": requests,
        "server_cpu_s": round(server_cpu, 2),
    }
    if measured.exit_code:
        line["error"] = f"exit code {measured.exit_code}: {measured.error_tail[-500:]}"
    print(json.dumps(line), flush=True)
    if measured.exit_code or pages != options.pages or line["rss_mb"] > options.rss_mb_max:
        sys.exit(1)


if __name__ == "__main__":
    main()
