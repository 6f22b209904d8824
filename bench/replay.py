"""Crawls the archived real pages under their own host names, from a URL list, through a proxy; one JSON line.

    python -m bench.replay [--pages N] [--searches N] [--out DIR]

Every listed URL has to end fetched or refused with a reason, and every document has to stand in `pages.jsonl`; the
exit code is 1 if one does not. Then `trawl search` looks for phrases of pages that were indexed.
"""

import argparse
import asyncio
import json
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.crawl import TRAWL, costs, cpu_split, summary_of
from bench.measure import ROOT, WORK, Measurement, cpu_seconds_of, measure
from tests.data import DATA, require
from tests.site.process import WebProcess
from tests.site.sites.archive import DATA_SET, archived_urls
from trawl.adapters.sqlite import Database, SqliteFrontierStore
from trawl.kinds import OutcomeClass
from trawl.ports import RequestRow
from trawl.url import canonical, key_hex

CRAWL_ID = "default"
_DOCUMENTS = (OutcomeClass.INDEXED, OutcomeClass.DUPLICATE, OutcomeClass.UNCHANGED)
_SHOWN_MAX = 20
_PHRASE_WORDS_MIN = 4
_TOP = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What became of the listed URLs."""

    outcomes: Mapping[str, int]
    """URLs by `outcome` or `outcome:reason`."""
    unaccounted: Sequence[str]
    """URLs without a terminal outcome, and documents without their row in `pages.jsonl`."""
    rows: Mapping[str, RequestRow]
    """The requests of the listed URLs by canonical URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrase:
    """A phrase and the document that is to be found by it."""

    text: str
    url: str
    document_key: str


def crawl(urls: Sequence[str], folder: Path, web: WebProcess, seconds_max: float) -> Measurement:
    """Crawl exactly these URLs into a fresh folder."""
    shutil.rmtree(folder, ignore_errors=True)
    listing = folder.with_suffix(".urls.txt")
    listing.parent.mkdir(parents=True, exist_ok=True)
    listing.write_text("\n".join(urls) + "\n", encoding="utf-8")
    command: list[str | Path] = [TRAWL, "crawl", "--from-file", listing, "--out", folder, "--json"]
    command += ["--max-depth", "0", "--proxy", web.proxy, "--ca-file", web.ca_file]
    return measure(command, folder.with_suffix(".log"), seconds_max=seconds_max)


def accounts(urls: Iterable[str], folder: Path) -> Accounts:
    """What the folder's database and `pages.jsonl` say of the listed URLs."""
    listed = {canonical(url): url for url in urls}
    rows = asyncio.run(_requests(folder, set(listed)))
    written = _written(folder)
    outcomes: Counter[str] = Counter()
    unaccounted = [url for form, url in listed.items() if form not in rows]
    for form, row in rows.items():
        if row.state != "done" or row.outcome is None:
            unaccounted.append(f"{listed[form]} ({row.state}; {row.reason or 'no outcome'})")
            continue
        outcomes[f"{row.outcome}:{row.reason}" if row.reason else str(row.outcome)] += 1
        key = None if row.document_key is None else key_hex(row.document_key)
        if row.outcome in _DOCUMENTS and key not in written:
            unaccounted.append(f"{listed[form]} ({row.outcome}, not in pages.jsonl)")
    unaccounted += [f"{key} ({count} times in pages.jsonl)" for key, count in written.items() if count > 1]
    return Accounts(outcomes=dict(sorted(outcomes.items())), unaccounted=unaccounted, rows=rows)


async def _requests(folder: Path, forms: set[str]) -> dict[str, RequestRow]:
    database = Database(folder, read_only=True)
    try:
        store = SqliteFrontierStore(database)
        return {row.request.url: row async for row in store.rows(CRAWL_ID) if row.request.url in forms}
    finally:
        database.close()


def _written(folder: Path) -> Counter[str]:
    with (folder / "pages.jsonl").open(encoding="utf-8") as lines:
        return Counter(json.loads(line)["document_key"] for line in lines)


def phrases(found: Accounts, count: int) -> list[Phrase]:
    """Phrases of the main content of so many indexed pages, as the data set has them; the same on every run."""
    pick = random.Random(1)
    truths = _snippets()
    pages = [
        (url, row.document_key, truths[url])
        for url, row in sorted(found.rows.items())
        if row.outcome is OutcomeClass.INDEXED and row.document_key is not None and truths.get(url)
    ]
    chosen = pick.sample(pages, min(count, len(pages)))
    return [Phrase(text=pick.choice(texts), url=url, document_key=key_hex(key)) for url, key, texts in chosen]


def _snippets() -> dict[str, list[str]]:
    """By canonical URL the snippets that a page's main content holds."""
    found = {}
    for path in (DATA / DATA_SET / "ground-truth").glob("*.json"):
        truth = json.loads(path.read_bytes())
        if truth.get("url"):
            snippets = truth["ground_truth"].get("with") or ()
            found[canonical(truth["url"])] = [text for text in snippets if len(text.split()) >= _PHRASE_WORDS_MIN]
    return found


def search(phrase: Phrase, folder: Path) -> bool:
    """Whether `trawl search` has the page among the first ten."""
    command = [str(TRAWL), "search", "--dir", str(folder), "--limit", str(_TOP), "--json", "--", phrase.text]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if done.returncode not in {0, 1}:
        raise RuntimeError(f"trawl search failed: {done.stderr.strip()}")
    return any(hit["document_key"] == phrase.document_key for hit in json.loads(done.stdout or "[]"))


def searched(wanted: Sequence[Phrase], folder: Path) -> dict[str, Any]:
    """How many phrases find their page, and how long one search takes, the start of the command included."""
    found, seconds = 0, []
    for phrase in wanted:
        started = time.monotonic()
        hit = search(phrase, folder)
        seconds.append(time.monotonic() - started)
        found += hit
        if not hit:
            sys.stderr.write(f"not in the first {_TOP}: {phrase.url} by {phrase.text!r}\n")
    return {
        "search_found": found,
        "search_tried": len(wanted),
        "search_s": round(median(seconds), 2) if seconds else 0.0,
    }


def main() -> None:
    """Crawl, account for every page, search, and print the line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, help="take only the first so many")
    parser.add_argument("--searches", type=int, default=40, help="phrases to search for")
    parser.add_argument("--out", type=Path, default=WORK / "replay", help="the folder, which is emptied first")
    parser.add_argument("--minutes-max", type=float, default=20.0, help="a crawl that takes longer is ended")
    options = parser.parse_args()
    require(DATA_SET)
    folder = options.out.absolute()
    urls = list(archived_urls(DATA))[: options.pages]
    with WebProcess("archive") as web:
        server_cpu = cpu_seconds_of(web.pid)
        measured = crawl(urls, folder, web, 60 * options.minutes_max)
        server_cpu = cpu_seconds_of(web.pid) - server_cpu
        requests = web.total()
    if measured.exit_code:
        sys.exit(f"trawl crawl ended with {measured.exit_code}: {measured.error_tail}")
    summary, found = summary_of(measured), accounts(urls, folder)
    pages = sum(row.outcome in _DOCUMENTS for row in found.rows.values())
    line = {
        "urls": len(urls),
        "urls_distinct": len({canonical(url) for url in urls}),
        "pages": pages,
        "outcomes": found.outcomes,
        "unaccounted": len(found.unaccounted),
        **costs(measured, pages),
        **cpu_split(measured, summary, pages),
        **{name: summary.get(name) for name in ("documents", "chunks", "dead_letters", "politeness_violations")},
        "requests": requests,
        "server_cpu_s": round(server_cpu, 2),
        **searched(phrases(found, options.searches), folder),
    }
    print(json.dumps(line), flush=True)
    for text in found.unaccounted[:_SHOWN_MAX]:
        sys.stderr.write(f"unaccounted: {text}\n")
    if found.unaccounted or (line["search_tried"] and not line["search_found"]):
        sys.exit(1)


if __name__ == "__main__":
    main()
