"""Slow, silent and endless replies. All take a page, so they compose."""

from collections.abc import Iterator
from itertools import repeat

from tests.site.message import Reply
from tests.site.model import Page, altered


def slow(page: Page, bytes_per_second: float) -> Page:
    """The body drips at a speed."""
    return altered(page, bytes_per_second=bytes_per_second)


def delayed(page: Page, seconds: float) -> Page:
    """Silence before the head of the reply."""
    return altered(page, wait_seconds=seconds)


def never() -> Reply:
    """Accepts the request and never answers."""
    return Reply(wait_seconds=float("inf"))


def stalled(page: Page, after_bytes: int) -> Page:
    """Sends the head and some of the body, then nothing for ever."""
    return altered(page, stall_bytes=after_bytes)


def endless(piece: bytes = b"<p>and so on</p>\n" * 4000, *, content_type: str = "text/html; charset=utf-8") -> Reply:
    """A chunked body without end."""

    def stream() -> Iterator[bytes]:
        yield b"<!doctype html><title>Endless</title>"
        yield from repeat(piece)

    return Reply(content_type=content_type, stream=stream)


def endless_headers() -> Reply:
    """Header fields without end."""
    return Reply(endless_headers=True)


def chunked(page: Page, *, close: bool = False) -> Page:
    """The body without a length: chunked, or (`close`) ended by closing the connection."""
    return altered(page, framing="close" if close else "chunked")
