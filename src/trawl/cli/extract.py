"""`trawl extract`: one page to standard output."""

import asyncio
import json
import mimetypes
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from markdown_it import MarkdownIt

from trawl.api import Extracted
from trawl.api import extract as extract_html
from trawl.assembly import Network
from trawl.cli.options import config_option, json_option, network_options, render_option, settings_of
from trawl.cli.terminal import hand_over, tell
from trawl.errors import SettingsError
from trawl.frontier.admission import canonical_rules
from trawl.records import FetchedPage
from trawl.settings import ExtractSettings, Settings
from trawl.url import canonical

_NOWHERE = "http://nowhere.invalid/"


@click.command(short_help="Print the main content of one page.")
@click.argument("source", metavar="FILE|URL|-")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["markdown", "text", "json", "html"]),
    default="markdown",
    show_default=True,
    help="What is printed.",
)
@click.option("--url", "address", metavar="URL", help="The page's own URL, to make links absolute.")
@network_options
@render_option
@config_option
@json_option
def extract(source: str, kind: str, address: str | None, config: Path | None, as_json: bool, **options: Any) -> int:
    """Print the main content of one page: a file, a URL (robots.txt is obeyed), or - for standard input."""
    settings = settings_of(config, options)
    found = _extracted(source, address, settings)
    if found.reason:
        tell(f"trawl: nothing was extracted from {source}: {found.reason}", err=True)
        return 1
    if as_json or kind == "json":
        click.echo(json.dumps(found.plain(), ensure_ascii=False))
    elif kind == "html":
        hand_over(MarkdownIt("commonmark").enable("table").render(found.markdown))
    else:
        hand_over(found.markdown if kind == "markdown" else found.text)
    return 0


def _extracted(source: str, address: str | None, settings: Settings) -> Extracted:
    if "://" in source:
        url = canonical(source, canonical_rules(settings))
        page = asyncio.run(_fetched(url, settings))
        address = address or page.final_url
        return extract_html(page.body.inline, address, content_type=page.content_type, settings=settings.extract)
    body, guessed = _read(source), mimetypes.guess_type(source)[0]
    if not address:
        return _without_address(body, guessed, settings.extract)
    url = canonical(address, canonical_rules(settings))
    return extract_html(body, url, content_type=guessed, settings=settings.extract)


def _without_address(body: bytes, content_type: str | None, settings: ExtractSettings) -> Extracted:
    """A page whose URL is not known: relative links stay as they are written, and are not listed."""
    as_written = replace(settings, absolute_links=False)
    found = extract_html(body, _NOWHERE, content_type=content_type, settings=as_written)
    links = tuple(link for link in found.links if not link.startswith(_NOWHERE))
    return replace(found, url=found.url.removeprefix(_NOWHERE), links=links)


async def _fetched(url: str, settings: Settings) -> FetchedPage:
    async with Network(settings) as network:
        page = await network.seen_page(url)
    if page.rendering:
        tell(f"trawl: {url} stands as it was fetched, no browser showed it: {page.rendering}", err=True)
    return page


def _read(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise SettingsError(f"{source} cannot be read: {error.strerror or error}; a URL needs its https://") from error
