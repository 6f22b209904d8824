"""The Python API against the fake web, in this process."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import trawl
from tests.e2e.running import Corpus
from tests.site import FakeWeb, Site
from tests.site.responders.mirrors import article
from tests.site.sites import tiny
from trawl.errors import FetchRefusedError, InvalidUrlError, SettingsError, StoreInUseError
from trawl.settings import EmbeddedSettings, FetchSettings, PolitenessSettings, Settings


def quick(web: FakeWeb, **fields: int) -> Settings:
    """Settings that reach the fake web, without a delay."""
    return Settings(
        fetch=FetchSettings(proxy=web.proxy, ca_file=str(web.ca_file)),
        politeness=PolitenessSettings(delay_seconds=0, adaptive_factor=0, per_host_concurrency=4),
        embedded=replace(EmbeddedSettings(extract_workers=1), **fields),
    )


async def test_pages_come_one_by_one_with_their_content_and_can_be_searched(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(
        Site("api.test", {"/": article("home", links=["/a", "/copy"]), "/a": article("a"), "/copy": article("a")})
    )
    pages = [page async for page in trawl.crawl("http://api.test/", out=tmp_path, settings=quick(fake_web))]
    assert {page.url for page in pages} == {f"http://api.test{path}" for path in ("/", "/a", "/copy")}
    home = next(page for page in pages if page.url == "http://api.test/")
    assert home.status == 200
    assert home.title
    assert home.title in home.markdown
    assert home.text
    assert home.document.html.inline.startswith(b"<!doctype html>")
    (copy,) = (page for page in pages if page.duplicate_of)
    assert copy.duplicate_of in {"http://api.test/a", "http://api.test/copy"}
    hits = await trawl.search(tmp_path, home.title, limit=3)
    assert hits[0].chunk.url == home.url
    assert hits[0].score >= hits[-1].score
    assert Corpus(tmp_path).folder.joinpath("pages.jsonl").read_text(encoding="utf-8").count("\n") == 3


async def test_without_a_folder_nothing_is_left_behind(
    fake_web: FakeWeb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    fake_web.add(Site("api.test", {"/": article("home")}))
    assert len([page async for page in trawl.crawl("http://api.test/", settings=quick(fake_web))]) == 1
    assert await asyncio.to_thread(lambda: list(tmp_path.iterdir())) == []


async def test_max_pages_and_depth_hold(fake_web: FakeWeb) -> None:
    fake_web.add(tiny("tiny.test", 300))
    pages = [page async for page in trawl.crawl("http://tiny.test/", max_pages=7, settings=quick(fake_web))]
    assert len(pages) == 7
    flat = [page async for page in trawl.crawl("http://tiny.test/", max_depth=0, settings=quick(fake_web))]
    assert [page.url for page in flat] == ["http://tiny.test/"]


async def test_leaving_the_loop_stops_the_crawl_which_can_go_on_later(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(tiny("tiny.test", 200))
    taken = 0
    async with aclosing(trawl.crawl("http://tiny.test/", out=tmp_path, settings=quick(fake_web))) as pages:
        async for _ in pages:
            taken += 1
            if taken == 10:
                break
    asked = fake_web.log.total
    await asyncio.sleep(0.5)
    assert fake_web.log.total == asked, "nothing is fetched any more"
    assert asked < 200
    async for _ in trawl.crawl("http://tiny.test/", out=tmp_path, settings=quick(fake_web)):
        pass
    rows = await asyncio.to_thread((tmp_path / "pages.jsonl").read_text, encoding="utf-8")
    assert rows.count("\n") == 200


async def test_a_bare_break_stops_the_crawl_too(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(tiny("tiny.test", 200))
    async for page in trawl.crawl("http://tiny.test/", out=tmp_path, settings=quick(fake_web)):
        assert page.text
        break
    for _ in range(100):
        asked = fake_web.log.total
        await asyncio.sleep(0.2)
        if fake_web.log.total == asked:
            break
    assert fake_web.log.total < 150


async def test_who_reads_slowly_is_crawled_for_slowly(fake_web: FakeWeb) -> None:
    fake_web.add(tiny("tiny.test", 1_000))
    settings = quick(fake_web, queue_records_max=8)
    async with aclosing(trawl.crawl("http://tiny.test/", settings=settings)) as pages:
        await anext(pages)
        for _ in range(200):
            asked = fake_web.log.total
            await asyncio.sleep(0.5)
            if fake_web.log.total == asked:
                break
        assert 50 < fake_web.log.total < 300, "about a hundred pages wait for the reader, and what is in flight"
        rest = 1
        async for _ in pages:
            rest += 1
            if rest == 400:
                break


async def test_what_cannot_be_used_raises_before_anything_is_fetched(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(Site("api.test", {"/": article("home")}))
    with pytest.raises(InvalidUrlError):
        await anext(trawl.crawl("not a url", settings=quick(fake_web)))
    with pytest.raises(SettingsError, match="pdf"):
        await anext(trawl.crawl("http://api.test/", formats=["pdf"], settings=quick(fake_web)))
    with pytest.raises(ValueError, match="galaxy"):
        await anext(trawl.crawl("http://api.test/", scope="galaxy", settings=quick(fake_web)))
    async with aclosing(trawl.crawl("http://api.test/", out=tmp_path, settings=quick(fake_web))) as held:
        await anext(held)
        with pytest.raises(StoreInUseError):
            await anext(trawl.crawl("http://api.test/", out=tmp_path, settings=quick(fake_web)))
    assert len(fake_web.hits("api.test", "/")) == 1


def test_extract_gives_content_and_what_is_known_of_a_page() -> None:
    body = article("extract", links=["/next"], head='<meta name="author" content="Ada">').body
    for html in (body, body.decode()):
        found = trawl.extract(html, "http://api.test/page")
        assert found.reason == ""
        assert found.author == "Ada"
        assert found.title
        assert "http://api.test/next" in found.links
        assert found.plain()["title"] == found.title
    assert trawl.extract(b"", "http://api.test/").reason == "empty_body"
    assert trawl.extract(b"\x89PNG\r\n\x1a\n" + bytes(500), "http://api.test/").reason


async def test_a_loop_left_by_break_gives_the_folder_back_to_the_next_crawl(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(tiny("tiny.test", 60))
    async for _ in trawl.crawl("http://tiny.test/", out=tmp_path, settings=quick(fake_web)):
        break
    rest = [page async for page in trawl.crawl("http://tiny.test/", out=tmp_path, settings=quick(fake_web))]
    assert rest
    rows = await asyncio.to_thread((tmp_path / "pages.jsonl").read_text, encoding="utf-8")
    assert rows.count("\n") == 60


async def test_a_crawl_without_one_page_raises_with_the_reason() -> None:
    with pytest.raises(FetchRefusedError, match="loopback"):
        _ = [page async for page in trawl.crawl("http://127.0.0.1:8123/")]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"scope": "galaxy"}, "galaxy"),
        ({"max_pages": -1}, "max_pages"),
        ({"formats": ("pdf",)}, "pdf"),
        ({"settings": Settings(politeness=PolitenessSettings(delay_seconds=-1))}, "politeness.delay_seconds"),
    ],
)
async def test_an_argument_that_cannot_be_used_is_a_settings_error(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        await anext(trawl.crawl("http://api.test/", **arguments))


async def test_a_crawl_from_nowhere_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="no URL"):
        await anext(trawl.crawl())
