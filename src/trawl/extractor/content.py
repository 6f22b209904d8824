"""Main content: the page cut into segments, each scored, the kept ones as a tree of their own (pure).

A segment is a run of inline content within one block element (a paragraph, a heading, an item's text, the text of a
div), or one atomic block (code, a data table). Segments are scored with what their ancestors' names say, their text and
link density and their neighbours; the kept ones are copied with their ancestors into the content tree, from which
Markdown, text and blocks are made.
"""

from dataclasses import dataclass
from typing import Final

from trawl.extractor.boilerplate import HARD_TAGS, flags, is_seen
from trawl.extractor.tables import is_data_table
from trawl.extractor.tree import Node

_SHELL_CHARS: Final = 500
_NEAR_LINK: Final = 3
"""So many levels below a link its text counts as the link's."""


@dataclass(slots=True)
class Segment:
    """One unit of the decision to keep or drop."""

    container: Node
    """The block element whose children `start` to `end` make the segment."""
    start: int
    end: int
    flags: int
    """The evidence of the element and all its ancestors."""
    own: int
    """The evidence of the container alone."""
    depth: int
    kind: str
    text: str = ""
    chars: int = 0
    link_chars: int = 0
    links: int = 0
    images: int = 0


class _Walk:
    """Cuts a body into segments; one instance per page."""

    def __init__(self, *, unseen: bool) -> None:
        self.found: list[Segment] = []
        self.unseen = unseen

    def block(self, node: Node, inherited: int, depth: int, near_link: int = 0) -> None:  # noqa: C901 - calls would cost
        """A block element: its runs of inline content are segments, its block children are walked.

        A link around blocks (a card) makes their text link text down to `near_link` levels below this element.
        """
        own = flags(node)
        seen = inherited | own
        linked = near_link > 0
        if node.tag == "a":
            near_link, linked = _NEAR_LINK, True
        else:
            near_link -= linked
        items = node.children
        start = -1
        for index, item in enumerate(items):
            if type(item) is str:
                if start < 0 and not item.isspace():
                    start = index
            elif type(item) is Node and item.blocky:
                if start >= 0:
                    self.close(
                        Segment(node, start, index, seen, own, depth, node.tag), items[start:index], linked=linked
                    )
                    start = -1
                tag = item.tag
                if tag in HARD_TAGS or not (self.unseen or is_seen(item)):
                    continue
                if tag == "pre" or (tag == "table" and is_data_table(item)):
                    self.atom(node, index, item, seen, depth)
                elif item.children:
                    self.block(item, seen, depth + 1, near_link)
            elif start < 0:
                start = index
        if start >= 0:
            self.close(Segment(node, start, len(items), seen, own, depth, node.tag), items[start:], linked=linked)

    def atom(self, node: Node, index: int, item: Node, seen: int, depth: int) -> None:
        """A block that is kept or dropped whole."""
        own = flags(item)
        self.close(Segment(node, index, index + 1, seen | own, own, depth, item.tag), item.children, linked=False)

    def close(self, segment: Segment, items: list[Node | str], *, linked: bool) -> None:
        """Read the content of a segment; one without text or image is nothing."""
        parts: list[str] = []
        _gather(segment, parts, items, linked=linked)
        segment.text = " ".join("".join(parts).split())
        segment.chars = len(segment.text)
        if segment.chars or segment.images:
            self.found.append(segment)


def segments(body: Node) -> list[Segment]:
    """The segments of a page in document order; hidden elements, controls and empty runs give none.

    A page that shows next to nothing without scripts may still carry its text: in `noscript`, or in elements that a
    script would reveal. Then these are read.
    """
    walk = _Walk(unseen=False)
    walk.block(body, 0, 0)
    seen = sum(segment.chars for segment in walk.found)
    if seen < _SHELL_CHARS:
        whole = _Walk(unseen=True)
        whole.block(body, 0, 0)
        if sum(segment.chars for segment in whole.found) > 3 * seen + _SHELL_CHARS:
            return whole.found
    return walk.found


def _gather(segment: Segment, parts: list[str], items: list[Node | str], *, linked: bool) -> None:
    """Add the text and the links of inline items to the segment."""
    for item in items:
        if type(item) is str:
            parts.append(item)
            if linked:
                segment.link_chars += len(item.strip())
        elif type(item) is Node:
            tag = item.tag
            if tag == "a":
                segment.links += 1
                _gather(segment, parts, item.children, linked=True)
            elif tag == "br":
                parts.append(" ")
            elif tag == "img":
                segment.images += 1
            elif tag not in HARD_TAGS and is_seen(item):
                if item.blocky:
                    parts.append(" ")
                _gather(segment, parts, item.children, linked=linked)


def content_tree(body: Node, kept: list[Segment]) -> Node:
    """A tree of the kept segments and their ancestors, in document order; what is copied by reference is not changed.

    A table that only lays out the page becomes plain divisions.
    """
    root = Node("body", body.attrs, None)
    copies: dict[int, Node] = {id(body): root}
    for segment in kept:
        copy = _copied(segment.container, copies)
        copy.children.extend(segment.container.children[segment.start : segment.end])
    return root


_LAYOUT: Final = frozenset(
    ["table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption", "colgroup", "center", "font"]
)


def _copied(node: Node, copies: dict[int, Node]) -> Node:
    """The copy of an element, made with the copies of its ancestors where they are missing."""
    path: list[Node] = []
    current: Node | None = node
    while current is not None and id(current) not in copies:
        path.append(current)
        current = current.parent
    copy = copies[id(current)]
    for original in reversed(path):
        tag = "div" if original.tag in _LAYOUT else original.tag
        # what was hidden and is read all the same is hidden no more
        inner = Node(tag, original.attrs, copy) if is_seen(original) else Node("div", {}, copy)
        inner.blocky = True
        copy.children.append(inner)
        copies[id(original)] = inner
        copy = inner
    return copy
