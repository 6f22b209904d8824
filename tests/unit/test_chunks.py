"""Chunks: the structure they keep, the laws that patching relies on, and their limits."""

import json
import random
import re
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data import require
from trawl.indexer.chunks import (
    HEADING_CHARS_MAX,
    HEADING_LEVELS_MAX,
    chunk_document,
    embedding_text,
    passages,
    permitted_purposes,
)
from trawl.indexer.markdown import blocks_from_markdown
from trawl.kinds import BlockKind
from trawl.ports import Chunk
from trawl.records import Block, Evidence, ExtractedDocument
from trawl.settings import IndexSettings

SETTINGS = IndexSettings()
SMALL = IndexSettings(chunk_chars_target=100, chunk_chars_max=200, chunk_overlap_chars=30)

kinds = st.sampled_from([kind for kind in BlockKind if kind is not BlockKind.HEADING])
prose = st.text(st.sampled_from("ab. !?\n\t。é漢|`-# "), max_size=400)
paths = st.lists(st.text(st.sampled_from("xyz "), max_size=4), max_size=3).map(tuple)
block_lists = st.lists(
    st.one_of(
        st.builds(Block, kind=kinds, text=prose, heading_path=paths),
        st.builds(Block, kind=kinds, text=prose, markdown=prose, heading_path=paths),
        st.builds(Block, kind=st.just(BlockKind.HEADING), text=prose, heading_path=paths),
    ),
    max_size=12,
)


def document(*blocks: Block, key: int = 1, **fields: object) -> ExtractedDocument:
    base = ExtractedDocument(
        document_key=key,
        crawl_id="test",
        request_key=2,
        fetch_id=3,
        url="http://site.test/start",
        final_url="http://site.test/page",
        title="Page",
        fetched_at_ms=5,
        blocks=blocks,
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # the fields are given by the tests below


def paragraph(text: str, *path: str) -> Block:
    return Block(kind=BlockKind.PARAGRAPH, text=text, heading_path=path)


def heading(text: str, *path: str) -> Block:
    return Block(kind=BlockKind.HEADING, text=text, heading_path=path)


def sentences(count: int, seed: int) -> str:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(count * 12)]
    return " ".join(" ".join(words[i * 12 : i * 12 + 12]).capitalize() + "." for i in range(count))


def texts(chunks: tuple[Chunk, ...]) -> list[str]:
    return [chunk.text for chunk in chunks]


def words_of(*parts: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(parts)))


@settings(max_examples=200, deadline=None)
@given(block_lists)
def test_every_word_is_in_some_chunk_and_no_chunk_is_too_long(blocks: list[Block]) -> None:
    found = list(passages(blocks, SMALL))
    assert all(0 < len(passage.text) <= SMALL.chunk_chars_max for passage in found)
    # Words longer than a chunk are cut, so what is compared is the characters of words, all of them in order.
    content = words_of(*(text for passage in found for text in (passage.text, *passage.heading_path)))
    for block in blocks:
        structural = block.kind in {BlockKind.TABLE, BlockKind.CODE}
        shown = (block.markdown or block.text) if structural else block.text
        for word in words_of(shown):
            assert word in content or len(word) > SMALL.chunk_chars_target // 2


@settings(max_examples=100, deadline=None)
@given(block_lists)
def test_chunking_is_deterministic_with_distinct_ids(blocks: list[Block]) -> None:
    chunks = chunk_document(document(*blocks), SMALL)
    assert chunks == chunk_document(document(*blocks), SMALL)
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)
    assert [chunk.position for chunk in chunks] == list(range(len(chunks)))
    assert all(-(2**63) <= chunk.chunk_id < 2**63 for chunk in chunks)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 4), st.integers(1, 12))
def test_an_edit_in_one_section_leaves_the_chunks_of_all_others(seed: int, edited: int, grown: int) -> None:
    sections = [paragraph(sentences(random.Random(seed + i).randint(1, 40), seed + i), f"S{i}") for i in range(5)]
    before = chunk_document(document(*sections), SMALL)
    sections[edited] = paragraph(sentences(grown, seed + 99), f"S{edited}")
    after = chunk_document(document(*sections), SMALL)

    def others(chunks: tuple[Chunk, ...]) -> list[int]:
        return [chunk.chunk_id for chunk in chunks if chunk.heading_path != (f"S{edited}",)]

    assert others(before) == others(after)


def test_an_edit_in_a_long_section_changes_few_of_its_chunks() -> None:
    kept, total = 0, 0
    for seed in range(40):
        parts = [sentences(4, seed * 1000 + i) for i in range(40)]
        before = chunk_document(document(*(paragraph(part) for part in parts)), SETTINGS)
        at = random.Random(seed).randrange(40)
        parts[at] = "New words stand at the start of it. " + parts[at]
        after = {chunk.chunk_id for chunk in chunk_document(document(*(paragraph(part) for part in parts)), SETTINGS)}
        kept += sum(chunk.chunk_id in after for chunk in before)
        total += len(before)
        assert len(before) > 8
    assert kept / total > 0.85, f"{kept} of {total} chunks survived one inserted sentence"


@pytest.mark.data
def test_a_change_of_2_percent_of_real_blocks_saves_9_of_10_embeddings() -> None:
    rng = random.Random(1)
    total = new = 0
    for path in sorted((require("wcxb-dev") / "ground-truth").glob("*.json"))[::4]:
        markdown = json.loads(path.read_bytes())["ground_truth"].get("main_content_markdown") or ""
        blocks = blocks_from_markdown(markdown)
        changed = [
            replace(block, text=f"Changed. {block.text}", markdown=f"Changed. {block.markdown}")
            if block.kind is not BlockKind.HEADING and rng.random() < 0.02
            else block
            for block in blocks
        ]
        before = {chunk.chunk_id for chunk in chunk_document(document(*blocks), SETTINGS)}
        after = chunk_document(document(*changed), SETTINGS)
        new += sum(chunk.chunk_id not in before for chunk in after)
        total += len(after)
    assert total > 4000
    assert 0 < new / total < 0.1


def test_ids_depend_on_document_path_and_text_but_not_on_position() -> None:
    one = chunk_document(document(paragraph("Same words.", "A")), SETTINGS)[0]
    assert chunk_document(document(paragraph("Same words.", "A"), key=9), SETTINGS)[0].chunk_id != one.chunk_id
    assert chunk_document(document(paragraph("Same words.", "B")), SETTINGS)[0].chunk_id != one.chunk_id
    assert chunk_document(document(paragraph("Same word.", "A")), SETTINGS)[0].chunk_id != one.chunk_id
    behind = chunk_document(document(paragraph("First.", "Z"), paragraph("Same words.", "A")), SETTINGS)[1]
    assert (behind.chunk_id, behind.position) == (one.chunk_id, 1)


def test_equal_chunks_are_told_apart_by_their_ordinal() -> None:
    three = chunk_document(
        document(*(b for _ in range(3) for b in (heading("Same"), paragraph("Text.", "Same")))), SETTINGS
    )
    two = chunk_document(
        document(*(b for _ in range(2) for b in (heading("Same"), paragraph("Text.", "Same")))), SETTINGS
    )
    assert [c.chunk_id for c in three[:2]] == [c.chunk_id for c in two]
    assert len({c.chunk_id for c in three}) == 3


def test_golden_id() -> None:
    chunk = chunk_document(document(paragraph("Hello, world.", "A", "B")), SETTINGS)[0]
    assert chunk.chunk_id == GOLDEN_ID, "ids are stored: a change here orphans every index"


GOLDEN_ID = 2063071638672621523


def test_a_section_that_fits_is_one_chunk_with_its_heading_path() -> None:
    chunks = chunk_document(
        document(
            heading("Guide"),
            paragraph("Welcome.", "Guide"),
            heading("Install", "Guide"),
            paragraph("Run this.", "Guide", "Install"),
            Block(kind=BlockKind.CODE, text="make", markdown="```\nmake\n```", heading_path=("Guide", "Install")),
        ),
        SETTINGS,
    )
    assert [(c.heading_path, c.text) for c in chunks] == [
        (("Guide",), "Welcome."),
        (("Guide", "Install"), "Run this.\n\n```\nmake\n```"),
    ]


def test_what_has_no_words_is_no_part_of_a_chunk() -> None:
    rule = Block(kind=BlockKind.OTHER, text="", markdown="---")
    image = Block(kind=BlockKind.PARAGRAPH, text="", markdown="![](http://site.test/pixel.png)")
    assert texts(chunk_document(document(paragraph("One."), rule, image, paragraph("Two.")), SETTINGS)) == [
        "One.\n\nTwo."
    ]
    assert chunk_document(document(rule, image), SETTINGS) == ()


def test_a_heading_is_the_path_of_what_follows_or_a_chunk_of_its_own() -> None:
    chunks = chunk_document(
        document(heading("Guide"), heading("Part", "Guide"), paragraph("Text.", "Guide", "Part"), heading("Coda")),
        SETTINGS,
    )
    assert [(c.heading_path, c.text) for c in chunks] == [(("Guide", "Part"), "Text."), (("Coda",), "Coda")]


def test_a_heading_as_long_as_a_page_is_content_and_its_path_is_short() -> None:
    long = sentences(200, 1)
    chunks = chunk_document(document(heading(long), paragraph("Text.", long)), SETTINGS)
    assert words_of(long) <= words_of(*texts(chunks))
    assert all(len(title) <= HEADING_CHARS_MAX for chunk in chunks for title in chunk.heading_path)
    deep = chunk_document(document(paragraph("Deep.", *(str(i) for i in range(50)))), SETTINGS)[0]
    assert deep.heading_path == tuple(str(i) for i in range(50 - HEADING_LEVELS_MAX, 50))


@pytest.mark.parametrize("kind", [BlockKind.TABLE, BlockKind.CODE])
def test_a_table_or_code_block_within_the_limit_is_never_cut(kind: BlockKind) -> None:
    lines = "\n".join(f"line {i}. And more. x = {i}" for i in range(70))
    markdown = f"```py\n{lines}\n```" if kind is BlockKind.CODE else f"| a |\n| --- |\n{lines}"
    assert SETTINGS.chunk_chars_target < len(markdown) <= SETTINGS.chunk_chars_max
    block = Block(kind=kind, text=lines, markdown=markdown)
    chunks = chunk_document(document(paragraph(sentences(15, 1)), block, paragraph(sentences(15, 2))), SETTINGS)
    assert sum(markdown in text for text in texts(chunks)) == 1
    assert sum("line 5." in text for text in texts(chunks)) == 1


def test_a_larger_table_is_cut_between_rows_with_its_header_repeated() -> None:
    rows = [f"| {i} | {word} |" for i, word in enumerate(sentences(30, 3).split())]
    header = "| Number | Word |\n| ---: | :--- |"
    table = Block(kind=BlockKind.TABLE, text="", markdown="\n".join((header, *rows)))
    chunks = chunk_document(document(table), SETTINGS)
    assert len(chunks) > 1
    assert all(text.startswith(header + "\n|") for text in texts(chunks))
    assert [row for text in texts(chunks) for row in text.splitlines()[2:]] == rows


def test_larger_code_is_cut_between_lines_best_after_blank_ones_with_its_fence_repeated() -> None:
    functions = [f"def f{i}(x):\n    # {sentences(1, i)}\n    return x + {i}\n" for i in range(40)]
    code = Block(kind=BlockKind.CODE, text="", markdown="```python\n" + "\n".join(functions) + "```")
    chunks = chunk_document(document(code), SETTINGS)
    assert len(chunks) > 1
    for text in texts(chunks):
        assert text.startswith("```python\ndef f")
        assert text.endswith("\n```")
        assert text.count("```") == 2
    joined = "\n".join(text.removeprefix("```python\n").removesuffix("```") for text in texts(chunks))
    assert joined.split() == "\n".join(functions).split()


def test_pieces_of_a_section_begin_with_the_last_sentences_of_the_piece_before() -> None:
    chunks = chunk_document(document(paragraph(sentences(60, 4))), replace(SETTINGS, chunk_overlap_chars=250))
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        shared = next(n for n in range(len(after.text), 0, -1) if before.text.endswith(after.text[:n].rstrip()))
        assert 80 < shared <= 251
        assert after.text[0].isupper()


def test_sections_do_not_overlap() -> None:
    chunks = chunk_document(document(paragraph("One end.", "A"), paragraph("Two begins.", "B")), SETTINGS)
    assert texts(chunks) == ["One end.", "Two begins."]


def test_pieces_of_long_sections_average_the_target() -> None:
    sizes = [
        len(chunk.text)
        for seed in range(30)
        for chunk in chunk_document(
            document(*(paragraph(sentences(3, seed * 100 + i)) for i in range(60))),
            replace(SETTINGS, chunk_overlap_chars=0),
        )
    ]
    assert 800 < sum(sizes) / len(sizes) < 1200
    assert min(sizes) > 200


@pytest.mark.parametrize(
    "text",
    [
        "x" * 50_000,
        "漢字" * 20_000,
        "." * 50_000,
        " \n" * 50_000 + "end",
        "a " * 50_000,
        "same line\n" * 20_000,
        "?!" * 30_000 + " x",
    ],
    ids=["one word", "unspaced", "dots", "blank", "no sentences", "equal lines", "marks"],
)
@pytest.mark.parametrize("kind", [BlockKind.PARAGRAPH, BlockKind.CODE, BlockKind.TABLE])
def test_hostile_text_is_bounded_in_size_and_time(text: str, kind: BlockKind) -> None:
    chunks = chunk_document(document(Block(kind=kind, text=text)), SETTINGS)
    assert chunks
    assert all(len(chunk.text) <= SETTINGS.chunk_chars_max for chunk in chunks)
    assert sum(len(chunk.text) for chunk in chunks) >= len("".join(text.split())) * 0.99


@pytest.mark.parametrize("size", [1, 2, 10])
def test_tiny_limits_are_kept(size: int) -> None:
    tiny = IndexSettings(chunk_chars_target=size, chunk_chars_max=size, chunk_overlap_chars=size)
    chunks = chunk_document(document(heading("Title"), paragraph("Some words. And more.", "Title")), tiny)
    assert all(len(chunk.text) <= size for chunk in chunks)


def test_without_blocks_the_markdown_is_read_and_without_markdown_the_text() -> None:
    guide = "# Guide #\n\nWelcome\nhere.\n\n## Install\n\n- one\n- two\n\n"
    markdown = guide + "```sh\n# not a heading\n\nmake\n```\n| a |\n| - |\n"
    chunks = chunk_document(document(markdown=markdown, text="ignored"), SETTINGS)
    assert [(c.heading_path, c.text) for c in chunks] == [
        (("Guide",), "Welcome\nhere."),
        (("Guide", "Install"), "- one\n- two\n\n```sh\n# not a heading\n\nmake\n```\n\n| a |\n| - |"),
    ]
    plain = chunk_document(document(text="One.\n\n \nTwo."), SETTINGS)
    assert texts(plain) == ["One.\n\nTwo."]
    assert chunk_document(document(), SETTINGS) == ()


def test_a_chunk_carries_what_its_document_says() -> None:
    evidence = (
        Evidence(source="meta", rule="noindex", purpose="ai-train", allowed=False),
        Evidence(source="content-usage", rule="train-ai=y", purpose="ai-train", allowed=True),
        Evidence(source="robots.txt", rule="Allow: /", purpose="fetch", allowed=True),
    )
    chunk = chunk_document(document(paragraph("Text.", "A"), language="en", tags=("t",), evidence=evidence), SETTINGS)[
        0
    ]
    assert chunk == Chunk(
        chunk_id=chunk.chunk_id,
        document_key=1,
        crawl_id="test",
        url="http://site.test/page",
        title="Page",
        heading_path=("A",),
        text="Text.",
        position=0,
        fetched_at_ms=5,
        language="en",
        tags=("t",),
        permitted=("ai-input", "fetch", "follow", "index", "snippet"),
    )
    assert permitted_purposes(()) == ("ai-input", "ai-train", "fetch", "follow", "index", "snippet")


def test_a_chunk_is_embedded_with_its_title_and_headings_once() -> None:
    chunk = chunk_document(document(paragraph("Text.", "A", "B")), SETTINGS)[0]
    assert embedding_text(chunk) == "Page\nA\nB\nText."
    assert embedding_text(replace(chunk, title="A")) == "A\nB\nText."
    assert embedding_text(replace(chunk, title="", heading_path=())) == "Text."
