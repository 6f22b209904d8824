"""The Avro schemas of records, as texts: the current ones, and those that were ever released.

In an installed wheel the folder lies in the package; in a checkout it lies at the root of the repository.
"""

from functools import cache
from pathlib import Path
from typing import Final

from trawl.errors import UnknownSchemaError

_PACKAGE: Final = Path(__file__).resolve().parents[1]


@cache
def schema_text(name: str) -> str:
    """Give the current schema of a record class by its name, for example FetchTask.

    Raises UnknownSchemaError for a name that has no schema.
    """
    path = _folder() / f"{name}.avsc"
    if not name.isidentifier() or not path.is_file():
        raise UnknownSchemaError(f"No schema is named {name!r}; {_folder()} holds one file per record")
    return path.read_text("utf-8")


@cache
def released_schema_texts() -> tuple[str, ...]:
    """Give every schema with which records may have been written by a released version, in the order of file names."""
    return tuple(path.read_text("utf-8") for path in sorted((_folder() / "history").glob("*.avsc")))


@cache
def _folder() -> Path:
    installed = _PACKAGE / "schemas"
    return installed if installed.is_dir() else _PACKAGE.parents[1] / "schemas"
