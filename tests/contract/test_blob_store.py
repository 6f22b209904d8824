import hashlib
import time
from typing import Any

import pytest

from trawl.errors import BlobNotFoundError
from trawl.ports import BlobStore


@pytest.mark.parametrize("data", [b"", b"\0\xff", b"x" * 3_000_000])
async def test_bytes_come_back_as_they_were(blobs: BlobStore, data: bytes) -> None:
    assert await blobs.get(await blobs.put(data)) == data


async def test_the_same_bytes_have_the_same_reference(blobs: BlobStore) -> None:
    refs = {await blobs.put(b"one"), await blobs.put(b"one"), await blobs.put(b"two")}
    assert len(refs) == 2


@pytest.mark.parametrize("ref", ["", "0" * 64, "../../etc/passwd", "/etc/passwd", "0" * 63 + "/", "0" * 64 + "\n"])
async def test_a_reference_to_nothing_is_an_error(blobs: BlobStore, ref: str) -> None:
    with pytest.raises(BlobNotFoundError):
        await blobs.get(ref)
    await blobs.delete(ref)


async def test_a_deleted_blob_is_gone(blobs: BlobStore) -> None:
    ref = await blobs.put(b"one")
    other = await blobs.put(b"two")
    for _ in range(2):
        await blobs.delete(ref)
    with pytest.raises(BlobNotFoundError):
        await blobs.get(ref)
    assert await blobs.get(other) == b"two"


async def test_sweeping_deletes_what_is_old_and_not_kept(blobs: BlobStore) -> None:
    kept, old = await blobs.put(b"kept"), await blobs.put(b"old")
    assert await blobs.sweep(_now_ms() - 60_000, frozenset()) == 0
    assert await blobs.sweep(_now_ms() + 60_000, frozenset({kept})) == 1
    assert await blobs.get(kept) == b"kept"
    with pytest.raises(BlobNotFoundError):
        await blobs.get(old)


async def test_putting_again_makes_a_blob_young(blobs: BlobStore) -> None:
    ref = await blobs.put(b"one")
    time.sleep(0.05)  # noqa: ASYNC251 - the store's own clock has to move
    between = _now_ms()
    time.sleep(0.05)  # noqa: ASYNC251
    await blobs.put(b"one")
    assert await blobs.sweep(between, frozenset()) == 0
    assert await blobs.get(ref) == b"one"


async def test_blobs_outlive_the_process(durable_blobs: Any) -> None:
    ref = await durable_blobs.store.put(b"one")
    assert await durable_blobs.reopen().get(ref) == b"one"


async def test_references_are_safe_names(blobs: BlobStore) -> None:
    assert await blobs.put(b"one") == hashlib.sha256(b"one").hexdigest()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
