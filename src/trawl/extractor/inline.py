"""Inline content as Markdown and as plain text, in one walk (pure).

Markdown is CommonMark with GitHub's tables and strikethrough. Literal characters that Markdown would read as markup are
escaped, emphasis never begins or ends with white space, and a link without text is dropped.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from trawl.extractor.boilerplate import HARD_TAGS, is_seen
from trawl.extractor.emphasis import CLOSE, CONTROLS, OPEN, resolve
from trawl.extractor.tree import Node

Resolve: TypeAlias = Callable[[str], str]
"""Makes a URL of an href or src as written, empty if it leads nowhere."""

_SPECIAL: Final = re.compile(r"[\\`*\[\]]|~(?=~)|(?<=~)~|(?<![^\W_])_|_(?![^\W_])|<(?=[A-Za-z/!?])|&(?=#?\w+;)|!(?=\[)")
_SPECIAL_CHECK: Final = re.compile(r"[\\`*_\[\]~<&]")
_LINE_START: Final = re.compile(r"(?:#{1,6}(?:\s|$)|>|[+-](?:\s|$)|[=-]+\s*$|:(?:\s|$))")
_ORDERED_START: Final = re.compile(r"(\d{1,9})([.)](?:\s|$))")
_CONTROLS: Final = re.compile(f"[{CONTROLS}]")
_CODE_END: Final = "\x07"
_TOUCHING: Final = re.compile(r"(?<!`)`\x07`(?!`)")
_TICKS: Final = re.compile(r"`+")
_PERMALINKS: Final = frozenset({"", "#", "¶", "§", "🔗", "↩", "↩︎"})
_EMPHASIS: Final = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE_TAGS: Final = frozenset({"code", "kbd", "samp", "tt"})
_URL_UNSAFE: Final = {ord(" "): "%20", ord("\n"): "", ord("\r"): "", ord("\t"): "", ord("<"): "%3C", ord(">"): "%3E"}


def escaped(text: str) -> str:
    """Literal text as Markdown within a line."""
    return _SPECIAL.sub(r"\\\g<0>", text) if _SPECIAL_CHECK.search(text) else text


def escaped_start(markdown: str) -> str:
    """A paragraph whose first characters would begin a heading, list, quote, rule or definition, escaped."""
    if _LINE_START.match(markdown):
        return "\\" + markdown
    return _ORDERED_START.sub(r"\1\\\2", markdown, count=1) if _ORDERED_START.match(markdown) else markdown


def code_span(text: str) -> str:
    """Text as a code span, fenced by more backticks than it holds (CommonMark 6.1)."""
    ticks = "`" * (max(map(len, _TICKS.findall(text)), default=0) + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def link_target(url: str) -> str:
    """A URL as a link destination: no white space, parentheses only in pairs."""
    url = url.strip().translate(_URL_UNSAFE)
    if "(" in url or ")" in url:
        url = url.replace("(", "%28").replace(")", "%29")
    return url


def _finished(line: str) -> str:
    """Emphasis resolved; code spans that touch are one, or stand apart if their fences differ."""
    line = resolve(line)
    if _CODE_END in line:
        line = _TOUCHING.sub("", line)
        line = line.replace(f"{_CODE_END}`", " `").replace(_CODE_END, "")
    return line


class Inline:
    """Collects the inline items of one block; `markdown()` and `text()` give both forms, white space collapsed."""

    __slots__ = ("_md", "_resolve", "_text", "emphasised", "images")

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._md: list[str] = []
        self._text: list[str] = []
        self.images = 0
        self.emphasised = False

    def add(self, items: Iterable[Node | str]) -> None:
        """Add nodes and texts in document order."""
        md, text = self._md, self._text
        for item in items:
            if type(item) is str:
                clean = item if item.isprintable() else _CONTROLS.sub("", item)
                text.append(clean)
                md.append(escaped(clean))
            elif type(item) is Node:
                self._element(item, item.tag)

    def markdown(self) -> str:
        """What was added, as Markdown on one line, hard breaks as backslash and newline."""
        joined = "".join(self._md)
        if "\0" not in joined:
            line = " ".join(joined.split())
            return _finished(line) if self.emphasised else line
        lines = [" ".join(part.split()) for part in joined.split("\0")]
        if self.emphasised:  # a range must not cross a hard break, so each line stands alone
            lines = [_finished(line) for line in lines]
        return "\\\n".join(filter(None, lines))

    def raw(self) -> str:
        """What was added, white space as it stands: its text, or the Markdown of an image alone."""
        return "".join(self._text) or "".join(self._md)

    def text(self) -> str:
        """What was added, as plain text; hard breaks are newlines."""
        joined = "".join(self._text)
        if "\0" not in joined:
            return " ".join(joined.split())
        return "\n".join(filter(None, (" ".join(line.split()) for line in joined.split("\0"))))

    def _element(self, node: Node, tag: str) -> None:
        if tag == "a":
            self._link(node)
        elif tag == "br":
            self._md.append("\0")
            self._text.append("\0")
        elif tag == "img":
            self._image(node)
        elif tag in _EMPHASIS:
            self._wrapped(node, _EMPHASIS[tag])
        elif tag in _CODE_TAGS:
            self._code(node)
        elif tag == "input":
            self._checkbox(node)
        elif tag not in HARD_TAGS and is_seen(node):
            self.add(node.children)
            if node.blocky:
                self._md.append(" ")
                self._text.append(" ")

    def _nested(self, node: Node) -> "Inline":
        inner = Inline(self._resolve)
        inner.add(node.children)
        self.images += inner.images
        return inner

    def _link(self, node: Node) -> None:
        inner = self._nested(node)
        text = inner.text()
        markdown = inner.markdown().replace("\\\n", " ")
        written = node.get("href")
        if text in _PERMALINKS and not inner.images:
            return
        if not markdown:
            return
        url = self._resolve(written) if written else ""
        if url:
            self._escape_bang()
        self._spaced(inner, f"[{markdown}]({link_target(url)})" if url else markdown, text)

    def _escape_bang(self) -> None:
        """An exclamation mark right before a link would make an image of it."""
        for index in range(len(self._md) - 1, -1, -1):
            piece = self._md[index]
            if piece.strip(CONTROLS):
                if piece.endswith("!"):
                    self._md[index] = piece[:-1] + "\\!"
                return

    def _spaced(self, inner: "Inline", markdown: str, text: str) -> None:
        """Append with the white space that stood inside the element moved outside it."""
        raw = inner.raw()
        before = " " if raw[:1].isspace() or raw[:1] == "\0" else ""
        after = " " if raw[-1:].isspace() or raw[-1:] == "\0" else ""
        self._md.append(f"{before}{markdown}{after}")
        self._text.append(f"{before}{text}{after}")

    def _wrapped(self, node: Node, marker: str) -> None:
        self.emphasised = True
        self._md.append(OPEN[marker])
        self.add(node.children)
        self._md.append(CLOSE[marker])

    def _code(self, node: Node) -> None:
        raw = node.text()
        text = " ".join(raw.split())
        if text:
            before, after = (" " if raw[:1].isspace() else ""), (" " if raw[-1:].isspace() else "")
            self.emphasised = True
            self._md.append(f"{before}{code_span(text)}{_CODE_END}{after}")
            self._text.append(f"{before}{text}{after}")

    def _image(self, node: Node) -> None:
        alt = " ".join(node.get("alt").split())
        url = self._resolve(image_source(node))
        if url and not _is_pixel(node):
            self.images += 1
            self._md.append(f"![{escaped(alt)}]({link_target(url)})")

    def _checkbox(self, node: Node) -> None:
        if node.get("type").lower() == "checkbox" and node.parent is not None and not self._text:
            self._md.append("[x] " if "checked" in node.attrs else "[ ] ")


def image_source(node: Node) -> str:
    """The image's URL as written; of a lazily loaded image the real one, not the placeholder. Data URLs are dropped."""
    for name in ("data-src", "data-lazy-src", "data-original", "src"):
        value = node.get(name).strip()
        if value and not value.startswith("data:"):
            return value
    sources = (node.get("srcset") or node.get("data-srcset")).strip()
    return "" if sources.startswith("data:") else sources.split(",")[0].split(" ")[0]


def _is_pixel(node: Node) -> bool:
    """Whether the image is a tracking pixel by its declared size."""
    return node.get("width") in {"0", "1"} or node.get("height") in {"0", "1"}
