"""The duplicate gate in memory."""

from dataclasses import dataclass, replace

from trawl.fingerprint import hamming
from trawl.ports import WITHDRAWN_MAX, DedupVerdict, Fingerprint
from trawl.records import Key, Millis


@dataclass(slots=True)
class _Document:
    fingerprint: Fingerprint
    verdict: DedupVerdict
    sequence: int  # the order in which the texts came
    committed: bool = False


class MemoryFingerprintIndex:
    """Exact and near-duplicate fingerprints, compared with each other one by one."""

    def __init__(self, *, withdrawn_max: int = WITHDRAWN_MAX) -> None:
        self._documents: dict[Key, _Document] = {}
        self._sequence = 0
        self._withdrawn: dict[Key, Millis] = {}  # documents of which fetches before that time are stale
        self._withdrawn_max = withdrawn_max

    async def check_and_add(self, fingerprint: Fingerprint, *, hamming_max: int) -> DedupVerdict:
        """Judge a document and store it unless it is a duplicate; see the port."""
        known = self._documents.get(fingerprint.document_key)
        if known is not None:
            verdict = self._known(known, fingerprint)
            if verdict is not None:
                return verdict
        elif fingerprint.fetched_at_ms < self._withdrawn.get(fingerprint.document_key, fingerprint.fetched_at_ms):
            return DedupVerdict(kind="stale")
        duplicate = self._duplicate(fingerprint, hamming_max)
        if duplicate is not None:
            if known is not None:
                self._withdraw(fingerprint.document_key, fingerprint.fetched_at_ms)
            return duplicate
        self._sequence += 1
        self._withdrawn.pop(fingerprint.document_key, None)
        verdict = _novelty(known)
        self._documents[fingerprint.document_key] = _Document(fingerprint, verdict, self._sequence)
        return verdict

    async def commit(self, document_key: Key, fetch_id: Key) -> None:
        """The document of that fetch is indexed; harmless if repeated or superseded."""
        known = self._documents.get(document_key)
        if known is not None and known.fingerprint.fetch_id == fetch_id:
            known.committed = True

    async def forget(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """The document is withdrawn as of that time, unless a newer fetch of it is stored (then False)."""
        known = self._documents.get(document_key)
        if known is not None and known.fingerprint.fetched_at_ms > fetched_at_ms:
            return False
        self._withdraw(document_key, fetched_at_ms + 1)
        return True

    async def size(self) -> int:
        """Documents stored."""
        return len(self._documents)

    def _withdraw(self, document_key: Key, not_before_ms: Millis) -> None:
        self._documents.pop(document_key, None)
        self._withdrawn[document_key] = max(not_before_ms, self._withdrawn.get(document_key, not_before_ms))
        if len(self._withdrawn) > self._withdrawn_max:
            del self._withdrawn[min(self._withdrawn, key=self._withdrawn.__getitem__)]

    def _known(self, known: _Document, asked: Fingerprint) -> DedupVerdict | None:
        stored = known.fingerprint
        if stored.request_key != asked.request_key:
            if asked.outlives(
                owner_direct=stored.direct,
                owner_sha256=stored.sha256,
                owner_fetched_at_ms=stored.fetched_at_ms,
            ):
                return None
            return DedupVerdict(kind="alias", duplicate_of=stored.document_key, duplicate_of_url=stored.url)
        if (stored.fetch_id, stored.sha256) == (asked.fetch_id, asked.sha256):
            return known.verdict
        if stored.fetched_at_ms > asked.fetched_at_ms:
            return DedupVerdict(kind="stale")
        same = (stored.sha256, stored.namespace, stored.version) == (asked.sha256, asked.namespace, asked.version)
        if same and known.committed:
            known.fingerprint = replace(
                stored, fetch_id=asked.fetch_id, fetched_at_ms=asked.fetched_at_ms, url=asked.url
            )
            known.verdict = DedupVerdict(
                kind="unchanged", previous_sha256=stored.sha256, previous_simhash=stored.simhash
            )
            return known.verdict
        return None

    def _duplicate(self, asked: Fingerprint, hamming_max: int) -> DedupVerdict | None:
        others = [
            other
            for key, other in self._documents.items()
            if key != asked.document_key
            and (other.fingerprint.namespace, other.fingerprint.version) == (asked.namespace, asked.version)
        ]
        same = [other for other in others if other.fingerprint.sha256 == asked.sha256]
        if same:
            return _duplicate_of("exact", min(same, key=lambda other: other.sequence), 0)
        if not asked.near:
            return None
        near = [
            (hamming(other.fingerprint.simhash, asked.simhash), other.sequence, other)
            for other in others
            if other.fingerprint.near
        ]
        distance, _, closest = min(near, default=(hamming_max + 1, 0, None))
        return _duplicate_of("near", closest, distance) if closest is not None and distance <= hamming_max else None


def _duplicate_of(kind: str, other: _Document, distance: int) -> DedupVerdict:
    stored = other.fingerprint
    return DedupVerdict(kind=kind, duplicate_of=stored.document_key, duplicate_of_url=stored.url, distance=distance)


def _novelty(known: _Document | None) -> DedupVerdict:
    """`changed` against the version that was committed last; a version that never was committed was never there."""
    if known is None:
        return DedupVerdict(kind="new")
    if not known.committed:
        return known.verdict
    stored = known.fingerprint
    return DedupVerdict(kind="changed", previous_sha256=stored.sha256, previous_simhash=stored.simhash)
