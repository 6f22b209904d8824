"""A fake web for tests; see README.md in this folder."""

from tests.site.message import Reply, Request
from tests.site.model import NOT_FOUND, Page, Responder, Site, Tls, altered, resolve, sequence, with_headers
from tests.site.web import FakeWeb

__all__ = [
    "NOT_FOUND",
    "FakeWeb",
    "Page",
    "Reply",
    "Request",
    "Responder",
    "Site",
    "Tls",
    "altered",
    "resolve",
    "sequence",
    "with_headers",
]
