"""What a person sees while a crawl runs, and when it is done."""

import shlex
import sys
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from trawl.assembly import CrawlRun

_PLAIN_SECONDS = 5.0
_LIVE_SECONDS = 0.25


class Progress:
    """Shows pages, rate, queue, errors by class and duplicates: live on a terminal, a plain line elsewhere."""

    def __init__(self, run: CrawlRun, *, quiet: bool) -> None:
        self._run = run
        self._quiet = quiet
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True) if sys.stderr.isatty() else None
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if not self._quiet:
            self.say(f"crawling into {self._run.plan.folder}")
            if self._live is not None:
                self._live.start()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._live is not None and not self._quiet:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print one line to standard error, above the live one."""
        self._console.print(Text(text), highlight=False, soft_wrap=True)

    def _show(self) -> None:
        seconds = _PLAIN_SECONDS if self._live is None else _LIVE_SECONDS
        while not self._ended.wait(seconds):
            if self._live is None:
                click.echo(self._line(), err=True)
            else:
                self._live.update(Text(self._line()), refresh=True)

    def _line(self) -> str:
        counts = self._run.counts
        seconds = max(time.monotonic() - self._began, 0.001)
        outcomes = dict(counts.outcomes)
        parts = [
            f"{counts.fetched} pages",
            f"{counts.fetched / seconds:.1f}/s",
            f"{self._run.queued} queued",
            f"{outcomes.get('duplicate', 0)} duplicates",
        ]
        errors = {
            name: count
            for name, count in dict(counts.reasons).items()
            if name.startswith(("failed", "refused", "retry"))
        }
        worst = sorted(errors.items(), key=lambda item: -item[1])[:3]
        parts.extend(f"{count} {name.partition(':')[2] or name}" for name, count in worst)
        return "  ".join(parts)


def told(summary: Mapping[str, Any]) -> str:
    """The summary for people: what was found, where it is, how to search it, and what is left."""
    found = ", ".join(f"{summary[name]} {name}" for name in ("indexed", "duplicates", "unchanged", "chunks"))
    lines = [
        f"{summary['pages']} pages in {summary['seconds']:.1f} s: {found}",
        f"  results   {summary['dir']}",
    ]
    if summary["chunks"]:
        lines.append(f"  search    trawl search 'your question' --dir {shlex.quote(str(summary['dir']))}")
    for name in ("refused", "failed", "skipped"):
        if summary[name]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in summary[name].items())
            lines.append(f"  {name:<8}  {reasons}")
    if summary["dead_letters"]:
        lines.append(f"  errors    {summary['dead_letters']} records could not be handled; see dead-letters.jsonl")
    if summary["queued"]:
        why = "interrupted" if summary["interrupted"] else "not done"
        lines.append(f"  {why}: {summary['queued']} URLs are left; run the same command again to go on")
    lines.extend(f"  {detail}" for detail in summary["details"])
    return "\n".join(lines)
