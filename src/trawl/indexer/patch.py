"""What has to change in the index so that it holds a document (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass

from trawl.indexer.chunks import permitted_purposes
from trawl.ports import Chunk, StoredPage
from trawl.records import ExtractedDocument, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The difference between what the index holds of a document and what it should hold."""

    manifest: tuple[Key, ...] = ()
    """The ids of all chunks that the document has now, in order."""
    added: tuple[Chunk, ...] = ()
    """Chunks to be embedded and written."""
    kept: tuple[Key, ...] = ()
    """Ids of chunks that are there and stay."""
    removed: tuple[Key, ...] = ()
    """Ids of chunks to be deleted."""

    @property
    def empty(self) -> bool:
        """Whether the index holds exactly these chunks already."""
        return not self.added and not self.removed


def patch(chunks: Sequence[Chunk], document: ExtractedDocument, stored: StoredPage | None) -> Patch:
    """The patch from a stored page, or from nothing, to a document's chunks.

    A chunk whose id is in the stored manifest is kept as it is, unless what every chunk says of its document (title,
    URL, language, tags, permitted use) has changed, or the page is marked as being patched (see `pending`): then all
    are written again.
    """
    manifest = tuple(chunk.chunk_id for chunk in chunks)
    before = stored.chunks if stored else ()
    usable = frozenset(before) if stored and not is_pending(stored) and same_labels(document, stored.document) else ()
    wanted = frozenset(manifest)
    return Patch(
        manifest=manifest,
        added=tuple(chunk for chunk in chunks if chunk.chunk_id not in usable),
        kept=tuple(key for key in manifest if key in usable),
        removed=tuple(key for key in before if key not in wanted),
    )


def same_labels(one: ExtractedDocument, other: ExtractedDocument) -> bool:
    """Whether two versions of a document say the same about it in each of their chunks."""
    return (
        one.title == other.title
        and one.final_url == other.final_url
        and one.language == other.language
        and one.tags == other.tags
        and permitted_purposes(one.evidence) == permitted_purposes(other.evidence)
    )


def pending(stored: StoredPage, change: Patch) -> StoredPage:
    """The stored page, marked as being patched: its manifest names every chunk that may be there meanwhile.

    Written before the chunks, so that after a crash in the middle whatever version comes next finds all of them, and
    trusts none.
    """
    known = frozenset(stored.chunks)
    also = tuple(key for key in change.manifest if key not in known)
    return StoredPage(document=stored.document, chunks=stored.chunks + also, indexed_at_ms=0)


def is_pending(stored: StoredPage) -> bool:
    """Whether a patch of the page was begun and not finished."""
    return stored.indexed_at_ms == 0
