"""The command line as a subprocess, what it left in its folder, and a fake web beside it on a thread."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.site import FakeWeb, Site
from trawl.adapters.sqlite import Database

ROOT = Path(__file__).resolve().parents[2]
TRAWL = (sys.executable, "-m", "trawl")
QUICK = {
    "TRAWL_EMBEDDED_EXTRACT_WORKERS": "1",
    "TRAWL_EMBEDDED_PATIENCE_SECONDS": "3",
    "TRAWL_FRONTIER_RETRY_SECONDS": "0.1",
    "TRAWL_POLITENESS_ADDRESS_DELAY_SECONDS": "0",
    "TRAWL_POLITENESS_BACKOFF_SECONDS": "0.2",
}
"""Short waits, and one extraction process, which starts faster than two."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How one command ended."""

    code: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """The last line of standard output as JSON."""
        assert self.out.strip(), self.err
        return json.loads(self.out.strip().splitlines()[-1])

    @property
    def summary(self) -> dict[str, Any]:
        """The same, of a command that promises an object."""
        found = self.answer
        assert isinstance(found, dict)
        return found


def environment(**variables: str) -> dict[str, str]:
    """This process's variables without Trawl's own, with the quick ones and these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")}
    return {**kept, "PYTHONPATH": str(ROOT), **QUICK, **variables}


def trawl(
    *arguments: str | Path,
    env: Mapping[str, str] | None = None,
    given: str | bytes = "",
    seconds: float = 100,
    cwd: Path | None = None,
) -> Ran:
    """Run `python -m trawl` to its end."""
    done = subprocess.run(
        [*TRAWL, *map(str, arguments)],
        input=given if isinstance(given, bytes) else given.encode(),
        capture_output=True,
        timeout=seconds,
        env=environment(**(env or {})),
        cwd=cwd,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def through(web: FakeWeb) -> tuple[str, ...]:
    """The options by which any host of the fake web is reached."""
    return ("--proxy", web.proxy, "--ca-file", str(web.ca_file))


def crawl(
    web: FakeWeb, *arguments: str | Path, out: Path, delay: float | None = 0, env: Mapping[str, str] | None = None,
    given: str = "", seconds: float = 100,
) -> Ran:  # fmt: skip
    """`trawl crawl … --json` through the fake web's proxy, without a delay unless one is named."""
    pace = () if delay is None else ("--delay", str(delay))
    command = ("crawl", *arguments, "--out", out, *pace, *through(web), "--json")
    return trawl(*command, env=env, given=given, seconds=seconds)


@dataclass
class Corpus:
    """What a crawl left in a folder."""

    folder: Path

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The lines of `pages.jsonl`."""
        text = (self.folder / "pages.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def by_url(self) -> dict[str, dict[str, Any]]:
        """The rows by requested URL; fails if one is there twice."""
        found = {row["url"]: row for row in self.rows}
        assert len(found) == len(self.rows), "a page has two rows"
        return found

    @property
    def urls(self) -> set[str]:
        return set(self.by_url)

    def row(self, url: str) -> dict[str, Any]:
        return self.by_url[url]

    def markdown(self, url: str) -> str:
        """The Markdown file of a page, front matter included."""
        return Path(self.folder, self.row(url)["markdown_file"]).read_text(encoding="utf-8")

    def files(self, kind: str) -> set[str]:
        """Names of the files in `markdown` or `html`."""
        return {path.name for path in (self.folder / kind).iterdir()}

    @property
    def identities(self) -> set[tuple[str, str, bool]]:
        """What does not depend on the order of fetches: URL, text, and whether it repeats another."""
        return {(row["url"], row["content_sha256"], row["duplicate_of"] is not None) for row in self.rows}

    def consistent(self) -> None:
        """Assert what holds for every folder: a row each, a file each, one document in the index each."""
        unique = [row for row in self.by_url.values() if row["duplicate_of"] is None]
        assert self.files("markdown") == {row["markdown_file"].removeprefix("markdown/") for row in unique}
        assert self.files("html") == {row["html_compressed"].removeprefix("html/") for row in unique}
        assert self.count("page") == len(unique)
        assert self.outcomes("leased") == []

    def count(self, table: str) -> int:
        """Rows of a table of the database."""
        with closing(Database(self.folder, read_only=True)) as database:
            return int(database.connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def outcomes(self, state: str | None = None) -> list[tuple[str, str, str]]:
        """URL, class and reason of each request, by the frontier's own account."""
        return asyncio.run(self._outcomes(state))

    async def _outcomes(self, state: str | None) -> list[tuple[str, str, str]]:
        from trawl.adapters.sqlite import SqliteFrontierStore  # noqa: PLC0415

        with closing(Database(self.folder, read_only=True)) as database:
            store = SqliteFrontierStore(database)
            found = [row async for row in store.rows("default")]
        return [(row.request.url, str(row.outcome), row.reason) for row in found if state in {None, row.state}]

    def outcome(self, url: str) -> tuple[str, str]:
        """Class and reason of one request."""
        return next((outcome, reason) for known, outcome, reason in self.outcomes() if known == url)


_MATTER = re.compile(r"\A---\n(.*?)\n---\n\n", re.DOTALL)


def front_matter(markdown: str) -> dict[str, Any]:
    """The fields above a Markdown file's text."""
    found = _MATTER.match(markdown)
    assert found is not None
    pairs = (line.partition(": ") for line in found[1].splitlines())
    return {name: json.loads(value) for name, _, value in pairs}


@dataclass
class Serving:
    """A fake web on a thread of its own, so that synchronous tests can wait for a subprocess."""

    sites: Sequence[Site]
    ready: threading.Event = field(default_factory=threading.Event)
    web: FakeWeb | None = None
    loop: asyncio.AbstractEventLoop | None = None
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        async with FakeWeb(*self.sites) as web:
            self.web = web
            self.ready.set()
            await self.stop.wait()


@contextmanager
def serving(*sites: Site) -> Iterator[FakeWeb]:
    """A fake web with these sites, until the block ends."""
    served = Serving(sites)
    thread = threading.Thread(target=lambda: asyncio.run(served.serve()), name="fake web", daemon=True)
    thread.start()
    assert served.ready.wait(20)
    assert served.web is not None
    assert served.loop is not None
    try:
        yield served.web
    finally:
        served.loop.call_soon_threadsafe(served.stop.set)
        thread.join(20)
