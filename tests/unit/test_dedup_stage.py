"""The duplicate gate over the memory index: what passes, what ends, and what repetition changes."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from trawl.adapters.clocks import ManualClock
from trawl.adapters.memory import MemoryFingerprintIndex
from trawl.dedup.namespace import namespace_of
from trawl.dedup.stage import DedupStage
from trawl.fingerprint import content_sha256, hamming, simhash64
from trawl.kinds import DUPLICATE_WITHDRAWAL, DedupScope, Novelty, OutcomeClass, Stage
from trawl.ports import DedupVerdict, Fingerprint
from trawl.records import ExtractedDocument, FetchOutcome, Payload, Record, UniqueDocument, Validators
from trawl.settings import DedupSettings

NOW_MS = 1_000_000


def words(count: int, seed: int) -> str:
    rng = random.Random(seed)
    return " ".join("".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(count))


LONG = words(600, 1)
NEAR = LONG.replace(LONG.split()[300], "changed", 1)


def document(key: int, text: str, *, fetch: int = 1, crawl: str = "c", **fields: object) -> ExtractedDocument:
    """The document of one request, fetched for the given time, with its fingerprints as the extractor sets them."""
    simhash = simhash64(text)
    base = ExtractedDocument(
        document_key=key,
        crawl_id=crawl,
        request_key=key * 10,
        fetch_id=key * 1000 + fetch,
        url=f"http://site.test/r{key}",
        final_url=f"http://site.test/d{key}",
        fetched_at_ms=fetch * 1000,
        status=200,
        text=text,
        markdown=text,
        content_sha256=content_sha256(text),
        simhash=simhash.value,
        simhash_tokens=simhash.tokens,
        fingerprint_version=simhash.version,
        validators=Validators(etag=f'"{fetch}"'),
    )
    return replace(base, **fields)  # type: ignore[arg-type]  # the fields are given by the tests below


class Notes:
    """A tap that notes what it sees, and hands bodies on by reference."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, str]] = []

    async def document(self, document: ExtractedDocument, duplicate_of: str) -> ExtractedDocument:
        self.seen.append(("document", document.document_key, duplicate_of))
        return replace(document, html=replace(document.html, ref="kept"))

    async def withdrawn(self, document: ExtractedDocument) -> None:
        self.seen.append(("withdrawn", document.document_key, ""))


@pytest.fixture
def index() -> MemoryFingerprintIndex:
    return MemoryFingerprintIndex()


@pytest.fixture
def stage(index: MemoryFingerprintIndex) -> DedupStage:
    return DedupStage(index, DedupSettings(), ManualClock(NOW_MS))


def unique_of(records: Sequence[Record]) -> UniqueDocument:
    (record,) = records
    assert isinstance(record, UniqueDocument)
    return record


def outcome_of(records: Sequence[Record]) -> FetchOutcome:
    outcomes = [record for record in records if isinstance(record, FetchOutcome)]
    assert len(outcomes) == 1
    return outcomes[0]


async def test_a_new_text_passes_whole(stage: DedupStage) -> None:
    first = document(1, LONG)
    assert unique_of(await stage.step(first)) == UniqueDocument(document=first, novelty=Novelty.NEW)


async def test_the_same_text_elsewhere_ends_as_an_exact_duplicate(stage: DedupStage) -> None:
    await stage.step(document(1, LONG))
    second = document(2, LONG.upper() + "!")
    withdrawal, outcome = await stage.step(second)
    assert outcome == FetchOutcome(
        url=second.url,
        crawl_id="c",
        request_key=20,
        fetch_id=2001,
        stage=Stage.DEDUP,
        outcome=OutcomeClass.DUPLICATE,
        reason="exact_duplicate",
        status=200,
        detail="same text as http://site.test/d1",
        at_ms=NOW_MS,
        validators=Validators(),  # a 304 would hide its text
        document_key=2,
        duplicate_of=1,
        duplicate_of_url="http://site.test/d1",
        content_sha256=second.content_sha256,
        simhash=second.simhash,
    )
    assert isinstance(withdrawal, UniqueDocument)
    assert withdrawal.document.withdrawal == DUPLICATE_WITHDRAWAL


async def test_a_text_with_one_word_changed_ends_as_a_near_duplicate(stage: DedupStage) -> None:
    await stage.step(document(1, LONG))
    outcome = outcome_of(await stage.step(document(2, NEAR)))
    assert (outcome.outcome, outcome.reason, outcome.duplicate_of) == (OutcomeClass.DUPLICATE, "near_duplicate", 1)
    assert "of 64 bits differ" in outcome.detail


async def test_a_duplicate_is_never_stored_so_the_first_stays_canonical(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    for key in (1, 2, 3):
        await stage.step(document(key, LONG))
    assert await index.size() == 1
    assert outcome_of(await stage.step(document(4, LONG))).duplicate_of == 1


async def test_the_strict_distance_is_one_setting(index: MemoryFingerprintIndex) -> None:
    distance = hamming(simhash64(LONG).value, simhash64(NEAR).value)
    assert 0 < distance <= 3
    strict = DedupStage(index, DedupSettings(hamming_max=distance - 1), ManualClock())
    await strict.step(document(1, LONG))
    assert unique_of(await strict.step(document(2, NEAR))).novelty is Novelty.NEW


async def test_texts_under_the_minimum_are_duplicates_only_if_equal(index: MemoryFingerprintIndex) -> None:
    stage = DedupStage(index, DedupSettings(hamming_max=7, tokens_min=40), ManualClock())
    consent = "we value your privacy and that of our partners " * 4  # 36 tokens
    assert simhash64(consent).tokens == 36
    await stage.step(document(1, consent))
    same_simhash = document(2, consent + "more", simhash=simhash64(consent).value)
    assert unique_of(await stage.step(same_simhash)).novelty is Novelty.NEW
    assert outcome_of(await stage.step(document(3, consent))).reason == "exact_duplicate"


async def test_pages_without_a_word_are_never_duplicates(stage: DedupStage) -> None:
    for key in (1, 2):
        assert unique_of(await stage.step(document(key, " — "))).novelty is Novelty.NEW


async def test_the_same_fetch_is_never_its_own_duplicate_and_is_emitted_again(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    first = document(1, LONG)
    emitted = await stage.step(first)
    assert await stage.step(first) == emitted
    await index.commit(1, first.fetch_id)
    assert await stage.step(first) == emitted
    changed = document(1, words(600, 2), fetch=2)
    emitted = await stage.step(changed)
    assert unique_of(emitted).novelty is Novelty.CHANGED
    assert await stage.step(changed) == emitted
    duplicate = document(2, changed.text)
    assert await stage.step(duplicate) == await stage.step(duplicate)


async def test_a_recrawl_with_the_same_text_ends_as_unchanged_once_the_text_is_indexed(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    await stage.step(document(1, LONG))
    pending = await stage.step(document(1, LONG, fetch=2))
    assert unique_of(pending).novelty is Novelty.NEW, "the first fetch never reached the index"
    await index.commit(1, document(1, LONG, fetch=2).fetch_id)
    outcome = outcome_of(await stage.step(document(1, LONG, fetch=3)))
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.UNCHANGED, "same_content")
    assert outcome.validators == Validators(etag='"3"')


async def test_a_recrawl_with_another_text_names_what_was_indexed(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    first = document(1, LONG)
    await stage.step(first)
    await index.commit(1, first.fetch_id)
    changed = unique_of(await stage.step(document(1, NEAR, fetch=2)))
    assert changed.novelty is Novelty.CHANGED
    assert (changed.previous_sha256, changed.previous_simhash) == (first.content_sha256, first.simhash)


async def test_an_older_fetch_never_rolls_a_newer_one_back(stage: DedupStage, index: MemoryFingerprintIndex) -> None:
    await stage.step(document(1, LONG, fetch=5))
    outcome = outcome_of(await stage.step(document(1, words(600, 9), fetch=4)))
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.UNCHANGED, "superseded")
    gone = document(1, "", fetch=4, withdrawal="gone")
    assert outcome_of(await stage.step(gone)).reason == "superseded"
    assert await index.size() == 1


async def test_a_second_request_that_ends_at_the_document_is_an_alias(stage: DedupStage) -> None:
    await stage.step(document(1, LONG))
    other = replace(document(1, LONG, fetch=2), request_key=77)
    outcome = outcome_of(await stage.step(other))
    assert (outcome.outcome, outcome.document_key, outcome.request_key) == (OutcomeClass.ALIAS, 1, 77)


async def test_a_withdrawal_forgets_the_fingerprint_and_goes_on(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    await stage.step(document(1, LONG))
    gone = document(1, "", fetch=2, withdrawal="gone")
    assert unique_of(await stage.step(gone)) == UniqueDocument(document=gone, novelty=Novelty.WITHDRAWN)
    assert await stage.step(gone) == [UniqueDocument(document=gone, novelty=Novelty.WITHDRAWN)]
    assert await index.size() == 0
    assert unique_of(await stage.step(document(2, LONG))).novelty is Novelty.NEW


async def test_a_unique_document_turned_duplicate_is_withdrawn_even_if_the_first_answer_was_lost(
    stage: DedupStage, index: MemoryFingerprintIndex
) -> None:
    await stage.step(document(1, LONG))
    other = document(2, words(600, 3))
    await stage.step(other)
    await index.commit(2, other.fetch_id)
    turned = replace(document(2, LONG, fetch=2), content=Payload(inline=b"packed", size_bytes=6))
    for _ in range(2):
        withdrawal, outcome = await stage.step(turned)
        assert isinstance(withdrawal, UniqueDocument)
        assert withdrawal.novelty is Novelty.WITHDRAWN
        assert (withdrawal.document.text, withdrawal.document.markdown, withdrawal.document.blocks) == ("", "", ())
        assert withdrawal.document.content is None
        assert withdrawal.document.fetched_at_ms == turned.fetched_at_ms
        assert isinstance(outcome, FetchOutcome)
        assert outcome.duplicate_of == 1


@pytest.mark.parametrize(
    ("scope", "other_crawl", "other_url", "duplicate"),
    [
        (DedupScope.CRAWL, "c", "http://else.test/x", True),
        (DedupScope.CRAWL, "other", "http://site.test/x", False),
        (DedupScope.GLOBAL, "other", "http://else.test/x", True),
        (DedupScope.PREFIX, "c", "https://site.test/docs/v1/b?page=a/b", True),
        (DedupScope.PREFIX, "c", "https://site.test/docs/v2/a", False),
        (DedupScope.PREFIX, "c", "https://else.test/docs/v1/b", False),
        (DedupScope.PREFIX, "other", "https://site.test/docs/v1/b", False),
        (DedupScope.NONE, "c", "http://site.test/x", False),
    ],
)
async def test_duplicates_are_looked_for_within_the_scope(
    stage: DedupStage, scope: DedupScope, other_crawl: str, other_url: str, *, duplicate: bool
) -> None:
    one = document(1, LONG, dedup_scope=scope, final_url="https://site.test/docs/v1/a")
    other = document(2, LONG, crawl=other_crawl, dedup_scope=scope, final_url=other_url)
    await stage.step(one)
    records = await stage.step(other)
    assert any(isinstance(record, FetchOutcome) for record in records) == duplicate
    assert (namespace_of(one) == namespace_of(other)) == duplicate


async def test_the_tap_sees_unique_documents_duplicates_and_withdrawals_and_may_replace_the_body(
    index: MemoryFingerprintIndex,
) -> None:
    notes = Notes()
    stage = DedupStage(index, DedupSettings(), ManualClock(), tap=notes)
    unique = unique_of(await stage.step(document(1, LONG)))
    assert unique.document.html.ref == "kept"
    await stage.step(document(2, LONG))
    await stage.step(replace(document(1, LONG, fetch=2), request_key=77))
    await stage.step(document(1, "", fetch=3, withdrawal="gone"))
    assert notes.seen == [("document", 1, ""), ("document", 2, "http://site.test/d1"), ("withdrawn", 1, "")]


class UnknownVerdict(MemoryFingerprintIndex):
    """An index of a later version that answers with a verdict this stage does not know."""

    async def check_and_add(self, fingerprint: Fingerprint, *, hamming_max: int) -> DedupVerdict:
        return replace(await super().check_and_add(fingerprint, hamming_max=hamming_max), kind="maybe")


async def test_an_unknown_verdict_is_an_error_that_names_the_page() -> None:
    stage = DedupStage(UnknownVerdict(), DedupSettings(), ManualClock())
    with pytest.raises(ValueError, match=r"'maybe' about http://site\.test/d1"):
        await stage.step(document(1, LONG))
