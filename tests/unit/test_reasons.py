"""Every outcome and reason that the code can tell is explained in the guide, and nothing else is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from trawl.frontier.traps import Trap
from trawl.kinds import OutcomeClass

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trawl"
GUIDE = (ROOT / "docs" / "guide.md").read_text("utf-8").partition("\n## What each outcome and reason means\n")[2]
OUTCOMES, _, REASONS = GUIDE.partition("\n## ")[0].partition("\n### ")

# fmt: off
ROOMS = ("adapters/", "dedup/", "embedded", "extractor/", "failures", "fetcher/", "frontier/", "indexer/", "rules")
"""Where reasons are told."""
TELLERS = frozenset({
    "_RefusedError", "_as_text", "_failed", "_failure", "_outcome", "_refuse", "_refused", "_stop", "_withdrawal",
    "handed_over", "outcome",
})
# fmt: on
"""Functions that take a reason as an argument."""
TYPED = ("frontier/admission.py", "adapters/http/failures.py", "adapters/http/decoding.py")
"""Modules whose functions return reasons as text."""
NOT_REASONS = frozenset({"cut"})
"""`cut` ends a body on purpose and is never told."""
WORD = re.compile(r"[a-z*][a-z0-9*]*(?:_[a-z0-9*]+)*")


def first_cells(text: str) -> list[str]:
    """What is in backticks in the first column of tables."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


def texts_of(node: ast.expr | None) -> set[str]:
    """The texts that an expression may be; what is put into them is `*`."""
    match node:
        case ast.Constant(value=str(text)):
            return {text}
        case ast.JoinedStr(values=parts):
            return {"".join(str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts)}
        case ast.IfExp(body=body, orelse=orelse):
            return texts_of(body) | texts_of(orelse)
        case ast.BoolOp(values=values):
            return {text for value in values for text in texts_of(value)}
        case ast.Call(args=[_, default]):  # a look-up with a default
            return texts_of(default)
    return set()


def reasons_told(node: ast.AST, *, typed: bool) -> Iterator[str]:
    """The texts that stand in the place of a reason: arguments, assigned names, and what typed modules return."""
    match node:
        case ast.Call():
            yield from reasons_of_call(node)
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
            for target, value in zip(names, values, strict=True):
                yield from reasons_told(ast.Assign(targets=[target], value=value), typed=typed)
        case ast.Assign(targets=[ast.Name(id="reason" | "kind") | ast.Attribute(attr="stopped")], value=value):
            yield from texts_of(value)
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="refused"), slice=key)]):
            yield from texts_of(key)
        case ast.AnnAssign(target=ast.Name(id="_BY_CODE" | "RETRYABLE" | "SENTENCES"), value=ast.expr() as value) if (
            typed
        ):
            yield from (
                one.value for one in ast.walk(value) if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
        case ast.Return(value=value) if typed:
            yield from texts_of(value)


def reasons_of_call(call: ast.Call) -> Iterator[str]:
    """The texts given as `reason` or `error`, or to a function that takes a reason."""
    for keyword in call.keywords:
        if keyword.arg in {"reason", "error"}:
            yield from texts_of(keyword.value)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in TELLERS:
        for argument in call.args:
            yield from texts_of(argument)


def reasons_in(source: str, *, typed: bool) -> set[str]:
    """The reasons that a module can tell."""
    found = {text for node in ast.walk(ast.parse(source)) for text in reasons_told(node, typed=typed)}
    return {text for text in found - NOT_REASONS if WORD.fullmatch(text)}


def reasons_in_code() -> dict[str, str]:
    """Every reason that the code can tell, and a file that tells it."""
    files = {path.relative_to(SOURCE).as_posix(): path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return {
        reason: file
        for file, source in files.items()
        if file.startswith(ROOMS)
        for reason in reasons_in(source, typed=file in TYPED)
    }


def matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern.replace("*", r"\w+"), text) is not None


@pytest.mark.parametrize(
    ("source", "reasons"),
    [
        ("Ending(reason='http_x' if a else 'b_c', detail='Not this.')", {"http_x", "b_c"}),
        ("self._failed(record, 'too_odd', f'{record.url} is odd')", {"too_odd"}),
        ("outcome, reason = OutcomeClass.INDEXED, 'as_it_is'", {"as_it_is"}),
        ("refused['gone_now'] = refused.get('gone_now', 0) + 1", {"gone_now"}),
        ("f(reason=answer.reason or f'http_{answer.status}')", {"http_*"}),
        ("transfer.stopped = 'was_stopped'", {"was_stopped"}),
    ],
)
def test_reasons_are_seen_wherever_they_are_told(source: str, reasons: set[str]) -> None:
    assert reasons_in(source, typed=False) == reasons


def test_every_reason_that_the_code_tells_is_in_the_guide() -> None:
    told, explained = reasons_in_code(), first_cells(REASONS)

    assert {"robots_disallowed", "http_*", "evicted", "tls_failed", "decode_ratio", "noindex"} <= set(told)
    missing = {
        reason: file
        for reason, file in {**told, **dict.fromkeys(map(str, Trap), "frontier/traps.py")}.items()
        if not any(name == reason or matches(name, reason) or matches(reason, name) for name in explained)
    }
    assert missing == {}


def test_every_reason_in_the_guide_is_told_by_the_code() -> None:
    told, explained = {*reasons_in_code(), *map(str, Trap)}, first_cells(REASONS)

    assert len(explained) == len(set(explained))
    assert [name for name in explained if not any(name == reason or matches(reason, name) for reason in told)] == []


def test_every_outcome_that_the_code_tells_is_in_the_guide() -> None:
    used = {
        node.attr.lower()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "OutcomeClass"
    }

    assert set(first_cells(OUTCOMES)) == used
    assert used <= {str(outcome) for outcome in OutcomeClass}
