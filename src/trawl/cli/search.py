"""`trawl search`: hybrid search over a crawl."""

import asyncio
import json
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from trawl.adapters.embedders import open_embedder
from trawl.api import search as find
from trawl.assembly import newest_folder
from trawl.cli.options import config_option, json_option, needs, settings_of
from trawl.cli.terminal import printable, tell
from trawl.errors import EmbedderMismatchError, SettingsError, StoreError
from trawl.kinds import Use
from trawl.ports import Hit, SearchQuery
from trawl.settings import Settings
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
@click.option("--opensearch", metavar="URL", help="Search a deployed system's index there, instead of a folder.")
@click.option("--crawl", "crawl_id", default="", metavar="ID", help="With --opensearch: only this crawl.")
@click.option("--use", type=click.Choice([str(use) for use in Use]),
              help="Only what its site does not forbid to use so.")  # fmt: skip
@config_option
@json_option
def search(
    query: tuple[str, ...], folder: Path | None, limit: int, opensearch: str | None, crawl_id: str, use: str | None,
    config: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Search the text and the meaning of what was crawled, also while a crawl is running."""
    settings = settings_of(config, {})
    text = " ".join(query).strip()
    if not text:
        raise SettingsError("the query is empty; say what to search for")
    if opensearch is None:
        if crawl_id:
            raise SettingsError("--crawl needs --opensearch; a folder holds one crawl")
        hits = asyncio.run(find(folder or newest_folder(), text, limit=limit, use=use, settings=settings))
    else:
        if folder is not None:
            raise SettingsError("name --dir or --opensearch, not both")
        settings = replace(settings, opensearch=replace(settings.opensearch, url=opensearch))
        hits = asyncio.run(_deployed(settings, text, limit, crawl_id, use))
    if as_json:
        click.echo(json.dumps([_plain(hit) for hit in hits], ensure_ascii=False))
    else:
        _print(hits)
    return 0 if hits else 1


async def _deployed(settings: Settings, text: str, limit: int, crawl_id: str, use: str | None) -> list[Hit]:
    """Hits in a deployed system's index, which is not made if it is not there."""
    with needs("opensearch"):
        from trawl.adapters.opensearch import OpenSearchSearchIndex, connect  # noqa: PLC0415 - an extra
        from trawl.adapters.opensearch.indices import CHUNKS_VERSION, Index  # noqa: PLC0415 - an extra
    embedder, client = open_embedder(settings.embed), connect(settings.opensearch)
    try:
        chunks = Index(client, settings.opensearch, "chunks", CHUNKS_VERSION)
        known = await chunks.meta()
        if known is None:
            raise StoreError(
                f"OpenSearch at {client.where} has no index {chunks.alias}; nothing was crawled yet, or"
                f" opensearch.prefix is another"
            )
        if (known.get("embedder"), known.get("dimensions")) != (embedder.name, embedder.dimensions):
            raise EmbedderMismatchError(
                f"{chunks.alias} at {client.where} holds vectors of {known.get('embedder')}, not of {embedder.name}"
            )
        asked = SearchQuery(
            text=text,
            vector=await embedder.embed([text]),
            limit=limit,
            crawl_id=crawl_id,
            candidates=max(settings.index.search_candidates, limit),
            use=None if use is None else Use(use),
        )
        return list(await OpenSearchSearchIndex(client, settings.opensearch).search(asked))
    finally:
        await client.close()
        await embedder.close()


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
        "permitted": list(chunk.permitted),
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
        tell("nothing found", err=True)
    for number, hit in enumerate(hits, start=1):
        chunk = hit.chunk
        path = [part for part in chunk.heading_path if part != chunk.title]
        console.print(Text(printable(f"{number}. {' > '.join((chunk.title or chunk.url, *path))}"), style="bold"))
        console.print(Text(printable(f"   {chunk.url}"), style="cyan"))
        excerpt = textwrap.shorten(_plain_text(chunk.text), _EXCERPT_CHARS, placeholder=" …")
        console.print(Text(printable(textwrap.indent(textwrap.fill(excerpt, 100), "   "))))
        console.print()
