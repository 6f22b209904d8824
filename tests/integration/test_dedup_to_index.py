"""The duplicate gate and the indexer over the same stores: one text, one page, whatever happens to its copies."""

import random
from collections.abc import Iterable

from trawl.adapters.clocks import ManualClock
from trawl.adapters.embedders import WordllamaEmbedder
from trawl.adapters.memory import MemoryFingerprintIndex, MemoryPageStore, MemorySearchIndex
from trawl.dedup.stage import DedupStage
from trawl.fingerprint import content_sha256, hamming, simhash64
from trawl.indexer.stage import IndexerStage
from trawl.kinds import OutcomeClass
from trawl.ports import SearchQuery
from trawl.records import ExtractedDocument, FetchOutcome, Record, UniqueDocument
from trawl.settings import DedupSettings, IndexSettings


class Corpus:
    """Both stages, and the stores behind them."""

    def __init__(self) -> None:
        clock = ManualClock(1_000_000)
        self.fingerprints = MemoryFingerprintIndex()
        self.pages = MemoryPageStore()
        self.index = MemorySearchIndex()
        self.embedder = WordllamaEmbedder()
        self.dedup = DedupStage(self.fingerprints, DedupSettings(), clock)
        self.indexer = IndexerStage(
            pages=self.pages,
            index=self.index,
            embedder=self.embedder,
            fingerprints=self.fingerprints,
            settings=IndexSettings(),
            clock=clock,
        )

    async def take(self, *documents: ExtractedDocument) -> list[OutcomeClass]:
        """The terminal outcomes of documents that go all the way, one after the other."""
        told: list[OutcomeClass] = []
        for document in documents:
            told += await self._all(await self.dedup.step(document))
        return told

    async def _all(self, records: Iterable[Record]) -> list[OutcomeClass]:
        told: list[OutcomeClass] = []
        for record in records:
            if isinstance(record, UniqueDocument):
                told += await self._all(await self.indexer.step(record))
            elif isinstance(record, FetchOutcome) and record.terminal:
                told.append(record.outcome)
        return told

    async def urls(self, text: str) -> set[str]:
        """Where a search for the text leads."""
        vector = await self.embedder.embed([text])
        return {hit.chunk.url for hit in await self.index.search(SearchQuery(text=text, vector=vector))}


def prose(seed: int) -> str:
    rng = random.Random(seed)
    words = ("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(400))
    return " ".join(words)


def page(key: int, text: str, *, fetch: int = 1, withdrawal: str = "") -> ExtractedDocument:
    simhash = simhash64(text)
    return ExtractedDocument(
        document_key=key,
        crawl_id="c",
        request_key=key,
        fetch_id=key * 100 + fetch,
        url=f"http://site.test/{key}",
        final_url=f"http://site.test/{key}",
        fetched_at_ms=fetch,
        text=text,
        content_sha256=content_sha256(text),
        simhash=simhash.value,
        simhash_tokens=simhash.tokens,
        fingerprint_version=simhash.version,
        withdrawal=withdrawal,
    )


async def test_copies_end_as_duplicates_and_only_the_first_is_found() -> None:
    corpus = Corpus()
    text = prose(1)
    near = text.replace(text.split()[200], "edited", 1)
    assert hamming(simhash64(text).value, simhash64(near).value) <= 3
    outcomes = await corpus.take(page(1, text), page(2, text), page(3, near), page(4, prose(2)))
    indexed, duplicate = OutcomeClass.INDEXED, OutcomeClass.DUPLICATE
    assert outcomes == [indexed, duplicate, duplicate, indexed]
    assert await corpus.urls(text) == {"http://site.test/1", "http://site.test/4"}
    assert await corpus.pages.size() == 2


async def test_a_page_that_becomes_a_copy_leaves_the_index_and_one_that_stops_to_be_enters_it() -> None:
    corpus = Corpus()
    assert await corpus.take(page(1, prose(1)), page(2, prose(2))) == [OutcomeClass.INDEXED] * 2
    assert await corpus.take(page(2, prose(1), fetch=2)) == [OutcomeClass.DUPLICATE]
    assert await corpus.pages.get(2) is None
    assert await corpus.urls(prose(2)) == {"http://site.test/1"}
    assert await corpus.take(page(2, prose(3), fetch=3)) == [OutcomeClass.INDEXED]
    assert await corpus.urls(prose(3)) == {"http://site.test/1", "http://site.test/2"}


async def test_when_the_first_is_withdrawn_a_copy_takes_its_place() -> None:
    corpus = Corpus()
    await corpus.take(page(1, prose(1)), page(2, prose(1)))
    assert await corpus.take(page(1, "", fetch=2, withdrawal="gone")) == [OutcomeClass.WITHDRAWN]
    assert await corpus.index.size() == 0
    assert await corpus.take(page(2, prose(1), fetch=2)) == [OutcomeClass.INDEXED]


async def test_replaying_every_record_changes_nothing() -> None:
    corpus = Corpus()
    records = [
        page(1, prose(1)),
        page(2, prose(1)),
        page(3, prose(3)),
        page(1, prose(4), fetch=2),
        page(3, "", fetch=2, withdrawal="gone"),
        page(2, prose(1), fetch=2),
    ]
    await corpus.take(*records)
    before = await state(corpus)
    await corpus.take(*records)
    assert await state(corpus) == before


async def state(corpus: Corpus) -> list[object]:
    pages = [await corpus.pages.get(key) for key in (1, 2, 3)]
    return [page and (page.document, page.chunks) for page in pages] + [await corpus.index.size()]


async def test_a_visit_that_finds_the_indexed_text_ends_as_unchanged() -> None:
    corpus = Corpus()
    await corpus.take(page(1, prose(1)))
    assert await corpus.take(page(1, prose(1), fetch=2)) == [OutcomeClass.UNCHANGED]
