"""The interval, the back-off and the breaker."""

from hypothesis import given
from hypothesis import strategies as st

from trawl.fetcher.politeness import backoff_ms, breaker_ms, interval_ms
from trawl.ports import PolitenessState
from trawl.settings import PolitenessSettings

SETTINGS = PolitenessSettings()
seconds = st.floats(0, 10_000)


def test_case_13_the_longest_of_configured_crawl_delay_and_response_time_holds() -> None:
    fresh = PolitenessState()
    assert interval_ms(fresh, 0, SETTINGS) == 1000
    assert interval_ms(fresh, 3, SETTINGS) == 3000
    assert interval_ms(fresh, 0.2, SETTINGS) == 1000
    assert interval_ms(fresh, 86_400, SETTINGS) == 60_000
    assert interval_ms(PolitenessState(response_ms=4000), 3, SETTINGS) == 8000
    assert interval_ms(PolitenessState(response_ms=60_000), 3, SETTINGS) == 30_000


@given(seconds, seconds, st.integers(0, 100))
def test_the_interval_is_never_below_what_anybody_asks(asked: float, response: float, backoffs: int) -> None:
    state = PolitenessState(response_ms=1000 * response, backoffs=backoffs)
    interval = interval_ms(state, asked, SETTINGS)
    assert interval >= 1000 * SETTINGS.delay_seconds
    assert interval >= round(1000 * min(asked, SETTINGS.crawl_delay_seconds_max))
    assert interval <= 1000 * SETTINGS.backoff_seconds_max


@given(st.integers(0, 100))
def test_each_throttled_answer_doubles_and_each_recovery_halves(backoffs: int) -> None:
    less = interval_ms(PolitenessState(backoffs=backoffs), 0, SETTINGS)
    more = interval_ms(PolitenessState(backoffs=backoffs + 1), 0, SETTINGS)
    assert more == min(2 * less, 3_600_000)


def test_the_backoff_doubles_up_to_its_maximum() -> None:
    waits = [backoff_ms(PolitenessState(backoffs=count), SETTINGS) for count in (1, 2, 3, 50)]
    assert waits == [5_000, 10_000, 20_000, 3_600_000]


def test_the_breaker_opens_at_its_count_and_longer_each_time() -> None:
    waits = [breaker_ms(PolitenessState(failures=count), SETTINGS) for count in (0, 7, 8, 9, 10, 99)]
    assert waits == [0, 0, 300_000, 600_000, 1_200_000, 86_400_000]
    assert breaker_ms(PolitenessState(failures=99), PolitenessSettings(breaker_failures=0)) == 0
