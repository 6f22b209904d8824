"""Lists of URLs, one a line: what a person hands over, and sitemaps in plain text (pure)."""

from collections.abc import Iterable, Iterator
from typing import Final

from trawl.kinds import Found
from trawl.records import Link

_LINE_BYTES_MAX: Final = 8192


def read_url_list(chunks: Iterable[bytes], found: Found) -> Iterator[Link]:
    """The http and https URLs in order; blank lines, comments (`#`) and other lines are passed over."""
    for line in _lines(chunks):
        text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff").strip()
        if text.startswith(("http://", "https://")):
            yield Link(url=text.split()[0], found=found)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).replace(b"\r", b"\n").split(b"\n")
        yield from lines
        rest = rest[-_LINE_BYTES_MAX:]
    yield rest
