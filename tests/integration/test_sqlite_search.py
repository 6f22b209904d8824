from pathlib import Path

import numpy as np
import pytest

from trawl.adapters.sqlite import Database, SqliteSearchIndex
from trawl.adapters.sqlite.vectors import SLAB_ROWS, VectorTable
from trawl.ports import Chunk, SearchQuery, Vectors

DIMENSIONS = 32


def _units(count: int, seed: int) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((count, DIMENSIONS)).astype(np.float32)
    lengths: Vectors = np.linalg.norm(matrix, axis=1, keepdims=True).astype(np.float32)
    return matrix / lengths


def _chunk(number: int, text: str, crawl_id: str = "c") -> Chunk:
    return Chunk(
        chunk_id=number,
        document_key=number,
        crawl_id=crawl_id,
        url="https://a.example/",
        title="",
        heading_path=(),
        text=text,
        position=0,
        fetched_at_ms=0,
    )


async def _filled(folder: Path, texts: list[str], vectors: Vectors) -> Database:
    database = Database(folder)
    index = SqliteSearchIndex(database)
    await index.open("model", DIMENSIONS)
    await index.upsert([_chunk(n, text, "cd"[n % 2]) for n, text in enumerate(texts)], vectors)
    return database


@pytest.mark.parametrize("cache_bytes_max", [0, 64_000_000])
async def test_neighbours_of_stored_vectors_are_those_of_the_exact_ones(tmp_path: Path, cache_bytes_max: int) -> None:
    count = SLAB_ROWS + 1000
    vectors, queries = _units(count, 1), _units(20, 2)
    database = await _filled(tmp_path, ["x"] * count, vectors)
    table = VectorTable(database.connection, cache_bytes_max=cache_bytes_max)
    found = 0
    for query in queries:
        exact = np.argsort(-(vectors @ query), kind="stable")[:10] + 1
        near = table.nearest(query[np.newaxis], 10, None)
        assert near[0] == exact[0]
        found += len(set(near) & set(exact.tolist()))
        of_crawl = table.nearest(query[np.newaxis], 10, 2)
        assert all(seq % 2 == 0 for seq in of_crawl)
    assert found >= 0.97 * 10 * len(queries)
    database.close()


async def test_kept_vectors_follow_every_change(tmp_path: Path) -> None:
    database = await _filled(tmp_path, ["x", "y"], _units(2, 1))
    index, reader = SqliteSearchIndex(database), Database(tmp_path, read_only=True)
    far = SqliteSearchIndex(reader)
    vector = _units(1, 3)
    for number in range(2, 6):
        await index.upsert([_chunk(number, "z")], vector)
        for searched in (index, far):
            hits = await searched.search(SearchQuery(text="", vector=vector, limit=100))
            assert hits[0].chunk.chunk_id == number
            assert len(hits) == 3
        await index.delete([number])
    reader.close()
    database.close()


async def test_a_vector_of_zeros_is_no_error(tmp_path: Path) -> None:
    database = await _filled(tmp_path, ["x", "y"], np.zeros((2, DIMENSIONS), dtype=np.float32))
    hits = await SqliteSearchIndex(database).search(SearchQuery(text="", vector=_units(1, 1)))
    assert len(hits) == 2
    database.close()


async def test_words_that_stand_everywhere_decide_nothing_beside_rare_ones(tmp_path: Path) -> None:
    texts = ["the crawler"] * 2500
    texts[1234] = "the heron"
    database = await _filled(tmp_path, texts, _units(len(texts), 1))
    index = SqliteSearchIndex(database)
    assert [hit.chunk.chunk_id for hit in await index.search(SearchQuery(text="the heron"))] == [1234]
    assert [hit.chunk.chunk_id for hit in await index.search(SearchQuery(text="the heron unheard"))] == [1234]
    for common in ("the", "the crawler", "crawler unheard"):
        assert len(await index.search(SearchQuery(text=common))) == 10
    database.close()
