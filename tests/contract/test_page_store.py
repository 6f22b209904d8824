import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.contract.conftest import PAGES
from tests.strategies import records_of
from trawl.adapters.memory import MemoryPageStore
from trawl.adapters.sqlite import Database, SqlitePageStore
from trawl.ports import PageStore, StoredPage
from trawl.records import ExtractedDocument


def page(document_key: int, crawl_id: str = "c", fetched_at_ms: int = 1000, **fields: Any) -> StoredPage:
    document = ExtractedDocument(
        document_key=document_key,
        crawl_id=crawl_id,
        request_key=1,
        fetch_id=2,
        url=f"https://a.example/{document_key}",
        final_url=f"https://a.example/{document_key}",
        fetched_at_ms=fetched_at_ms,
        text="text",
    )
    return StoredPage(document=document, **fields)


async def test_a_page_comes_back_with_its_manifest(pages: PageStore) -> None:
    stored = page(-5, chunks=(1, -(2**63), 2**63 - 1), indexed_at_ms=77)
    assert await pages.get(-5) is None
    assert await pages.put(stored)
    assert await pages.get(-5) == stored
    assert await pages.size() == 1


@pytest.mark.parametrize("served", list(PAGES), indirect=True)
@settings(max_examples=25, deadline=None)
@given(document=records_of(ExtractedDocument))
async def test_every_field_of_a_document_is_kept(served: str, document: ExtractedDocument) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opened = PAGES[served](Path(folder))
        try:
            await opened.store.put(StoredPage(document=document))
            assert await opened.store.get(document.document_key) == StoredPage(document=document)
        finally:
            await opened.aclose()


async def test_a_newer_or_equally_old_page_replaces(pages: PageStore) -> None:
    await pages.put(page(1, chunks=(1,)))
    assert await pages.put(page(1, chunks=(2,)))
    assert await pages.put(page(1, fetched_at_ms=1001, chunks=(3,)))
    assert await pages.get(1) == page(1, fetched_at_ms=1001, chunks=(3,))
    assert await pages.size() == 1


async def test_an_older_page_never_rolls_back_a_newer_one(pages: PageStore) -> None:
    await pages.put(page(1, fetched_at_ms=1000))
    assert not await pages.put(page(1, fetched_at_ms=999))
    assert await pages.get(1) == page(1, fetched_at_ms=1000)


async def test_a_deleted_page_is_gone(pages: PageStore) -> None:
    await pages.put(page(1))
    for _ in range(2):
        assert await pages.delete(1, fetched_at_ms=1000)
    assert await pages.get(1) is None
    assert await pages.size() == 0
    assert [stored async for stored in pages.pages("c")] == []


async def test_a_page_with_a_newer_fetch_is_not_withdrawn(pages: PageStore) -> None:
    await pages.put(page(1, fetched_at_ms=1001))
    assert not await pages.delete(1, fetched_at_ms=1000)
    assert await pages.get(1) == page(1, fetched_at_ms=1001)
    assert await pages.size() == 1


@pytest.mark.parametrize("stored_before", [True, False])
async def test_an_older_fetch_delivered_late_does_not_bring_a_withdrawn_page_back(
    pages: PageStore, stored_before: bool
) -> None:
    if stored_before:
        await pages.put(page(1, fetched_at_ms=900))
    assert await pages.delete(1, fetched_at_ms=1000)
    assert not await pages.delete(1, fetched_at_ms=950)
    for fetched_at_ms in (900, 999, 1000):
        assert not await pages.put(page(1, fetched_at_ms=fetched_at_ms))
    assert await pages.get(1) is None
    assert await pages.size() == 0


async def test_a_newer_fetch_brings_a_withdrawn_page_back(pages: PageStore) -> None:
    for fetched_at_ms in (1000, 2000):
        assert await pages.put(page(1, fetched_at_ms=fetched_at_ms))
        assert await pages.delete(1, fetched_at_ms=fetched_at_ms)
    assert await pages.put(page(1, fetched_at_ms=2001))
    assert await pages.get(1) == page(1, fetched_at_ms=2001)
    assert await pages.put(page(1, fetched_at_ms=2001, chunks=(5,)))
    assert await pages.size() == 1


async def test_a_page_that_comes_back_is_the_last_again(pages: PageStore) -> None:
    for key in (1, 2, 3):
        await pages.put(page(key))
    await pages.delete(1, fetched_at_ms=1000)
    await pages.put(page(1, fetched_at_ms=1001))
    assert [stored.document.document_key async for stored in pages.pages("c")] == [2, 3, 1]


async def test_many_pages_are_read_and_written_together(pages: PageStore) -> None:
    assert await pages.put_many([]) == []
    assert await pages.get_many([]) == {}
    await pages.put(page(2, fetched_at_ms=2000))
    await pages.delete(3, fetched_at_ms=1000)
    many = [page(key, chunks=(key,), indexed_at_ms=key) for key in range(150)]
    assert await pages.put_many(many) == [key not in {2, 3} for key in range(150)]
    found = await pages.get_many([*range(150), 149, 999])
    assert found == {key: page(2, fetched_at_ms=2000) if key == 2 else many[key] for key in range(150) if key != 3}
    assert await pages.size() == 149


async def test_one_document_twice_in_one_call_is_stored_in_order(pages: PageStore) -> None:
    versions = [page(1, fetched_at_ms=at_ms, chunks=(number,)) for number, at_ms in enumerate((5, 7, 6, 7))]
    assert await pages.put_many(versions) == [True, True, False, True]
    assert await pages.get(1) == versions[3]
    assert await pages.size() == 1


async def test_only_so_many_withdrawn_pages_are_remembered(tmp_path: Path) -> None:
    database = Database(tmp_path)
    stores: list[PageStore] = [MemoryPageStore(withdrawn_max=3), SqlitePageStore(database, withdrawn_max=3)]
    for store in stores:
        for key in (1, 2, 3, 2, 4):
            await store.delete(key, fetched_at_ms=1000 + key)
        put = [await store.put(page(key, fetched_at_ms=1000)) for key in range(5)]
        assert put == [True, True, False, False, False]
    database.close()


async def test_pages_come_in_the_order_of_first_storing(pages: PageStore) -> None:
    keys = [(n * 7919) % 1000 for n in range(100)]
    for key in keys:
        await pages.put(page(key))
    await pages.put(page(5000, crawl_id="d"))
    await pages.put(page(keys[3], fetched_at_ms=2000))
    assert [stored.document.document_key async for stored in pages.pages("c")] == keys
    assert [stored.document.document_key async for stored in pages.pages("d")] == [5000]
    assert [stored async for stored in pages.pages("e")] == []


async def test_pages_may_be_deleted_while_they_are_read(pages: PageStore) -> None:
    for key in range(100):
        await pages.put(page(key))
    async for stored in pages.pages("c"):
        await pages.delete(stored.document.document_key, fetched_at_ms=1000)
    assert await pages.size() == 0


async def test_pages_outlive_the_process(durable_pages: Any) -> None:
    stored = replace(page(1), chunks=(1, 2))
    await durable_pages.store.put(stored)
    pages: PageStore = durable_pages.reopen()
    assert await pages.get(1) == stored
    assert await pages.size() == 1
