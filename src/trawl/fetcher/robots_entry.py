"""What a fetch of robots.txt means for an origin (pure; RFC 9309, section 2.3.1)."""

from dataclasses import dataclass, replace

from trawl.fetcher.politeness import doubled
from trawl.kinds import RobotsState
from trawl.ports import RobotsEntry
from trawl.records import Millis
from trawl.settings import RobotsSettings

_OUR_OWN = frozenset({"address_refused", "port_refused"})
_OUR_OWN_MS = 1_000
"""Our own refusals cost the host nothing and end when the operator allows the network, so they are judged anew soon."""
_TOO_MANY_REDIRECTS = frozenset({"redirect_loop", "too_many_redirects"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsAnswer:
    """What came of asking for robots.txt."""

    status: int = 0
    """0 without an answer."""
    body: bytes = b""
    reason: str = ""
    """Typed, when there is no answer or a redirect was not followed."""
    detail: str = ""
    retry_after_ms: int = 0


def entry_after(
    known: RobotsEntry | None, origin: str, answer: RobotsAnswer, now_ms: Millis, settings: RobotsSettings
) -> RobotsEntry:
    """What holds for the origin from now on.

    - 2xx: its body is the rules, whatever it looks like;
    - 4xx but 429, and more redirects than are followed: there is no robots.txt, everything is allowed;
    - anything else: unavailable. The body of such an answer is never read; the last good copy stays in the entry, and
      robots.txt is asked for again after a time that doubles.
    """
    state = _state(answer)
    if state is RobotsState.UNAVAILABLE:
        return _unavailable(known or RobotsEntry(origin=origin, state=state), answer, now_ms, settings)
    return RobotsEntry(
        origin=origin,
        state=state,
        body=answer.body[: settings.body_bytes_max] if state is RobotsState.RULES else b"",
        status=answer.status,
        fetched_at_ms=now_ms,
        expires_at_ms=now_ms + round(1000 * settings.cache_seconds),
        good_at_ms=now_ms,
    )


def _state(answer: RobotsAnswer) -> RobotsState:
    if answer.reason in _TOO_MANY_REDIRECTS:
        return RobotsState.ALLOW_ALL
    if answer.reason:
        return RobotsState.UNAVAILABLE
    if 200 <= answer.status < 300:
        return RobotsState.RULES
    if 400 <= answer.status < 500 and answer.status != 429:
        return RobotsState.ALLOW_ALL
    return RobotsState.UNAVAILABLE


def _unavailable(known: RobotsEntry, answer: RobotsAnswer, now_ms: Millis, settings: RobotsSettings) -> RobotsEntry:
    if answer.reason in _OUR_OWN and not answer.status:  # not where the host redirects to
        wait_ms = _OUR_OWN_MS
    else:
        wait_ms = round(1000 * doubled(settings.unavailable_retry_seconds, known.failures, settings.cache_seconds))
    return replace(
        known,
        state=RobotsState.UNAVAILABLE,
        status=answer.status,
        fetched_at_ms=now_ms,
        expires_at_ms=now_ms + max(wait_ms, answer.retry_after_ms),
        failures=known.failures + 1,
        reason=answer.reason or f"http_{answer.status}",
        detail=answer.detail or f"{known.origin}/robots.txt: the server answered {answer.status}",
    )
