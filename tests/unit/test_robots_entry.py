"""What a fetch of robots.txt means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trawl.fetcher.robots_entry import RobotsAnswer, entry_after
from trawl.kinds import RobotsState
from trawl.ports import RobotsEntry
from trawl.settings import RobotsSettings

ORIGIN = "https://a.test"
SETTINGS = RobotsSettings()
RULES = b"User-agent: *\nDisallow: /x\n"


def after(answer: RobotsAnswer, known: RobotsEntry | None = None, now_ms: int = 0) -> RobotsEntry:
    return entry_after(known, ORIGIN, answer, now_ms, SETTINGS)


@given(st.integers(100, 999), st.binary(max_size=50))
def test_case_5_only_the_body_of_a_2xx_is_ever_read(status: int, body: bytes) -> None:
    entry = after(RobotsAnswer(status=status, body=body))
    assert entry.body == (body if 200 <= status < 300 else b"")
    if 200 <= status < 300:
        assert entry.state is RobotsState.RULES
    elif 400 <= status < 500 and status != 429:
        assert entry.state is RobotsState.ALLOW_ALL
    else:
        assert entry.state is RobotsState.UNAVAILABLE


@pytest.mark.parametrize(
    "reason", ["first_byte_timeout", "dns_not_found", "tls_failed", "address_refused", "truncated"]
)
def test_case_3_no_answer_is_unavailable(reason: str) -> None:
    entry = after(RobotsAnswer(reason=reason, detail="why", status=200))
    assert (entry.state, entry.reason, entry.detail) == (RobotsState.UNAVAILABLE, reason, "why")


@pytest.mark.parametrize("reason", ["redirect_loop", "too_many_redirects"])
def test_more_redirects_than_are_followed_count_as_no_robots(reason: str) -> None:
    assert after(RobotsAnswer(reason=reason, status=302)).state is RobotsState.ALLOW_ALL


def test_the_last_good_copy_stays_while_robots_is_unavailable() -> None:
    good = after(RobotsAnswer(status=200, body=RULES), now_ms=1000)
    assert (good.good_at_ms, good.expires_at_ms) == (1000, 1000 + 86_400_000)
    bad = after(RobotsAnswer(status=503, body=b"Allow: /"), good, now_ms=2000)
    assert (bad.body, bad.good_at_ms, bad.failures) == (RULES, 1000, 1)
    again = after(RobotsAnswer(status=200, body=b""), bad, now_ms=3000)
    assert (again.state, again.body, again.failures, again.reason) == (RobotsState.RULES, b"", 0, "")


def test_robots_is_asked_again_after_a_time_that_doubles_up_to_a_day() -> None:
    entry, waits = None, []
    for _ in range(10):
        entry = after(RobotsAnswer(status=500), entry)
        waits.append(entry.expires_at_ms // 1000)
    assert waits == [600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 86_400, 86_400]


@pytest.mark.parametrize("reason", ["address_refused", "port_refused"])
def test_our_own_refusal_is_judged_anew_soon(reason: str) -> None:
    known = after(RobotsAnswer(status=500))
    assert after(RobotsAnswer(reason=reason), known).expires_at_ms == 1000


def test_a_retry_after_is_never_shortened() -> None:
    assert after(RobotsAnswer(status=429, retry_after_ms=10**9)).expires_at_ms == 10**9
    assert after(RobotsAnswer(status=429, retry_after_ms=1000)).expires_at_ms == 600_000


def test_rules_beyond_the_cap_are_not_kept() -> None:
    assert len(after(RobotsAnswer(status=200, body=b"#" * 600_000)).body) == SETTINGS.body_bytes_max
