"""What commands print for people cannot steer their terminal."""

import ast
import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trawl.cli
from trawl.cli.terminal import hand_over, printable

FOLDER = Path(trawl.cli.__file__).parent
JOINERS = "\u200c\u200d"
TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def test_no_control_character_is_printed_but_line_feeds_and_tabs() -> None:
    controls = {char for char in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(char) in {"Cc", "Cs"}}
    assert {char for char in controls if printable(char) == char} == {"\n", "\t"}


def test_nothing_turns_the_order_of_a_line_around() -> None:
    assert printable(TURNS) == "\ufffd" * len(TURNS)


@given(st.text())
def test_whatever_a_page_says_only_steering_characters_are_replaced(text: str) -> None:
    shown = printable(text)
    assert len(shown) == len(text)
    assert all(b in {a, "\ufffd"} for a, b in zip(text, shown, strict=True))
    assert printable(shown) == shown


def test_text_of_every_script_is_left_as_it_is() -> None:
    text = f"می{JOINERS[0]}خواهم 👩{JOINERS[1]}🚀 한국어 e\u0301 a\u00adb \u2028"
    assert printable(text) == text.replace("\u2028", "\ufffd")


def test_content_goes_into_a_pipe_as_it_is_and_to_a_terminal_without_what_steers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_over("a\x1b[2Jb")
    assert capsys.readouterr().out == "a\x1b[2Jb\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    hand_over("a\x1b[2Jb")
    assert capsys.readouterr().out == "a\ufffd[2Jb\n"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_commands_print_by_way_of_it_all_that_is_not_json(path: Path) -> None:
    if path.name == "terminal.py":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"click.echo", "click.secho", "print"}:
            assert ast.unparse(node.args[0]).startswith("json.dumps("), f"{path.name}, line {node.lineno}"
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Text":
            assert ast.unparse(node.args[0]).startswith("printable("), f"{path.name}, line {node.lineno}"
