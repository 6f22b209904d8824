import asyncio
import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import FINGERPRINTS, Opened
from trawl.adapters.redis import RedisFingerprintIndex
from trawl.adapters.redis.fingerprints import HAMMING_MAX
from trawl.errors import SettingsError
from trawl.ports import DedupVerdict, Fingerprint, FingerprintIndex

NEW = DedupVerdict(kind="new")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint(document_key: int, text: str = "", simhash: int | None = None, **fields: Any) -> Fingerprint:
    """A document of its own request, fetched for the first time, unlike any other by default."""
    known = {
        "namespace": "crawl:c",
        "request_key": document_key + 1000,
        "fetch_id": document_key + 2000,
        "fetched_at_ms": 1000,
        "url": f"https://a.example/{document_key}",
        "version": 1,
        **fields,
    }
    content = text or f"text of {document_key}"
    default = int.from_bytes(hashlib.blake2b(content.encode(), digest_size=8).digest(), "big", signed=True)
    return Fingerprint(
        document_key=document_key,
        sha256=sha256(content),
        simhash=default if simhash is None else simhash,
        **known,
    )


async def check(index: FingerprintIndex, asked: Fingerprint, hamming_max: int = 3) -> DedupVerdict:
    return await index.check_and_add(asked, hamming_max=hamming_max)


async def test_documents_with_different_texts_are_new(fingerprints: FingerprintIndex) -> None:
    assert await check(fingerprints, fingerprint(1)) == NEW
    assert await check(fingerprints, fingerprint(-(2**63))) == NEW
    assert await fingerprints.size() == 2


async def test_the_same_text_is_an_exact_duplicate_of_the_first(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "same"))
    expected = DedupVerdict(kind="exact", duplicate_of=1, duplicate_of_url="https://a.example/1")
    assert await check(fingerprints, fingerprint(2, "same")) == expected
    assert await fingerprints.size() == 1
    assert await check(fingerprints, fingerprint(2, "same", fetch_id=7)) == expected


@pytest.mark.parametrize(("bits", "kind"), [(0, "near"), (0b111, "near"), (0b1111, "new"), (-(2**63), "near")])
async def test_near_duplicates_differ_in_at_most_so_many_bits(
    fingerprints: FingerprintIndex, bits: int, kind: str
) -> None:
    await check(fingerprints, fingerprint(1, simhash=12345))
    verdict = await check(fingerprints, fingerprint(2, simhash=12345 ^ bits))
    assert verdict.kind == kind
    if kind == "near":
        assert (verdict.duplicate_of, verdict.distance) == (1, (bits & (2**64 - 1)).bit_count())


async def test_every_bit_of_a_fingerprint_counts(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, simhash=0))
    for bit in range(64):
        value = 1 << bit if bit < 63 else -(2**63)
        assert (await check(fingerprints, fingerprint(100 + bit, simhash=value))).distance == 1


async def test_the_least_distance_wins_then_the_oldest(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, simhash=0b11111), hamming_max=0)
    await check(fingerprints, fingerprint(2, simhash=0b00001), hamming_max=0)
    await check(fingerprints, fingerprint(3, simhash=0b00010), hamming_max=0)
    verdict = await check(fingerprints, fingerprint(4, simhash=0))
    assert (verdict.duplicate_of, verdict.distance) == (2, 1)


async def test_the_same_text_counts_before_a_nearer_fingerprint(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "same", simhash=0b11))
    await check(fingerprints, fingerprint(2, simhash=0), hamming_max=0)
    verdict = await check(fingerprints, fingerprint(3, "same", simhash=0))
    assert (verdict.kind, verdict.duplicate_of) == ("exact", 1)


async def test_short_texts_are_compared_exactly_only(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, simhash=0, near=False))
    assert (await check(fingerprints, fingerprint(2, simhash=0))).kind == "new"
    assert (await check(fingerprints, fingerprint(3, simhash=0, near=False))).kind == "new"
    assert (await check(fingerprints, fingerprint(4, "text of 1", near=False))).kind == "exact"


@pytest.mark.parametrize("fields", [{"namespace": "crawl:d"}, {"version": 2}])
async def test_namespaces_and_versions_never_mix(fingerprints: FingerprintIndex, fields: dict[str, Any]) -> None:
    await check(fingerprints, fingerprint(1, "same", simhash=0))
    assert (await check(fingerprints, fingerprint(2, "same", simhash=0, **fields))).kind == "new"


async def test_the_threshold_may_be_raised_over_a_filled_index(fingerprints: FingerprintIndex) -> None:
    # Differences spread so that four bands of 16 bits would all miss them.
    far = (1 << 3) | (1 << 19) | (1 << 35) | (1 << 51) | (1 << 60)
    await check(fingerprints, fingerprint(1, simhash=0), hamming_max=3)
    assert (await check(fingerprints, fingerprint(2, simhash=far), hamming_max=3)).kind == "new"
    await fingerprints.forget(2, fetched_at_ms=999)
    await fingerprints.forget(2, fetched_at_ms=1000)
    far_again = fingerprint(2, simhash=far, fetched_at_ms=1001)
    if isinstance(fingerprints, RedisFingerprintIndex):  # its bands are fixed when it is made
        with pytest.raises(SettingsError, match="at most 3"):
            await check(fingerprints, far_again, hamming_max=5)
        return
    assert (await check(fingerprints, far_again, hamming_max=5)).distance == 5
    assert (await check(fingerprints, fingerprint(3, simhash=far), hamming_max=3)).kind == "new"


async def test_a_document_of_another_request_is_an_alias(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1))
    alias = DedupVerdict(kind="alias", duplicate_of=1, duplicate_of_url="https://a.example/1")
    other: dict[str, Any] = {"request_key": 5, "fetch_id": 6}
    assert await check(fingerprints, fingerprint(1, **other, fetched_at_ms=2000)) == alias, "the same text"
    assert await check(fingerprints, fingerprint(1, "older", **other, fetched_at_ms=999)) == alias
    redirected = fingerprint(1, "newer", **other, fetched_at_ms=2000, direct=False)
    assert await check(fingerprints, redirected) == alias, "its own URL is requested"
    assert await check(fingerprints, fingerprint(1)) == NEW


@pytest.mark.parametrize("direct", [True, False])
async def test_a_newer_text_by_another_request_takes_a_redirects_document_over(
    fingerprints: FingerprintIndex, direct: bool
) -> None:
    first = fingerprint(1, "old text", direct=False)
    await check(fingerprints, first)
    await fingerprints.commit(1, first.fetch_id)
    newer = fingerprint(1, "new text", request_key=5, fetch_id=6, fetched_at_ms=2000, direct=direct)
    verdict = await check(fingerprints, newer)
    assert (verdict.kind, verdict.previous_sha256) == ("changed", sha256("old text"))
    assert (await check(fingerprints, first)).kind == "alias"
    assert await check(fingerprints, newer) == verdict
    assert await fingerprints.size() == 1


async def test_one_fetch_with_another_text_is_judged_anew(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(2, "taken"))
    await check(fingerprints, fingerprint(1, "before the crash"))
    assert (await check(fingerprints, fingerprint(1, "taken"))).kind == "exact"


async def test_a_redelivery_gets_the_same_verdict_again(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1)
    assert [await check(fingerprints, first) for _ in range(2)] == [NEW, NEW]
    await fingerprints.commit(1, first.fetch_id)
    assert await check(fingerprints, first) == NEW
    changed = fingerprint(1, "changed", fetch_id=9, fetched_at_ms=2000)
    verdict = await check(fingerprints, changed)
    assert verdict == DedupVerdict(kind="changed", previous_sha256=first.sha256, previous_simhash=first.simhash)
    assert await check(fingerprints, changed) == verdict
    await fingerprints.commit(1, 9)
    assert await check(fingerprints, changed) == verdict


async def test_an_older_fetch_is_stale(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, fetched_at_ms=2000))
    assert await check(fingerprints, fingerprint(1, "old", fetch_id=9, fetched_at_ms=1999)) == DedupVerdict(
        kind="stale"
    )
    assert await check(fingerprints, fingerprint(1, fetched_at_ms=2000)) == NEW


async def test_the_same_text_of_a_committed_document_is_unchanged(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1)
    await check(fingerprints, first)
    await fingerprints.commit(1, first.fetch_id)
    again = replace(first, fetch_id=9, fetched_at_ms=2000)
    assert (await check(fingerprints, again)).kind == "unchanged"
    assert (await check(fingerprints, again)).kind == "unchanged"
    assert (await check(fingerprints, replace(first, fetch_id=8, fetched_at_ms=1999))).kind == "stale"
    assert (await check(fingerprints, replace(first, fetch_id=10, fetched_at_ms=3000))).kind == "unchanged"


async def test_the_same_text_of_a_document_that_never_was_committed_is_told_again(
    fingerprints: FingerprintIndex,
) -> None:
    first = fingerprint(1)
    await check(fingerprints, first)
    assert await check(fingerprints, replace(first, fetch_id=9, fetched_at_ms=2000)) == NEW


async def test_changed_is_judged_against_what_was_committed(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1)
    await check(fingerprints, first)
    await fingerprints.commit(1, first.fetch_id)
    await check(fingerprints, fingerprint(1, "second", fetch_id=9, fetched_at_ms=2000))
    third = await check(fingerprints, fingerprint(1, "third", fetch_id=10, fetched_at_ms=3000))
    assert third == DedupVerdict(kind="changed", previous_sha256=first.sha256, previous_simhash=first.simhash)
    assert await fingerprints.size() == 1


async def test_a_superseded_commit_changes_nothing(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1)
    await check(fingerprints, first)
    second = fingerprint(1, "second", fetch_id=9, fetched_at_ms=2000)
    await check(fingerprints, second)
    await fingerprints.commit(1, first.fetch_id)
    await fingerprints.commit(77, 1)
    assert await check(fingerprints, replace(second, fetch_id=10, fetched_at_ms=3000)) == NEW


async def test_a_document_is_never_its_own_duplicate(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1, simhash=0)
    await check(fingerprints, first)
    await fingerprints.commit(1, first.fetch_id)
    verdict = await check(fingerprints, fingerprint(1, "second", simhash=1, fetch_id=9, fetched_at_ms=2000))
    assert verdict.kind == "changed"


async def test_a_recrawl_replaces_the_fingerprint(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "first", simhash=0))
    await check(fingerprints, fingerprint(1, "second", simhash=-1, fetch_id=9, fetched_at_ms=2000))
    assert (await check(fingerprints, fingerprint(2, "first", simhash=0))).kind == "new"
    assert (await check(fingerprints, fingerprint(3, "third", simhash=-2))).duplicate_of == 1


async def test_a_unique_that_turns_duplicate_is_forgotten(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "one", simhash=0))
    await check(fingerprints, fingerprint(2, "two", simhash=-1))
    assert (await check(fingerprints, fingerprint(2, "one", fetch_id=9, fetched_at_ms=2000))).kind == "exact"
    assert await fingerprints.size() == 1
    assert (await check(fingerprints, fingerprint(3, "two", simhash=-1))).kind == "new"


async def test_a_withdrawn_document_is_forgotten(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "one", simhash=0))
    assert await fingerprints.forget(1, fetched_at_ms=1000)
    assert await fingerprints.size() == 0
    assert await fingerprints.forget(1, fetched_at_ms=1000)
    assert await check(fingerprints, fingerprint(2, "one", simhash=0)) == NEW


async def test_a_replayed_withdrawal_forgets_no_newer_fetch(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, fetched_at_ms=2000))
    assert not await fingerprints.forget(1, fetched_at_ms=1999)
    assert await fingerprints.size() == 1


async def test_no_older_fetch_brings_a_withdrawn_document_back(fingerprints: FingerprintIndex) -> None:
    first = fingerprint(1, "one", simhash=0)
    await check(fingerprints, first)
    assert await fingerprints.forget(1, fetched_at_ms=1500)
    assert await fingerprints.forget(1, fetched_at_ms=1200), "a replay takes nothing back"
    for fetched_at_ms in (1000, 1201, 1500):
        late = replace(first, fetched_at_ms=fetched_at_ms)
        assert await check(fingerprints, late) == DedupVerdict(kind="stale")
    assert await fingerprints.size() == 0
    assert await check(fingerprints, replace(first, fetched_at_ms=1501)) == NEW
    assert await check(fingerprints, fingerprint(3, "one", fetched_at_ms=1)) == DedupVerdict(
        kind="exact", duplicate_of=1, duplicate_of_url=first.url
    )


async def test_a_document_is_withdrawn_before_it_comes(fingerprints: FingerprintIndex) -> None:
    assert await fingerprints.forget(1, fetched_at_ms=1000)
    assert (await check(fingerprints, fingerprint(1))).kind == "stale"
    assert (await check(fingerprints, fingerprint(1, fetched_at_ms=1001))).kind == "new"
    assert await fingerprints.forget(1, fetched_at_ms=1001)
    assert (await check(fingerprints, fingerprint(1, fetched_at_ms=1001))).kind == "stale"


async def test_no_older_fetch_brings_a_unique_that_turned_duplicate_back(fingerprints: FingerprintIndex) -> None:
    await check(fingerprints, fingerprint(1, "one", simhash=0))
    first = fingerprint(2, "two", simhash=-1)
    await check(fingerprints, first)
    turned = fingerprint(2, "one", fetch_id=9, fetched_at_ms=2000)
    assert [(await check(fingerprints, turned)).kind for _ in range(2)] == ["exact", "exact"]
    assert (await check(fingerprints, first)).kind == "stale"
    assert (await check(fingerprints, replace(first, fetch_id=10, fetched_at_ms=2001))).kind == "new"


@pytest.mark.parametrize("served", list(FINGERPRINTS), indirect=True)
async def test_only_so_many_withdrawn_documents_are_remembered(served: str, tmp_path: Path) -> None:
    opened = FINGERPRINTS[served](tmp_path)
    opened.store._withdrawn_max = 3  # type: ignore[attr-defined]
    for key in range(1, 6):
        await opened.store.forget(key, fetched_at_ms=1000 + 10 * key)
    kinds = [(await check(opened.store, fingerprint(key))).kind for key in range(1, 6)]
    await opened.aclose()
    assert kinds == ["new", "new", "stale", "stale", "stale"]


async def test_urls_of_all_kinds_come_back_as_they_were(fingerprints: FingerprintIndex) -> None:
    urls = ["https://a.example/", "http://b.example:8080/?q=%C3%A9&x=*", "https://c.example/" + "long/" * 400, "\x00é"]
    for key, url in enumerate(urls, 1):
        await check(fingerprints, fingerprint(key, url=url))
        verdict = await check(fingerprints, fingerprint(10 + key, f"text of {key}"))
        assert (verdict.kind, verdict.duplicate_of_url) == ("exact", url)


async def test_fingerprints_outlive_the_process(durable_fingerprints: Any) -> None:
    first = fingerprint(1, "one", simhash=0)
    await check(durable_fingerprints.store, first)
    await durable_fingerprints.store.commit(1, first.fetch_id)
    index: FingerprintIndex = durable_fingerprints.reopen()
    assert (await check(index, fingerprint(2, "one"))).kind == "exact"
    assert (await check(index, fingerprint(3, simhash=1))).kind == "near"
    assert (await check(index, replace(first, fetch_id=9))).kind == "unchanged"
    assert await index.size() == 1


asks = st.lists(
    st.one_of(
        st.builds(
            fingerprint,
            st.integers(1, 4),
            st.sampled_from(("a", "b", "c")),
            st.sampled_from((0, 1, 3, 7, 15, 1 << 20, -1, -2)),
            namespace=st.sampled_from(("n", "n", "m")),
            request_key=st.integers(1, 2),
            fetch_id=st.integers(1, 9),
            fetched_at_ms=st.integers(1, 4),
            near=st.sampled_from((True, True, False)),
            version=st.sampled_from((1, 1, 1, 2)),
        ),
        st.tuples(st.sampled_from(("commit", "forget")), st.integers(1, 4), st.integers(1, 9)),
    ),
    max_size=30,
)


@pytest.mark.parametrize("served", [name for name in FINGERPRINTS if name != "memory"], indirect=True)
@settings(max_examples=100, deadline=None)
@given(asks=asks, hamming_max=st.sampled_from((0, 2, 3, 4)))
def test_answers_as_the_index_in_memory(served: str, asks: list[Any], hamming_max: int) -> None:
    hamming_max = min(hamming_max, HAMMING_MAX if served.startswith(("redis", "cluster")) else hamming_max)

    async def answers(opened: Opened[FingerprintIndex]) -> list[Any]:
        index = opened.store
        found: list[Any] = []
        for asked in asks:
            if isinstance(asked, Fingerprint):
                found.append(await index.check_and_add(asked, hamming_max=hamming_max))
            elif asked[0] == "commit":
                await index.commit(*asked[1:])
            else:
                found.append(await index.forget(asked[1], fetched_at_ms=asked[2]))
            found.append(await index.size())
        await opened.aclose()
        return found

    with tempfile.TemporaryDirectory() as folder:
        opened = FINGERPRINTS[served](Path(folder))
        model = FINGERPRINTS["memory"](Path(folder))
        assert asyncio.run(answers(opened)) == asyncio.run(answers(model))
