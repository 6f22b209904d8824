"""The schema files agree with the dataclasses. Proven from the source text, not by the tool that writes the files."""

import ast
import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args

import fastavro
import pytest

from tools import schemas as generator
from trawl import kinds, records
from trawl.adapters.avro import fingerprint
from trawl.adapters.schemas import released_schema_texts, schema_text
from trawl.errors import UnknownSchemaError
from trawl.records import Record

ROOT = Path(__file__).resolve().parents[2]
NAMES = [cls.__name__ for cls in get_args(Record)]
SCALARS = {"str": "string", "bytes": "bytes", "bool": "boolean", "int": "long", "Key": "long", "float": "double"}
TIME = {"type": "long", "logicalType": "timestamp-millis"}
CLASSES = {
    node.name: node
    for path in Path(inspect.getfile(records)).parent.glob("*.py")
    for node in ast.parse(path.read_text("utf-8")).body
    if isinstance(node, ast.ClassDef)
}


def annotated(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, str]]:
    """Name, annotation and the string below, of each field in the source."""
    for index, statement in enumerate(node.body):
        if isinstance(statement, ast.AnnAssign):
            below = node.body[index + 1]
            assert isinstance(below, ast.Expr), f"{node.name}: no docstring below line {statement.lineno}"
            assert isinstance(below.value, ast.Constant)
            yield ast.unparse(statement.target), statement.annotation, str(below.value.value)


class Agreement:
    """Walks one schema along the source of its class, asserting equality all the way down."""

    def __init__(self) -> None:
        self.defined: set[str] = set()

    def agree_record(self, schema: Any, name: str, *, root: bool = False) -> None:
        if name in self.defined:
            assert schema == name
            return
        self.defined.add(name)
        allowed = {"type", "name", "doc", "fields"} | ({"namespace"} if root else set())
        assert set(schema) == allowed, name
        assert (schema["type"], schema["name"]) == ("record", name)
        assert schema["doc"] == inspect.cleandoc(ast.get_docstring(CLASSES[name]) or "")
        source = list(annotated(CLASSES[name]))
        assert [field["name"] for field in schema["fields"]] == [field[0] for field in source], name
        defaults = {field.name: field.default for field in dataclasses.fields(getattr(records, name))}
        for field, (field_name, annotation, doc) in zip(schema["fields"], source, strict=True):
            assert field["doc"] == doc, f"{name}.{field_name}"
            self.agree_type(field["type"], annotation, f"{name}.{field_name}")
            has_default = defaults[field_name] is not dataclasses.MISSING
            assert ("default" in field) == has_default, f"{name}.{field_name}"
            if has_default:
                assert_default(field["default"], defaults[field_name], f"{name}.{field_name}")

    def agree_type(self, schema: Any, annotation: ast.expr, where: str) -> None:
        written = ast.unparse(annotation)
        if isinstance(annotation, ast.BinOp):
            assert ast.unparse(annotation.right) == "None", where
            assert schema[0] == "null", where
            assert len(schema) == 2, where
            self.agree_type(schema[1], annotation.left, where)
        elif isinstance(annotation, ast.Subscript):
            assert re.fullmatch(r"tuple\[\w+, \.\.\.\]", written), where
            assert isinstance(annotation.slice, ast.Tuple)
            assert set(schema) == {"type", "items"}, where
            assert schema["type"] == "array", where
            self.agree_type(schema["items"], annotation.slice.elts[0], where)
        elif written in CLASSES:
            self.agree_record(schema, written)
        elif hasattr(kinds, written):
            self.agree_enum(schema, getattr(kinds, written))
        else:
            assert schema == (TIME if written == "Millis" else SCALARS[written]), where

    def agree_enum(self, schema: Any, cls: type[StrEnum]) -> None:
        if cls.__name__ in self.defined:
            assert schema == cls.__name__
            return
        self.defined.add(cls.__name__)
        values = [member.value for member in cls]
        assert schema == {
            "type": "enum",
            "name": cls.__name__,
            "doc": inspect.getdoc(cls),
            "symbols": values,
            "default": values[0],
        }
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) for value in values)


def assert_default(default: Any, value: Any, where: str) -> None:
    """A default in a schema is the default of the dataclass, of the same JSON type."""
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        assert list(default) == names, where
        for name in names:
            assert_default(default[name], getattr(value, name), f"{where}.{name}")
    elif isinstance(value, tuple):
        assert value == (), where
        assert default == [], where
    elif isinstance(value, bytes):
        assert default == value.decode("latin-1"), where
    else:
        assert default == value, where
        assert type(default) is (str if isinstance(value, StrEnum) else type(value)), where


@pytest.mark.parametrize("name", NAMES)
def test_schema_agrees_with_the_dataclass_in_names_order_types_defaults_and_docs(name: str) -> None:
    schema = json.loads(schema_text(name))

    assert schema["namespace"] == "trawl.v1"
    Agreement().agree_record(schema, name, root=True)


def test_there_is_one_file_per_record_and_no_other() -> None:
    assert {path.stem for path in (ROOT / "schemas").glob("*.avsc")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_schema_file_stands_alone_and_is_valid_avro(name: str) -> None:
    fastavro.parse_schema(json.loads(schema_text(name)))


def test_a_type_that_several_records_hold_is_the_same_in_all() -> None:
    seen: dict[str, Any] = {}
    for name in NAMES:
        for defined in named_types(json.loads(schema_text(name)), {}).values():
            assert seen.setdefault(defined["name"], defined) == defined


def named_types(schema: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Every record and enumeration that a schema defines, whole: names within it replaced by their definition."""
    if isinstance(schema, list):
        for arm in schema:
            named_types(arm, found)
    elif isinstance(schema, dict) and schema["type"] == "array":
        named_types(schema["items"], found)
    elif isinstance(schema, dict) and schema["type"] in ("record", "enum"):
        for field in schema.get("fields", ()):
            named_types(field["type"], found)
        found[schema["name"]] = json.loads(json.dumps(schema), object_hook=lambda item: expanded(item, found))
        found[schema["name"]].pop("namespace", None)
    return found


def expanded(item: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """A JSON object of a schema in which no type is given by name."""
    for key in ("type", "items"):
        arms = item[key] if isinstance(item.get(key), list) else [item.get(key)]
        whole = [found.get(arm, arm) if isinstance(arm, str) else arm for arm in arms]
        if key in item:
            item[key] = whole if isinstance(item[key], list) else whole[0]
    return item


def test_the_files_are_as_the_generator_lays_them_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main(["--check"]) == 0, capsys.readouterr().err


def test_the_generator_names_the_file_that_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "schemas", tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    stale = tmp_path / "Seed.avsc"
    stale.write_text(stale.read_text("utf-8").replace("absolute URL", "URL"), "utf-8")

    assert generator.main(["--check"]) == 1
    assert "Seed.avsc" in capsys.readouterr().err
    assert generator.main([]) == 0
    assert stale.read_text("utf-8") == schema_text("Seed")


def crc_64_avro(data: bytes) -> int:
    """The fingerprint as the Avro specification writes it, bit by bit."""
    empty = 0xC15D213AA4D7A795
    value = empty
    for byte in data:
        table = (value ^ byte) & 0xFF
        for _ in range(8):
            table = (table >> 1) ^ (empty & -(table & 1))
        value = (value >> 8) ^ table
    return value


def canonical_form(schema: Any) -> str:
    """The Parsing Canonical Form, for schemas in which every name is in the namespace trawl.v1."""
    if isinstance(schema, str):
        return f'"{schema}"' if schema in {*SCALARS.values(), "null"} else f'"trawl.v1.{schema}"'
    if isinstance(schema, list):
        return f"[{','.join(map(canonical_form, schema))}]"
    if schema["type"] == "array":
        return f'{{"type":"array","items":{canonical_form(schema["items"])}}}'
    if schema["type"] == "long":
        return '"long"'
    head = f'{{"name":"trawl.v1.{schema["name"]}","type":"{schema["type"]}",'
    if schema["type"] == "enum":
        return f'{head}"symbols":{json.dumps(schema["symbols"], separators=(",", ":"))}}}'
    fields = (f'{{"name":"{field["name"]}","type":{canonical_form(field["type"])}}}' for field in schema["fields"])
    return f'{head}"fields":[{",".join(fields)}]}}'


def test_fingerprint_is_that_of_the_specification() -> None:
    assert crc_64_avro(b'"null"') == 0x63DD24E7CC258F8A
    assert crc_64_avro(b'"int"') == 0x7275D51A3F395C8F
    for name in NAMES:
        expected = crc_64_avro(canonical_form(json.loads(schema_text(name))).encode())
        assert fingerprint(schema_text(name)) == expected.to_bytes(8, "little"), name


def test_every_released_schema_lies_under_its_fingerprint() -> None:
    kept = sorted((ROOT / "schemas" / "history").glob("*.avsc"))

    assert len(kept) >= len(NAMES)
    assert released_schema_texts() == tuple(path.read_text("utf-8") for path in kept)
    for path in kept:
        text = path.read_text("utf-8")
        assert path.name == f"{json.loads(text)['name']}.{fingerprint(text).hex()}.avsc"


@pytest.mark.parametrize("name", ["Nobody", "", "../pyproject", "history/Seed", "Hop", "/etc/passwd"])
def test_a_name_without_schema_is_an_error(name: str) -> None:
    with pytest.raises(UnknownSchemaError):
        schema_text(name)


def test_schemas_are_found_where_a_wheel_puts_them(tmp_path: Path) -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    shutil.copytree(ROOT / "src" / "trawl", tmp_path / "trawl", ignore=shutil.ignore_patterns("__pycache__"))
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, tmp_path / target)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from trawl.adapters import schemas\n"
        "assert schemas._folder().parent.name == 'trawl', schemas._folder()\n"
        "print(schemas.schema_text('Seed'), end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=tmp_path)

    assert done.stderr == b""
    assert done.stdout.decode() == schema_text("Seed")
