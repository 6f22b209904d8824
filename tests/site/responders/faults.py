"""Connections that break and messages that lie."""

from tests.site.message import Reply
from tests.site.model import Page, altered


def reset(page: Page, after_bytes: int) -> Page:
    """A TCP reset after some of the body."""
    return altered(page, cut_bytes=after_bytes, cut="reset")


def truncated(page: Page, after_bytes: int) -> Page:
    """An orderly close after some of the body: too early for its Content-Length or its last chunk."""
    return altered(page, cut_bytes=after_bytes, cut="close")


def wrong_length(page: Page, claimed_bytes: int) -> Page:
    """A Content-Length that is longer (the body ends early) or shorter (bytes follow it) than the body."""
    return altered(page, claimed_bytes=claimed_bytes)


def hang_up() -> Reply:
    """Closes the connection without a word."""
    return Reply(raw=b"")


def garbage(octets: bytes = b"\x00\x01SSH-2.0-OpenSSH_9.2\r\n\r\n") -> Reply:
    """Something that is not HTTP."""
    return Reply(raw=octets)


def raw(octets: bytes) -> Reply:
    """A response written byte by byte by the test; the connection is closed after it."""
    return Reply(raw=octets)


def many_headers(page: Page, fields: int = 2_000, value_bytes: int = 100) -> Page:
    """A reply with large but finite header fields."""
    return altered(page, headers=tuple((f"X-Field-{number}", "v" * value_bytes) for number in range(fields)))


def content_encoding_lie(body: bytes = b"<p>plain text under a false label", coding: str = "gzip") -> Reply:
    """A body that is not in the coding that its head declares."""
    return Reply(body=body, headers=(("Content-Encoding", coding),))
