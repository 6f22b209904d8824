"""Blobs over S3: what the contract of the port does not ask, against a real server."""

import asyncio
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from obstore.store import S3Store

from tests.s3 import S3Server, s3_running
from trawl.adapters.blobs import FileBlobStore, open_blobs, packed, ref_of
from trawl.adapters.s3 import S3BlobStore
from trawl.errors import BlobNotFoundError, SettingsError, StoreCorruptError, StoreError
from trawl.settings import BlobSettings

SECRET = "never-to-be-told"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_running(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def settings(server: S3Server, request: pytest.FixtureRequest) -> BlobSettings:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return BlobSettings(
        url=f"s3://{server.bucket}/{name}",
        s3_endpoint=server.url,
        s3_access_key="key",
        s3_secret_key=SECRET,
        s3_timeout_seconds=5.0,
    )


def raw(settings: BlobSettings) -> S3Store:
    """The objects themselves."""
    bucket, _, prefix = settings.url.removeprefix("s3://").partition("/")
    return S3Store(
        bucket,
        prefix=prefix,
        config={"endpoint": settings.s3_endpoint, "access_key_id": "key", "secret_access_key": SECRET},
        client_options={"allow_http": True},
    )


def calls_of(store: S3BlobStore) -> tuple[Callable[[], Awaitable[Any]], ...]:
    """Every method, ready to be called."""
    ref = "0" * 64
    return (
        partial(store.put, b"one"),
        partial(store.get, ref),
        partial(store.delete, ref),
        partial(store.sweep, 0, frozenset()),
    )


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def test_the_url_decides_which_store_is_opened(tmp_path: Path, settings: BlobSettings) -> None:
    files = open_blobs(BlobSettings(url="file:blobs"), tmp_path)
    assert isinstance(files, FileBlobStore)
    assert await files.get(await files.put(b"one")) == b"one"
    assert (tmp_path / "blobs" / ref_of(b"one")[:2]).is_dir()
    store = open_blobs(settings, tmp_path)
    assert isinstance(store, S3BlobStore)
    assert await store.get(await store.put(b"one")) == b"one"


async def test_an_object_is_named_by_its_content_and_compressed(settings: BlobSettings) -> None:
    ref = await S3BlobStore(settings).put(b"x" * 100_000)
    (found,) = await raw(settings).list().collect_async()
    assert found["path"] == f"{ref}.zst"
    assert found["size"] < 1_000


async def test_two_prefixes_of_one_bucket_are_two_stores(settings: BlobSettings) -> None:
    one, other = S3BlobStore(settings), S3BlobStore(replace(settings, url=f"{settings.url}-other/deeper/"))
    ref = await one.put(b"one")
    with pytest.raises(BlobNotFoundError, match="deeper"):
        await other.get(ref)
    assert await other.sweep(now_ms() + 60_000, frozenset()) == 0
    assert await one.get(ref) == b"one"


@pytest.mark.parametrize(
    "stored", [b"", b"no frame", packed(b"other bytes"), packed(b"one")[:-1], b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 9]
)
async def test_a_damaged_object_is_named(settings: BlobSettings, stored: bytes) -> None:
    store = S3BlobStore(settings)
    ref = await store.put(b"one")
    await raw(settings).put_async(f"{ref}.zst", stored)
    with pytest.raises(StoreCorruptError, match=f"{ref}.zst is damaged"):
        await store.get(ref)
    await store.put(b"one")
    assert await store.get(ref) == b"one"


async def test_sweeping_leaves_what_is_no_blob(settings: BlobSettings) -> None:
    store, objects = S3BlobStore(settings), raw(settings)
    names = ["notes.txt", "0" * 64, f"{'g' * 64}.zst", f"below/{'0' * 64}.zst"]
    for name in names:
        await objects.put_async(name, b"x")
    ref = await store.put(b"one")
    assert await store.sweep(now_ms() + 60_000, frozenset()) == 1
    assert sorted(meta["path"] for meta in await objects.list().collect_async()) == sorted(names)
    with pytest.raises(BlobNotFoundError):
        await store.get(ref)


async def test_what_was_put_again_is_not_swept_and_what_was_not_is(settings: BlobSettings) -> None:
    store = S3BlobStore(settings)
    again, once = await store.put(b"again"), await store.put(b"once")
    await asyncio.sleep(2.1)  # S3 tells times in whole seconds
    between = now_ms()
    assert await store.put(b"again") == again
    assert await store.sweep(between, frozenset()) == 1
    assert await store.get(again) == b"again"
    with pytest.raises(BlobNotFoundError):
        await store.get(once)


async def test_sweeping_reaches_beyond_one_page_of_the_listing(settings: BlobSettings) -> None:
    store, objects = S3BlobStore(settings), raw(settings)
    refs = [ref_of(str(number).encode()) for number in range(1_040)]
    for start in range(0, len(refs), 40):
        await asyncio.gather(*[objects.put_async(f"{ref}.zst", b"x") for ref in refs[start : start + 40]])
    kept = frozenset(refs[::100])
    assert await store.sweep(now_ms() + 60_000, kept) == len(refs) - len(kept)
    assert {meta["path"] for meta in await objects.list().collect_async()} == {f"{ref}.zst" for ref in kept}


async def test_many_blobs_at_once(settings: BlobSettings) -> None:
    store = S3BlobStore(settings)
    blobs = [os.urandom(10_000) for _ in range(50)]
    refs = await asyncio.gather(*map(store.put, blobs))
    assert await asyncio.gather(*map(store.get, refs)) == blobs


# What goes wrong


async def test_a_missing_bucket_is_no_missing_blob(settings: BlobSettings) -> None:
    store = S3BlobStore(replace(settings, url="s3://not-there/x"))
    for call in calls_of(store):
        with pytest.raises(StoreError, match=r"there is no bucket 'not-there'.*blobs\.url"):
            await call()


async def test_a_refused_key_names_the_settings_but_not_the_secret(tmp_path: Path, settings: BlobSettings) -> None:
    with s3_running(tmp_path, open_requests=2) as closed:
        store = S3BlobStore(replace(settings, s3_endpoint=closed.url, url=f"s3://{closed.bucket}/x"))
        for call in calls_of(store):
            with pytest.raises(StoreError, match=r"refuses to \w+ in s3://.*blobs\.s3_secret_key") as raised:
                await call()
            assert SECRET not in str(raised.value)


async def test_a_server_that_is_not_there_ends_in_an_error_in_time(settings: BlobSettings) -> None:
    store = S3BlobStore(replace(settings, s3_endpoint="http://127.0.0.1:1", s3_timeout_seconds=1.0))
    began = time.monotonic()
    with pytest.raises(StoreError, match=r"is the server there.*blobs\.s3_endpoint") as raised:
        await store.put(b"one")
    assert time.monotonic() - began < 5
    assert SECRET not in str(raised.value)


async def test_a_server_that_never_answers_ends_in_an_error_in_time(settings: BlobSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        store = S3BlobStore(replace(settings, s3_endpoint=endpoint, s3_timeout_seconds=0.5))
        began = time.monotonic()
        with pytest.raises(StoreError, match="is the server there"):
            await store.get("0" * 64)
        assert time.monotonic() - began < 5


async def test_a_server_that_comes_back_is_used_again(tmp_path: Path, settings: BlobSettings) -> None:
    with s3_running(tmp_path) as first:
        store = S3BlobStore(replace(settings, s3_endpoint=first.url, s3_timeout_seconds=1.0))
        ref = await store.put(b"one")
    with pytest.raises(StoreError):
        await store.get(ref)
    with s3_running(tmp_path, port=int(first.url.rpartition(":")[2])):
        assert await store.put(b"one") == ref
        assert await store.get(ref) == b"one"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "ftp://a/b"}, r"it is file:FOLDER or s3://BUCKET/PREFIX"),
        ({"url": "file:"}, r"it is file:FOLDER"),
        ({"url": "s3:///x"}, r"it is s3://BUCKET/PREFIX"),
        ({"url": "s3://key@bucket/x"}, r"without a key"),
        ({"url": "s3://bucket/a/../b"}, r"dotted part"),
        ({"url": "s3://bucket/a//b"}, r"empty or dotted"),
        ({"s3_endpoint": "127.0.0.1:9000"}, r"blobs\.s3_endpoint"),
        ({"s3_secret_key": ""}, r"set together"),
        ({"s3_ca_file": "/no/such.pem"}, r"blobs\.s3_ca_file"),
    ],
)
def test_settings_that_cannot_be_used_are_named(
    tmp_path: Path, settings: BlobSettings, fields: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingsError, match=told):
        open_blobs(replace(settings, **fields), tmp_path)


def test_a_file_that_is_no_certificate_is_refused(tmp_path: Path, settings: BlobSettings) -> None:
    broken = "-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"
    (tmp_path / "ca.pem").write_text(broken, "ascii")
    with pytest.raises(SettingsError, match=r"blobs\.s3_"):
        open_blobs(replace(settings, s3_ca_file=str(tmp_path / "ca.pem")), tmp_path)
