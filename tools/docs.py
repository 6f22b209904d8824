"""Write the generated pages of `docs/` from the code, and the generated tables of others.

    python -m tools.docs            write what differs
    python -m tools.docs --check    write nothing; exit with 1 and name the pages that differ

docs/settings.md comes from trawl/settings/, docs/cli.md from the commands' help, docs/errors.md from trawl/errors.py,
the table of a row's fields in docs/guide.md from trawl/adapters/folder/rows.py, and that of a seed's fields in
docs/operations.md from trawl/records/.
"""

import ast
import dataclasses
import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_type_hints

import click

from tools.freeze import sample
from tools.pages import with_table
from trawl import errors, records, settings
from trawl.adapters.folder import rows
from trawl.cli.main import cli
from trawl.kinds import Found, PageType, RenderMode
from trawl.records import ExtractedDocument, Seed
from trawl.settings import Settings

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
GUIDE: Final = DOCS / "guide.md"
OPERATIONS: Final = DOCS / "operations.md"
HELP_CHARS: Final = 100
_WRITTEN: Final = "<!-- Written by `make docs` from {source}; change that, not this page. -->\n"

# fmt: off
UNITS: Final = frozenset({
    "addresses", "attempts", "bits", "bytes", "candidates", "chars", "connections", "documents",
    "failures", "hosts", "layers", "links", "names", "nodes", "pages", "parameters", "partitions", "records",
    "redirects", "repeats", "replicas", "results", "seconds", "segments", "shards", "sitemaps", "tables", "threads",
    "tokens", "urls", "workers",
})
# fmt: on
"""Words of a setting's name that are its unit."""
_UNIT_OF: Final = {
    "fetch.header_count_max": "fields",
    "fetch.decode_ratio_max": "times",
    "politeness.adaptive_factor": "times",
    "politeness.per_host_concurrency": "fetches",
    "frontier.template_throttle_share": "share",
    "frontier.template_close_share": "share",
    "extract.added_share": "share",
    "browser.hydrated_share": "share",
    "browser.sample_share": "share",
    "browser.requests_max": "requests",
    "browser.pages_max": "pages",
    "browser.sample_pages_min": "pages",
    "browser.sample_pages_max": "pages",
    "browser.pages_per_context_max": "pages",
    "frontier.sitemap_depth_max": "levels",
    "extract.depth_max": "levels",
    "dedup.hamming_max": "bits",
    "index.chunk_chars_target": "chars",
    "index.embed_batch_max": "chunks",
    "kafka.replication_factor": "copies",
    "opensearch.hnsw_m": "links",
    "opensearch.hnsw_ef_construction": "candidates",
    "embed.dimensions": "numbers",
    "embed.batch_max": "texts",
    "service.port": "port",
    "service.in_flight_max": "records",
    "service.batch_max": "records",
    "service.release_max": "fetches",
    "service.outstanding_max": "fetches",
}
"""The units of settings whose names do not say them."""


def _one_of(enumeration: type[StrEnum]) -> str:
    return ", ".join(f"`{member}`" for member in enumeration)


_TYPES: Final = {"str": "text", "int": "integer", "float": "number", "bool": "true or false"}
_MEANINGS: Final = {
    "duplicate_of": "The URL of the document that this one repeats; null for a unique one.",
    "markdown_file": "The Markdown file, relative to the folder; null for a duplicate or without that format.",
    "html_compressed": "The raw body's file, relative to the folder; with `--inline-html` the raw body itself as "
    "base64 of gzip; empty for a duplicate.",
    "redirects": "The URLs that redirected here, in order.",
    "response_headers": "The response headers by name in lower case; repeated fields are joined by a comma.",
    "simhash": "SimHash-64 of the text.",
    "render_mode": f"How the DOM was obtained: {_one_of(RenderMode)}.",
    "crawl_source": f"How the URL was found: {_one_of(Found)}.",
    "page_type": f"What kind of page it is: {_one_of(PageType)}.",
}
"""What a row's field means, where the docstring of ExtractedDocument's field does not say it of the row."""


def main(arguments: list[str]) -> int:
    """Write or check the pages; give the exit code."""
    stale = {path: text for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if "--check" in arguments:
            sys.stderr.write(f"docs/{path.name} does not agree with the code; run `make docs`\n")
        else:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"docs/{path.name}\n")
    return int(bool(stale) and "--check" in arguments)


def pages() -> dict[Path, str]:
    """Give every page that is generated, or holds a generated table, as it should be."""
    return {
        DOCS / "settings.md": settings_page(),
        DOCS / "cli.md": cli_page(),
        DOCS / "errors.md": errors_page(),
        GUIDE: with_table(GUIDE.read_text("utf-8"), "row", row_table()),
        OPERATIONS: with_table(OPERATIONS.read_text("utf-8"), "seed", seed_table()),
    }


# Source text


@dataclass(frozen=True, slots=True)
class Documented:
    """A class of a module's source: its docstring, and the string below each field."""

    name: str
    bases: tuple[str, ...]
    text: str
    fields: dict[str, str]


def documented(module: ModuleType) -> dict[str, Documented]:
    """Give the classes of a module or package by name, as its source documents them."""
    found = vars(module).values()
    homes = {sys.modules[value.__module__] for value in found if isinstance(value, type)} | {module}
    bodies = [ast.parse(inspect.getsource(home)).body for home in homes if home.__name__.startswith(module.__name__)]
    return {
        node.name: Documented(
            name=node.name,
            bases=tuple(ast.unparse(base) for base in node.bases),
            text=ast.get_docstring(node) or "",
            fields=dict(_field_texts(node)),
        )
        for body in bodies
        for node in body
        if isinstance(node, ast.ClassDef)
    }


def _field_texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in zip(node.body, [*node.body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign):
            constant = below.value if isinstance(below, ast.Expr) else None
            text = constant.value if isinstance(constant, ast.Constant) else ""
            yield ast.unparse(statement.target), " ".join(str(text).split())


# Settings


def settings_page() -> str:
    """Give the page of all settings."""
    known, defaults = documented(settings), Settings()
    head = f"""# Settings

{_WRITTEN.format(source="src/trawl/settings/")}
Every limit and policy of a crawl is a setting. A setting is read, in rising order of precedence, from

1. its default, in the tables below,
2. a TOML file that `--config` names, or the variable `TRAWL_SETTINGS`: a table for each group, `[fetch]` and below it
   `body_bytes_max = 1000000`,
3. a variable of the environment: `TRAWL_FETCH_BODY_BYTES_MAX=1000000`; in a list, commas part the items,
4. the options of the command line, for those settings that have one ([cli.md](cli.md)).

A name or value that cannot be used ends the command with exit code 2 and a sentence that names it. Numbers cannot be
negative.
"""
    parts = [head]
    for group in dataclasses.fields(Settings):
        values = getattr(defaults, group.name)
        cls = known[type(values).__name__]
        names = [field.name for field in dataclasses.fields(values)]
        lines = [_setting_row(group.name, name, values, cls.fields[name]) for name in names]
        columns = "| setting | type | default | unit | variable | meaning |\n|---|---|---|---|---|---|\n"
        parts.append(f"## {group.name}\n\n{cls.text}\n\n{columns}{''.join(lines)}")
    return "\n".join(parts)


def _setting_row(group: str, name: str, values: Any, meaning: str) -> str:
    value = getattr(values, name)
    kind = "list of texts" if isinstance(value, tuple) else _TYPES[type(value).__name__]
    variable = f"TRAWL_{group}_{name}".upper()
    unit = unit_of(f"{group}.{name}") if type(value) in {int, float} else ""
    return _line(f"`{group}.{name}`", kind, _shown(value), unit, f"`{variable}`", meaning)


def unit_of(setting: str) -> str:
    """Give the unit that the name of a numeric setting says, or that is known of it."""
    words = [word for word in setting.partition(".")[2].split("_") if word in UNITS]
    found = _UNIT_OF.get(setting) or (words[-1] if words else "")
    if not found:
        raise ValueError(f"the name of {setting} does not say its unit; rename it, or add it to _UNIT_OF")
    return found


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"{value:_.12g}" if value >= 10_000 else f"{value:.12g}"
    return f"`{value}`" if value else "none"


# Commands


def cli_page() -> str:
    """Give the page of all commands: what each says of itself with --help."""
    parts = [
        f"""# The command line

{_WRITTEN.format(source="src/trawl/cli")}
What each command prints with `--help`. [guide.md](guide.md) shows them in use, [settings.md](settings.md) lists what
can be set besides.
""",
        _help(cli, "trawl", None),
    ]
    with click.Context(cli, info_name="trawl") as parent:
        for name in cli.list_commands(parent):
            command = cli.get_command(parent, name)
            assert command is not None, f"trawl lists {name} but has no such command"
            parts += _helps(command, name, parent)
    return "\n".join(parts)


def _helps(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """The help of a command, and of those below it."""
    parts = [_help(command, name, parent)]
    if isinstance(command, click.Group):
        with click.Context(command, info_name=name, parent=parent) as context:
            for below in command.list_commands(context):
                parts += _helps(command.commands[below], below, context)
    return parts


def _help(command: click.Command, name: str, parent: click.Context | None) -> str:
    context = click.Context(
        command,
        info_name=name,
        parent=parent,
        terminal_width=HELP_CHARS,
        max_content_width=HELP_CHARS,
        help_option_names=["-h", "--help"],
    )
    text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    return f"## {context.command_path}\n\n```text\n{text}\n```\n"


# Errors


def errors_page() -> str:
    """Give the page of all exceptions."""
    tree = (inspect.getdoc(errors) or "").partition("TrawlError\n")
    drawn = "\n".join(line.removeprefix("    ") for line in (tree[1] + tree[2]).rstrip().splitlines())
    head = f"""# Errors

{_WRITTEN.format(source="src/trawl/errors.py")}
What goes wrong on the web (a 404, a refusal by robots.txt, a body over its cap) is no exception: it is an outcome with
a named reason, and [guide.md](guide.md#what-each-outcome-and-reason-means) lists them all. An exception means a wrong
call, a store that cannot serve, or a bug. Each comes from `trawl.errors` and derives from `TrawlError`; its text says
what happened, to what, and what to do. The command line prints that text and ends with the exit code of the last
column.

```text
{drawn}
```

| error | is a | meaning | exit code |
|---|---|---|---|
"""
    lines = [
        _line(f"`{cls.name}`", ", ".join(f"`{base}`" for base in cls.bases), cls.text, str(exit_code(cls.name)))
        for cls in documented(errors).values()
    ]
    return head + "".join(lines)


_NOT_SERVING: Final = (errors.StoreError, errors.KafkaError, errors.EmbedderError)


def exit_code(name: str) -> int:
    """Give the exit code with which the command line ends at an error."""
    if name == "FetchRefusedError":
        return 1
    return 3 if issubclass(getattr(errors, name), _NOT_SERVING) else 2


# Rows


def row_table() -> str:
    """Give the table of the fields of a line of pages.jsonl."""
    document = sample(ExtractedDocument, "ExtractedDocument")
    values = rows.row(dataclasses.replace(document, extracted="{}", fetched_at_ms=0), "url", markdown="a", html="b")
    attributes, texts = _row_attributes(), documented(records)["ExtractedDocument"].fields
    lines = []
    for name, value in values.items():
        meaning = _MEANINGS.get(name) or texts[attributes[name]]
        lines.append(_line(f"`{name}`", _json_type(name, value), meaning))
    return "\n| field | type | meaning |\n|---|---|---|\n" + "".join(lines) + "\n"


def seed_table() -> str:
    """Give the table of the fields of a seed."""
    texts, lines = documented(records)["Seed"].fields, []
    for field in dataclasses.fields(Seed):
        hint = get_type_hints(Seed)[field.name]
        words = f" {_one_of(hint)}." if isinstance(hint, type) and issubclass(hint, StrEnum) else ""
        if dataclasses.is_dataclass(hint):
            names = ", ".join(f"`{one.name}` {_json(one.default)}" for one in dataclasses.fields(hint))
            words, default = f" An object: {names}.", ""
        else:
            default = "" if field.default is dataclasses.MISSING else _json(field.default)
        lines.append(_line(f"`{field.name}`", default, texts[field.name] + words))
    return "\n| field | default | meaning |\n|---|---|---|\n" + "".join(lines) + "\n"


def _json(value: Any) -> str:
    return f"`{json.dumps(value)}`"


def _row_attributes() -> dict[str, str]:
    """The attribute of the document from which each field of a row is made, by the source of `row`."""
    found: dict[str, str] = {}
    function = ast.parse(inspect.getsource(rows.row))
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                reads = [part.attr for part in ast.walk(value) if _reads_document(part)]  # type: ignore[attr-defined]
                if isinstance(key, ast.Constant) and reads:
                    found[str(key.value)] = reads[0]
    return found


def _reads_document(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "document"


def _json_type(name: str, value: Any) -> str:
    if name == "fetched_at":
        return "text, ISO 8601 in UTC"
    if name in {"simhash", "document_key"}:
        return "text, 16 hexadecimal digits"
    kinds = {str: "text", int: "integer", float: "number", list: "list of texts", dict: "object"}
    kind = kinds[type(value)]
    return f"{kind} or null" if name in {"duplicate_of", "markdown_file"} else kind


def _line(*cells: str) -> str:
    return f"| {' | '.join(' '.join(cell.replace('|', chr(92) + '|').split()) for cell in cells)} |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
