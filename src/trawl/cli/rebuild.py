"""`trawl rebuild`: what Redis has lost, restored from the page store."""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from trawl.cli.options import config_option, json_option, settings_of
from trawl.cli.progress import counted
from trawl.cli.rebuilding import Plan, Rebuilt, plain
from trawl.cli.rebuilding import rebuild as restore
from trawl.cli.standing import running_services
from trawl.cli.terminal import tell
from trawl.settings import Settings

_SHOWN_SECONDS: Final = 5.0
_CRAWLS_SHOWN_MAX: Final = 20


@click.command(short_help="Restore what a deployed system's Redis has lost.")
@click.option("--opensearch", metavar="URL", help="The page store.  [default: the setting opensearch.url]")
@click.option("--redis", metavar="URL", help="What is restored.  [default: the setting redis.url]")
@click.option("--crawl", "crawl_id", metavar="ID", help="Only this crawl.  [default: all]")
@click.option("--only-seen", is_flag=True,
              help="In crawls whose policy is lost, keep of a page only that it was fetched: in far less memory, and"
                   " without recrawls.")  # fmt: skip
@click.option("--only-fingerprints", is_flag=True,
              help="Let crawls fetch pages again and find what was queued; nothing is indexed twice.")  # fmt: skip
@click.option("--anew", is_flag=True,
              help="Drop the fingerprints first: they are damaged, or redis.fingerprint_tables is new.")  # fmt: skip
@config_option
@json_option
def rebuild(
    opensearch: str | None, redis: str | None, config: Path | None, as_json: bool, **options: Any
) -> int:  # fmt: skip
    """Tell Redis again, from the page store, which pages were fetched and what their texts are.

    Stop the services before, the indexer apart. Publish the seeds again afterwards: what crawls allow is not in the
    page store, nor is what was queued and never fetched. To run it twice, or again after it was cut off, does no harm.
    """
    settings = settings_of(config, {})
    if opensearch is not None:
        settings = replace(settings, opensearch=replace(settings.opensearch, url=opensearch))
    if redis is not None:
        settings = replace(settings, redis=replace(settings.redis, url=redis))
    done = asyncio.run(_rebuilt(settings, Plan(**options)))
    if as_json:
        click.echo(json.dumps(plain(done), ensure_ascii=False))
    else:
        tell(_told(done))
    return 0 if done.pages else 1


async def _rebuilt(settings: Settings, plan: Plan) -> Rebuilt:
    running = await running_services(settings)
    if running:
        tell(
            f"note: {', '.join(running)} run meanwhile: until this is done, each text is new to the duplicate gate, and"
            f" copies of pages may be indexed; stop them first",
            err=True,
        )
    return await restore(settings, plan, _progress())


def _progress() -> Callable[[Rebuilt], None]:
    """Says on standard error how far it is, from time to time."""
    last = time.monotonic()

    def seen(done: Rebuilt) -> None:
        nonlocal last
        if time.monotonic() - last >= _SHOWN_SECONDS:
            last = time.monotonic()
            tell(f"{counted(done.pages, 'page')}  {_rate(done):.0f}/s", err=True)

    return seen


def _rate(done: Rebuilt) -> float:
    return done.pages / max(done.seconds, 0.001)


def _told(done: Rebuilt) -> str:
    """What was restored, and what nobody knows, for people."""
    if not done.pages:
        return "the page store has no such page; nothing was restored"
    read = f"{counted(done.pages, 'page')} of {counted(len(done.crawls), 'crawl')} read"
    restored = f"{counted(done.fingerprints, 'fingerprint')}, {counted(done.requests, 'request')}"
    lines = [f"{read} in {done.seconds:.1f} s, {_rate(done):.0f}/s", f"  restored      {restored}"]
    if done.withdrawn:
        gone = counted(done.withdrawn, "document")
        lines.append(f"  told again    {gone} withdrawn or duplicate, so that no older fetch brings them back")
    if done.superseded:
        lines.append(f"  newer         of {counted(done.superseded, 'page')} Redis knows something newer")
    if done.repeated:
        lines.append(f"  repeated      {counted(done.repeated, 'page')} with another's text, until the next visit")
    lines.append("  not restored  what was queued and never fetched, duplicates and aliases, politeness, robots.txt")
    if done.without_policy:
        names, more = done.without_policy[:_CRAWLS_SHOWN_MAX], len(done.without_policy) - _CRAWLS_SHOWN_MAX
        told = ", ".join(names) + (f" and {more} more" if more > 0 else "")
        lines.append(f"  to do         publish the seeds again (trawl seed): {told}")
    return "\n".join(lines)
