"""Structure-aware, overlapping chunks whose ids survive edits elsewhere in the document (pure).

A document is cut by its headings into sections, and a long section by content-defined places (`trawl.indexer.cutting`)
into pieces, so an edit in one section never changes the chunks of another. A table or a code block stays whole up to
`chunk_chars_max`; a larger one is cut between rows or lines, its header row or fence repeated. Within a section each
piece begins with the last sentences of the piece before it, up to `chunk_overlap_chars`.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import xxhash

from trawl.compliance.decision import decide
from trawl.indexer.cutting import Place, Span, Strength, cut, line_places, sentence_places
from trawl.indexer.markdown import blocks_from_markdown
from trawl.kinds import BlockKind
from trawl.ports import Chunk
from trawl.records import Block, Evidence, ExtractedDocument, Key
from trawl.settings import IndexSettings

HEADING_CHARS_MAX: Final = 200
"""A longer heading is content, and its path entry is shortened to this."""
HEADING_LEVELS_MAX: Final = 8
"""Deeper heading paths keep their innermost entries."""

_TARGET_SHARE: Final = 1.6
# Pieces cut at random places until each is under a limit are about 0.6 of that limit long.

_HEADING: Final = BlockKind.HEADING
_TABLE: Final = BlockKind.TABLE
_CODE: Final = BlockKind.CODE
_SEPARATOR: Final = "\n\n"
_FENCES: Final = ("```", "~~~")
_TABLE_RULE: Final = frozenset(" \t:|-")


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one chunk and the headings above it, outermost first."""

    heading_path: tuple[str, ...]
    text: str


class _Section(NamedTuple):
    """What stands between two headings: the text of each block, and whether it is a table or code."""

    heading_path: tuple[str, ...]
    bodies: list[tuple[str, BlockKind]]


class _Rendered(NamedTuple):
    """One block as text that may be joined with its neighbours."""

    text: str
    atomic: bool = False
    """It is not cut any further."""


def chunk_document(document: ExtractedDocument, settings: IndexSettings) -> tuple[Chunk, ...]:
    """The chunks of a document, in order, with distinct ids.

    Taken from its blocks, else from its Markdown, else from its text. Every word of the content is in some chunk's
    text or heading path, and no text is longer than `chunk_chars_max`.
    """
    blocks = document.blocks or blocks_from_markdown(document.markdown) or _text_blocks(document.text)
    permitted = permitted_purposes(document.evidence)
    seen: dict[bytes, int] = {}
    chunks = []
    for position, passage in enumerate(passages(blocks, settings)):
        identity = _identity(document.document_key, passage)
        ordinal = seen.get(identity, 0)
        seen[identity] = ordinal + 1
        chunks.append(
            Chunk(
                chunk_id=_chunk_id(identity, ordinal),
                document_key=document.document_key,
                crawl_id=document.crawl_id,
                url=document.final_url,
                title=document.title,
                heading_path=passage.heading_path,
                text=passage.text,
                position=position,
                fetched_at_ms=document.fetched_at_ms,
                language=document.language,
                tags=document.tags,
                permitted=permitted,
            )
        )
    return tuple(chunks)


def passages(blocks: Iterable[Block], settings: IndexSettings) -> Iterator[Passage]:
    """The passages that blocks are cut into, in order.

    A heading is the path of what follows it; one that nothing follows is a passage of its own.
    """
    sections = list(_sections(blocks))
    for index, section in enumerate(sections):
        if section.bodies:
            yield from (Passage(section.heading_path, text) for text in _pieces(section.bodies, settings))
            continue
        following = sections[index + 1].heading_path if index + 1 < len(sections) else ()
        leads = (
            len(following) > len(section.heading_path)
            and following[: len(section.heading_path)] == section.heading_path
        )
        if section.heading_path and not leads:
            yield Passage(section.heading_path, section.heading_path[-1][: settings.chunk_chars_max])


def embedding_text(chunk: Chunk) -> str:
    """What a chunk is embedded by: its title and headings, which say what it is about, and its text."""
    path = chunk.heading_path if chunk.title in chunk.heading_path else (chunk.title, *chunk.heading_path)
    return "\n".join((*filter(None, path), chunk.text))


def permitted_purposes(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """The uses that nobody has forbidden, sorted: what is not spoken of is permitted, and the evidence tells which."""
    return tuple(sorted(str(use) for use, decision in decide(evidence).items() if decision.allowed is not False))


def _text_blocks(text: str) -> tuple[Block, ...]:
    """Paragraphs of plain text, parted by blank lines."""
    return tuple(Block(kind=BlockKind.PARAGRAPH, text=part) for part in re.split(r"\n\s*\n", text) if part.strip())


def _identity(document_key: Key, passage: Passage) -> bytes:
    """What makes a chunk the same chunk: its document, its headings and its text."""
    path = "\x1f".join(passage.heading_path).encode("utf-8", "replace")
    text = passage.text.encode("utf-8", "replace")
    return document_key.to_bytes(8, "big", signed=True) + xxhash.xxh3_128_digest(path) + xxhash.xxh3_128_digest(text)


def _chunk_id(identity: bytes, ordinal: int) -> Key:
    """The signed 64-bit id of the chunk with that identity and that ordinal among equal ones."""
    return int.from_bytes(xxhash.xxh3_64_digest(identity + ordinal.to_bytes(4, "big")), "big", signed=True)


def _sections(blocks: Iterable[Block]) -> Iterator[_Section]:
    """The blocks parted at every heading, and wherever the heading path changes without one."""
    cleaned: dict[tuple[str, ...], tuple[str, ...]] = {}
    path: tuple[str, ...] = ()
    content: list[tuple[str, BlockKind]] = []
    opened = False
    for block in blocks:
        heading = block.kind is _HEADING
        own = cleaned.get(block.heading_path)
        if own is None:
            own = cleaned[block.heading_path] = _clean_path(block.heading_path)
        body = ""
        if heading:
            title = _clean(block.text)
            own = _own_path(title[:HEADING_CHARS_MAX], own)
            body = block.text.strip() if len(title) > HEADING_CHARS_MAX else ""
        else:
            body = _body(block)
        if heading or own != path:
            if content or opened:
                yield _Section(path, content)
            path, content, opened = own, [], heading
        if body:
            content.append((body, block.kind))
    if content or opened:
        yield _Section(path, content)


def _own_path(title: str, above: tuple[str, ...]) -> tuple[str, ...]:
    """The path of what follows a heading, whether or not its own path already ends with it."""
    if not title or (above and above[-1] == title):
        return above
    return (*above, title)[-HEADING_LEVELS_MAX:]


def _clean_path(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(_clean(title)[:HEADING_CHARS_MAX] for title in path if title.strip())[-HEADING_LEVELS_MAX:]


def _clean(title: str) -> str:
    return " ".join(title.split())


def _body(block: Block) -> str:
    """A block's text: Markdown where the structure matters, else words without markup (a rule or image has none)."""
    if block.kind is _TABLE or block.kind is _CODE:
        return (block.markdown or block.text).strip("\n")
    return block.text.strip()


def _pieces(bodies: Sequence[tuple[str, BlockKind]], settings: IndexSettings) -> Iterator[str]:
    """The texts of the chunks of one section."""
    run: list[_Rendered] = []
    for text, kind in bodies:
        if kind is not _TABLE and kind is not _CODE:
            run.append(_Rendered(text))
        elif len(text) <= settings.chunk_chars_max:
            run.append(_Rendered(text, atomic=True))
        elif framed := list(_framed(text, kind, settings)):
            yield from _run_pieces(run, settings)
            yield from framed
            run = []
    yield from _run_pieces(run, settings)


def _run_pieces(parts: Sequence[_Rendered], settings: IndexSettings) -> Iterator[str]:
    """The texts of the chunks of neighbouring parts."""
    size_max = _size_max(settings)
    text = _SEPARATOR.join(part.text for part in parts)
    if len(text) <= size_max:
        if text:
            yield text
        return
    places = _places(parts, size_max)
    spans = cut(text, places, size_max)
    strong = [place.offset for place in places if place.strength is not Strength.WORD]
    for before, span in zip([None, *spans], spans, strict=False):
        start = _overlap_start(before, span, strong, settings) if before else span.start
        piece = text[start : span.end].strip("\n").rstrip()
        if piece:
            yield piece


def _size_max(settings: IndexSettings) -> int:
    """The size under which a piece is not cut any further, chosen so that pieces average the target."""
    return max(1, min(int(settings.chunk_chars_target * _TARGET_SHARE), settings.chunk_chars_max))


def _places(parts: Sequence[_Rendered], size_max: int) -> list[Place]:
    """Where the joined parts of a section may be cut: between any two, and inside those that are not atomic."""
    places: list[Place] = []
    offset = 0
    for part in parts:
        if offset:
            places.append(Place(offset, Strength.BLOCK))
        if not part.atomic:
            places += sentence_places(part.text, start=offset, size_max=size_max)
        offset += len(part.text) + len(_SEPARATOR)
    return places


def _overlap_start(before: Span, span: Span, strong: Sequence[int], settings: IndexSettings) -> int:
    """Where the piece begins when it repeats the last whole sentences of the piece before it."""
    room = min(settings.chunk_overlap_chars, settings.chunk_chars_max - (span.end - span.start))
    earliest = max(before.start, span.start - room)
    first = bisect_left(strong, earliest)
    return min(strong[first], span.start) if first < len(strong) else span.start


def _framed(text: str, kind: BlockKind, settings: IndexSettings) -> Iterator[str]:
    """A table or code block over the hard limit as several texts, each with header or fence."""
    head, body, foot = _frame(kind, text)
    size_max = _size_max(settings) - len(head) - len(foot)
    if size_max < _size_max(settings) // 2:  # a frame that fills half of each piece is not worth repeating
        head, body, foot, size_max = "", text, "", _size_max(settings)
    for start, end in cut(body, line_places(body, size_max=size_max), size_max):
        piece = body[start:end].strip("\n")
        if piece.strip():
            yield head + piece + foot


def _frame(kind: BlockKind, text: str) -> tuple[str, str, str]:
    """What is repeated before each part of a large block, the parts together, and what is repeated after each."""
    first, _, rest = text.rstrip().partition("\n")
    if kind is BlockKind.CODE and first.lstrip().startswith(_FENCES):
        body, _, last = rest.rpartition("\n")
        if last.lstrip().startswith(_FENCES):
            return f"{first}\n", body, f"\n{last}"
    rule, _, rows = rest.partition("\n")
    if kind is BlockKind.TABLE and "|" in first and "-" in rule and _TABLE_RULE.issuperset(rule):
        return f"{first}\n{rule}\n", rows, ""
    return "", text, ""
