"""The documentation says what the code does: generated pages, commands, settings, names and links."""

import ast
import dataclasses
import inspect
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import trawl
from tools import docs as generator
from tools.freeze import sample
from tools.pages import with_table
from trawl import errors, ports
from trawl.adapters.folder.rows import front_matter
from trawl.cli import main
from trawl.cli.main import EXIT_CODES, cli
from trawl.records import ExtractedDocument
from trawl.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "trawl"
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "bench/README.md", ROOT / "tests/site/README.md"]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in PAGES}
GUIDE = TEXTS["docs/guide.md"]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
SETTINGS = {
    f"{group.name}.{field.name}"
    for group in dataclasses.fields(Settings)
    for field in dataclasses.fields(getattr(Settings(), group.name))
}


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next of its level."""
    level = heading.partition(" ")[0]
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^{level} |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no heading {heading!r}"
    return found[1]


def first_cells(text: str) -> list[str]:
    """What is in backticks in the first column of tables."""
    return re.findall(r"^\| `([^`]+)`", text, re.MULTILINE)


# Generated pages


def test_generated_pages_agree_with_the_code() -> None:
    command = [sys.executable, "-m", "tools.docs", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_page_that_differs_is_named_and_written_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, table in (("guide", "row"), ("operations", "seed")):
        page = with_table("before\n", table, "outdated\n") + "after\n"
        (tmp_path / f"{name}.md").write_text(page, "utf-8")
        monkeypatch.setattr(generator, name.upper(), tmp_path / f"{name}.md")
    monkeypatch.setattr(generator, "DOCS", tmp_path)

    assert generator.main(["--check"]) == 1
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    guide = (tmp_path / "guide.md").read_text("utf-8")
    assert guide.startswith("before\n")
    assert guide.endswith("after\n")
    assert "| `html_compressed` |" in guide
    assert "outdated" not in guide
    assert "| `pages_max` | `0` |" in (tmp_path / "operations.md").read_text("utf-8")


def test_every_setting_is_documented_with_its_unit_and_meaning() -> None:
    text = TEXTS["docs/settings.md"]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]

    assert [row[0].strip("| `") for row in rows] == [
        f"{group.name}.{field.name}"
        for group in dataclasses.fields(Settings)
        for field in dataclasses.fields(getattr(Settings(), group.name))
    ]
    assert all(len(row) == 6 and row[5].strip(" |") for row in rows)
    assert all(row[3] for row in rows if row[1] in {"integer", "number"})


def test_a_number_whose_name_says_no_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="does not say its unit"):
        generator.unit_of("fetch.patience")


@pytest.mark.parametrize("name", [cls.__name__ for cls in vars(errors).values() if inspect.isclass(cls)])
def test_the_command_line_ends_with_the_documented_exit_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: Any) -> None:
        raise getattr(errors, name)("said so")

    monkeypatch.setattr(cli, "main", fails)
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == generator.exit_code(name)
    assert re.search(rf"^\| `{name}` .* \| {ended.value.code} \|$", TEXTS["docs/errors.md"], re.MULTILINE)


def test_every_error_is_drawn_in_the_tree() -> None:
    drawn = re.findall(r"^[│├└─ ]*(\w+Error)\b", TEXTS["docs/errors.md"].partition("```text")[2], re.MULTILINE)

    assert sorted(set(drawn)) == sorted(cls for cls, value in vars(errors).items() if inspect.isclass(value))


def test_the_exit_codes_of_the_guide_are_those_of_the_help() -> None:
    helped = {int(code) for code in re.findall(r"^  (\d+) ", EXIT_CODES, re.MULTILINE)}

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", section(GUIDE, "## Exit codes"), re.MULTILINE)} == helped


def test_the_front_matter_is_what_the_guide_names() -> None:
    document = sample(ExtractedDocument, "ExtractedDocument")
    text = front_matter(dataclasses.replace(document, fetched_at_ms=0))
    paragraph = re.search(r"A Markdown file begins with front matter.*?\n\n", GUIDE, re.DOTALL)

    assert paragraph
    assert re.findall(r"`(\w+)`", paragraph[0]) == re.findall(r"^(\w+):", text, re.MULTILINE)


# Names in prose


def test_make_targets_in_the_pages_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
    named = {
        (page, target)
        for page, text in TEXTS.items()
        for target in re.findall(r"(?:`|^)make ([a-z][a-z0-9-]*)\b", text, re.MULTILINE)
    }

    assert {target for _, target in named} >= {"crawl", "test", "setup"}
    assert {(page, target) for page, target in named if target not in targets} == set()


def test_settings_in_the_pages_exist() -> None:
    groups = "|".join(group.name for group in dataclasses.fields(Settings))
    known = {f"TRAWL_{name.replace('.', '_')}".upper() for name in SETTINGS} | {
        "TRAWL_DATA",
        "TRAWL_SOAK",
        "TRAWL_SETTINGS",
    }
    texts = {**TEXTS, ".env.example": (ROOT / ".env.example").read_text("utf-8")}
    wrong = [
        (page, name)
        for page, text in texts.items()
        for name in [
            *re.findall(rf"`((?:{groups})\.(?!py`|txt`)[a-z_]+)`", text),
            *re.findall(r"\bTRAWL_[A-Z_]*[A-Z]\b", text),
        ]
        if name not in SETTINGS | known
    ]

    assert wrong == []


def test_settings_named_in_the_code_exist() -> None:
    groups = "|".join(group.name for group in dataclasses.fields(Settings))
    pattern = re.compile(rf"\b(?:{groups})\.[a-z_]+_(?:max|min|seconds|share|networks|proxy|file)\b")
    texts = [
        node.value
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]

    assert {name for text in texts for name in pattern.findall(text)} - SETTINGS == set()


def commands() -> Iterator[tuple[str, str]]:
    """Each line of a shell block in the pages that calls trawl, and where it is."""
    for page, text in TEXTS.items():
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                call = re.search(r"(?:^|\| |=\S+ |/)trawl (.*)", line)
                if call:
                    yield page, call[1]


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_commands_in_the_pages_are_understood(page: str, line: str) -> None:
    name, *arguments = shlex.split(line, comments=True)
    command = cli.get_command(click.Context(cli), name)

    assert command is not None, f"{page}: there is no command trawl {name}"
    try:
        command.make_context(name, arguments)
    except click.ClickException as error:
        pytest.fail(f"{page}: trawl {line}: {error.format_message()}")


def test_options_in_the_pages_exist() -> None:
    known = set(re.findall(r"--[a-z][a-z-]+", TEXTS["docs/cli.md"])) | {"--check", "--show"}
    named = {(page, option) for page, text in TEXTS.items() for option in re.findall(r"`(--[a-z][a-z-]+)", text)}

    assert {(page, option) for page, option in named if option not in known} == set()


def test_examples_in_python_can_be_compiled() -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    examples = [
        (page, block)
        for page, text in TEXTS.items()
        for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]

    assert examples
    for page, block in examples:
        compile(block, page, "exec", flags)


# Links


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", outside, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS)
def test_links_between_pages_resolve(page: str) -> None:
    outside = re.sub(r"^```.*?^```", "", TEXTS[page], flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", outside):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), f"{page} links to {target}, which is not there"
        if anchor:
            assert anchor in anchors(path.read_text("utf-8")), f"{page} links to {target}, a heading that is not there"


def test_every_decision_is_listed() -> None:
    files = {path.name for path in (ROOT / "docs" / "adr").glob("[0-9]*.md")}

    assert set(re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", TEXTS["docs/adr/README.md"])) == files
    for name in files:
        text = TEXTS[f"docs/adr/{name}"]
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences", "Measured"], name
        assert text.startswith(f"# {int(name[:4])}. ")


def test_the_pages_name_no_place_of_one_machine() -> None:
    for page, text in TEXTS.items():
        assert not re.search(r"(?<![\w./])/(?:work|root|home)/", text), page


# Public names


def test_the_names_of_the_package_are_the_documented_ones() -> None:
    documented = {name.partition("(")[0] for name in first_cells(section(GUIDE, "## The Python API"))}

    assert documented == set(trawl.__all__)
    assert all(hasattr(trawl, name) for name in trawl.__all__)


def test_the_parameters_of_the_functions_are_the_documented_ones() -> None:
    calls = re.findall(r"^\| `(\w+)\(([^)]*)\)`", section(GUIDE, "## The Python API"), re.MULTILINE)

    assert {name for name, _ in calls} == {"crawl", "extract", "search"}
    for name, parameters in calls:
        wanted = list(inspect.signature(getattr(trawl, name)).parameters)
        assert [parameter.strip().lstrip("*") for parameter in parameters.split(",")] == wanted, name


def test_ports_export_what_their_modules_define() -> None:
    defined = {
        name
        for module in vars(ports).values()
        if inspect.ismodule(module) and module.__name__.startswith("trawl.ports.")
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }

    assert set(ports.__all__) == defined | {"Vectors", "WITHDRAWN_MAX"}


def test_the_ports_are_the_documented_ones() -> None:
    protocols = {name for name in ports.__all__ if getattr(getattr(ports, name), "_is_protocol", False)}

    assert set(first_cells(section(TEXTS["CONTRIBUTING.md"], "## Adding an adapter"))) == protocols
