"""From one version of a mapping to the next: the same answers, no write lost, whatever cuts the migration off."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xxhash

import trawl.adapters.opensearch.pages as pages_module
import trawl.adapters.opensearch.search as search_module
from tests.integration.opensearch import chunk, connected, page
from tests.servers import OpenSearchServer
from trawl.adapters.opensearch import OpenSearchClient, OpenSearchPageStore, OpenSearchSearchIndex
from trawl.adapters.opensearch.indices import Index, chunks_shape, pages_shape
from trawl.errors import EmbedderMismatchError, StoreError, StoreTooNewError
from trawl.ports import Hit, SearchQuery, Vectors
from trawl.settings import OpenSearchSettings

WORDS = ("heron", "reed", "crawler", "robots", "delay", "frontier", "chunk", "vector")
QUERIES = ("heron reed", "crawler delay", "robots", "the frontier of vectors", "vector chunk heron")


@pytest.fixture
def settings(opensearch_server: OpenSearchServer, request: pytest.FixtureRequest) -> OpenSearchSettings:
    name = xxhash.xxh3_64_hexdigest(request.node.name.encode())
    return OpenSearchSettings(url=opensearch_server.url, prefix=f"m{name}")


@pytest.fixture
async def client(settings: OpenSearchSettings) -> AsyncIterator[OpenSearchClient]:
    async with connected(settings) as made:
        yield made


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be the next Trawl: stores opened from now on are of version 2, whose mappings have one field more."""

    def wider(shape: Any) -> Any:
        properties = {**shape.mapping["properties"], "added": {"type": "keyword"}}
        return replace(shape, mapping={**shape.mapping, "properties": properties})

    monkeypatch.setattr(pages_module, "PAGES_VERSION", 2)
    monkeypatch.setattr(pages_module, "pages_shape", lambda: wider(pages_shape()))
    monkeypatch.setattr(search_module, "CHUNKS_VERSION", 2)
    monkeypatch.setattr(search_module, "chunks_shape", lambda *given: wider(chunks_shape(*given)))


def random_vectors(rows: int) -> Vectors:
    rows_ = np.random.default_rng(7).normal(size=(rows, 8)).astype(np.float32)
    unit: Vectors = rows_ / np.linalg.norm(rows_, axis=1, keepdims=True)
    return unit


async def filled(index: OpenSearchSearchIndex, count: int) -> None:
    await index.open("model", 8)
    texts = [" ".join(WORDS[(number * step) % 8] for step in range(1, 6)) for number in range(count)]
    await index.upsert([chunk(number, text) for number, text in enumerate(texts)], random_vectors(count))


async def answers(index: OpenSearchSearchIndex) -> list[list[Hit]]:
    vectors = random_vectors(len(QUERIES))
    return [
        list(await index.search(SearchQuery(text=text, vector=vectors[[row]], candidates=300)))
        for row, text in enumerate(QUERIES)
    ]


async def names_behind(client: OpenSearchClient, alias: str) -> list[str]:
    return sorted(await client.ask("GET", f"/_alias/{alias}"))


async def test_a_search_answers_the_same_after_a_migration(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OpenSearchSearchIndex(client, settings, refresh=True)
    await filled(old, 300)
    before = await answers(old)
    assert all(len(hits) == 10 for hits in before)
    upgrade(monkeypatch)
    new = OpenSearchSearchIndex(client, settings, refresh=True)
    assert await answers(new) == before
    await new.open("model", 8)
    alias = f"{settings.prefix}-chunks"
    assert await names_behind(client, alias) == [f"{alias}-v2"]
    (mapping,) = (await client.ask("GET", f"/{alias}/_mapping")).values()
    assert mapping["mappings"]["_meta"]["trawl"] == {"embedder": "model", "dimensions": 8, "version": 2}
    assert "added" in mapping["mappings"]["properties"]
    assert await answers(new) == before
    assert not await new.migrate()
    with pytest.raises(EmbedderMismatchError):
        await new.open("other", 8)


async def test_an_older_process_goes_on_writing_to_the_new_index(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OpenSearchSearchIndex(client, settings, refresh=True)
    await filled(old, 10)
    upgrade(monkeypatch)
    new = OpenSearchSearchIndex(client, settings, refresh=True)
    await new.open("model", 8)
    await old.upsert([chunk(99, "kingfisher")], random_vectors(1))
    assert [hit.chunk.chunk_id for hit in await new.search(SearchQuery(text="kingfisher"))] == [99]


async def test_pages_keep_their_order_and_their_age(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OpenSearchPageStore(client, settings)
    keys = [(number * 7919) % 1000 for number in range(150)]
    await old.put_many([page(key, fetched_at_ms=1000 + key, chunks=(key,)) for key in keys])
    await old.delete(keys[5], fetched_at_ms=5000)
    left = [key for key in keys if key != keys[5]]
    upgrade(monkeypatch)
    new = OpenSearchPageStore(client, settings)
    assert await new.migrate()
    assert [stored.document.document_key async for stored in new.pages("c")] == left
    assert await new.size() == len(left)
    assert await new.get(keys[3]) == page(keys[3], fetched_at_ms=1000 + keys[3], chunks=(keys[3],))
    assert not await new.put(page(keys[3], fetched_at_ms=999 + keys[3]))
    assert not await new.put(page(keys[5], fetched_at_ms=5000))
    assert await new.put(page(keys[5], fetched_at_ms=5001))


async def test_a_page_store_is_migrated_by_its_first_write(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await OpenSearchPageStore(client, settings).put(page(1))
    upgrade(monkeypatch)
    new = OpenSearchPageStore(client, settings)
    assert await new.get(1) == page(1)
    await new.put(page(2))
    assert await names_behind(client, f"{settings.prefix}-pages") == [f"{settings.prefix}-pages-v2"]
    assert await new.size() == 2


async def test_what_is_written_during_a_migration_is_refused_or_kept(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OpenSearchPageStore(client, settings)
    await old.put_many([page(key) for key in range(500)])
    upgrade(monkeypatch)
    new = OpenSearchPageStore(client, settings)
    kept, refused = set[int](), 0
    migration = asyncio.create_task(new.migrate())
    key = 1000
    while not migration.done() or key < 1020:
        try:
            await old.put(page(key))
        except StoreError as error:
            assert "index.blocks.write" in str(error)  # noqa: PT017 - it passes or it does not
            refused += 1
            await asyncio.sleep(0.01)
        else:
            kept.add(key)
            key += 1
    assert await migration
    assert refused > 0
    assert set(await new.get_many(list(range(key)))) == set(range(500)) | kept
    assert await new.size() == 500 + len(kept)


@pytest.mark.parametrize("done", ["created", "blocked", "half copied", "copied"])
async def test_a_migration_that_was_cut_off_is_done_by_the_next(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch, done: str
) -> None:
    old = OpenSearchPageStore(client, settings)
    await old.put_many([page(key) for key in range(20)])
    upgrade(monkeypatch)
    new = OpenSearchPageStore(client, settings)
    index = Index(client, settings, "pages", 2)
    names = f"{index.alias}-v1", f"{index.alias}-v2"
    await index._create(pages_shape(), {}, {})
    if done != "created":
        await client.ask("PUT", f"/{names[0]}/_block/write")
    if done in {"half copied", "copied"}:
        body = {
            "source": {"index": names[0]},
            "dest": {"index": names[1], "version_type": "external"},
            "max_docs": 7 if done == "half copied" else 20,
        }
        await client.ask("POST", "/_reindex", body)
    assert await new.migrate()
    assert [stored.document.document_key async for stored in new.pages("c")] == list(range(20))
    assert await new.put(page(20))


async def test_two_processes_may_migrate_at_once(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = OpenSearchPageStore(client, settings)
    await old.put_many([page(key) for key in range(200)])
    upgrade(monkeypatch)
    stores = [OpenSearchPageStore(client, settings) for _ in range(3)]
    results = await asyncio.gather(*[store.put(page(1000 + number)) for number, store in enumerate(stores)])
    assert results == [True, True, True]
    assert await stores[0].size() == 203


class Interrupted(OpenSearchClient):
    """A client that lets others act before its request of number `at`."""

    def __init__(self, settings: OpenSearchSettings, at: int, others: Callable[[], Awaitable[object]]) -> None:
        super().__init__(settings)
        self.at, self.asked, self._others = at, 0, others

    async def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        self.asked += 1
        if self.asked == self.at:
            await self._others()
        return await super().ask(method, path, body, **parameters)


@pytest.mark.parametrize("tidy", [False, True], ids=["the old index stays", "the old index is deleted"])
async def test_a_migration_may_be_overtaken_at_any_step(
    settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch, tidy: bool
) -> None:
    for step in itertools.count(1):
        named = replace(settings, prefix=f"{settings.prefix}-{step}")
        async with connected(named) as quick:
            await OpenSearchPageStore(quick, named).put_many([page(key) for key in range(20)])
            with monkeypatch.context() as later:
                upgrade(later)
                store = OpenSearchPageStore(quick, named)

                async def overtake(store: OpenSearchPageStore = store) -> None:
                    await store.put(page(20))
                    if tidy:
                        await store._index.delete_old()

                slow = Interrupted(named, step, overtake)
                try:
                    await OpenSearchPageStore(slow, named).migrate()
                finally:
                    await slow.close()
                assert slow.asked < step or await store.size() == 21
                assert await store.put(page(21))  # the index that is written to is open
        if slow.asked < step:
            break
    assert step > 8  # nothing overtook the last, which counts the steps


async def test_the_old_index_stays_until_it_is_told_to_go(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    await OpenSearchPageStore(client, settings).put(page(1))
    upgrade(monkeypatch)
    new = OpenSearchPageStore(client, settings)
    await new.migrate()
    index = Index(client, settings, "pages", 2)
    assert (await client.ask("GET", f"/{index.alias}-v1/_count"))["count"] == 1
    assert [await index.delete_old(), await index.delete_old()] == [1, 0]
    with pytest.raises(StoreError, match="index_not_found"):
        await client.ask("GET", f"/{index.alias}-v1/_count")
    assert await new.get(1) == page(1)


async def test_an_older_trawl_refuses_a_newer_index(
    client: OpenSearchClient, settings: OpenSearchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as later:
        upgrade(later)
        await OpenSearchPageStore(client, settings).put(page(1))
        await OpenSearchSearchIndex(client, settings).open("model", 8)
    with pytest.raises(StoreTooNewError, match=r"version 2, newer than this Trawl's 1: upgrade Trawl"):
        await OpenSearchPageStore(client, settings).put(page(2))
    with pytest.raises(StoreTooNewError, match=r"opensearch\.prefix"):
        await OpenSearchSearchIndex(client, settings).open("model", 8)


async def test_an_alias_of_two_indices_is_told(client: OpenSearchClient, settings: OpenSearchSettings) -> None:
    index = Index(client, settings, "pages", 1)
    await index.create(pages_shape())
    await client.ask("PUT", f"/{index.alias}-other")
    await client.ask("PUT", f"/{index.alias}-other/_alias/{index.alias}")
    with pytest.raises(StoreError, match="names several indices"):
        await OpenSearchPageStore(client, settings).put(page(1))


# What two processes do to one page


async def test_the_newest_fetch_wins_whoever_writes_last(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    stores = [OpenSearchPageStore(client, settings) for _ in range(4)]
    times = [(number * 7919) % 101 for number in range(60)]
    await asyncio.gather(*[stores[number % 4].put(page(1, fetched_at_ms=at_ms)) for number, at_ms in enumerate(times)])
    assert await stores[0].get(1) == page(1, fetched_at_ms=max(times))
    await asyncio.gather(stores[1].delete(1, fetched_at_ms=500), stores[2].put(page(1, fetched_at_ms=499)))
    assert await stores[3].get(1) is None


async def test_what_was_withdrawn_long_ago_is_forgotten_in_the_end(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    store = OpenSearchPageStore(client, settings)
    await store.put(page(1, fetched_at_ms=10))
    for key in (2, 3):
        await store.delete(key, fetched_at_ms=1000 * key)
    assert await store.purge(3000) == 1
    assert await Index(client, settings, "pages", 1).count() == 2
    assert not await store.put(page(3, fetched_at_ms=3000))
    assert await store.get(1) == page(1, fetched_at_ms=10)
