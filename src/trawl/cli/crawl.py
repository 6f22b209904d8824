"""`trawl crawl`: from URLs to a folder of Markdown and a searchable corpus."""

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from trawl.adapters.folder import FORMATS
from trawl.assembly import CrawlPlan, CrawlRun
from trawl.cli.options import config_option, json_option, network_options, render_option, settings_of
from trawl.cli.progress import Progress, told
from trawl.cli.seeds import read_list, seed_url
from trawl.cli.terminal import tell
from trawl.demo import DemoSite
from trawl.errors import SettingsError
from trawl.frontier.admission import canonical_rules
from trawl.kinds import ScopeKind
from trawl.records import Seed
from trawl.settings import Settings
from trawl.url import canonical, hostname_of

_DEMO_PORT = 8808
_DEMO_NETWORKS = ("127.0.0.0/8", "::1/128")


@click.command(short_help="Crawl from URLs into Markdown and a searchable corpus.")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "--from-file", type=click.Path(dir_okay=False, path_type=Path), metavar="F", help="Read URLs from a file."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the results go.  [default: crawls/HOST]",
)
@click.option(
    "--format",
    "formats",
    default="markdown,html,jsonl",
    show_default=True,
    metavar="LIST",
    help="What is written besides the searchable database.",
)
@click.option(
    "--max-depth",
    type=click.IntRange(0),
    default=16,
    show_default=True,
    metavar="N",
    help="Follow links this many steps from a seed.",
)
@click.option(
    "--max-pages",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Stop after N pages; 0 is no limit.  [default: 0]",
)
@click.option(
    "--scope",
    type=click.Choice([kind.value for kind in ScopeKind]),
    default="host",
    show_default=True,
    help="Which URLs are followed: the seed's host, its registrable domain, its folder, or any.",
)
@click.option("--allow-domain", multiple=True, metavar="D", help="Follow links to this domain too.")
@click.option(
    "--delay",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Least time between two fetches of a host; 0 paces by Crawl-delay only.  [default: 1]",
)
@click.option(
    "--per-host-concurrency", type=click.IntRange(1), metavar="N", help="Fetches of one host at once.  [default: 1]"
)
@click.option("--fetch-workers", type=click.IntRange(1), metavar="N", help="Fetches at once.  [default: 16]")
@click.option(
    "--extract-workers", type=click.IntRange(0), metavar="N", help="Extraction processes.  [default: one per core]"
)
@click.option("--index-workers", type=click.IntRange(1), metavar="N", help="Batches indexed at once.  [default: 1]")
@network_options
@render_option
@click.option("--inline-html", is_flag=True, help="Put raw HTML into pages.jsonl, as base64 of gzip.")
@click.option("--fresh", is_flag=True, help="Forget what the folder holds and begin anew.")
@click.option("--demo", is_flag=True, help="Serve the bundled demo site on loopback and crawl it.")
@config_option
@json_option
def crawl(urls: tuple[str, ...], config: Path | None, **options: Any) -> int:
    """Crawl from each URL into a folder of Markdown, raw HTML, JSON lines and a searchable database.

    Running the same command again goes on where it stopped, or visits the pages again if it was done. A private or
    loopback address is refused unless --allow-network names it. With no URL the bundled demo site is crawled.
    """
    settings = settings_of(config, options)
    rules = canonical_rules(settings)
    listed, notes = read_list(options["from_file"], rules) if options["from_file"] else ([], [])
    wanted = [*(seed_url(url, rules) for url in urls), *listed]
    demo = options["demo"] or (not wanted and options["from_file"] is None)
    return asyncio.run(_crawl(wanted, settings, options, notes, demo=demo))


async def _crawl(urls: list[str], settings: Settings, options: dict[str, Any], notes: list[str], *, demo: bool) -> int:
    async with AsyncExitStack() as stack:
        if demo:
            site = await stack.enter_async_context(DemoSite(_DEMO_PORT))
            urls, settings = [*urls, canonical(site.url)], _for_demo(settings, options)
            if urlsplit(site.url).port != _DEMO_PORT:
                notes.append(f"port {_DEMO_PORT} is taken, so the demo site was served at {site.url}")
        run = await stack.enter_async_context(CrawlRun(_plan(urls, settings, options, demo=demo)))
        run.notes.extend(notes)
        progress = stack.enter_context(Progress(run, quiet=options["as_json"]))
        interrupted = await _until_done(run, progress)
        summary = await run.summary(interrupted=interrupted)
    if options["as_json"]:
        click.echo(json.dumps(summary))
    else:
        tell(told(summary))
    if interrupted:
        return 130
    return 0 if summary["pages"] or summary["unchanged"] else 1


async def _until_done(run: CrawlRun, progress: Progress) -> bool:
    """Run to the end; the first Ctrl-C finishes what is in flight, the second stops at once. Whether it was pressed."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(run.run())
    pressed = 0

    def stop() -> None:
        nonlocal pressed
        pressed += 1
        if pressed == 1:
            progress.say("stopping: finishing what is in flight; Ctrl-C again stops at once")
            run.stop()
        else:
            task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not pressed:
            raise
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return pressed > 0


def _plan(urls: list[str], settings: Settings, options: dict[str, Any], *, demo: bool) -> CrawlPlan:
    seeds = [
        Seed(
            url=url,
            scope=ScopeKind(options["scope"]),
            allowed_domains=tuple(options["allow_domain"]),
            depth_max=options["max_depth"],
            pages_max=options["max_pages"],
        )
        for url in urls
    ]
    name = _demo_name(seeds[-1].url) if demo else hostname_of(seeds[0].url).strip("[]")
    return CrawlPlan(
        folder=options["out"] or Path("crawls") / name.replace(":", "_"),
        seeds=tuple(seeds),
        settings=settings,
        formats=_formats(options["formats"]),
        inline_html=options["inline_html"],
        fresh=options["fresh"],
    )


def _demo_name(url: str) -> str:
    """The demo's folder; another one where its port was taken, since its pages then have other URLs."""
    port = urlsplit(url).port
    return "demo" if port == _DEMO_PORT else f"demo-{port}"


def _formats(text: str) -> frozenset[str]:
    formats = frozenset(part.strip() for part in text.split(",") if part.strip())
    unknown = formats - set(FORMATS)
    if unknown:
        raise SettingsError(f"--format {','.join(sorted(unknown))} is not known; the formats are {', '.join(FORMATS)}")
    return formats


def _for_demo(settings: Settings, options: dict[str, Any]) -> Settings:
    politeness = settings.politeness
    if options["delay"] is None:
        politeness = replace(politeness, delay_seconds=0.0, adaptive_factor=0.0, per_host_concurrency=4)
    networks = (*settings.fetch.allow_networks, *_DEMO_NETWORKS)
    return replace(settings, politeness=politeness, fetch=replace(settings.fetch, allow_networks=networks))
