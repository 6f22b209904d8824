"""What an HTTP status means for a visit (pure)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trawl.kinds import OutcomeClass
from trawl.ports import HttpFailure, HttpResponse
from trawl.records import Header

PRICE_CHARS_MAX: Final = 100
"""A price is quoted up to this length."""
_PAYMENT_REQUIRED: Final = 402
_PROXY_PASSWORD: Final = 407
_REFUSALS: Final = frozenset({401, 402, 403, 451})
_TRY_AGAIN: Final = frozenset({408, 421, 425, 429})
_BODY_REASONS: Final = frozenset(
    {"bad_encoding", "body_too_large", "decode_ratio", "idle_timeout", "truncated", "wire_too_large"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a visit ends that brought no page."""

    outcome: OutcomeClass
    reason: str
    terminal: bool
    detail: str
    price: str = ""
    """What the site asks for the page, as it says it."""


def without_body(failure: HttpFailure) -> HttpResponse | HttpFailure:
    """The answer behind a failure that concerns only its body, where the status alone decides.

    A 404 whose error page is a bomb is a 404.
    """
    if failure.status < 300 or failure.reason not in _BODY_REASONS:
        return failure
    return HttpResponse(
        status=failure.status,
        headers=failure.headers,
        body=b"",
        wire_bytes=0,
        http_version="",
        address=failure.address,
        total_ms=failure.total_ms,
    )


def ending_of_status(
    url: str,
    status: int,
    headers: Sequence[Header],
    retry_after_ms: int | None,
    retry_after_seconds_max: float,
) -> Ending:
    """What any status but 2xx, 304 and a redirect means."""
    meant = _meant_for_crawlers(url, status, {one.name: one.value for one in reversed(headers)})
    if meant is not None:
        return meant
    reason = f"http_{status}"
    if retry_after_ms is not None and retry_after_ms > 1000 * retry_after_seconds_max:
        detail = (
            f"{url}: status {status}; the host asks to be left alone for {retry_after_ms / 1000:.0f} s, "
            "longer than politeness.retry_after_seconds_max"
        )
        return Ending(outcome=OutcomeClass.FAILED, reason="retry_after_too_long", terminal=True, detail=detail)
    detail = f"{url}: the server answered {status}"
    if status == _PROXY_PASSWORD:
        detail = f"{url}: the proxy wants another name or password"
        return Ending(outcome=OutcomeClass.FAILED, reason="proxy_auth_required", terminal=True, detail=detail)
    if status in _REFUSALS:
        return Ending(outcome=OutcomeClass.REFUSED, reason=reason, terminal=True, detail=detail)
    if status in _TRY_AGAIN or 500 <= status < 600:
        return Ending(outcome=OutcomeClass.RETRY, reason=reason, terminal=False, detail=detail)
    return Ending(outcome=OutcomeClass.FAILED, reason=reason, terminal=True, detail=detail)


def _meant_for_crawlers(url: str, status: int, fields: dict[str, str]) -> Ending | None:
    """An answer that a site gives to crawlers as such: it is final, and no other identity is tried.

    Sources: Cloudflare's documentation of pay per crawl (`crawler-price`, `crawler-error`) and of challenge pages
    (`cf-mitigated`).
    """
    if status == _PAYMENT_REQUIRED:
        price = fields.get("crawler-price", "")[:PRICE_CHARS_MAX]
        detail = f"{url}: the site asks to be paid{f': {price}' if price else ''}; nothing was paid"
        return _refused("payment_required", detail, price)
    if 400 <= status < 500 and fields.get("crawler-error"):
        code = fields["crawler-error"][:PRICE_CHARS_MAX]
        return _refused("crawler_forbidden", f"{url}: status {status}; the site does not let this crawler in: {code}")
    if fields.get("cf-mitigated", "").strip().lower() == "challenge":
        return _refused(
            "bot_challenge", f"{url}: status {status}; the site asks visitors to prove that they are people"
        )
    return None


def _refused(reason: str, detail: str, price: str = "") -> Ending:
    return Ending(outcome=OutcomeClass.REFUSED, reason=reason, terminal=True, detail=detail, price=price)


def ending_of_failure(failure: HttpFailure) -> Ending:
    """What a failed request means."""
    refused = failure.reason == "peer_address_mismatch"
    outcome = OutcomeClass.REFUSED if refused else OutcomeClass.RETRY if failure.retryable else OutcomeClass.FAILED
    return Ending(
        outcome=outcome, reason=failure.reason, terminal=outcome is not OutcomeClass.RETRY, detail=failure.detail
    )
