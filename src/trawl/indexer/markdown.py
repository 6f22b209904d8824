"""Blocks from Markdown, for documents that come without them (pure).

Reads only what cuts a document into blocks: ATX headings, fences, pipe tables, lists, quotes and paragraphs
(CommonMark 0.31, sections 4 and 5; GFM, section 4.10). Inline markup is left in the text.
"""

import re
from collections.abc import Iterator
from typing import Final

from trawl.kinds import BlockKind
from trawl.records import Block

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|$)")
_FENCE: Final = re.compile(r"\s*(`{3,}(?=[^`]*$)|~{3,})")
_LIST_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")


def blocks_from_markdown(markdown: str) -> tuple[Block, ...]:
    """The blocks of a Markdown text in order, each with the path of headings above it."""
    blocks: list[Block] = []
    path: list[tuple[int, str]] = []
    for lines in _paragraphs(markdown):
        heading = _HEADING.match(lines[0])
        if heading:
            level, title = len(heading[1]), _title(lines[0][heading.end() :])
            path = [entry for entry in path if entry[0] < level]
            blocks.append(_block(BlockKind.HEADING, title, lines, path))
            path.append((level, title))
        else:
            kind = _kind(lines)
            blocks.append(_block(kind, "\n".join(lines), lines, path))
    return tuple(blocks)


def _title(rest: str) -> str:
    """A heading's text without the closing sequence of number signs that it may have."""
    title = rest.strip()
    unclosed = title.rstrip("#")
    return unclosed.strip() if not unclosed or unclosed[-1].isspace() else title


def _block(kind: BlockKind, text: str, lines: list[str], path: list[tuple[int, str]]) -> Block:
    titles = tuple(title for _, title in path if title)
    return Block(kind=kind, text=text, markdown="\n".join(lines), heading_path=titles)


def _kind(lines: list[str]) -> BlockKind:
    """What a run of lines is, by its first one."""
    first = lines[0].lstrip()
    if _FENCE.match(lines[0]):
        return BlockKind.CODE
    if first.startswith("|"):
        return BlockKind.TABLE
    if first.startswith(">"):
        return BlockKind.QUOTE
    if _LIST_ITEM.match(lines[0]):
        return BlockKind.LIST
    return BlockKind.PARAGRAPH


def _paragraphs(markdown: str) -> Iterator[list[str]]:
    """Runs of lines that belong together: a heading, a whole fence (blank lines included), or lines up to a blank."""
    run: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        opening = _FENCE.match(line)
        if fence:
            run.append(line)
            if opening and opening[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield run
                run, fence = [], ""
        elif opening or _HEADING.match(line):
            if run:
                yield run
            run = [line]
            if opening:
                fence = opening[1]
            else:
                yield run
                run = []
        elif line.strip():
            run.append(line)
        elif run:
            yield run
            run = []
    if run:
        yield run
