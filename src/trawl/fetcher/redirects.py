"""The next hop of a redirect (pure; RFC 9110, section 15.4, and the location URL of WHATWG Fetch)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from trawl.errors import InvalidUrlError
from trawl.records import Header, Hop
from trawl.url import CanonicalRules, canonical, join, origin_of, parse

REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True, kw_only=True)
class NextHop:
    """Where a redirect leads."""

    url: str
    """The URL to request: serialised, without fragment and credentials, otherwise as the server wrote it."""
    canonical_url: str
    """Its canonical form, by which rules, keys and scopes judge it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectRefused:
    """Why a redirect is not followed."""

    reason: str
    """redirect_invalid, redirect_scheme, redirect_loop or too_many_redirects."""
    detail: str
    """One line for people."""


def next_hop(
    url: str,
    headers: Sequence[Header],
    chain: Sequence[Hop],
    *,
    redirects_max: int,
    rules: CanonicalRules,
) -> NextHop | RedirectRefused:
    """Where the answer of `url` leads; `chain` are the hops before it, those of other hosts included."""
    location = next((header.value for header in headers if header.name == "location"), "")
    if not location.strip():
        return RedirectRefused(reason="redirect_invalid", detail=f"{url} redirects without saying where to")
    try:
        target = join(url, location_text(location))
    except InvalidUrlError as error:
        return RedirectRefused(reason="redirect_invalid", detail=f"{url} redirects to no URL: {error}")
    scheme = target.partition(":")[0]
    if scheme not in {"http", "https"}:
        detail = f"{url} redirects to {target[:200]}; only http and https are fetched"
        return RedirectRefused(reason="redirect_scheme", detail=detail)
    try:
        found = _requestable(target, rules)
    except InvalidUrlError as error:
        return RedirectRefused(reason="redirect_invalid", detail=f"{url} redirects to no URL that can be used: {error}")
    if found.url == url or any(hop.url == found.url for hop in chain):
        return RedirectRefused(reason="redirect_loop", detail=f"{url} redirects back to {found.url}")
    if len(chain) + 1 > redirects_max:
        detail = f"{url} is redirect number {len(chain) + 1}; fetch.redirects_max is {redirects_max}"
        return RedirectRefused(reason="too_many_redirects", detail=detail)
    return found


def location_text(value: str) -> str:
    """A Location value (decoded as ISO-8859-1) as browsers read it: UTF-8 if it is, else raw octets percent-encoded."""
    octets = value.encode("latin-1", "replace")
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(octet) if octet < 0x80 else f"%{octet:02X}" for octet in octets)


def _requestable(target: str, rules: CanonicalRules) -> NextHop:
    canonical_url = canonical(target, rules)
    parts = parse(target)
    return NextHop(url=origin_of(canonical_url) + parts.pathname + parts.search, canonical_url=canonical_url)
