"""The duplicate gate: each text passes once, and every other document with it is told what it duplicates."""

from collections.abc import Sequence
from dataclasses import replace

from trawl.dedup.namespace import namespace_of
from trawl.kinds import DUPLICATE_WITHDRAWAL, Novelty, OutcomeClass, Stage
from trawl.ports import Clock, DedupVerdict, Fingerprint, FingerprintIndex, Tap
from trawl.records import ExtractedDocument, FetchOutcome, Payload, Record, UniqueDocument, Validators
from trawl.settings import DedupSettings
from trawl.url import request_key


class DedupStage:
    """ExtractedDocument in; UniqueDocument or a terminal FetchOutcome out.

    All memory is in the index, whose check-and-add is one atomic step, so any number of these stages may share it.
    A record that is delivered again gets the same answer: the index knows the fetch that it stored.
    """

    def __init__(
        self, index: FingerprintIndex, settings: DedupSettings, clock: Clock, *, tap: Tap | None = None
    ) -> None:
        """The tap, if there is one, sees each unique document, duplicate and withdrawal before it goes on."""
        self._index = index
        self._settings = settings
        self._clock = clock
        self._tap = tap

    async def step(self, record: ExtractedDocument) -> Sequence[Record]:
        """The unique document or its withdrawal to be indexed, or the outcome that ends the visit."""
        if record.withdrawal:
            return await self._withdraw(record)
        verdict = await self._index.check_and_add(self._fingerprint(record), hamming_max=self._settings.hamming_max)
        match verdict.kind:
            case "new" | "changed":
                return [await self._unique(record, verdict)]
            case "exact" | "near":
                return await self._duplicate(record, verdict)
            case "alias":
                detail = "another request ends at the same document and owns it"
                return [self._outcome(record, OutcomeClass.ALIAS, "same_document", detail)]
            case "unchanged":
                detail = "the text is the one that is indexed"
                return [self._outcome(record, OutcomeClass.UNCHANGED, "same_content", detail)]
            case "stale":
                return [self._superseded(record)]
        raise ValueError(
            f"the fingerprint index answered {verdict.kind!r} about {record.final_url}, which is no verdict"
        )

    def _fingerprint(self, document: ExtractedDocument) -> Fingerprint:
        return Fingerprint(
            namespace=namespace_of(document),
            document_key=document.document_key,
            request_key=document.request_key,
            fetch_id=document.fetch_id,
            fetched_at_ms=document.fetched_at_ms,
            url=document.final_url,
            sha256=document.content_sha256,
            simhash=document.simhash,
            version=document.fingerprint_version,
            direct=document.request_key == request_key(document.crawl_id, document.final_url),
            near=document.simhash_tokens >= self._settings.tokens_min,
        )

    async def _unique(self, document: ExtractedDocument, verdict: DedupVerdict) -> UniqueDocument:
        if self._tap:
            document = await self._tap.document(document, "")
        return UniqueDocument(
            document=document,
            novelty=Novelty.CHANGED if verdict.kind == "changed" else Novelty.NEW,
            previous_sha256=verdict.previous_sha256,
            previous_simhash=verdict.previous_simhash,
        )

    async def _duplicate(self, document: ExtractedDocument, verdict: DedupVerdict) -> Sequence[Record]:
        """The outcome, and a withdrawal in case the document was unique before.

        The withdrawal is sent whether or not the index remembers the document: the index forgets it in the step that
        finds the duplicate, so after a crash nothing else would take the old text out of the search index.
        """
        if self._tap:
            await self._tap.document(document, verdict.duplicate_of_url)
        near = verdict.kind == "near"
        detail = f"near-duplicate of {verdict.duplicate_of_url}: {verdict.distance} of 64 bits differ"
        outcome = self._outcome(
            document,
            OutcomeClass.DUPLICATE,
            "near_duplicate" if near else "exact_duplicate",
            detail if near else f"same text as {verdict.duplicate_of_url}",
        )
        told = replace(
            outcome,
            duplicate_of=verdict.duplicate_of,
            duplicate_of_url=verdict.duplicate_of_url,
            # A 304 would hide its text for ever, also once the original has another or is gone.
            validators=Validators(),
        )
        return [_withdrawal(document, DUPLICATE_WITHDRAWAL, verdict), told]

    async def _withdraw(self, document: ExtractedDocument) -> Sequence[Record]:
        if not await self._index.forget(document.document_key, fetched_at_ms=document.fetched_at_ms):
            return [self._superseded(document)]
        if self._tap:
            await self._tap.withdrawn(document)
        return [UniqueDocument(document=document, novelty=Novelty.WITHDRAWN)]

    def _superseded(self, document: ExtractedDocument) -> FetchOutcome:
        detail = "a newer fetch of the document came first"
        return self._outcome(document, OutcomeClass.UNCHANGED, "superseded", detail)

    def _outcome(self, document: ExtractedDocument, outcome: OutcomeClass, reason: str, detail: str) -> FetchOutcome:
        return FetchOutcome(
            url=document.url,
            crawl_id=document.crawl_id,
            request_key=document.request_key,
            fetch_id=document.fetch_id,
            stage=Stage.DEDUP,
            outcome=outcome,
            reason=reason,
            status=document.status,
            detail=detail,
            at_ms=self._clock.now_ms(),
            validators=document.validators,
            document_key=document.document_key,
            content_sha256=document.content_sha256,
            simhash=document.simhash,
            hydrated=document.hydrated,
        )


def _withdrawal(document: ExtractedDocument, reason: str, verdict: DedupVerdict) -> UniqueDocument:
    """The withdrawal of a document, without its content."""
    empty = replace(
        document,
        withdrawal=reason,
        html=Payload(),
        extracted="{}",
        text="",
        markdown="",
        blocks=(),
        content=None,
        response_headers=(),
    )
    return UniqueDocument(
        document=empty,
        novelty=Novelty.WITHDRAWN,
        previous_sha256=verdict.previous_sha256,
        previous_simhash=verdict.previous_simhash,
    )
