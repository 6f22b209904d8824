"""OpenSearch that refuses, is busy, is full or is away: named errors that say what to do, and nothing lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xxhash

from tests.integration.opensearch import Proxy, chunk, connected, failing, page, proxy
from tests.servers import OpenSearchServer
from tests.site.authority import Authority
from trawl.adapters.opensearch import OpenSearchClient, OpenSearchPageStore, OpenSearchSearchIndex, connect
from trawl.adapters.opensearch.indices import Index, Shape
from trawl.errors import RecordRefusedError, StoreError, StoreFullError
from trawl.ports import SearchQuery, Vectors
from trawl.settings import OpenSearchSettings

PASSWORD = "never-to-be-told"


@pytest.fixture
def settings(opensearch_server: OpenSearchServer, request: pytest.FixtureRequest) -> OpenSearchSettings:
    name = xxhash.xxh3_64_hexdigest(request.node.name.encode())
    return OpenSearchSettings(url=opensearch_server.url, prefix=f"c{name}", timeout_seconds=10.0)


@pytest.fixture
async def client(settings: OpenSearchSettings) -> AsyncIterator[OpenSearchClient]:
    async with connected(settings) as made:
        yield made


@pytest.fixture
async def before(settings: OpenSearchSettings) -> AsyncIterator[Proxy]:
    """A proxy before the node."""
    async with proxy(settings.url) as made:
        yield made


def ones(rows: int) -> Vectors:
    """Vectors of two dimensions."""
    return np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (rows, 1))


async def ids(index: OpenSearchSearchIndex) -> list[int]:
    """The ids of all chunks that the word heron finds."""
    return sorted(hit.chunk.chunk_id for hit in await index.search(SearchQuery(text="heron", limit=1000)))


# Full, blocked


async def block(client: OpenSearchClient, settings: OpenSearchSettings, name: str, value: Any) -> None:
    """Set or lift a block of all indices of the deployment."""
    await client.ask("PUT", f"/{settings.prefix}-*/_settings", {f"index.blocks.{name}": value})


async def test_a_full_disk_is_told_with_what_to_do_and_passes(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    pages, index = OpenSearchPageStore(client, settings), OpenSearchSearchIndex(client, settings, refresh=True)
    await index.open("model", 2)
    await pages.put(page(1))
    await block(client, settings, "read_only_allow_delete", True)
    for call in (pages.put(page(2)), index.upsert([chunk(1)], ones(1)), pages.delete(1, fetched_at_ms=2000)):
        with pytest.raises(StoreFullError, match=r"read-only.*free space.*index\.blocks\.read_only_allow_delete"):
            await call
    assert await pages.get(1) == page(1)
    await block(client, settings, "read_only_allow_delete", None)
    assert await pages.put(page(2))
    await index.upsert([chunk(1)], ones(1))
    assert await ids(index) == [1]


async def test_a_block_of_writes_is_told_apart_from_a_full_disk(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    pages = OpenSearchPageStore(client, settings)
    await pages.put(page(1))
    await block(client, settings, "write", True)
    with pytest.raises(StoreError, match=r"takes no writes \(index\.blocks\.write\)") as raised:
        await pages.put(page(2))
    assert not isinstance(raised.value, StoreFullError)
    await block(client, settings, "write", None)
    assert await pages.put(page(2))


# Items of a bulk


async def test_an_item_that_is_never_taken_is_named_and_the_others_are_written(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    index = OpenSearchSearchIndex(client, settings, refresh=True)
    await index.open("model", 2)
    chunks = [chunk(1), chunk(2, position=2**40), chunk(3)]
    with pytest.raises(RecordRefusedError, match=r"refuses 1 of 3 items: 0000000000000002 to .*position"):
        await index.upsert(chunks, ones(3))
    assert await ids(index) == [1, 3]


async def test_only_items_that_failed_for_a_time_are_sent_again(
    client: OpenSearchClient, settings: OpenSearchSettings, before: Proxy
) -> None:
    plain = OpenSearchSearchIndex(client, settings, refresh=True)
    await plain.open("model", 2)

    def busy(answer: Any) -> Any:
        answer["items"][1]["index"].update(status=429, error={"type": "rejected_execution_exception"})
        return answer

    through = connect(replace(settings, url=before.url))
    index = OpenSearchSearchIndex(through, settings, refresh=True)
    await index.open("model", 2)
    before.bodies.clear()
    before.changes = [busy, lambda answer: {**answer, "items": [dict(answer["items"][0])]}]
    await index.upsert([chunk(1), chunk(2), chunk(3)], ones(3))
    await through.close()
    sent = [[json.loads(line)["index"]["_id"][-1] for line in body.splitlines()[::2]] for body in before.bodies]
    assert sent == [["1", "2", "3"], ["2"]]
    assert await ids(plain) == [1, 2, 3]


async def test_items_that_stay_busy_end_in_an_error(settings: OpenSearchSettings, before: Proxy) -> None:
    async with connected(replace(settings, url=before.url)) as client:
        pages = OpenSearchPageStore(client, settings)
        await pages.put(page(1))

        def busy(answer: Any) -> Any:
            for item in answer.get("items", ()):
                item["index"].update(status=429, error={"type": "rejected_execution_exception"})
            return answer

        before.changes = [busy] * 10
        with pytest.raises(StoreError, match="too busy: 2 of 2 items were not written"):
            await pages.put_many([page(1), page(1)])
        before.changes = []


async def test_a_bulk_is_sent_in_parts_of_the_size_that_is_allowed(settings: OpenSearchSettings, before: Proxy) -> None:
    settings = replace(settings, url=before.url, bulk_bytes_max=5_000)
    async with connected(settings) as client:
        index = OpenSearchSearchIndex(client, settings, refresh=True)
        await index.open("model", 2)
        before.bodies.clear()
        chunks = [chunk(number, "heron " * 100) for number in range(20)]
        chunks[7] = replace(chunks[7], text="heron " * 3_000)
        await index.upsert(chunks, ones(20))
        assert sum(len(body.splitlines()) for body in before.bodies) == 40
        assert [len(body) for body in before.bodies if len(body) > 5_100 and b"heron " * 2_000 not in body] == []
        assert await ids(index) == list(range(20))


# Indices that are not as they should be


async def test_an_index_that_was_deleted_is_made_again_as_it_was(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    pages, index = OpenSearchPageStore(client, settings), OpenSearchSearchIndex(client, settings, refresh=True)
    await index.open("model", 2)
    await index.upsert([chunk(1)], ones(1))
    await pages.put(page(1))
    await client.ask("DELETE", f"/{settings.prefix}-*")
    assert await pages.get(1) is None
    assert await pages.size() == 0
    assert await index.search(SearchQuery(text="heron", vector=ones(1))) == []
    await index.delete([1])
    assert await pages.put(page(2))
    await index.upsert([chunk(2)], ones(1))
    assert await ids(index) == [2]
    for kind, field, type_ in (("chunks", "vector", "knn_vector"), ("pages", "document", "binary")):
        (found,) = (await client.ask("GET", f"/{settings.prefix}-{kind}/_mapping")).values()
        assert found["mappings"]["properties"][field]["type"] == type_
        assert found["mappings"]["dynamic"] == "strict"


async def test_every_index_has_vectors_of_the_engine_that_every_node_has(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    await OpenSearchSearchIndex(client, settings).open("model", 2)
    (made,) = (await client.ask("GET", f"/{settings.prefix}-chunks/_mapping")).values()
    (template,) = (await client.ask("GET", f"/_index_template/{settings.prefix}-chunks-v1"))["index_templates"]
    for mapping in (made["mappings"], template["index_template"]["template"]["mappings"]):
        assert mapping["properties"]["vector"]["method"]["engine"] == "lucene"
        assert mapping["_meta"]["trawl"] == {"embedder": "model", "dimensions": 2, "version": 1}


async def test_an_index_without_a_field_is_not_blamed_on_the_record(
    client: OpenSearchClient, settings: OpenSearchSettings
) -> None:
    shape = Shape({"dynamic": "strict", "properties": {"crawl_id": {"type": "keyword"}}}, {})
    await Index(client, settings, "pages", 1).create(shape)
    with pytest.raises(StoreError, match=r"does not know a field.*migrate"):
        await OpenSearchPageStore(client, settings).put(page(1))


# Away, busy, refusing


async def test_a_node_that_is_not_there_is_told_without_the_password(settings: OpenSearchSettings) -> None:
    client = connect(replace(settings, url=f"http://admin:{PASSWORD}@127.0.0.1:1"))
    with pytest.raises(StoreError, match=r"does not answer at http://127\.0\.0\.1:1.*opensearch\.url") as raised:
        await client.check()
    assert PASSWORD not in str(raised.value)
    await client.close()


async def test_a_busy_node_is_asked_again_and_given_up_in_the_end(settings: OpenSearchSettings, before: Proxy) -> None:
    client = connect(replace(settings, url=before.url))
    before.faults = [failing(429), failing(503)]
    await client.check()
    assert len(before.bodies) == 3
    before.always = failing(429)
    with pytest.raises(StoreError, match=r"too busy: 429"):
        await client.check()
    assert len(before.bodies) == 8
    await client.close()


async def test_what_is_no_opensearch_is_told(settings: OpenSearchSettings, before: Proxy) -> None:
    client = connect(replace(settings, url=before.url))
    before.always = failing(400, "<html>")
    with pytest.raises(StoreError, match="refuses a request: 400"):
        await client.check()
    await client.close()


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refusal_names_the_settings(settings: OpenSearchSettings, before: Proxy, status: int) -> None:
    client = connect(replace(settings, url=before.url, username="u", password=PASSWORD))
    before.always = failing(status, "no")
    with pytest.raises(StoreError, match=r"opensearch\.username and opensearch\.password") as raised:
        await client.check()
    assert PASSWORD not in str(raised.value)
    assert len(before.bodies) == 1
    await client.close()


async def test_name_password_and_certificate_are_used(settings: OpenSearchSettings, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with proxy(settings.url, authority.context("127.0.0.1")) as closed:
        closed.login = f"trawl:{PASSWORD}"
        right = replace(settings, url=closed.url, username="trawl", password=PASSWORD, ca_file=str(authority.ca_file))
        async with connected(right) as client:
            pages = OpenSearchPageStore(client, right)
            assert await pages.put(page(1))
            assert await pages.get(1) == page(1)
        for wrong, told in (
            (replace(right, password="x"), "opensearch.password"),
            (replace(right, ca_file=""), "CERT"),
        ):
            client = connect(wrong)
            with pytest.raises(StoreError, match=told):
                await client.check()
            await client.close()


async def test_a_node_that_does_not_answer_in_time_is_told(settings: OpenSearchSettings) -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = connect(replace(settings, url=f"http://127.0.0.1:{port}", timeout_seconds=0.3))
    with pytest.raises(StoreError, match="does not answer"):
        await client.check()
    await client.close()
    await ended.wait()
    server.close()
    await server.wait_closed()
