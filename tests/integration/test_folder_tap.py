"""The files of a crawl, over a real database."""

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trawl.adapters.folder import FolderTap
from trawl.adapters.sqlite.database import Database
from trawl.errors import StoreError
from trawl.kinds import BlockKind
from trawl.records import Block, ExtractedDocument, Header, Payload
from trawl.url import document_key

MINIMUM = {
    "url", "url_canonical", "fetched_at", "status", "content_type", "content_sha256", "simhash", "render_mode",
    "final_url", "response_headers", "extracted", "text", "html_compressed", "crawl_source",
}  # fmt: skip
"""The minimum record fields of the extraction requirement."""


def made(url: str, text: str = "Hello", **changes: Any) -> ExtractedDocument:
    """A document of a URL."""
    body = f"<p>{text}</p>".encode()
    document = ExtractedDocument(
        document_key=document_key("default", url), crawl_id="default", request_key=1, fetch_id=1, url=url,
        final_url=url, url_canonical=url, title="A title", text=text, markdown=text, status=200,
        html=Payload(inline=body, size_bytes=len(body)), fetched_at_ms=1_700_000_000_123,
        response_headers=(Header(name="x", value="1"), Header(name="x", value="2")),
    )  # fmt: skip
    return replace(document, **changes)


@contextmanager
def opened(folder: Path, *formats: str, inline_html: bool = False, end: bool = True) -> Iterator[FolderTap]:
    """A tap on a folder; without `end` it is left as a crash leaves it."""
    database = Database(folder)
    chosen = frozenset(formats or ("markdown", "html", "jsonl"))
    tap = FolderTap(database, formats=chosen, inline_html=inline_html, name_chars_max=150)
    tap.open()
    yield tap
    if end:
        tap.close()
    database.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    """The rows of pages.jsonl."""
    return [json.loads(line) for line in (folder / "pages.jsonl").read_text(encoding="utf-8").splitlines()]


async def test_a_page_becomes_markdown_html_and_a_line_with_the_minimum_fields(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        kept = await tap.document(made("https://example.com/docs/"), "")
    assert kept.html == Payload(ref="html/https_example.com_docs_.html", size_bytes=12)
    markdown = (tmp_path / "markdown/https_example.com_docs_.md").read_text(encoding="utf-8")
    assert markdown.startswith(
        '---\nurl: "https://example.com/docs/"\ntitle: "A title"\nfetched_at: "2023-11-14T22:13:20.123Z"\n'
    )
    assert markdown.endswith("---\n\n# A title\n\nHello\n")
    assert (tmp_path / "html/https_example.com_docs_.html").read_bytes() == b"<p>Hello</p>"
    (row,) = lines(tmp_path)
    assert row.keys() >= MINIMUM
    assert row["response_headers"] == {"x": "1, 2"}
    assert row["html_compressed"] == "html/https_example.com_docs_.html"


async def test_a_page_with_a_main_heading_keeps_it_as_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        heading = Block(kind=BlockKind.HEADING, text="Its own", markdown="# Its own")
        await tap.document(made("https://example.com/", text="# Its own\n\nHello", blocks=(heading,)), "")
    markdown = (tmp_path / "markdown/https_example.com_.md").read_text(encoding="utf-8")
    assert markdown.endswith("---\n\n# Its own\n\nHello\n")


async def test_raw_html_can_stand_in_the_line(tmp_path: Path) -> None:
    with opened(tmp_path, "jsonl", inline_html=True) as tap:
        await tap.document(made("https://example.com/"), "")
    assert gzip.decompress(base64.b64decode(lines(tmp_path)[0]["html_compressed"])) == b"<p>Hello</p>"
    assert not (tmp_path / "html").exists()


@pytest.mark.parametrize(
    "urls",
    [
        ("https://example.com/a/b", "https://example.com/a_b", "https://example.com/a%2Fb"),
        ("https://example.com/Page", "https://example.com/page", "https://example.com/PAGE"),
        tuple(f"https://example.com/{'x' * 300}{n}" for n in range(3)),
    ],
)
async def test_no_two_pages_share_a_file_whatever_their_names(tmp_path: Path, urls: tuple[str, ...]) -> None:
    with opened(tmp_path) as tap:
        for url in urls:
            await tap.document(made(url, text=url), "")
        for url in urls:
            await tap.document(made(url, text=url), "")
    names = [path.name.lower() for path in (tmp_path / "markdown").iterdir()]
    assert len(set(names)) == len(urls) == len(lines(tmp_path))
    assert all(len(name) < 200 for name in names)
    for row in lines(tmp_path):
        assert row["url"] in (tmp_path / row["markdown_file"]).read_text(encoding="utf-8")


async def test_a_duplicate_has_its_line_and_no_file(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        await tap.document(made("https://example.com/a"), "https://example.com/first")
    (row,) = lines(tmp_path)
    assert row["duplicate_of"] == "https://example.com/first"
    assert list((tmp_path / "markdown").iterdir()) == list((tmp_path / "html").iterdir()) == []


async def test_a_page_that_turns_duplicate_loses_its_files(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        await tap.document(made("https://example.com/a"), "")
        await tap.document(made("https://example.com/a"), "https://example.com/first")
    assert [row["duplicate_of"] for row in lines(tmp_path)] == ["https://example.com/first"]
    assert list((tmp_path / "markdown").iterdir()) == []


async def test_a_changed_page_replaces_its_line_and_a_repeated_one_adds_none(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        await tap.document(made("https://example.com/a"), "")
        await tap.document(made("https://example.com/b"), "")
        await tap.document(made("https://example.com/b"), "")
        await tap.document(made("https://example.com/a", text="Changed"), "")
    assert [(row["url"][-1], row["text"]) for row in lines(tmp_path)] == [("a", "Changed"), ("b", "Hello")]


@pytest.mark.parametrize("damage", ["torn", "lost", "gone", "doubled"])
async def test_case_39_the_lines_are_right_again_after_a_crash(tmp_path: Path, damage: str) -> None:
    with opened(tmp_path, end=False) as tap:
        for name in "abc":
            await tap.document(made(f"https://example.com/{name}"), "")
    file = tmp_path / "pages.jsonl"
    data = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes({"torn": data[:-7], "lost": data[: data.index(b"\n") + 1], "doubled": data + data}[damage])
    with opened(tmp_path):
        assert [row["url"][-1] for row in lines(tmp_path)] == ["a", "b", "c"]


async def test_a_withdrawn_page_leaves_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as tap:
        document = made("https://example.com/a")
        await tap.document(document, "")
        await tap.withdrawn(document)
        await tap.withdrawn(document)
    assert lines(tmp_path) == []
    assert list((tmp_path / "markdown").iterdir()) == list((tmp_path / "html").iterdir()) == []


async def test_hostile_texts_stay_inside_their_fields(tmp_path: Path) -> None:
    title = 'a"\n---\nurl: "https://evil.example/"\n\x00 \ud800'
    with opened(tmp_path) as tap:
        await tap.document(made("https://example.com/a", title=title), "")
    markdown = (tmp_path / "markdown/https_example.com_a.md").read_text(encoding="utf-8")
    assert markdown.split("\n---\n")[0].count("\n") == 4
    assert len(lines(tmp_path)) == 1


async def test_a_folder_that_cannot_be_written_is_a_named_error(tmp_path: Path) -> None:
    (tmp_path / "markdown").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="markdown"), opened(tmp_path):
        pass
