"""Seed URLs from the command line and from files."""

import re
import sys
from pathlib import Path

from trawl.errors import InvalidUrlError, SettingsError
from trawl.url import CanonicalRules, canonical

_COMMENT = re.compile(r"(^|\s)#.*")
_TOLD_MAX = 3


def seed_url(text: str, rules: CanonicalRules) -> str:
    """The canonical form of a URL that a person gave; raises InvalidUrlError, with a guess at what was meant."""
    try:
        return canonical(text, rules)
    except InvalidUrlError as error:
        hint = f"; did you mean https://{text}?" if "://" not in text else ""
        raise InvalidUrlError(f"{text!r} cannot be crawled: {error}{hint}") from error


def read_list(path: Path, rules: CanonicalRules) -> tuple[list[str], list[str]]:
    """URLs of a file, one a line, in canonical form, and notes on the lines that are none; - is standard input.

    Empty lines are passed over, and what follows a # at the beginning of a line or after a space. Raises SettingsError
    if the file cannot be read or has no URL.
    """
    urls: list[str] = []
    bad: list[str] = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        text = _COMMENT.sub("", line).strip()
        if not text:
            continue
        try:
            urls.append(seed_url(text, rules))
        except InvalidUrlError as error:
            bad.append(f"line {number} of {path}: {error}")
    if not urls:
        raise SettingsError(bad[0] if bad else f"there is no URL in {path}")
    more = len(bad) - _TOLD_MAX
    return urls, bad[:_TOLD_MAX] + [f"{more} more lines of {path} are no URLs"] * (more > 0)


def _text(path: Path) -> str:
    try:
        return sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the URL list {path} cannot be read: {error}") from error
