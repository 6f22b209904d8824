"""What a person sees while a crawl runs, and when it is done."""

import shlex
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from trawl.assembly import CrawlRun
from trawl.cli.terminal import printable, tell

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
        self._console.print(Text(printable(text)), highlight=False, soft_wrap=True)

    def _show(self) -> None:
        seconds = _PLAIN_SECONDS if self._live is None else _LIVE_SECONDS
        while not self._ended.wait(seconds):
            if self._live is None:
                tell(self._line(), err=True)
            else:
                self._live.update(Text(printable(self._line())), refresh=True)

    def _line(self) -> str:
        counts = self._run.counts
        seconds = max(time.monotonic() - self._began, 0.001)
        outcomes = dict(counts.outcomes)
        parts = [
            f"{int(seconds) // 60}:{int(seconds) % 60:02d}",
            counted(counts.fetched, "page"),
            f"{counts.fetched / seconds:.1f}/s",
            f"{self._run.queued} queued",
            counted(outcomes.get("duplicate", 0), "duplicate"),
        ]
        errors = {
            name: count
            for name, count in dict(counts.reasons).items()
            if name.startswith(("failed", "refused", "retry"))
        }
        worst = sorted(errors.items(), key=lambda item: -item[1])[:3]
        parts.extend(f"{count} {name.partition(':')[2] or name}" for name, count in worst)
        return "  ".join(parts)


def counted(count: int, noun: str) -> str:
    """A count with its noun, which gets an s where it needs one."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def told(summary: Mapping[str, Any]) -> str:
    """The summary for people: what was found, where it is, how to search it, and what is left."""
    found = ", ".join(
        (
            f"{summary['indexed']} indexed",
            counted(summary["duplicates"], "duplicate"),
            f"{summary['unchanged']} unchanged",
            counted(summary["chunks"], "chunk"),
        )
    )
    lines = [
        f"{counted(summary['pages'], 'page')} in {summary['seconds']:.1f} s: {found}",
        f"  results   {summary['dir']}",
    ]
    if summary["chunks"]:
        folder = shlex.quote(str(summary["dir"]))
        lines.append(f"  search    {_command()} search 'your question' --dir {folder}")
    for name in ("refused", "failed", "skipped"):
        if summary[name]:
            reasons = ", ".join(f"{count} {reason}" for reason, count in summary[name].items())
            lines.append(f"  {name:<8}  {reasons}{' (links)' if name == 'skipped' else ''}")
    if summary["rendered"]["pages"] or summary["rendered"]["not_rendered"]:
        lines.append(f"  rendered  {_rendered(summary['rendered'])}")
    lines.extend(f"  note      {note}" for note in summary["notes"])
    if summary["dead_letters"]:
        records = counted(summary["dead_letters"], "record")
        lines.append(f"  errors    {records} could not be handled; see {summary['dir']}/dead-letters.jsonl")
    lines.extend(_left(summary))
    lines.extend(f"  {detail}" for detail in summary["details"])
    return "\n".join(lines)


def _rendered(rendered: Mapping[str, Any]) -> str:
    """What browsers did, in one line."""
    parts = [f"{counted(rendered['pages'], 'page')} in {rendered['seconds']:.1f} s of a browser"]
    parts.extend(f"{count} {reason}" for reason, count in rendered["not_rendered"].items())
    if rendered["hosts"]:
        parts.append(f"{counted(rendered['hosts'], 'host')} whose text comes with scripts")
    return ", ".join(parts)


def _left(summary: Mapping[str, Any]) -> list[str]:
    """What was not done, and how to go on."""
    if not summary["queued"]:
        return []
    urls = f"{counted(summary['queued'], 'URL')} {'is' if summary['queued'] == 1 else 'are'} left"
    if summary["limit_reached"]:
        return [f"  the limit of --max-pages is reached: {urls}; a higher one goes on with them"]
    why = "interrupted" if summary["interrupted"] else "not done"
    return [f"  {why}: {urls}; run the same command again to go on"]


def _command() -> str:
    """How this command can be called again from here, as one types it."""
    if shutil.which("trawl"):
        return "trawl"
    called = Path(sys.argv[0])
    if called.name != "trawl":
        return f"{Path(sys.executable).name} -m trawl"
    with suppress(ValueError):
        called = called.absolute().relative_to(Path.cwd())
    return shlex.quote(str(called))
