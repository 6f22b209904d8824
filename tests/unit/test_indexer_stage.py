"""The indexer over the memory stores and the packaged model: patches, batches, order and crashes."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from trawl.adapters.clocks import ManualClock
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.memory import MemoryFingerprintIndex, MemoryPageStore, MemorySearchIndex
from trawl.errors import EmbedderMismatchError
from trawl.indexer.chunks import chunk_document
from trawl.indexer.stage import IndexerStage
from trawl.kinds import DUPLICATE_WITHDRAWAL, BlockKind, Novelty, OutcomeClass, Stage
from trawl.ports import Chunk, Fingerprint, SearchQuery, StoredPage, Vectors
from trawl.records import (
    Block,
    Evidence,
    ExtractedDocument,
    FetchOutcome,
    IndexedDocument,
    Key,
    Millis,
    Record,
    UniqueDocument,
)
from trawl.settings import IndexSettings

NOW_MS = 1_000_000
SETTINGS = IndexSettings(chunk_chars_target=200, chunk_chars_max=400, chunk_overlap_chars=0)


class CountingEmbedder(WordllamaEmbedder):
    """The packaged model, with a note of what each call was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls.append(list(texts))
        return await super().embed(texts)


class Crash(Exception):  # noqa: N818  # not an error of the code under test: the power goes off
    """The process ends here."""


@dataclass
class Fuse:
    """Blows at the n-th write of the stores that share it; 0 never does."""

    writes_left: int = 0

    def burn(self) -> None:
        self.writes_left -= 1
        if self.writes_left == 0:
            raise Crash


@dataclass
class FusedPages(MemoryPageStore):
    """The memory page store, whose writes burn a fuse after they were done."""

    fuse: Fuse = field(default_factory=Fuse)

    def __post_init__(self) -> None:
        super().__init__()

    async def put(self, page: StoredPage) -> bool:
        done = await super().put(page)
        self.fuse.burn()
        return done

    async def delete(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        done = await super().delete(document_key, fetched_at_ms=fetched_at_ms)
        self.fuse.burn()
        return done


@dataclass
class FusedIndex(MemorySearchIndex):
    """The memory search index, whose writes burn a fuse after they were done."""

    fuse: Fuse = field(default_factory=Fuse)

    def __post_init__(self) -> None:
        super().__init__()

    async def upsert(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        await super().upsert(chunks, vectors)
        self.fuse.burn()

    async def delete(self, chunk_ids: Sequence[Key]) -> None:
        await super().delete(chunk_ids)
        self.fuse.burn()

    @property
    def ids(self) -> set[Key]:
        return set(self._stored)


@dataclass
class World:
    """An indexer and all that it writes to."""

    settings: IndexSettings = SETTINGS
    fuse: Fuse = field(default_factory=Fuse)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    embedder: CountingEmbedder = field(default_factory=CountingEmbedder)
    fingerprints: MemoryFingerprintIndex = field(default_factory=MemoryFingerprintIndex)

    def __post_init__(self) -> None:
        self.pages = FusedPages(self.fuse)
        self.index = FusedIndex(self.fuse)
        self.restart()

    def restart(self) -> None:
        """A new process over the same stores."""
        self.stage = IndexerStage(
            pages=self.pages,
            index=self.index,
            embedder=self.embedder,
            fingerprints=self.fingerprints,
            settings=self.settings,
            clock=self.clock,
        )

    async def holds_exactly(self, *documents: ExtractedDocument) -> bool:
        """Whether pages and chunks are those of the documents, and nothing else."""
        wanted = {doc.document_key: tuple(c.chunk_id for c in chunk_document(doc, self.settings)) for doc in documents}
        stored = {key: await self.pages.get(key) for key in wanted}
        manifests = {key: page.chunks for key, page in stored.items() if page}
        fresh = all(page and page.document == doc for doc in documents for page in [stored[doc.document_key]])
        ids = {key for manifest in wanted.values() for key in manifest}
        return fresh and manifests == wanted and self.index.ids == ids and await self.pages.size() == len(wanted)


def sentence(seed: int) -> str:
    rng = random.Random(seed)
    words = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(20))
    return " ".join(words).capitalize() + "."


def document(key: int, seeds: Sequence[int], *, fetch: int = 1, **fields: object) -> ExtractedDocument:
    """A document of one section for each seed, fetched for the given time."""
    base = ExtractedDocument(
        document_key=key,
        crawl_id="c",
        request_key=key * 10,
        fetch_id=key * 1000 + fetch,
        url=f"http://site.test/r{key}",
        final_url=f"http://site.test/d{key}",
        title=f"Page {key}",
        fetched_at_ms=fetch * 1000,
        released_at_ms=NOW_MS - 250,
        status=200,
        blocks=tuple(Block(kind=BlockKind.PARAGRAPH, text=sentence(s), heading_path=(f"S{s}",)) for s in seeds),
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # the fields are given by the tests below


def unique(doc: ExtractedDocument, novelty: Novelty = Novelty.NEW) -> UniqueDocument:
    return UniqueDocument(document=doc, novelty=novelty)


def withdrawal(key: int, *, fetch: int, reason: str = "gone") -> UniqueDocument:
    return unique(document(key, (), fetch=fetch, withdrawal=reason), Novelty.WITHDRAWN)


def indexed_of(records: Sequence[Record]) -> IndexedDocument:
    record = records[0]
    assert isinstance(record, IndexedDocument)
    return record


def outcomes_of(records: Sequence[Record]) -> list[FetchOutcome]:
    return [record for record in records if isinstance(record, FetchOutcome)]


async def test_a_new_document_is_searchable_and_ends_as_indexed() -> None:
    world = World()
    doc = document(1, range(4))
    indexed, outcome = await world.stage.step(unique(doc))
    ids = tuple(chunk.chunk_id for chunk in chunk_document(doc, SETTINGS))
    assert indexed == IndexedDocument(
        document_key=1,
        crawl_id="c",
        url="http://site.test/d1",
        fetch_id=1001,
        chunks_added=ids,
        at_ms=NOW_MS,
        latency_ms=250,
    )
    assert outcome == FetchOutcome(
        url="http://site.test/r1",
        crawl_id="c",
        request_key=10,
        fetch_id=1001,
        stage=Stage.INDEXER,
        outcome=OutcomeClass.INDEXED,
        status=200,
        at_ms=NOW_MS,
        validators=doc.validators,
        document_key=1,
        content_sha256=doc.content_sha256,
        simhash=doc.simhash,
        change=Novelty.NEW,
    )
    assert await world.holds_exactly(doc)
    vector = await world.embedder.embed([sentence(2)])
    hits = await world.index.search(SearchQuery(text=sentence(2), vector=vector))
    assert hits[0].chunk.heading_path == ("S2",)


async def test_only_chunks_that_changed_are_embedded_and_written() -> None:
    world = World()
    await world.stage.step(unique(document(1, [0, 1, 2, 3])))
    world.embedder.calls.clear()
    changed = document(1, [0, 9, 2, 3], fetch=2)
    indexed = indexed_of(await world.stage.step(unique(changed, Novelty.CHANGED)))
    assert [len(call) for call in world.embedder.calls] == [1]
    assert (len(indexed.chunks_added), len(indexed.chunks_kept), len(indexed.chunks_removed)) == (1, 3, 1)
    assert await world.holds_exactly(changed)


async def test_indexing_again_writes_nothing_new() -> None:
    world = World()
    doc = document(1, range(4))
    first = indexed_of(await world.stage.step(unique(doc)))
    world.embedder.calls.clear()
    again = indexed_of(await world.stage.step(unique(doc)))
    assert (again.chunks_added, again.chunks_kept, again.chunks_removed) == ((), first.chunks_added, ())
    assert world.embedder.calls == []
    assert await world.holds_exactly(doc)


@pytest.mark.parametrize(
    "label",
    [
        {"title": "Another title"},
        {"final_url": "http://site.test/other"},
        {"language": "de"},
        {"tags": ("t",)},
        {"evidence": (Evidence(source="meta", rule="noai", purpose="ai-train", allowed=False),)},
    ],
    ids=lambda label: next(iter(label)),
)
async def test_what_every_chunk_says_of_its_document_is_never_stale(label: dict[str, object]) -> None:
    world = World()
    await world.stage.step(unique(document(1, range(3))))
    relabelled = document(1, range(3), fetch=2, **label)
    indexed = indexed_of(await world.stage.step(unique(relabelled, Novelty.CHANGED)))
    assert (len(indexed.chunks_added), indexed.chunks_removed) == (3, ())
    hits = await world.index.search(SearchQuery(text=sentence(1)))
    assert hits[0].chunk == chunk_document(relabelled, SETTINGS)[1]


async def test_a_document_without_text_is_indexed_with_no_chunks() -> None:
    world = World()
    records = await world.stage.step(unique(document(1, ())))
    assert indexed_of(records).chunks_added == ()
    assert outcomes_of(records)[0].outcome is OutcomeClass.INDEXED
    assert await world.holds_exactly(document(1, ()))


async def test_an_older_fetch_never_overwrites_a_newer_one() -> None:
    world = World()
    newer = document(1, [1, 2], fetch=5)
    await world.stage.step(unique(newer))
    for old in (unique(document(1, [7], fetch=4)), withdrawal(1, fetch=4)):
        records = await world.stage.step(old)
        assert [type(record) for record in records] == [FetchOutcome]
        assert (outcomes_of(records)[0].outcome, outcomes_of(records)[0].reason) == (
            OutcomeClass.UNCHANGED,
            "superseded",
        )
    assert await world.holds_exactly(newer)


async def test_a_withdrawal_deletes_by_manifest_and_is_harmless_when_repeated() -> None:
    world = World()
    await world.stage.step_batch([unique(document(1, range(3))), unique(document(2, [7]))])
    indexed, outcome = await world.stage.step(withdrawal(1, fetch=2))
    assert isinstance(indexed, IndexedDocument)
    assert len(indexed.chunks_removed) == 3
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.reason, outcome.change) == (OutcomeClass.WITHDRAWN, "gone", Novelty.WITHDRAWN)
    assert await world.holds_exactly(document(2, [7]))
    again = await world.stage.step(withdrawal(1, fetch=2))
    assert [record.outcome for record in outcomes_of(again)] == [OutcomeClass.WITHDRAWN]
    assert len(again) == 1


async def test_a_document_that_became_a_duplicate_leaves_without_a_second_outcome() -> None:
    world = World()
    await world.stage.step(unique(document(1, range(3))))
    records = await world.stage.step(withdrawal(1, fetch=2, reason=DUPLICATE_WITHDRAWAL))
    assert [type(record) for record in records] == [IndexedDocument]
    assert await world.stage.step(withdrawal(1, fetch=2, reason=DUPLICATE_WITHDRAWAL)) == []
    assert await world.holds_exactly()


async def test_the_fingerprint_is_committed_once_the_page_is_stored() -> None:
    world = World()
    doc = document(1, [1])
    fingerprint = Fingerprint(
        namespace="c",
        document_key=1,
        request_key=10,
        fetch_id=doc.fetch_id,
        fetched_at_ms=doc.fetched_at_ms,
        url=doc.final_url,
        sha256="s",
        simhash=1,
        version=1,
    )
    later = replace(fingerprint, fetch_id=9999, fetched_at_ms=9_999_999)
    await world.fingerprints.check_and_add(fingerprint, hamming_max=3)
    await world.stage.step(unique(doc))
    assert (await world.fingerprints.check_and_add(later, hamming_max=3)).kind == "unchanged"


async def test_a_batch_is_embedded_in_one_call_with_results_in_order() -> None:
    world = World()
    docs = [document(key, range(key * 10, key * 10 + key)) for key in range(1, 6)]
    results = await world.stage.step_batch([unique(doc) for doc in docs])
    assert [len(call) for call in world.embedder.calls] == [15]
    assert [indexed_of(records).document_key for records in results] == [1, 2, 3, 4, 5]
    single = World()
    assert results == [await single.stage.step(unique(doc)) for doc in docs]
    assert await world.holds_exactly(*docs)
    assert await world.stage.step_batch([]) == []


async def test_a_batch_is_cut_at_the_embedding_limit() -> None:
    world = World(settings=replace(SETTINGS, embed_batch_max=4))
    await world.stage.step_batch([unique(document(1, range(6))), unique(document(2, range(10, 13)))])
    assert [len(call) for call in world.embedder.calls] == [4, 4, 1]
    assert await world.holds_exactly(document(1, range(6)), document(2, range(10, 13)))


async def test_records_of_one_document_in_one_batch_are_done_in_order() -> None:
    world = World()
    final = document(1, [5, 6], fetch=4)
    batch = [
        unique(document(1, [1, 2])),
        unique(document(2, [9])),
        unique(document(1, [2, 3], fetch=2), Novelty.CHANGED),
        withdrawal(1, fetch=3),
        unique(final),
    ]
    results = await world.stage.step_batch(batch)
    assert len(indexed_of(results[2]).chunks_kept) == 1
    assert len(indexed_of(results[3]).chunks_removed) == 2
    assert await world.holds_exactly(final, document(2, [9]))


@pytest.mark.parametrize("crash_at", range(1, 6))
@pytest.mark.parametrize("follow", ["same", "newer", "reverted", "withdrawn"])
async def test_a_crash_at_any_write_of_a_patch_is_harmless_whatever_comes_next(crash_at: int, follow: str) -> None:
    world = World()
    await world.stage.step(unique(document(1, [1, 2, 3])))
    world.fuse.writes_left = crash_at
    changed = document(1, [1, 8, 3], fetch=2)
    try:
        await world.stage.step(unique(changed, Novelty.CHANGED))
    except Crash:
        world.restart()
    world.fuse.writes_left = 0
    if follow == "withdrawn":
        await world.stage.step(withdrawal(1, fetch=3))
        assert await world.holds_exactly()
        return
    final = {
        "same": changed,
        "newer": document(1, [1, 2, 9], fetch=3),
        "reverted": document(1, [1, 2, 3], fetch=3),
    }[follow]
    await world.stage.step(unique(final, Novelty.CHANGED))
    assert await world.holds_exactly(final)


@pytest.mark.parametrize("crash_at", range(1, 4))
async def test_a_crash_in_a_batch_of_new_documents_is_made_good_by_redelivery(crash_at: int) -> None:
    world = World(fuse=Fuse(crash_at))
    docs = [document(1, [1, 2]), document(2, [3])]
    with pytest.raises(Crash):
        await world.stage.step_batch([unique(doc) for doc in docs])
    world.restart()
    world.fuse.writes_left = 0
    await world.stage.step_batch([unique(doc) for doc in docs])
    assert await world.holds_exactly(*docs)


@pytest.mark.parametrize("crash_at", [1, 2])
async def test_a_crash_in_a_withdrawal_is_made_good_by_redelivery(crash_at: int) -> None:
    world = World()
    await world.stage.step(unique(document(1, [1, 2])))
    world.fuse.writes_left = crash_at
    with pytest.raises(Crash):
        await world.stage.step(withdrawal(1, fetch=2))
    world.restart()
    world.fuse.writes_left = 0
    await world.stage.step(withdrawal(1, fetch=2))
    assert await world.holds_exactly()


class Overtaken(MemoryPageStore):
    """A page store in which another indexer finishes a newer fetch just before this one stores its page."""

    def __init__(self, newer: StoredPage) -> None:
        super().__init__()
        self._newer = newer

    async def put(self, page: StoredPage) -> bool:
        await super().put(self._newer)
        return await super().put(page)


async def test_chunks_written_in_vain_are_taken_back_when_a_newer_fetch_overtook() -> None:
    world = World()
    newer = document(1, [1, 9], fetch=7)
    manifest = tuple(chunk.chunk_id for chunk in chunk_document(newer, SETTINGS))
    await world.index.open(world.embedder.name, world.embedder.dimensions)
    await world.index.upsert(chunk_document(newer, SETTINGS), await world.embedder.embed(["a", "b"]))
    world.pages = Overtaken(StoredPage(document=newer, chunks=manifest, indexed_at_ms=1))  # type: ignore[assignment]
    world.restart()
    (outcome,) = await world.stage.step(unique(document(1, [1, 2], fetch=6)))
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.UNCHANGED, "superseded")
    assert world.index.ids == set(manifest)


@pytest.mark.parametrize("known_before", [True, False])
async def test_an_older_fetch_delivered_after_the_withdrawal_stays_out(known_before: bool) -> None:
    world = World()
    if known_before:
        await world.stage.step(unique(document(1, [1, 2])))
    await world.stage.step(withdrawal(1, fetch=3))
    (outcome,) = await world.stage.step(unique(document(1, [1, 7], fetch=2)))
    assert isinstance(outcome, FetchOutcome)
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.UNCHANGED, "superseded")
    assert await world.holds_exactly()
    again = document(1, [1, 7], fetch=4)
    await world.stage.step(unique(again))
    assert await world.holds_exactly(again)


class CountingPages(MemoryPageStore):
    """A page store that counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, int]] = []

    async def get_many(self, document_keys: Sequence[Key]) -> dict[Key, StoredPage]:
        self.calls.append(("get", len(document_keys)))
        return await super().get_many(document_keys)

    async def put_many(self, pages: Sequence[StoredPage]) -> list[bool]:
        self.calls.append(("put", len(pages)))
        return await super().put_many(pages)


async def test_a_batch_reads_and_writes_its_pages_together() -> None:
    world = World()
    world.pages = pages = CountingPages()  # type: ignore[assignment]
    world.restart()
    await world.stage.step_batch([unique(document(key, [key])) for key in range(1, 6)])
    assert pages.calls == [("get", 5), ("put", 0), ("put", 5)]


async def test_an_index_of_another_model_is_refused() -> None:
    world = World()
    await world.index.open("other-model", 3)
    chunk = chunk_document(document(1, [1]), SETTINGS)[0]
    await world.index.upsert([chunk], np.ones((1, 3), dtype=np.float32))
    with pytest.raises(EmbedderMismatchError, match="other-model"):
        await world.stage.step(unique(document(2, [2])))


class BrokenEmbedder(CountingEmbedder):
    """A model that answers with fewer rows than it was asked for, or with no numbers."""

    def __init__(self, answer: Vectors) -> None:
        super().__init__()
        self._answer = answer

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await super().embed(texts)
        return self._answer


@pytest.mark.parametrize(
    "answer", [np.ones((1, 256), dtype=np.float32), np.full((2, 256), np.nan, dtype=np.float32)], ids=["short", "nan"]
)
async def test_vectors_that_would_spoil_the_index_are_refused(answer: Vectors) -> None:
    world = World(embedder=BrokenEmbedder(answer))
    with pytest.raises(ValueError, match=r"wordllama-.* shape .* not finite \(2, 256\)"):
        await world.stage.step(unique(document(1, [1, 2])))
    assert world.index.ids == set()
