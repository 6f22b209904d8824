"""Documents into the search index: chunks cut, embedded in batches, and only the changed ones written.

The order of writes makes a crash harmless: a page that is there is first marked as being patched, then new chunks are
written, then old ones deleted, then the page is stored with its manifest, and last the fingerprint is committed. What
is delivered again does the rest. A new page needs no mark: its chunks have ids that depend on its content alone, so
they are written over themselves.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trawl.indexer.chunks import chunk_document, embedding_text
from trawl.indexer.patch import Patch, patch, pending
from trawl.kinds import DUPLICATE_WITHDRAWAL, Novelty, OutcomeClass, Stage
from trawl.ports import Chunk, Clock, Embedder, FingerprintIndex, PageStore, SearchIndex, StoredPage, Vectors
from trawl.records import ExtractedDocument, FetchOutcome, IndexedDocument, Key, Record, UniqueDocument
from trawl.settings import IndexSettings


@dataclass(frozen=True, slots=True)
class _Work:
    """One document, what the store holds of it, and what has to change."""

    record: UniqueDocument
    stored: StoredPage | None
    change: Patch

    @property
    def document(self) -> ExtractedDocument:
        return self.record.document

    @property
    def superseded(self) -> bool:
        """Whether a newer fetch of the document is stored."""
        return self.stored is not None and self.stored.document.fetched_at_ms > self.document.fetched_at_ms

    @property
    def withdrawn(self) -> bool:
        return self.record.novelty is Novelty.WITHDRAWN


class IndexerStage:
    """UniqueDocument in; IndexedDocument and the terminal FetchOutcome out.

    Records of one document must not be in two calls at the same time; within a batch they are done in order.
    """

    def __init__(
        self,
        *,
        pages: PageStore,
        index: SearchIndex,
        embedder: Embedder,
        fingerprints: FingerprintIndex,
        settings: IndexSettings,
        clock: Clock,
    ) -> None:
        """The index is bound to the embedder's model at the first step."""
        self._pages = pages
        self._index = index
        self._embedder = embedder
        self._fingerprints = fingerprints
        self._settings = settings
        self._clock = clock
        self._opened = False

    async def step(self, record: UniqueDocument) -> Sequence[Record]:
        """What became of one document; raises EmbedderMismatchError if the index holds another model's vectors."""
        return (await self.step_batch([record]))[0]

    async def step_batch(self, records: Sequence[UniqueDocument]) -> list[Sequence[Record]]:
        """What became of each document, in order: as `step`, with all texts embedded and written together."""
        if not self._opened:
            await self._index.open(self._embedder.name, self._embedder.dimensions)
            self._opened = True
        results: list[Sequence[Record]] = []
        for wave in _waves(records):
            stored = await self._pages.get_many([record.document.document_key for record in wave])
            works = [self._plan(record, stored.get(record.document.document_key)) for record in wave]
            overtaken = await self._write([work for work in works if not work.superseded])
            results += [self._results(work, overtaken) for work in works]
        return results

    def _plan(self, record: UniqueDocument, stored: StoredPage | None) -> _Work:
        if record.novelty is Novelty.WITHDRAWN:
            return _Work(record, stored, Patch(removed=stored.chunks if stored else ()))
        chunks = chunk_document(record.document, self._settings)
        return _Work(record, stored, patch(chunks, record.document, stored))

    async def _write(self, works: Sequence[_Work]) -> frozenset[Key]:
        """Bring index and pages up to date; gives the documents of which something newer was known meanwhile."""
        await self._pages.put_many([
            pending(work.stored, work.change)
            for work in works
            if work.stored and not work.withdrawn and not work.change.empty
        ])  # fmt: skip
        await self._write_chunks([chunk for work in works for chunk in work.change.added])
        removed = [key for work in works for key in work.change.removed]
        if removed:
            await self._index.delete(removed)
        return await self._finish(works)

    async def _write_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Embed and write chunks, at most `embed_batch_max` at a time."""
        size = max(1, self._settings.embed_batch_max)
        for start in range(0, len(chunks), size):
            batch = chunks[start : start + size]
            vectors = await self._embedder.embed([embedding_text(chunk) for chunk in batch])
            await self._index.upsert(batch, self._checked(vectors, len(batch)))

    def _checked(self, vectors: Vectors, rows: int) -> Vectors:
        """The vectors, if they have the promised shape; a wrong one would spoil the index silently."""
        if vectors.shape != (rows, self._embedder.dimensions) or not np.isfinite(vectors).all():
            wanted = (rows, self._embedder.dimensions)
            raise ValueError(f"{self._embedder.name} gave vectors of shape {vectors.shape}, not finite {wanted}")
        return vectors

    async def _finish(self, works: Sequence[_Work]) -> frozenset[Key]:
        """Store the pages with their manifests, and commit their fingerprints; gives those that were overtaken."""
        overtaken: set[Key] = set()
        for work in works:
            document = work.document
            if work.withdrawn and not await self._pages.delete(
                document.document_key, fetched_at_ms=document.fetched_at_ms
            ):
                overtaken.add(document.document_key)
        kept = [work for work in works if not work.withdrawn]
        now_ms = self._clock.now_ms()
        done = await self._pages.put_many(
            [StoredPage(document=work.document, chunks=work.change.manifest, indexed_at_ms=now_ms) for work in kept]
        )
        for work, stored in zip(kept, done, strict=True):
            if stored:
                await self._fingerprints.commit(work.document.document_key, work.document.fetch_id)
            else:
                overtaken.add(work.document.document_key)
                await self._yield_to_newer(work)
        return frozenset(overtaken)

    async def _yield_to_newer(self, work: _Work) -> None:
        """The page was withdrawn, or a newer fetch stored, meanwhile: take back the chunks that only this one wrote."""
        newer = await self._pages.get(work.document.document_key)
        wanted = frozenset(newer.chunks if newer else ())
        await self._index.delete([chunk.chunk_id for chunk in work.change.added if chunk.chunk_id not in wanted])

    def _results(self, work: _Work, overtaken: frozenset[Key]) -> Sequence[Record]:
        """The fact, if the index changed, and the outcome, unless the duplicate gate has told it."""
        superseded = work.superseded or work.document.document_key in overtaken
        told = work.withdrawn and work.document.withdrawal == DUPLICATE_WITHDRAWAL
        facts = [] if superseded or (work.withdrawn and not work.stored) else [self._indexed(work)]
        return [*facts, *([] if told else [self._outcome(work, superseded=superseded)])]

    def _indexed(self, work: _Work) -> IndexedDocument:
        document, now_ms = work.document, self._clock.now_ms()
        return IndexedDocument(
            document_key=document.document_key,
            crawl_id=document.crawl_id,
            url=document.final_url,
            fetch_id=document.fetch_id,
            chunks_added=_ids(work.change.added),
            chunks_kept=work.change.kept,
            chunks_removed=work.change.removed,
            at_ms=now_ms,
            latency_ms=max(0, now_ms - document.released_at_ms) if document.released_at_ms else 0,
        )

    def _outcome(self, work: _Work, *, superseded: bool) -> FetchOutcome:
        document = work.document
        outcome, reason = OutcomeClass.INDEXED, ""
        if superseded:
            outcome, reason = OutcomeClass.UNCHANGED, "superseded"
        elif work.withdrawn:
            outcome, reason = OutcomeClass.WITHDRAWN, document.withdrawal
        return FetchOutcome(
            url=document.url,
            crawl_id=document.crawl_id,
            request_key=document.request_key,
            fetch_id=document.fetch_id,
            stage=Stage.INDEXER,
            outcome=outcome,
            reason=reason,
            status=document.status,
            at_ms=self._clock.now_ms(),
            validators=document.validators,
            document_key=document.document_key,
            content_sha256=document.content_sha256,
            simhash=document.simhash,
            change=work.record.novelty,
            hydrated=document.hydrated,
        )


def _ids(chunks: Iterable[Chunk]) -> tuple[Key, ...]:
    return tuple(chunk.chunk_id for chunk in chunks)


def _waves(records: Sequence[UniqueDocument]) -> Iterator[list[UniqueDocument]]:
    """The records in order, parted before each that is about a document which its part already holds."""
    wave: list[UniqueDocument] = []
    keys: set[Key] = set()
    for record in records:
        key = record.document.document_key
        if key in keys:
            yield wave
            wave, keys = [], set()
        wave.append(record)
        keys.add(key)
    if wave:
        yield wave
