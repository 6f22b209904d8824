"""A content subtree as Markdown and plain text, by blocks (pure).

One recursive walk gives each block in both forms, so that they cannot disagree. Depth is bounded by the tree.
The conversion follows the table of the requirements, CommonMark and GitHub's tables.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from trawl.extractor.boilerplate import HARD_TAGS, is_seen
from trawl.extractor.inline import Inline, Resolve, code_span, escaped_start, link_target
from trawl.extractor.tables import Cell, caption, grid, is_data_table
from trawl.extractor.tree import Node
from trawl.kinds import BlockKind

_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_CLOSING: Final = re.compile(r"(?:^|(?<=\s))#+$")
"""What would close a heading (CommonMark 4.2) and not be part of it."""
_LANGUAGE: Final = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|highlight|brush:?)-?\s?([\w+#.-]+)")
_BAR: Final = re.compile(r"(?<!\\)\|")
_FENCE: Final = re.compile(r"`{3,}")


@dataclass(slots=True)
class Rendered:
    """One block in both forms; `level` is a heading's level, else 0."""

    kind: BlockKind
    markdown: str
    text: str
    level: int = 0


def render(root: Node, resolve: Resolve) -> list[Rendered]:
    """The blocks of a subtree in document order; `resolve` makes URLs of links and images."""
    return list(_Renderer(resolve).flow(root.children))


def joined_markdown(blocks: Iterable[Rendered]) -> str:
    """The blocks as one Markdown document."""
    return "\n\n".join(block.markdown for block in blocks)


def joined_text(blocks: Iterable[Rendered]) -> str:
    """The blocks as plain text, one blank line between them."""
    return "\n\n".join(block.text for block in blocks if block.text)


class _Renderer:
    """Walks a subtree; `href` is the target of a link around blocks (a card) until its first text takes it."""

    def __init__(self, resolve: Resolve) -> None:
        self.resolve = resolve
        self.href = ""

    def flow(self, items: Iterable[Node | str]) -> Iterator[Rendered]:
        """Block children one by one; runs of inline children between them are paragraphs."""
        run: list[Node | str] = []
        for item in items:
            if type(item) is Node and item.blocky:
                if run:
                    yield from self.paragraph(run)
                    run = []
                yield from self.block(item)
            else:
                run.append(item)
        if run:
            yield from self.paragraph(run)

    def paragraph(self, items: Iterable[Node | str]) -> Iterator[Rendered]:
        markdown, text = self.inline(items)
        if markdown:
            yield Rendered(BlockKind.PARAGRAPH, escaped_start(markdown), text)

    def inline(self, items: Iterable[Node | str]) -> tuple[str, str]:
        inline = Inline(self.resolve)
        inline.add(items)
        markdown, text = inline.markdown(), inline.text()
        if self.href and text and "](" not in markdown:
            markdown = f"[{markdown}]({link_target(self.href)})".replace("\\\n", " ")
            self.href = ""
        return markdown, text

    def block(self, node: Node) -> Iterator[Rendered]:
        tag = node.tag
        if tag in HARD_TAGS or not is_seen(node):
            return
        if tag in _HEADINGS:
            yield from self.heading(node, _HEADINGS[tag])
        elif tag in ("ul", "ol", "menu", "dir"):
            yield from self.listing(node)
        elif tag == "pre":
            yield from self.code(node)
        elif tag == "blockquote":
            yield from self.quote(node)
        elif tag == "hr":
            yield Rendered(BlockKind.OTHER, "---", "")
        elif tag == "table" and is_data_table(node):
            yield from self.table(node)
        elif tag == "dl":
            yield from self.definitions(node)
        elif tag == "a":
            yield from self.card(node)
        else:
            yield from self.flow(node.children)

    def heading(self, node: Node, level: int) -> Iterator[Rendered]:
        markdown, text = self.inline(node.children)
        markdown = _CLOSING.sub(r"\\\g<0>", markdown.replace("\\\n", " "))
        if text:
            yield Rendered(BlockKind.HEADING, "#" * level + " " + markdown, text.replace("\n", " "), level)
        elif markdown:
            yield Rendered(BlockKind.PARAGRAPH, markdown, "")

    def card(self, node: Node) -> Iterator[Rendered]:
        """A link around blocks: the first text inside becomes the link."""
        written = node.get("href")
        self.href = self.resolve(written) if written else ""
        yield from self.flow(node.children)
        self.href = ""

    def listing(self, node: Node) -> Iterator[Rendered]:
        """A list; nested blocks are indented to the item's text (CommonMark 5.2)."""
        ordered, number = node.tag == "ol", _start(node)
        rows: list[str] = []
        texts: list[str] = []
        for item in _items(node):
            blocks = list(self.flow(item.children if item.tag == "li" else [item]))
            body = _item_markdown(blocks)
            if body:
                marker = f"{number}. " if ordered else "- "
                rows.append(marker + _indented(body, " " * len(marker)))
                texts.append("\n".join(block.text for block in blocks if block.text))
                number += 1
        if rows:
            yield Rendered(BlockKind.LIST, "\n".join(rows), "\n".join(texts))

    def quote(self, node: Node) -> Iterator[Rendered]:
        blocks = list(self.flow(node.children))
        if blocks:
            lines = joined_markdown(blocks).split("\n")
            yield Rendered(
                BlockKind.QUOTE, "\n".join(f"> {line}" if line else ">" for line in lines), joined_text(blocks)
            )

    def table(self, node: Node) -> Iterator[Rendered]:
        """A table with its spans expanded; a spanned value is repeated in Markdown and stands once in the text."""
        title = caption(node)
        if title is not None:
            yield from self.flow(title.children)
        done: dict[int, tuple[str, str]] = {}
        lines: list[list[str]] = []
        texts: list[str] = []
        for row in grid(node):
            lines.append([self.cell(cell, done)[0] for cell in row])
            texts.append(" | ".join(filter(None, (self.cell(cell, done)[1] for cell in row if cell.origin))))
        if not any(texts) and not any(map(any, lines)):
            return
        width = max(map(len, lines))
        padded = [f"| {' | '.join(line + [''] * (width - len(line)))} |" for line in lines if any(line)]
        padded.insert(1, "|" + " --- |" * width)
        yield Rendered(BlockKind.TABLE, "\n".join(padded), "\n".join(filter(None, texts)))

    def cell(self, cell: Cell, done: dict[int, tuple[str, str]]) -> tuple[str, str]:
        """A cell on one line: blocks by <br>, items by bullets, code as a span; each cell is rendered once."""
        found = done.get(id(cell.node))
        if found is None:
            blocks = list(self.flow(cell.node.children))
            markdown = _BAR.sub(r"\\|", "<br>".join(filter(None, map(_cell_markdown, blocks))))
            text = " ".join(block.text for block in blocks if block.text)
            found = done[id(cell.node)] = (markdown, text if "\n" not in text else " ".join(text.split()))
        return found

    def definitions(self, node: Node) -> Iterator[Rendered]:
        """Terms in bold, each definition as a paragraph below: every reader of Markdown shows that well."""
        for child in node.children:
            if type(child) is not Node:
                yield from self.paragraph([child])
            elif child.tag == "dt" and not _has_blocks(child):
                markdown, text = self.inline(child.children)
                if text:
                    bold = markdown if "**" in markdown or "\\\n" in markdown else f"**{markdown}**"
                    yield Rendered(BlockKind.PARAGRAPH, bold, text)
            elif child.tag == "div":
                yield from self.definitions(child)
            else:
                yield from self.flow(child.children)

    def code(self, node: Node) -> Iterator[Rendered]:
        """Code byte by byte, fenced by more backticks than it holds; the parser dropped the first newline."""
        text = _code_text(node)
        stripped = text.rstrip().lstrip("\n")
        if stripped.strip():
            longest = max(map(len, _FENCE.findall(stripped)), default=2)
            fence = "`" * (longest + 1)
            yield Rendered(BlockKind.CODE, f"{fence}{_language(node)}\n{stripped}\n{fence}", stripped)


def _start(node: Node) -> int:
    value = node.get("start")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 9 else 1


def _items(node: Node) -> Iterator[Node]:
    for child in node.children:
        if type(child) is Node:
            yield child
        elif type(child) is str and child.strip():
            item = Node("li", {}, None)
            item.children = [child]
            yield item


def _item_markdown(blocks: list[Rendered]) -> str:
    """Blocks of one item: a nested list follows tight, other blocks after a blank line."""
    parts: list[str] = []
    for index, block in enumerate(blocks):
        if index:
            parts.append("\n" if block.kind is BlockKind.LIST else "\n\n")
        parts.append(block.markdown)
    return "".join(parts)


def _indented(body: str, indent: str) -> str:
    return (
        body
        if "\n" not in body
        else "\n".join(line if index == 0 or not line else indent + line for index, line in enumerate(body.split("\n")))
    )


def _cell_markdown(block: Rendered) -> str:
    """A block as part of a cell, on one line."""
    if block.kind is BlockKind.CODE:
        return "<br>".join(code_span(line) for line in block.text.split("\n") if line.strip())
    if block.kind is BlockKind.HEADING:
        return block.markdown.lstrip("#").strip()
    lines = [line.replace("\\\n", "") for line in block.markdown.replace("\\\n", "\n").split("\n")]
    return "<br>".join(
        "• " + line.strip()[2:] if line.lstrip().startswith("- ") else line.strip() for line in lines if line
    )


def _has_blocks(node: Node) -> bool:
    return any(type(child) is Node and child.blocky for child in node.children)


def _code_text(node: Node) -> str:
    """The text of a code block; a line break element is a newline, a block child (one per line) ends its line."""
    parts: list[str] = []
    stack: list[Node | str] = list(reversed(node.children))
    while stack:
        item = stack.pop()
        if type(item) is str:
            parts.append(item)
        elif type(item) is Node and item.tag not in HARD_TAGS:
            if item.tag == "br":
                parts.append("\n")
            elif item.tag in ("div", "p", "li", "tr"):
                stack.append("\n")
            stack.extend(reversed(item.children))
    return "".join(parts)


def _language(node: Node) -> str:
    """The language that the classes of the block, of its code element or of its wrapper name, else nothing."""
    candidates = [node, *(child for child in node.children if type(child) is Node)][:3]
    parent: Node | None = node
    for _ in range(2):
        parent = parent.parent if parent is not None else None
        if parent is not None:
            candidates.append(parent)
    for candidate in candidates:
        for name in ("data-lang", "data-language", "lang"):
            value = candidate.get(name)
            if name != "lang" and value.isascii() and value.isidentifier():
                return value.lower()
        found = _LANGUAGE.search(candidate.get("class"))
        if found and found[1].lower() not in {"none", "default", "plaintext", "text", "plain"}:
            return found[1].lower()
    return ""
