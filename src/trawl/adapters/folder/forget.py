"""Emptying an output folder: what a crawl wrote there goes, anything else stays."""

import logging
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from trawl.adapters.sqlite.database import FILE_NAME
from trawl.errors import StoreError

DEAD_LETTERS: Final = "dead-letters.jsonl"
_FILES: Final = (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm", "pages.jsonl", "pages.jsonl.new", DEAD_LETTERS)
_ENDINGS: Final = {"markdown": ".md", "html": ".html"}
_LOG = logging.getLogger(__name__)


def forget(folder: Path) -> None:
    """Remove what a crawl wrote to a folder, page by page as its database names them, and nothing else.

    If the database cannot be read, the pages' files stay, with a warning. Raises StoreError if a file cannot go.
    """
    try:
        _remove(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be emptied for a fresh crawl: {error}") from error


def _remove(folder: Path) -> None:
    for name in _names(folder):
        for below, ending in _ENDINGS.items():
            (folder / below / f"{name}{ending}").unlink(missing_ok=True)
    for file in _FILES:
        (folder / file).unlink(missing_ok=True)
    for below in _ENDINGS:
        with suppress(OSError):  # something of the user's is in it, or it is not there
            (folder / below).rmdir()


def _names(folder: Path) -> list[str]:
    if not (folder / FILE_NAME).exists():
        return []
    try:
        with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM output")]
    except sqlite3.Error as error:
        if "no such table" not in str(error):
            _LOG.warning(
                "%s cannot be read (%s), so the page files of the crawl before stay in %s", FILE_NAME, error, folder
            )
        return []
