"""Write `schemas/*.avsc` from the dataclasses of `trawl.records`, one self-contained file per record.

    python tools/schemas.py            write the current schemas
    python tools/schemas.py --check    write nothing; exit with 1 and name the files that differ

Nothing here decides what is compatible; people review the files, and tests/contract/ proves that they agree with the
dataclasses and still read old bytes.
"""

import ast
import dataclasses
import inspect
import json
import sys
import types
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from trawl.plain import RECORD_CLASSES, to_avro

NAMESPACE = "trawl.v1"
FOLDER = Path(__file__).resolve().parents[1] / "schemas"
LINE_CHARS_MAX = 120
PRIMITIVES: dict[Any, str] = {str: "string", bytes: "bytes", bool: "boolean", int: "long", float: "double"}
TIME = {"type": "long", "logicalType": "timestamp-millis"}


def main(arguments: list[str]) -> int:
    """Write or check the schemas; give the exit code."""
    texts = {FOLDER / f"{name}.avsc": schema_text_of(cls) for name, cls in RECORD_CLASSES.items()}
    stale = [path for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path.name} does not agree with trawl/records/; run `make schemas` and review it\n")
        return 1 if stale else 0
    for path in stale:
        path.write_text(texts[path], "utf-8")
    return 0


def schema_text_of(cls: type) -> str:
    """Give the schema of a record class as the text of its file."""
    return layout(record_schema(cls, {}, namespace=NAMESPACE)) + "\n"


def record_schema(cls: type, known: dict[str, None], *, namespace: str = "") -> Any:
    """Give the schema of a dataclass: whole at its first use within a file, by name after that."""
    if cls.__name__ in known:
        return cls.__name__
    known[cls.__name__] = None
    hints, docs, written = get_type_hints(cls), field_docs(cls), written_types(cls)
    fields = [
        {
            "name": field.name,
            "type": type_schema(hints[field.name], known, time="Millis" in written[field.name]),
            **({} if field.default is dataclasses.MISSING else {"default": default_of(field.default)}),
            "doc": docs[field.name],
        }
        for field in dataclasses.fields(cls)
    ]
    head = {"type": "record", "name": cls.__name__} | ({"namespace": namespace} if namespace else {})
    return head | {"doc": inspect.getdoc(cls), "fields": fields}


def type_schema(hint: Any, known: dict[str, None], *, time: bool = False) -> Any:
    """Give the schema of a field's type; `time` says that its integers are milliseconds since the epoch."""
    if get_origin(hint) is types.UnionType:
        (inner,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
        return ["null", type_schema(inner, known, time=time)]
    if get_origin(hint) is tuple:
        return {"type": "array", "items": type_schema(get_args(hint)[0], known, time=time)}
    if dataclasses.is_dataclass(hint):
        return record_schema(hint, known)  # type: ignore[arg-type]  # mypy: instance or class; hints are classes
    if issubclass(hint, StrEnum):
        return enum_schema(hint, known)
    return TIME if time else PRIMITIVES[hint]


def enum_schema(cls: type[StrEnum], known: dict[str, None]) -> Any:
    """Give the schema of an enumeration; an older reader takes an unknown symbol for the first one."""
    if cls.__name__ in known:
        return cls.__name__
    known[cls.__name__] = None
    symbols = [member.value for member in cls]
    return {
        "type": "enum",
        "name": cls.__name__,
        "doc": inspect.getdoc(cls),
        "symbols": symbols,
        "default": symbols[0],
    }


def default_of(value: Any) -> Any:
    """Give a field's default as Avro writes it in JSON; bytes are text, one character a byte."""
    if dataclasses.is_dataclass(value):
        return {name: default_of(inner) for name, inner in to_avro(value).items()}  # type: ignore[arg-type]  # as above
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, StrEnum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def field_docs(cls: type) -> dict[str, str]:
    """Give the string that stands below each field in the source."""
    body = class_body(cls)
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def written_types(cls: type) -> dict[str, str]:
    """Give each field's annotation as it stands in the source, where Millis is not yet int."""
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in class_body(cls)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }


def class_body(cls: type) -> list[ast.stmt]:
    """Give the statements of a class in `trawl.records`."""
    module = sys.modules[cls.__module__]
    tree = ast.parse(inspect.getsource(module))
    return next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == cls.__name__)


def layout(value: Any, indent: int = 0, key: str = "") -> str:
    """Give JSON in which everything that fits in a line stands in one, so that a field is a line of a diff."""
    line = key + json.dumps(value, ensure_ascii=False)
    fits = indent + len(line) + 1 <= LINE_CHARS_MAX
    if not isinstance(value, dict | list) or (fits and "fields" not in value):
        return line
    inner = indent + 2
    if isinstance(value, dict):
        parts = [layout(item, inner, f"{json.dumps(name)}: ") for name, item in value.items()]
    else:
        parts = [layout(item, inner) for item in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{key}{opening}\n" + ",\n".join(" " * inner + part for part in parts) + f"\n{' ' * indent}{closing}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
