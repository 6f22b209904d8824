"""Imports go one way, as the design says, and each outside library has its room.

records, errors, url, robots, ...  <-  ports  <-  the five stages  <------------  the shells
                                  ^       ^------  adapters  <--------------------'
                                  '--  pipeline  --'  (the table of topics, which adapters of Kafka read)
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from trawl.kinds import Stage

SOURCE = Path(__file__).resolve().parents[2] / "src" / "trawl"

BASE = frozenset(
    {
        "_version",
        "access",
        "compliance",
        "errors",
        "fingerprint",
        "kinds",
        "plain",
        "records",
        "robots",
        "settings",
        "url",
    }
)
"""Pure modules that everything may import."""
CORE = BASE | {"ports", "rules"}
"""What stages may import besides their own package."""
STAGES = frozenset(stage.value for stage in Stage)
SHELLS = frozenset(
    {"__init__", "__main__", "api", "assembly", "bodies", "browsing", "cli", "demo", "embedded", "failures", "inbox"}
)
"""Where everything is wired together."""

MAY_IMPORT: dict[str, frozenset[str]] = {
    **dict.fromkeys(BASE, BASE),
    "ports": BASE,
    "rules": BASE | {"ports"},
    **dict.fromkeys(STAGES, CORE),
    "adapters": BASE | {"ports", "pipeline"},
    "pipeline": BASE,
    **dict.fromkeys(SHELLS, CORE | STAGES | SHELLS | {"pipeline", "adapters"}),
}
"""For each module or package of trawl, those that it may import besides itself."""

COMPUTATION = frozenset(
    {
        "ada_url",
        "http_sf",
        "lxml",
        "msgspec",
        "numpy",
        "publicsuffixlist",
        "selectolax",
        "trafilatura",
        "xxhash",
        "zstandard",
    }
)
"""Outside libraries that compute and touch nothing; allowed everywhere."""
TERMINAL = frozenset({"click", "markdown_it", "rich"})
"""Outside libraries of the command line, allowed in its package."""
NOWHERE = frozenset({"faust", "services", "tests", "tools", "bench"})
CLIENTS = frozenset(
    {
        "aiokafka",
        "fastavro",
        "redis",
        "obstore",
        "opensearchpy",
        "playwright",
        "faust",
        "cryptography",
        "http_message_signatures",
    }
)
"""What an extra installs; a plain installation has none of it."""
IO = frozenset(
    {
        "asyncio",
        "http",
        "multiprocessing",
        "shutil",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "urllib.request",
    }
)
"""Modules of the standard library that reach outside the process, closed to pure modules."""


@dataclass(frozen=True)
class Import:
    """One import statement of one file."""

    file: str
    room: str
    """The module or package of trawl that the file belongs to."""
    target: str
    """What is imported, in full."""
    line: int

    def __str__(self) -> str:
        return f"src/trawl/{self.file}:{self.line} imports {self.target}"


def imports_of(path: Path) -> Iterator[Import]:
    """Every import in a file, those inside functions included."""
    relative = path.relative_to(SOURCE)
    room = relative.parts[0].removesuffix(".py")
    package = ["trawl", *relative.parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            targets = [f"{module}.{alias.name}" for alias in node.names]
        for target in targets:
            yield Import(relative.as_posix(), room, target, node.lineno)  # type: ignore[attr-defined]  # an import


IMPORTS = [item for path in sorted(SOURCE.rglob("*.py")) for item in imports_of(path)]
INSIDE = [item for item in IMPORTS if item.target.split(".")[0] == "trawl"]
OUTSIDE = [item for item in IMPORTS if item.target.split(".")[0] not in {"trawl", *sys.stdlib_module_names}]


def room_of(target: str) -> str:
    """The module or package of trawl that an import reaches; `__init__` for a name of the package itself."""
    name = target.split(".")[1] if "." in target else "__init__"
    return name if (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").exists() else "__init__"


def test_every_module_has_its_place() -> None:
    rooms = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in SOURCE.rglob("*.py")}

    assert rooms >= STAGES - {"fetcher"} | {"records", "ports", "adapters", "pipeline", "plain"}
    assert rooms <= set(MAY_IMPORT), "a new module needs a place in MAY_IMPORT"


def test_imports_inside_trawl_go_one_way() -> None:
    wrong = [str(item) for item in INSIDE if room_of(item.target) not in MAY_IMPORT[item.room] | {item.room}]

    assert wrong == []


def test_stages_do_not_import_each_other() -> None:
    wrong = [str(item) for item in INSIDE if item.room in STAGES and room_of(item.target) in STAGES - {item.room}]

    assert wrong == []


def test_outside_libraries_that_do_more_than_compute_stay_in_adapters_and_the_command_line() -> None:
    allowed = {"adapters": None, "cli": COMPUTATION | TERMINAL}
    wrong = [
        str(item)
        for item in OUTSIDE
        if (libraries := allowed.get(item.room, COMPUTATION)) is not None and item.target.split(".")[0] not in libraries
    ]

    assert wrong == []


def test_trawl_imports_no_service_no_faust_and_no_test() -> None:
    assert [str(item) for item in IMPORTS if item.target.split(".")[0] in NOWHERE] == []


def is_pure(item: Import) -> bool:
    """Whether a file only computes: the base, and what stands beside a stage."""
    return item.room in BASE or (item.room in STAGES and not item.file.endswith("/stage.py"))


def test_pure_modules_import_nothing_that_reaches_outside_the_process() -> None:
    wrong = [
        str(item)
        for item in IMPORTS
        if is_pure(item) and any(item.target == name or item.target.startswith(f"{name}.") for name in IO)
    ]

    assert wrong == []


def test_no_extra_is_needed_to_import_what_is_not_an_adapter() -> None:
    modules = sorted(
        ".".join(["trawl", *path.relative_to(SOURCE).with_suffix("").parts]).removesuffix(".__init__")
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] != "adapters" and path.name != "__main__.py"
    )
    code = (
        f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
        f"print(sorted({set(CLIENTS)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("import trawl.url as u, redis", ["trawl.url", "redis"]),
        ("from trawl import records", ["trawl.records"]),
        ("from ..fetcher import stage", ["trawl.fetcher.stage"]),
        ("from . import score", ["trawl.frontier.score"]),
        ("def f():\n    from trawl.errors import StoreError", ["trawl.errors.StoreError"]),
    ],
)
def test_every_form_of_import_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, targets: list[str]
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", tmp_path)
    (tmp_path / "frontier").mkdir()
    (tmp_path / "frontier" / "stage.py").write_text(text)

    assert [item.target for item in imports_of(tmp_path / "frontier" / "stage.py")] == targets
