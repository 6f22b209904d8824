"""The duplicate gate."""

from dataclasses import dataclass
from typing import Final, Protocol

from trawl.records import Key, Millis

WITHDRAWN_MAX: Final = 100_000
"""So many withdrawn documents are remembered, those of the newest fetches, so that no older fetch brings them back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What check-and-add is asked with."""

    namespace: str
    """Duplicates are looked for within it (see DedupScope)."""
    document_key: Key
    request_key: Key
    fetch_id: Key
    fetched_at_ms: Millis
    url: str
    sha256: str
    simhash: Key
    version: int
    direct: bool = True
    """Whether the document's own URL was requested, not one that redirects to it."""
    near: bool = True
    """Whether near-duplicates are looked for; False for texts under the minimum token count."""

    def outlives(self, *, owner_direct: bool, owner_sha256: str, owner_fetched_at_ms: Millis) -> bool:
        """Whether its request takes the document over from the one that owns it: by a newer, different text.

        The owner may have died (a redirect that is gone) and would keep the old text for ever. A request for the
        document's own URL never loses it to one that redirects to it.
        """
        changed = self.sha256 != owner_sha256 and self.fetched_at_ms >= owner_fetched_at_ms
        return changed and (self.direct or not owner_direct)


@dataclass(frozen=True, slots=True, kw_only=True)
class DedupVerdict:
    """What check-and-add answered."""

    kind: str
    """new, changed, unchanged, exact, near, alias or stale."""
    duplicate_of: Key | None = None
    duplicate_of_url: str = ""
    distance: int = 0
    """Differing bits, for near."""
    previous_sha256: str = ""
    previous_simhash: Key | None = None


class FingerprintIndex(Protocol):
    """Exact and near-duplicate fingerprints of documents."""

    async def check_and_add(self, fingerprint: Fingerprint, *, hamming_max: int) -> DedupVerdict:
        """One atomic step.

        - The document is known, owned by another request: `alias` (nothing stored), unless `Fingerprint.outlives` says
          that this request becomes its owner; then it is judged as below.
        - It is known with this very fetch id and text: the verdict it got then, again (a redelivery).
        - It is known with a newer fetch, or was withdrawn as of this fetch or a newer one: `stale`.
        - It is known with the same sha256, namespace and version, and committed: `unchanged` (fetch id and time are
          renewed).
        - Another document of the namespace and version has the same sha256: `exact`; or a fingerprint within
          `hamming_max` bits (least distance, then oldest): `near`. Nothing is stored, and what the document had
          before is removed (a unique turned duplicate; older fetches of it are `stale` from then on). A document is
          never a duplicate of itself.
        - Otherwise stored, pending until `commit`: `changed`, with the version that was committed last, if there is
          one; else `new`.
        """
        ...

    async def commit(self, document_key: Key, fetch_id: Key) -> None:
        """The document of that fetch is indexed; harmless if repeated or superseded."""
        ...

    async def forget(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """The document is withdrawn as of that time, unless a newer fetch of it is stored (then False).

        That it is withdrawn is remembered, for the last `WITHDRAWN_MAX` documents by the time of their fetch.
        """
        ...

    async def size(self) -> int:
        """Documents stored."""
        ...
