"""HTML tables as grids: which tables hold data, and their cells with spans expanded (pure)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from trawl.extractor.tree import Node

_SPAN_MAX: Final = 100
_CELLS_MAX: Final = 20_000
_LAYOUT_CELL_CHARS: Final = 600
_GROUPS: Final = frozenset({"thead", "tbody", "tfoot"})
_LAYOUT_TAGS: Final = frozenset({"table", "h1", "h2", "h3", "form", "article", "section", "nav", "blockquote"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One place of the grid; a cell that spans several places is its own origin in the first of them only."""

    node: Node
    origin: bool


def rows(table: Node) -> Iterator[Node]:
    """The table's own rows, those of nested tables excluded."""
    for child in table.children:
        if type(child) is Node:
            if child.tag == "tr":
                yield child
            elif child.tag in _GROUPS:
                yield from (row for row in child.children if type(row) is Node and row.tag == "tr")


def cells(row: Node) -> list[Node]:
    """The cells of a row."""
    return [cell for cell in row.children if type(cell) is Node and cell.tag in ("td", "th")]


def caption(table: Node) -> Node | None:
    """The table's caption."""
    return next((child for child in table.children if type(child) is Node and child.tag == "caption"), None)


def is_data_table(table: Node) -> bool:
    """Whether the table relates values (else it only lays out a page and its cells are read as plain blocks)."""
    if table.get("role") in ("presentation", "none"):
        return False
    lines = [cells(row) for row in rows(table)]
    widths = [len(line) for line in lines if line]
    if not widths or max(widths) < 2:
        return False
    headers = any(cell.tag == "th" for line in lines[:3] for cell in line) or caption(table) is not None
    if len(widths) < 2 and not headers:
        return False
    return not any(_is_layout_cell(cell, headers) for line in lines for cell in line)


def _is_layout_cell(cell: Node, headers: bool) -> bool:
    """Whether a cell holds page structure: nested tables, headings, or running text where nothing is a header."""
    stack, chars = list(cell.children), 0
    while stack:
        item = stack.pop()
        if type(item) is str:
            chars += len(item)
        elif type(item) is Node:
            if item.tag in _LAYOUT_TAGS and not (headers and item.tag != "table"):
                return True
            stack.extend(item.children)
    return not headers and chars > _LAYOUT_CELL_CHARS


def grid(table: Node) -> list[list[Cell]]:
    """The cells by row and column; a spanning cell stands in every place that it covers (HTML 4.9.12.1)."""
    result: list[list[Cell]] = []
    above: dict[int, tuple[int, Node]] = {}  # column -> how many more rows the cell above covers, and the cell
    total = 0
    for row in rows(table):
        line: list[Cell] = []
        below: dict[int, tuple[int, Node]] = {}
        for cell in cells(row):
            _fill(line, above, below)
            down = _span(cell, "rowspan") - 1
            for offset in range(_span(cell, "colspan")):
                if down:
                    below[len(line)] = (down, cell)
                line.append(Cell(cell, offset == 0))
        _fill(line, above, below)
        above = below
        total += len(line)
        if line:
            result.append(line)
        if total > _CELLS_MAX:
            break
    return result


def _fill(line: list[Cell], above: dict[int, tuple[int, Node]], below: dict[int, tuple[int, Node]]) -> None:
    """Append the cells of rows above that reach into the next places of this row."""
    while len(line) in above:
        left, node = above[len(line)]
        if left > 1:
            below[len(line)] = (left - 1, node)
        line.append(Cell(node, origin=False))


def _span(cell: Node, name: str) -> int:
    value = cell.get(name).strip()
    return min(max(int(value), 1), _SPAN_MAX) if value.isascii() and value.isdigit() and len(value) < 6 else 1
