from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trawl.errors import EmbedderMismatchError
from trawl.kinds import Use
from trawl.ports import Chunk, Hit, SearchIndex, SearchQuery, Vectors


def chunk(chunk_id: int, text: str, crawl_id: str = "c", **fields: Any) -> Chunk:
    known = {"title": "", "heading_path": (), "position": 0, "fetched_at_ms": 1000, **fields}
    return Chunk(
        chunk_id=chunk_id,
        document_key=7,
        crawl_id=crawl_id,
        url=f"https://a.example/{chunk_id}",
        text=text,
        **known,
    )


def vectors(*rows: tuple[float, ...]) -> Vectors:
    matrix = np.array(rows, dtype=np.float32)
    lengths: Vectors = np.linalg.norm(matrix, axis=1, keepdims=True).astype(np.float32)
    return matrix / lengths


async def fill(index: SearchIndex, *chunks: Chunk) -> None:
    """Chunks with the same vector, so that full text alone decides."""
    await index.open("model", 2)
    await index.upsert(chunks, vectors(*[(1.0, 0.0)] * len(chunks)))


async def ids(index: SearchIndex, text: str, **fields: Any) -> list[int]:
    return [hit.chunk.chunk_id for hit in await index.search(SearchQuery(text=text, **fields))]


async def test_a_chunk_comes_back_whole(index: SearchIndex) -> None:
    whole = chunk(
        -(2**63),
        "some words",
        title="Title",
        heading_path=("A", "B"),
        position=3,
        language="de",
        tags=("x",),
        permitted=("search",),
    )
    await fill(index, whole)
    (hit,) = await index.search(SearchQuery(text="words"))
    assert isinstance(hit, Hit)
    assert hit.chunk == whole
    assert hit.score > 0
    assert await index.size() == 1


async def test_an_empty_index_finds_nothing(index: SearchIndex) -> None:
    await index.open("model", 2)
    assert await ids(index, "word", vector=vectors((1.0, 0.0))) == []
    assert await index.size() == 0


async def test_rare_words_weigh_more_than_common_ones(index: SearchIndex) -> None:
    common = [chunk(n, "the crawler waits for the host") for n in range(1, 6)]
    await fill(index, *common, chunk(9, "the heron waits"))
    assert (await ids(index, "the heron"))[0] == 9


async def test_words_of_title_and_headings_are_found(index: SearchIndex) -> None:
    await fill(index, chunk(1, "x", title="Politeness"), chunk(2, "y", heading_path=("Robots", "Delay")))
    assert await ids(index, "politeness") == [1]
    assert await ids(index, "delay") == [2]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Zürich is a CITY", "zurich"),
        ("Zürich is a city", "ZÜRICH City"),
        ("Straßenbahn", "Straßenbahn"),
        ("an e\u0301cole", "école"),
        ("ＦＵＬＬ width", "full"),
        ("version 3.11.7 of it", "3.11.7"),
        ("снег идёт", "Снег"),
        ("foo_bar(baz)", "foo_bar"),
        ("naïve C++ code", "naive"),
        ("我们使用全文検索和向量", "全文"),
        ("我们使用全文検索和向量", "使用全文"),
        ("東京タワーの歴史", "タワー"),
        ("검색엔진을 만들었다", "검색엔진"),
        ("ประเทศไทยสวยงาม", "ประเทศ"),
        ("the 検索 engine", "検索 engine"),
        ("水", "水"),
    ],
)
async def test_words_are_found_in_every_script(index: SearchIndex, text: str, query: str) -> None:
    await fill(index, chunk(1, text), chunk(2, "nothing alike 無"))
    assert await ids(index, query) == [1]


async def test_neighbouring_characters_count_in_scripts_without_spaces(index: SearchIndex) -> None:
    await fill(index, chunk(1, "京東方是一家公司"), chunk(2, "東京是一座城市"))
    assert await ids(index, "東京") == [2]


@pytest.mark.parametrize(
    "query",
    [
        *('"', "'", '"unclosed', "AND", "OR NOT", "NEAR(a b)", "title:", "a*", "^a", "-a", "(", ")", "{a}", "a + b"),
        *("", "   ", "%", "_", "*", "\0", "😀", "\ud800", "word; DROP TABLE chunk", "col : x"),
        *("a" * 100_000, "a " * 10_000),
    ],
)
async def test_no_query_is_ever_an_error(index: SearchIndex, query: str) -> None:
    await fill(index, chunk(1, "some word"))
    await ids(index, query)
    assert await ids(index, f"{query[:50]} word") == [1]


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(query=st.text(max_size=20))
async def test_any_text_can_be_looked_for(index: SearchIndex, query: str) -> None:
    await index.open("model", 2)
    await ids(index, query)


@given(text=st.text(min_size=1, max_size=30))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_text_can_be_stored_changed_and_removed(index: SearchIndex, text: str) -> None:
    await index.open("model", 2)
    text = text.encode("utf-8", "ignore").decode()
    await index.upsert([chunk(1, text, title=text)], vectors((1.0, 0.0)))
    await index.upsert([chunk(1, f"{text} heron")], vectors((1.0, 0.0)))
    assert await ids(index, "heron") == [1]
    await index.delete([1])
    assert await ids(index, "heron") == []


async def test_nearest_vectors_come_first(index: SearchIndex) -> None:
    await index.open("model", 3)
    rows = vectors((0.0, 1.0, 0.0), (1.0, 0.1, 0.0), (1.0, 1.0, 0.0), (-1.0, 0.0, 0.0))
    await index.upsert([chunk(n, "x") for n in range(1, 5)], rows)
    assert await ids(index, "", vector=vectors((1.0, 0.0, 0.0))) == [2, 3, 1, 4]
    assert await ids(index, "", vector=vectors((1.0, 0.0, 0.0)), limit=2) == [2, 3]
    assert await ids(index, "", vector=vectors((1.0, 0.0, 0.0)), candidates=1) == [2]


async def test_full_text_and_vectors_are_fused_by_rank(index: SearchIndex) -> None:
    await index.open("model", 2)
    found = [chunk(1, "heron heron"), chunk(2, "other words"), chunk(3, "heron and words")]
    await index.upsert(found, vectors((0.9, 0.1), (1.0, 0.0), (-1.0, 0.0)))
    query = SearchQuery(text="heron", vector=vectors((1.0, 0.0)))
    hits = await index.search(query)
    assert hits[0].chunk.chunk_id == 1
    assert {hit.chunk.chunk_id for hit in hits} == {1, 2, 3}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_only_the_crawl_that_is_asked_for(index: SearchIndex) -> None:
    await fill(index, chunk(1, "heron", "c"), chunk(2, "heron", "d"))
    vector = vectors((1.0, 0.0))
    assert await ids(index, "heron", crawl_id="d", vector=vector) == [2]
    assert await ids(index, "heron", crawl_id="e", vector=vector) == []
    assert sorted(await ids(index, "heron", vector=vector)) == [1, 2]


async def test_only_what_may_be_used_so(index: SearchIndex) -> None:
    every, search_only = tuple(sorted(map(str, Use))), ("fetch", "follow", "index", "snippet")
    crowd = [chunk(n, "heron heron", permitted=search_only) for n in range(100, 140)]
    await fill(
        index,
        *crowd,
        chunk(1, "a heron", permitted=every),
        chunk(2, "a heron", "d", permitted=(*search_only, "ai-input")),
        chunk(3, "a heron", permitted=()),
    )
    vector = vectors((1.0, 0.0))
    for fields in ({}, {"vector": vector}):
        assert await ids(index, "heron", use=Use.AI_TRAIN, candidates=3, **fields) == [1]
        assert sorted(await ids(index, "heron", use=Use.AI_INPUT, candidates=3, **fields)) == [1, 2]
        assert await ids(index, "heron", use=Use.AI_INPUT, crawl_id="d", candidates=3, **fields) == [2]
        assert await ids(index, "heron", use=Use.AI_TRAIN, crawl_id="d", candidates=3, **fields) == []
        assert len(await ids(index, "heron", use=Use.INDEX, candidates=100, limit=100, **fields)) == 42
        assert len(await ids(index, "heron", candidates=100, limit=100, **fields)) == 43


async def test_limit_bounds_the_answer(index: SearchIndex) -> None:
    await fill(index, *(chunk(n, "heron") for n in range(1, 30)))
    assert len(await ids(index, "heron", limit=7)) == 7
    assert await ids(index, "heron", limit=0) == []


async def test_an_equal_id_is_replaced(index: SearchIndex) -> None:
    await fill(index, chunk(1, "old words"))
    await index.upsert([chunk(1, "new words", title="t")], vectors((0.0, 1.0)))
    assert await index.size() == 1
    assert await ids(index, "old") == []
    (hit,) = await index.search(SearchQuery(text="new"))
    assert hit.chunk.title == "t"


async def test_the_same_text_with_other_metadata_replaces_it(index: SearchIndex) -> None:
    first = chunk(1, "same words")
    await fill(index, first)
    later = replace(first, fetched_at_ms=2000, crawl_id="d")
    await index.upsert([later], vectors((0.0, 1.0)))
    (hit,) = await index.search(SearchQuery(text="same", crawl_id="d", vector=vectors((0.0, 1.0))))
    assert hit.chunk == later
    assert await ids(index, "same", crawl_id="c") == []


async def test_an_id_twice_in_one_call_is_stored_once(index: SearchIndex) -> None:
    await fill(index, chunk(1, "one"), chunk(1, "two"))
    assert await index.size() == 1
    assert await ids(index, "two") == [1]


async def test_deleted_chunks_are_found_no_more(index: SearchIndex) -> None:
    await fill(index, chunk(1, "heron 検索"), chunk(2, "heron"))
    for _ in range(2):
        await index.delete([1, 99])
    assert await ids(index, "heron", vector=vectors((1.0, 0.0))) == [2]
    assert await ids(index, "検索") == []
    assert await index.size() == 1


async def test_vectors_of_two_models_never_mix(index: SearchIndex) -> None:
    await fill(index, chunk(1, "x"))
    await index.open("model", 2)
    with pytest.raises(EmbedderMismatchError, match="model"):
        await index.open("other", 2)
    with pytest.raises(EmbedderMismatchError, match="3"):
        await index.open("model", 3)
    await index.delete([1])
    await index.open("other", 3)
    await index.upsert([chunk(1, "x")], vectors((1.0, 0.0, 0.0)))


async def test_vectors_must_fit(index: SearchIndex) -> None:
    await index.open("model", 2)
    with pytest.raises(ValueError, match="2"):
        await index.upsert([chunk(1, "x")], vectors((1.0, 0.0, 0.0)))
    with pytest.raises(ValueError, match="2"):
        await index.upsert([chunk(1, "x"), chunk(2, "x")], vectors((1.0, 0.0)))
    assert await index.size() == 0


async def test_chunks_outlive_the_process(durable_index: Any) -> None:
    await fill(durable_index.store, chunk(1, "heron"))
    index: SearchIndex = durable_index.reopen()
    await index.open("model", 2)
    assert await ids(index, "heron", vector=vectors((1.0, 0.0))) == [1]
    with pytest.raises(EmbedderMismatchError):
        await index.open("other", 2)
