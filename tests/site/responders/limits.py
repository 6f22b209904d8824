"""Servers that ask to be left alone: 429 and 503 with Retry-After (RFC 9110, 10.2.3)."""

import time
from email.utils import formatdate

from tests.site.message import Reply, Request
from tests.site.model import Page, Responder, sequence

BUSY_BODY = b"<!doctype html><title>Busy</title><h1>Too many requests</h1>"


def busy(retry_after: str | float | None = None, status: int = 429) -> Reply:
    """A refusal whose Retry-After is in seconds, or as it stands (a str), or missing."""
    value = retry_after if isinstance(retry_after, str) or retry_after is None else f"{retry_after:.10g}"
    return Reply(status, BUSY_BODY, headers=() if value is None else (("Retry-After", value),))


def busy_until(seconds: float, status: int = 429) -> Responder:
    """A refusal whose Retry-After is an HTTP-date some seconds ahead (dates have whole seconds: rounded up)."""

    def responder(_: Request) -> Reply:
        return busy(formatdate(time.time() + seconds + 0.999, usegmt=True), status)

    return responder


def busy_at_first(then: Page, *, times: int = 1, retry_after: str | float | None = None, status: int = 429) -> Page:
    """Refuses the first requests, then serves."""
    return sequence(*[busy(retry_after, status)] * times, then)


def failing_at_first(then: Page, *, times: int = 1, status: int = 500) -> Page:
    """A server error for the first requests, then serves."""
    return sequence(*[Reply(status, b"<h1>Error</h1>")] * times, then)


def payment_required(price: str = "USD 0.01") -> Reply:
    """402 with a pay-per-crawl quote."""
    return Reply(402, b"<h1>Payment required</h1>", headers=(("crawler-price", price),))
