"""`trawl search`: hybrid search over a crawl."""

import asyncio
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from trawl.api import search as find
from trawl.assembly import newest_folder
from trawl.cli.options import config_option, json_option, settings_of
from trawl.errors import SettingsError
from trawl.ports import Hit
from trawl.url import key_hex

_EXCERPT_CHARS = 320
_FENCE = re.compile(r"^ {0,3}(```|~~~).*$|^[ |:-]+$", re.MULTILINE)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_MARK = re.compile(r"^ {0,3}(#{1,6} |> ?|[-*+] )|\*\*|`|\\(?=[^\w\s])", re.MULTILINE)


@click.command(short_help="Search a crawl by words and meaning.")
@click.argument("query", nargs=-1, required=True)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The crawl's folder.  [default: the newest below crawls/]",
)
@click.option("--limit", type=click.IntRange(1, 1000), default=5, show_default=True, metavar="N", help="Hits at most.")
@config_option
@json_option
def search(query: tuple[str, ...], folder: Path | None, limit: int, config: Path | None, as_json: bool) -> int:
    """Search the text and the meaning of what was crawled, also while a crawl is running."""
    settings = settings_of(config, {})
    text = " ".join(query).strip()
    if not text:
        raise SettingsError("the query is empty; say what to search for")
    folder = folder or newest_folder()
    hits = asyncio.run(find(folder, text, limit=limit, settings=settings))
    if as_json:
        click.echo(json.dumps([_plain(hit) for hit in hits], ensure_ascii=False))
    else:
        _print(hits)
    return 0 if hits else 1


def _plain(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {
        "score": round(hit.score, 5),
        "url": chunk.url,
        "title": chunk.title,
        "heading_path": list(chunk.heading_path),
        "text": chunk.text,
        "position": chunk.position,
        "chunk_id": key_hex(chunk.chunk_id),
        "document_key": key_hex(chunk.document_key),
    }


def _plain_text(markdown: str) -> str:
    """Markdown as one line of text: without marks, images and the addresses of links."""
    text = _FENCE.sub("", markdown)
    text = _IMAGE.sub("", text)
    text = _LINK.sub(r"\1", text)
    return " ".join(_MARK.sub("", text).split())


def _print(hits: list[Hit]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    if not hits:
        click.echo("nothing found", err=True)
    for number, hit in enumerate(hits, start=1):
        chunk = hit.chunk
        path = [part for part in chunk.heading_path if part != chunk.title]
        console.print(Text(f"{number}. {' > '.join((chunk.title or chunk.url, *path))}", style="bold"))
        console.print(Text(f"   {chunk.url}", style="cyan"))
        excerpt = textwrap.shorten(_plain_text(chunk.text), _EXCERPT_CHARS, placeholder=" …")
        console.print(Text(textwrap.indent(textwrap.fill(excerpt, 100), "   ")))
        console.print()
