r"""Extraction quality and cost on public sets: one JSON line per tool and set.

    python bench/extract.py [--tools trawl,trafilatura] [--sets wcxb-dev,articles] [--every N] [--worst N]

Metrics. WCXB: mean over pages of the F1 of the bag of lower-cased `\w+` tokens of the text output against the main
content of the ground truth; `with` and `without` are the shares of snippets present and absent. Article benchmark: F1
of multiset matching of token 4-grams, precision and recall averaged over pages. Cost: process CPU time per page.
"""

import argparse
import gzip
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from urllib.parse import urlsplit

from trawl.extractor.extract import extract_html

DATA = Path(os.environ.get("TRAWL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
WORD = re.compile(r"\w+")


@dataclass(slots=True)
class BenchPage:
    """One page with its ground truth."""

    name: str
    html: bytes
    url: str
    truth: str
    page_type: str = "article"
    present: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)


def wcxb(every: int = 1) -> Iterator[BenchPage]:
    """The development split of WCXB."""
    for path in sorted((DATA / "wcxb-dev" / "ground-truth").glob("*.json"))[::every]:
        record = json.loads(path.read_text("utf-8"))
        truth = record["ground_truth"]
        kind = record["_internal"]["page_type"]
        html = gzip.decompress((DATA / "wcxb-dev" / "html" / f"{path.stem}.html.gz").read_bytes())
        yield BenchPage(
            path.stem,
            html,
            record.get("url") or "",
            truth.get("main_content") or "",
            kind["primary"] if isinstance(kind, dict) else str(kind),
            truth.get("with") or [],
            truth.get("without") or [],
        )


def articles(every: int = 1) -> Iterator[BenchPage]:
    """The article extraction benchmark."""
    folder = DATA / "article-extraction-benchmark"
    truths = json.loads((folder / "ground-truth.json").read_text("utf-8"))
    for name, truth in list(truths.items())[::every]:
        html = gzip.decompress((folder / "html" / f"{name}.html.gz").read_bytes())
        yield BenchPage(name, html, truth.get("url") or "", truth["articleBody"])


SETS: dict[str, Callable[[int], Iterator[BenchPage]]] = {"wcxb-dev": wcxb, "articles": articles}


def bag_scores(truth: str, output: str) -> tuple[float, float, float]:
    """F1, precision and recall of the bags of tokens."""
    want, got = Counter(WORD.findall(truth.lower())), Counter(WORD.findall(output.lower()))
    if not want or not got:
        value = float(not want and not got)
        return value, value, value
    common = (want & got).total()
    precision, recall = common / got.total(), common / want.total()
    return (2 * precision * recall / (precision + recall) if common else 0.0), precision, recall


def shingle_counts(text: str, size: int = 4) -> Counter[tuple[str, ...]]:
    """The multiset of token n-grams, as the article benchmark defines it."""
    tokens = WORD.findall(text)
    return Counter(tuple(tokens[i : i + size]) for i in range(max(1, len(tokens) - size + 1)) if tokens)


def shingle_scores(truth: str, output: str) -> tuple[float, float]:
    """Precision and recall of the shingles of one page."""
    want, got = shingle_counts(truth), shingle_counts(output)
    common = (want & got).total()
    missing, extra = want.total() - common, got.total() - common
    precision = common / (common + extra) if common + extra else 1.0
    recall = common / (common + missing) if common + missing else 1.0
    return precision, recall


def _trawl() -> Callable[[BenchPage], str]:
    def run(page: BenchPage) -> str:
        return extract_html(page.html, page.url or "https://example.com/").text

    return run


def _trafilatura(*, fast: bool = False) -> Callable[[BenchPage], str]:
    import trafilatura  # noqa: PLC0415 - a peer, not a dependency

    return lambda page: trafilatura.extract(page.html, fast=fast, url=page.url or None) or ""


def _resiliparse() -> Callable[[BenchPage], str]:
    from resiliparse.extract.html2text import extract_plain_text  # noqa: PLC0415
    from resiliparse.parse.html import HTMLTree  # noqa: PLC0415

    return lambda page: extract_plain_text(HTMLTree.parse_from_bytes(page.html), main_content=True)


TOOLS: dict[str, Callable[[], Callable[[BenchPage], str]]] = {
    "trawl": _trawl,
    "trafilatura": _trafilatura,
    "trafilatura_fast": lambda: _trafilatura(fast=True),
    "resiliparse": _resiliparse,
}


def measure(tool: str, name: str, pages: list[BenchPage], worst: int = 0) -> dict[str, object]:
    """Run one tool over one set."""
    run = TOOLS[tool]()
    run(pages[0])
    rows: list[tuple[float, float, float]] = []
    costs: list[float] = []
    by_type: dict[str, list[float]] = defaultdict(list)
    halves: tuple[list[float], list[float]] = ([], [])
    with_rates: list[float] = []
    without_rates: list[float] = []
    listed: list[tuple[float, str, str]] = []
    for page in pages:
        started = time.process_time()
        text = run(page)
        costs.append((time.process_time() - started) * 1000)
        if name == "articles":
            precision, recall = shingle_scores(page.truth, text)
            score = (0.0, precision, recall)
        else:
            score = bag_scores(page.truth, text)
        rows.append(score)
        by_type[page.page_type].append(score[0])
        halves[sum((urlsplit(page.url).hostname or page.name).encode()) % 2].append(score[0])
        lowered = text.lower()
        if page.present:
            with_rates.append(fmean(snippet.lower() in lowered for snippet in page.present))
        if page.absent:
            without_rates.append(fmean(snippet.lower() not in lowered for snippet in page.absent))
        listed.append((score[0] or score[1] * score[2], page.name, page.page_type))
    precision, recall = fmean(row[1] for row in rows), fmean(row[2] for row in rows)
    f1 = 2 * precision * recall / (precision + recall) if name == "articles" else fmean(row[0] for row in rows)
    costs.sort()
    result: dict[str, object] = {
        "tool": tool,
        "set": name,
        "pages": len(pages),
        "f1": round(f1, 4),
        "precision": round(precision, 4),
        "recall": round(recall, 4),
        "ms_mean": round(fmean(costs), 2),
        "ms_p50": round(costs[len(costs) // 2], 2),
        "ms_p95": round(costs[int(len(costs) * 0.95)], 2),
        "ms_max": round(costs[-1], 1),
    }
    if name != "articles":
        result["with"] = round(fmean(with_rates), 4)
        result["without"] = round(fmean(without_rates), 4)
        result["by_type"] = {kind: round(fmean(values), 4) for kind, values in sorted(by_type.items())}
        result["halves_by_host"] = [round(fmean(half), 4) for half in halves if half]
    for score_, page_name, kind in sorted(listed)[:worst]:
        print(f"{score_:.3f} {page_name} {kind}", file=sys.stderr)
    return result


def main() -> None:
    """Parse the arguments and print one line per tool and set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", default="trawl")
    parser.add_argument("--sets", default="wcxb-dev,articles")
    parser.add_argument("--every", type=int, default=1, help="take every Nth page only")
    parser.add_argument("--worst", type=int, default=0, help="list the N worst pages on standard error")
    arguments = parser.parse_args()
    for name in arguments.sets.split(","):
        pages = list(SETS[name](arguments.every))
        for tool in arguments.tools.split(","):
            print(json.dumps(measure(tool, name, pages, arguments.worst)), flush=True)


if __name__ == "__main__":
    main()
