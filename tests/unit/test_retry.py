"""When a failed visit is tried again."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from trawl.frontier.retry import backoff_ms, next_try
from trawl.kinds import OutcomeClass, Stage
from trawl.records import FetchOutcome
from trawl.settings import FrontierSettings

SETTINGS = FrontierSettings()
FAILED = FetchOutcome(
    url="https://a.example/",
    crawl_id="c",
    request_key=1,
    fetch_id=7,
    stage=Stage.FETCHER,
    outcome=OutcomeClass.RETRY,
    reason="http_500",
    terminal=False,
    at_ms=1_000_000,
)


@given(st.integers(1, 2), st.integers(-(2**63), 2**63 - 1))
def test_waits_grow_by_half_at_the_least_whatever_the_jitter(attempt: int, fetch_id: int) -> None:
    outcome = replace(FAILED, fetch_id=fetch_id)
    first, second = next_try(outcome, attempt, SETTINGS), next_try(outcome, attempt + 1, SETTINGS)
    assert first is not None
    assert second is not None
    assert second.at_ms - outcome.at_ms >= 1.5 * (first.at_ms - outcome.at_ms) - 1
    assert first.at_ms - outcome.at_ms >= 1000 * SETTINGS.retry_seconds


def test_a_visit_is_given_up_after_its_last_try() -> None:
    assert next_try(FAILED, SETTINGS.attempts_max - 1, SETTINGS) is not None
    assert next_try(FAILED, SETTINGS.attempts_max, SETTINGS) is None


def test_some_failures_get_fewer_tries() -> None:
    assert next_try(replace(FAILED, reason="tls_failed"), 2, SETTINGS) is None


@given(st.integers(0, 10**9))
def test_case_1_no_try_comes_before_retry_after_is_over(retry_after_ms: int) -> None:
    again = next_try(replace(FAILED, reason="http_429", retry_after_ms=retry_after_ms), 1, SETTINGS)
    assert again is not None
    assert again.at_ms >= FAILED.at_ms + retry_after_ms


def test_a_deferral_costs_no_try_and_comes_back_when_politeness_allows() -> None:
    deferred = replace(FAILED, outcome=OutcomeClass.DEFERRED, reason="politeness", deferred_until_ms=1_005_000)
    again = next_try(deferred, SETTINGS.attempts_max, SETTINGS)
    assert again is not None
    assert (again.at_ms, again.attempt) == (1_005_000, SETTINGS.attempts_max)


@given(st.integers(-5, 10**6))
def test_the_back_off_stays_within_its_bounds(step: int) -> None:
    assert 2000 <= backoff_ms(step, 2.0, 600.0) <= 600_000
