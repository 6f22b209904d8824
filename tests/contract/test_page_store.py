import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from tests.contract.conftest import PAGES
from tests.strategies import records_of
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
        await pages.delete(1)
    assert await pages.get(1) is None
    assert await pages.size() == 0
    assert await pages.put(page(1, fetched_at_ms=1))


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
        await pages.delete(stored.document.document_key)
    assert await pages.size() == 0


async def test_pages_outlive_the_process(durable_pages: Any) -> None:
    stored = replace(page(1), chunks=(1, 2))
    await durable_pages.store.put(stored)
    pages: PageStore = durable_pages.reopen()
    assert await pages.get(1) == stored
    assert await pages.size() == 1
