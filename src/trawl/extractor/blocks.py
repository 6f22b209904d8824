"""The content as blocks with their heading path, for chunking and change detection (pure)."""

import re
from collections.abc import Iterable
from typing import Final

from trawl.extractor.inline import escaped, escaped_start
from trawl.extractor.markdown import Rendered
from trawl.kinds import BlockKind
from trawl.records import Block

_MARKDOWN_HEADING: Final = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")


def content_blocks(rendered: Iterable[Rendered]) -> tuple[Block, ...]:
    """Blocks in document order; each knows the headings above it, outermost first, a heading not itself."""
    path: list[tuple[int, str]] = []
    blocks: list[Block] = []
    names: tuple[str, ...] = ()
    for block in rendered:
        if block.level:
            while path and path[-1][0] >= block.level:
                path.pop()
            names = tuple(name for _, name in path)
        blocks.append(Block(kind=block.kind, text=block.text, markdown=block.markdown, heading_path=names))
        if block.level:
            path.append((block.level, block.text))
            names = (*names, block.text)
    return tuple(blocks)


def plain_blocks(text: str, *, is_markdown: bool) -> list[Rendered]:
    """Plain text or Markdown as paragraphs; Markdown stays as written, fenced code is one block."""
    if not is_markdown:
        return [
            Rendered(BlockKind.PARAGRAPH, escaped_start(escaped(part)).replace("\n", "\\\n"), part)
            for part in map(str.strip, _PARAGRAPHS.split(text))
            if part
        ]
    return [_markdown_block(part) for part in _fenced_paragraphs(text)]


def _fenced_paragraphs(text: str) -> list[str]:
    parts: list[list[str]] = [[]]
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if fence:
            fence = "" if mark == fence else fence
        elif mark in ("```", "~~~"):
            fence = mark
        if not fence and not line.strip():
            parts.append([])
        else:
            parts[-1].append(line)
    return ["\n".join(part) for part in parts if any(line.strip() for line in part)]


def _markdown_block(part: str) -> Rendered:
    heading = _MARKDOWN_HEADING.match(part)
    if heading and "\n" not in part:
        return Rendered(BlockKind.HEADING, part, heading[2], len(heading[1]))
    first = part.lstrip()
    if first.startswith(("```", "~~~")):
        lines = first.split("\n")
        return Rendered(BlockKind.CODE, part, "\n".join(lines[1:-1] if len(lines) > 2 else lines[1:]))
    if first.startswith("|"):
        return Rendered(BlockKind.TABLE, part, part)
    if first.startswith(("- ", "* ", "+ ", "1. ")):
        return Rendered(BlockKind.LIST, part, part)
    return Rendered(BlockKind.QUOTE if first.startswith(">") else BlockKind.PARAGRAPH, part, part)
