"""Every threat of the threat model has a defence, and tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "threat-model.md"
_TEST = re.compile(r"`([a-z0-9_/]+\.py)::(test_\w+)`")


def _rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "threat" and not row[0].startswith("---")]


@cache
def _tests_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_threat_has_a_defence_and_tests_that_exist() -> None:
    rows = _rows()
    assert len(rows) > 20
    missing = []
    for row in rows:
        assert len(row) == 3, row
        assert all(row), row
        named = _TEST.findall(row[2])
        assert named, row[0]
        assert not _TEST.sub("", row[2]).strip(), row[2]
        missing += [f"{path}::{name}" for path, name in named if name not in _tests_of(path)]
    assert not missing
