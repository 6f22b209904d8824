"""Crawls one large site with Trawl and with its peers, one after another; one JSON line each.

    python -m bench.crawl [--tools trawl,scrapy] [--pages N] [--repeat N] [--generated]

The site is served from memory by a process of its own: the archived real pages, each with ten links to others, or as
many generated pages where TRAWL_DATA has none. Every tool has 16 fetches in flight, obeys robots.txt and writes
Markdown of every page into a fresh folder below .bench/. See bench/README.md for what the lines say.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import WORK, Measurement, cpu_seconds_of, measure
from bench.peer_environment import PeerInstallError, locked_version, peer_python
from tests.data import DATA
from tests.site.process import WebProcess

GENERATED_PAGES = 2_000
TRAWL = Path(sys.executable).parent / "trawl"
"""The command line that is installed beside the interpreter."""
_FOLDER = WORK / "crawl"
_ERROR_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A crawler and how it is started."""

    name: str
    command: Callable[[str, Path], list[str]]
    """From the site's URL and the output folder to a command; may raise PeerInstallError."""
    pages: str = "*.md"
    """The Markdown files of the output folder."""
    distribution: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment; `{folder}` in a value is the output folder."""


def trawl_command(url: str, folder: Path, *more: str) -> list[str]:
    """Crawl a site on loopback with Trawl, as fast as the peers may."""
    return [
        *(str(TRAWL), "crawl", url, "--out", str(folder), "--json"),
        *("--delay", "0", "--per-host-concurrency", "16", "--allow-network", "127.0.0.0/8", *more),
    ]


def _peer(module: str, *arguments: str) -> Callable[[str, Path], list[str]]:
    def command(url: str, folder: Path) -> list[str]:
        return [str(peer_python()), "-m", f"bench.peers.{module}", url, str(folder), *arguments]

    return command


_CRAWL4AI = {
    "CRAWL4_AI_BASE_DIRECTORY": "{folder}",  # else it keeps robots.txt and more in the home folder, for the next run
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it downloads a price list when it is imported
}

TOOLS: Sequence[Tool] = (
    Tool(
        name="trawl",
        command=lambda url, folder: trawl_command(url, folder, "--format", "markdown"),
        pages="markdown/*.md",
    ),
    Tool(name="scrapy+trafilatura", command=_peer("scrapy_crawl", "0"), distribution="scrapy"),
    Tool(name="scrapy+trafilatura-pool2", command=_peer("scrapy_crawl", "2"), distribution="scrapy"),
    Tool(name="crawlee+trafilatura", command=_peer("crawlee_crawl"), distribution="crawlee"),
    Tool(
        name="crawl4ai-http-lxml",
        command=_peer("crawl4ai_crawl", "lxml"),
        distribution="crawl4ai",
        environ=_CRAWL4AI,
    ),
    Tool(name="crawl4ai-http", command=_peer("crawl4ai_crawl", "default"), distribution="crawl4ai", environ=_CRAWL4AI),
)


def chosen(names: str) -> list[Tool]:
    """The tools whose names begin with one of the given ones; raises SystemExit if there is none."""
    wanted = tuple(name.strip() for name in names.split(",") if name.strip())
    tools = [tool for tool in TOOLS if tool.name.startswith(wanted)]
    if not tools:
        raise SystemExit(f"no tool is called {names}; there are {', '.join(tool.name for tool in TOOLS)}")
    return tools


def run(tool: Tool, web: WebProcess, seconds_max: float) -> dict[str, Any]:
    """One crawl by one tool; the result says `error` if it failed."""
    folder = _FOLDER / tool.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    row: dict[str, Any] = {"tool": tool.name}
    if tool.distribution:
        row["version"] = locked_version(tool.distribution)
    try:
        command = tool.command(web.url + "/", folder)
    except PeerInstallError as error:
        return {**row, "error": str(error)}
    served, server_cpu = web.total(), cpu_seconds_of(web.pid)
    environ = {name: value.format(folder=folder) for name, value in tool.environ.items()}
    measured = measure(command, _FOLDER / f"{tool.name}.log", seconds_max=seconds_max, environ=environ)
    server_cpu = cpu_seconds_of(web.pid) - server_cpu
    files = list(folder.glob(tool.pages))
    summary = summary_of(measured)
    pages = summary.get("pages", len(files)) if tool.name == "trawl" else len(files)
    row |= costs(measured, pages)
    row |= {
        "pages": pages,
        "nonempty": sum(has_text(file) for file in files),
        "requests": web.total() - served,
        "server_cpu_s": round(server_cpu, 2),
    }
    if tool.name == "trawl":
        row |= {"duplicates": summary.get("duplicates", 0), **cpu_split(measured, summary, pages)}
    if measured.exit_code or not pages:
        row["error"] = f"exit code {measured.exit_code}: {measured.error_tail[-_ERROR_CHARS:]}"
    return row


def costs(measured: Measurement, pages: int) -> dict[str, Any]:
    """Speed and cost of a crawl of so many pages."""
    return {
        "pages_s": round(pages / measured.wall_seconds, 2),
        "cpu_ms_page": round(1000 * measured.cpu_seconds / max(pages, 1), 2),
        "rss_mb": round(measured.rss_bytes_max / 1e6),
        "wall_s": round(measured.wall_seconds, 2),
    }


def cpu_split(measured: Measurement, summary: Mapping[str, Any], pages: int) -> dict[str, float]:
    """Trawl's CPU time a page in milliseconds: extraction (the worker processes), embedding, and all the rest."""
    told = summary.get("cpu_seconds") or {}
    extract = told.get("workers", measured.child_cpu_seconds)
    embed = told.get("embed", 0.0)
    rest = max(0.0, measured.cpu_seconds - extract - embed)
    parts = {"cpu_ms_extract": extract, "cpu_ms_embed": embed, "cpu_ms_rest": rest}
    return {name: round(1000 * seconds / max(pages, 1), 2) for name, seconds in parts.items()}


def summary_of(measured: Measurement) -> dict[str, Any]:
    """The JSON object on the last line of a Trawl command's output; empty if there is none."""
    try:
        found = json.loads(measured.last_line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def has_text(file: Path) -> bool:
    """Whether a Markdown file has anything below its front matter."""
    text = file.read_text("utf-8", "replace")
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2]
    return bool(text.strip())


def middle(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The median of every number of several runs; a run that failed makes it a failure."""
    failed = next((row for row in rows if "error" in row), None)
    if failed is not None or len(rows) == 1:
        return dict(failed or rows[0])
    merged = dict(rows[0])
    for name, value in merged.items():
        if isinstance(value, int | float):
            merged[name] = type(value)(round(median(row[name] for row in rows), 2))
    return {**merged, "repeat": len(rows)}


def main() -> None:
    """Run the tools in turn, `--repeat` times, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="trawl,scrapy,crawlee,crawl4ai", help="names or their beginnings")
    parser.add_argument("--pages", type=int, help="take only so many pages")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each tool; the line has the medians")
    parser.add_argument("--generated", action="store_true", help="generated pages, even where real ones are present")
    parser.add_argument("--minutes-max", type=float, default=15.0, help="a run that takes longer is ended")
    options = parser.parse_args()
    tools = chosen(options.tools)
    rows: dict[str, list[dict[str, Any]]] = {tool.name: [] for tool in tools}
    real = (DATA / "wcxb-dev").is_dir() and not options.generated
    site = f"onesite::{options.pages or ''}" if real else f"onesite-generated::{options.pages or GENERATED_PAGES}"
    with WebProcess(site.rstrip(":"), log=False) as web:
        for repetition in range(options.repeat):
            for tool in tools:
                rows[tool.name].append(run(tool, web, 60 * options.minutes_max))
                last = repetition == options.repeat - 1
                shown = middle(rows[tool.name]) if last else rows[tool.name][-1]
                print(json.dumps(shown), file=sys.stdout if last else sys.stderr, flush=True)
    if any("error" in row for found in rows.values() for row in found):
        sys.exit(1)


if __name__ == "__main__":
    main()
