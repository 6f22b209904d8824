"""Structured data: JSON-LD, microdata, OpenGraph and Twitter cards (pure).

Each JSON-LD block is recovered on its own, so one broken block costs nothing else. The result maps names such as
`schema.org/Product` to lists of items, `opengraph` and `twitter` to their properties; it is JSON-serialisable and
bounded in depth, items and bytes.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from trawl.extractor.tree import Node, Page
from trawl.plain import scalar_text

Item: TypeAlias = dict[str, Any]

_ITEMS_MAX: Final = 500
_DEPTH_MAX: Final = 40
_BLOCK_CHARS_MAX: Final = 2_000_000
_CLOSERS_CHARS_MAX: Final = 256
_WRAPPERS: Final = re.compile(r"^(?:\s|<!--|-->|//\s*<!\[CDATA\[|<!\[CDATA\[|/\*\s*<!\[CDATA\[\s*\*/|//(?=\s))+")
_CLOSERS: Final = re.compile(r"(?:\s|;|//\s*\]\]>|\]\]>|/\*\s*\]\]>\s*\*/|-->|//(?=\s*$))+$")
_STRING_OR_COMMENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+"?|/\*.*?(?:\*/|\Z)|//[^\n]*|<!--.*?(?:-->|\Z)|,(?=\s*[}\]])', re.DOTALL
)
"""What has no end reaches to the end of the text: looking on behind its start would be quadratic."""
_BETWEEN: Final = re.compile(r"[\s,;]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_TYPE_NAME: Final = re.compile(r"^(?:https?:/+(?:www\.)?schema\.org/|schema:)?(\w[\w.-]*)$")
_URL_ATTRS: Final = {
    "a": "href", "area": "href", "link": "href", "img": "src", "audio": "src", "video": "src", "source": "src",
    "iframe": "src", "embed": "src", "track": "src", "object": "data", "meta": "content", "data": "value",
    "meter": "value", "time": "datetime",
}  # fmt: skip


def structured_data(page: Page, bytes_max: int) -> dict[str, Any]:
    """All structured data of a page by class; data beyond `bytes_max` bytes of JSON is dropped, later items first."""
    found: dict[str, Any] = {}
    budget = bytes_max
    for name, value, single in _sources(page):
        size = len(json.dumps(value, ensure_ascii=False)) + len(name) + 8
        if size > budget:
            continue
        budget -= size
        if single:
            found[name] = value
        else:
            found.setdefault(name, []).append(value)
    return found


def _sources(page: Page) -> Iterator[tuple[str, Any, bool]]:
    for count, item in enumerate(json_ld_items(page.json_ld)):
        if count >= _ITEMS_MAX:
            break
        for name in _class_names(item.get("@type")):
            yield name, item, False
    for item in microdata_items(page.microdata):
        for name in _class_names(item.get("@type")):
            yield name, item, False
    for prefixes, name in (
        (("og:", "article:", "product:", "book:", "profile:"), "opengraph"),
        (("twitter:",), "twitter"),
    ):
        properties = meta_properties(page, prefixes)
        if properties:
            yield name, properties, True


def _class_names(kinds: Any) -> list[str]:
    names = kinds if isinstance(kinds, list) else [kinds]
    found = []
    for kind in names[:5]:
        match = _TYPE_NAME.match(kind.strip()) if isinstance(kind, str) else None
        if match:
            found.append(f"schema.org/{match[1]}")
        elif isinstance(kind, str) and kind:
            found.append(kind.strip().partition("://")[2][:200] or kind.strip()[:200])
    return found or ["schema.org/Thing"]


def json_ld_items(blocks: list[str]) -> Iterator[Item]:
    """The top-level items of JSON-LD blocks, graphs opened; what cannot be read in one block does not hurt the next."""
    for block in blocks:
        for value in json_values(block):
            yield from _opened(value, 0)


def _opened(value: Any, depth: int) -> Iterator[Item]:
    if depth > 4:
        return
    if isinstance(value, list):
        for item in value:
            yield from _opened(item, depth + 1)
    elif isinstance(value, dict):
        if "@graph" in value and isinstance(value["@graph"], list | dict):
            yield from _opened(value["@graph"], depth + 1)
            if not value.get("@type"):
                return
            value = {name: inner for name, inner in value.items() if name != "@graph"}
        if value:
            yield value


def json_values(block: str) -> list[Any]:
    """The JSON values of one script: plain, else with wrappers, comments, trailing commas and semicolons taken out."""
    if len(block) > _BLOCK_CHARS_MAX:
        return []
    text = _WRAPPERS.sub("", block).rstrip()
    text = text[:-_CLOSERS_CHARS_MAX] + _CLOSERS.sub("", text[-_CLOSERS_CHARS_MAX:])
    if not text:
        return []
    for attempt in (_as_written, _repaired):
        values = _concatenated(attempt(text))
        if values:
            return values
    return []


def _as_written(text: str) -> str:
    return text


def _repaired(text: str) -> str:
    """Comments and trailing commas out, control characters inside strings escaped."""
    return _STRING_OR_COMMENT.sub(_repair, text).strip()


def _repair(match: re.Match[str]) -> str:
    token = match[0]
    return _CONTROL.sub(lambda control: f"\\u{ord(control[0]):04x}", token) if token[0] == '"' else ""


def _concatenated(text: str) -> list[Any]:
    """Values one after another, with or without commas and semicolons between; those before a broken one are kept."""
    decoder = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
    values: list[Any] = []
    at = 0
    while at < len(text) and len(values) < _ITEMS_MAX:
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        values.append(_bounded(value, 0))
        match = _BETWEEN.match(text, at)
        at = match.end() if match else at
    return [value for value in values if isinstance(value, dict | list)]


def _bounded(value: Any, depth: int) -> Any:
    """The value without what is nested too deep for any reader, numbers that JSON cannot hold, and lone surrogates."""
    if isinstance(value, str):
        return value if value.isascii() else scalar_text(value)
    if isinstance(value, dict):
        return (
            {scalar_text(name): _bounded(inner, depth + 1) for name, inner in value.items()}
            if depth < _DEPTH_MAX
            else None
        )
    if isinstance(value, list):
        return [_bounded(inner, depth + 1) for inner in value] if depth < _DEPTH_MAX else None
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None
    return value


def meta_properties(page: Page, prefixes: tuple[str, ...]) -> Item:
    """Meta elements whose property or name has one of the prefixes; a repeated one becomes a list."""
    found: Item = {}
    for node in page.all("meta"):
        name = (node.get("property") or node.get("name")).strip().lower()
        content = node.get("content").strip()
        if content and name.startswith(prefixes):
            known = found.get(name)
            if known is None:
                found[name] = content
            elif isinstance(known, list):
                if len(known) < 50 and content not in known:
                    known.append(content)
            elif known != content:
                found[name] = [known, content]
    return found


def microdata_items(scopes: list[Node]) -> list[Item]:
    """The top-level microdata items (HTML 5.2), properties of nested items inside them; each element is read once."""
    return [_item(node, 0) for node in scopes[:_ITEMS_MAX] if "itemprop" not in node.attrs]


def _item(scope: Node, depth: int) -> Item:
    kinds = scope.get("itemtype").split()
    item: Item = {"@type": kinds[0] if len(kinds) == 1 else kinds} if kinds else {}
    if scope.get("itemid"):
        item["@id"] = scope.get("itemid")
    stack: list[Node | str] = list(reversed(scope.children))
    while stack:
        node = stack.pop()
        if type(node) is not Node:
            continue
        names = node.get("itemprop").split()
        nested = "itemscope" in node.attrs
        if names:
            value = (_item(node, depth + 1) if depth < 10 else None) if nested else _value(node)
            for name in names if value else ():
                _put(item, name, value)
        if not nested:
            stack.extend(reversed(node.children))
    return item


def _value(node: Node) -> str:
    if "content" in node.attrs:
        return node.get("content").strip()
    name = _URL_ATTRS.get(node.tag)
    if name is not None and node.attrs.get(name):
        return node.get(name).strip()
    return " ".join(node.text().split())[:20_000]


def _put(item: Item, name: str, value: Any) -> None:
    known = item.get(name)
    if known is None:
        item[name] = value
    elif isinstance(known, list):
        if len(known) < _ITEMS_MAX:
            known.append(value)
    else:
        item[name] = [known, value]
