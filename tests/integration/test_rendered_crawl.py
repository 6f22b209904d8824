"""Whole crawls with a browser: what is found, which hosts are switched, and what it costs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fetching import QUICK
from tests.rendering import PlayedBrowser, Script, application, fails, unchanged
from tests.site import FakeWeb, Site
from tests.site.sites.spa import PAGES, half, paragraph, scripted, spa
from trawl.adapters.sqlite import Database, SqliteHydrationStore, SqlitePageStore
from trawl.assembly import CrawlPlan, CrawlRun
from trawl.errors import SettingsError
from trawl.kinds import RenderMode
from trawl.ports import HostHydration, RenderRequest
from trawl.records import ExtractedDocument, Seed
from trawl.settings import BrowserSettings, Settings

HOST = "app.test"


def settings(web: FakeWeb, render: str = "auto", **browser: Any) -> Settings:
    return replace(
        QUICK,
        fetch=replace(QUICK.fetch, proxy=web.proxy),
        browser=BrowserSettings(render=render, **browser),
        embedded=replace(QUICK.embedded, extract_workers=1, fetch_workers=4),
    )


async def crawled(
    folder: Path, script: Script, used: Settings, host: str = HOST
) -> tuple[dict[str, Any], PlayedBrowser, dict[str, ExtractedDocument]]:
    """A crawl of one host: its summary, the browser, and the documents by path."""
    browser, documents = PlayedBrowser(script), dict[str, ExtractedDocument]()

    async def keep(document: ExtractedDocument, _: str) -> None:
        documents[document.url.partition(host)[2]] = document

    plan = CrawlPlan(folder=folder, seeds=(Seed(url=f"http://{host}/"),), settings=used, formats=frozenset())
    async with CrawlRun(plan, on_page=keep, renderer=browser) as run:
        await run.run()
        return await run.summary(), browser, documents


async def host_of(folder: Path, host: str = HOST) -> HostHydration | None:
    database = Database(folder, read_only=True)
    try:
        return await SqliteHydrationStore(database).get(f"http://{host}")
    finally:
        database.close()


async def test_no_text_of_an_application_is_missed_and_its_host_is_switched(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(spa(HOST))
    summary, browser, documents = await crawled(tmp_path, application, settings(fake_web))
    assert summary["failed"] == {}
    for number in range(PAGES):
        made = documents[f"/{number}"]
        assert paragraph(HOST, number, "made") in made.text
        assert (made.rendering, made.render_mode) == ("rendered", RenderMode.HEADLESS)
    assert summary["rendered"]["pages"] == len(browser.asked) == PAGES + 1
    assert summary["rendered"]["hosts"] == 1
    host = await host_of(tmp_path)
    assert host is not None
    assert host.headless
    # a switched host's pages are asked for once; before, a shell and its rendering are two requests
    documents_asked = len(fake_web.hits(HOST)) - 1
    assert PAGES + 1 < documents_asked <= PAGES + 1 + summary["rendered"]["shells"]
    assert summary["rendered"]["shells"] < PAGES
    assert summary["politeness_violations"] == 0


async def test_a_host_whose_pages_get_half_of_their_text_from_scripts_is_switched(
    fake_web: FakeWeb, tmp_path: Path
) -> None:
    fake_web.add(half(HOST, 40))
    used = settings(fake_web, sample_share=0.3)
    summary, browser, documents = await crawled(tmp_path, application, used)
    host = await host_of(tmp_path)
    assert host is not None
    assert host.headless
    assert summary["rendered"]["shells"] == 0
    assert 3 <= len(browser.asked) < 41
    shares = [document.hydrated for document in documents.values() if document.rendering == "rendered"]
    assert all(share is not None and 0.4 < share < 0.7 for share in shares)


async def test_of_a_site_that_needs_no_browser_only_the_sample_is_rendered(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(scripted(HOST, 40))
    used = settings(fake_web, sample_share=0.3)
    summary, browser, documents = await crawled(tmp_path, unchanged, used)
    host = await host_of(tmp_path)
    assert host is not None
    assert (host.headless, host.decided_at_ms > 0) == (False, True)
    assert 3 <= len(browser.asked) <= 3 + used.embedded.fetch_workers  # those that were under way at the decision
    assert summary["indexed"] == 41
    assert {document.rendering for document in documents.values()} == {"", "added_nothing"}


async def test_never_asks_no_browser_and_always_asks_for_each_page(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(scripted(HOST, 5))
    _, browser, _ = await crawled(tmp_path / "never", application, settings(fake_web, "never"))
    assert not browser.asked
    summary, browser, _ = await crawled(tmp_path / "always", unchanged, settings(fake_web, "always"))
    assert len(browser.asked) == summary["rendered"]["pages"] == 6


async def test_where_rendering_fails_each_page_is_published_as_it_was_fetched(
    fake_web: FakeWeb, tmp_path: Path
) -> None:
    links = "".join(f'<a href="/{number}">p</a>' for number in range(5))
    shell = f'<title>App</title><div id="root">Loading {{}}</div>{links}<script src=/x.js></script>'
    fake_web.add(Site(HOST, {"/": shell.format("start"), **{f"/{n}": shell.format(n) for n in range(5)}}))
    summary, _, documents = await crawled(tmp_path, fails("render_timeout"), settings(fake_web))
    assert summary["rendered"]["not_rendered"] == {"render_timeout": 6}
    assert {document.rendering for document in documents.values()} == {"render_timeout"}
    assert set(documents) == {"/", *(f"/{n}" for n in range(5))}
    assert summary["failed"] == {}
    assert summary["queued"] == 0


async def test_a_page_that_was_a_shell_without_a_browser_is_rendered_by_a_later_run(
    fake_web: FakeWeb, tmp_path: Path
) -> None:
    """A 304 of the shell would hide it for ever."""
    fake_web.add(spa(HOST))
    _, _, documents = await crawled(tmp_path, unchanged, settings(fake_web, "never"))
    assert "made" not in documents["/"].text
    summary, _, documents = await crawled(tmp_path, application, settings(fake_web))
    assert set(documents) == {"/", *(f"/{number}" for number in range(PAGES))}
    assert summary["documents"] == PAGES + 1


async def test_a_crawl_that_is_stopped_goes_on_with_its_browser_where_it_was(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(spa(HOST))
    used, browser = settings(fake_web), PlayedBrowser()
    plan = CrawlPlan(folder=tmp_path, seeds=(Seed(url=f"http://{HOST}/"),), settings=used, formats=frozenset())
    run = CrawlRun(plan, renderer=browser)

    def stopping(request: RenderRequest) -> bytes:
        if len(browser.asked) == 4:
            run.stop()
        return application(request)

    browser.script = stopping
    async with run:
        await run.run()
        first = await run.summary()
    assert first["queued"] > 0
    summary, _, _ = await crawled(tmp_path, application, used)
    assert (summary["documents"], summary["queued"]) == (PAGES + 1, 0)


async def test_the_stored_document_says_how_it_was_made(fake_web: FakeWeb, tmp_path: Path) -> None:
    fake_web.add(spa(HOST, 1))
    _, _, documents = await crawled(tmp_path, application, settings(fake_web))
    database = Database(tmp_path, read_only=True)
    try:
        stored = await SqlitePageStore(database).get(documents["/0"].document_key)
    finally:
        database.close()
    assert stored is not None
    assert (stored.document.rendering, stored.document.hydrated) == ("rendered", 1.0)


async def test_a_browser_that_is_asked_for_and_not_there_is_said_at_once(tmp_path: Path) -> None:
    browser = BrowserSettings(render="auto", executable=str(tmp_path / "none"))
    plan = CrawlPlan(folder=tmp_path / "crawl", seeds=(), settings=Settings(browser=browser))
    with pytest.raises(SettingsError, match=r"browser\.render = 'auto' needs a browser, and there is none"):
        async with CrawlRun(plan):
            pass
