"""Chunks in OpenSearch beside SQLite: how fast they are written and found, and whether both find the same.

    python -m bench.opensearch [--chunks 20000] [--queries 200]

In a node of its own. The texts are those of the public pages of TRAWL_DATA, cut into pieces of 60 words, with the
vectors of the packaged model; the queries are titles of pages. `bulk_chunks_s` counts the adapter's work and the
node's, not the embedding. Searches are hybrid, one after the other, through the adapter, on segments as they are
after writing; `filtered` ones ask for one crawl of ten. `parity` is the share of SQLite's first ten hits that are among
OpenSearch's, for hybrid search and for its two halves. `store_bytes_chunk` is the index on disk. The last line is one
JSON object.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from devstack.process import free_port
from devstack.servers import OpenSearchServer
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.opensearch import OpenSearchClient, OpenSearchSearchIndex, connect
from trawl.adapters.sqlite import Database, SqliteSearchIndex
from trawl.ports import Chunk, SearchIndex, SearchQuery, Vectors
from trawl.settings import Settings

DATA = Path(os.environ.get("TRAWL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
CHUNK_WORDS = 60
BATCH = 256
CRAWLS = 10
WARM_UP = 20


def corpus(chunks_max: int) -> tuple[list[Chunk], list[str]]:
    """The chunks, and the titles of their pages."""
    folder = DATA / "wcxb-dev" / "ground-truth"
    if not folder.is_dir():
        sys.exit(f"{folder} is missing; set TRAWL_DATA to the folder of the public data sets")
    chunks: list[Chunk] = []
    titles: list[str] = []
    for path in sorted(folder.glob("*.json")):
        page = json.loads(path.read_bytes())
        truth = page["ground_truth"]
        words, title = (truth.get("main_content") or "").split(), (truth.get("title") or "")[:200]
        for start in range(0, len(words), CHUNK_WORDS):
            if len(chunks) == chunks_max:
                return chunks, titles
            text = " ".join(words[start : start + CHUNK_WORDS])
            chunks.append(_chunk(len(chunks), title, text, page.get("url") or path.stem))
        if len(title.split()) > 2:
            titles.append(title)
    return chunks, titles


def _chunk(number: int, title: str, text: str, url: str) -> Chunk:
    return Chunk(
        chunk_id=number,
        document_key=number,
        crawl_id=f"crawl{number % CRAWLS}",
        url=url,
        title=title,
        heading_path=(),
        text=text,
        position=0,
        fetched_at_ms=1,
    )


async def written(index: SearchIndex, chunks: Sequence[Chunk], vectors: Vectors) -> float:
    """The seconds that writing all takes."""
    began = time.perf_counter()
    for start in range(0, len(chunks), BATCH):
        await index.upsert(chunks[start : start + BATCH], vectors[start : start + BATCH])
    return time.perf_counter() - began


async def hits(index: SearchIndex, query: SearchQuery) -> list[int]:
    """The ids of the first hits."""
    return [hit.chunk.chunk_id for hit in await index.search(query)]


async def timed(search: Callable[[SearchQuery], Awaitable[Any]], queries: Sequence[SearchQuery]) -> dict[str, float]:
    """The milliseconds of one search, in the middle and near the worst."""
    spent = []
    for number, query in enumerate([*queries[:WARM_UP], *queries]):
        began = time.perf_counter()
        await search(query)
        if number >= WARM_UP:
            spent.append(1000 * (time.perf_counter() - began))
    return {"p50_ms": round(statistics.median(spent), 1), "p95_ms": round(statistics.quantiles(spent, n=20)[-1], 1)}


async def parity(index: SearchIndex, other: SearchIndex, queries: Sequence[SearchQuery]) -> float:
    """The share of one index's hits that the other has."""
    shares = []
    for query in queries:
        wanted = set(await hits(other, query))
        if wanted:
            shares.append(len(wanted & set(await hits(index, query))) / len(wanted))
    return round(statistics.mean(shares), 3)


async def measured(
    client: OpenSearchClient, settings: Settings, database: Database, options: argparse.Namespace
) -> dict[str, Any]:
    """All figures."""
    chunks, titles = corpus(options.chunks)
    embedder = WordllamaEmbedder()
    vectors = np.concatenate(
        [await embedder.embed([chunk.text for chunk in chunks[at : at + BATCH]]) for at in range(0, len(chunks), BATCH)]
    )
    asked = random.Random(1).sample(titles, min(options.queries, len(titles)))
    queries = [SearchQuery(text=text, vector=await embedder.embed([text])) for text in asked]
    index, sqlite = OpenSearchSearchIndex(client, settings.opensearch), SqliteSearchIndex(database)
    for one in (index, sqlite):
        await one.open(embedder.name, embedder.dimensions)
    seconds = await written(index, chunks, vectors)
    await written(sqlite, chunks, vectors)
    assert await index.size() == len(chunks)
    kinds = {
        "hybrid": queries,
        "text": [replace(query, vector=None) for query in queries],
        "vectors": [replace(query, text="") for query in queries],
    }
    stats = await client.ask("GET", f"/{client.name('chunks')}/_stats/store")
    return {
        "chunks": len(chunks),
        "bulk_chunks_s": round(len(chunks) / seconds),
        "search": await timed(index.search, queries),
        "filtered": await timed(index.search, [replace(query, crawl_id="crawl3") for query in queries]),
        "sqlite": await timed(sqlite.search, queries),
        "parity": {kind: await parity(index, sqlite, asked) for kind, asked in kinds.items()},
        "store_bytes_chunk": round(stats["_all"]["primaries"]["store"]["size_in_bytes"] / len(chunks)),
    }


async def run(base: Path, url: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure over a node that runs."""
    settings = Settings(opensearch=replace(Settings().opensearch, url=url))
    client, database = connect(settings.opensearch), Database(base)
    figures = await measured(client, settings, database, options)
    database.close()
    await client.close()
    return figures


def main() -> None:
    """Start a node, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        base.chmod(0o755)  # the node runs as another user
        with OpenSearchServer(base / "opensearch", free_port(), free_port()) as server:
            print(json.dumps(asyncio.run(run(base, server.url, options))))


if __name__ == "__main__":
    main()
