"""Which hosts are rendered: what their pages show decides, and goes on deciding."""

from dataclasses import replace

import pytest

from trawl.errors import SettingsError
from trawl.frontier.rendering import Rendering, is_old, is_sample, learned
from trawl.kinds import OutcomeClass, Stage
from trawl.ports import HostHydration
from trawl.records import FetchOutcome
from trawl.settings import BrowserSettings

SETTINGS = BrowserSettings(render="auto")
ORIGIN = "https://a.example"
HOST = HostHydration(origin=ORIGIN)
NOW = 1_700_000_000_000
NO_SAMPLE = 9_999


def ended(
    hydrated: float | None = None, outcome: OutcomeClass = OutcomeClass.INDEXED, key: int = NO_SAMPLE
) -> FetchOutcome:
    return FetchOutcome(
        url=f"{ORIGIN}/x",
        crawl_id="c",
        request_key=key,
        fetch_id=1,
        stage=Stage.INDEXER,
        outcome=outcome,
        hydrated=hydrated,
        at_ms=NOW,
    )


def after(*shares: float | None, host: HostHydration = HOST, shells: bool = False) -> HostHydration:
    for share in shares:
        host = learned(host, ended(share), SETTINGS, was_shell=shells)
    return host


def test_over_forty_percent_of_the_text_of_three_pages_switches_a_host() -> None:
    assert not after(0.9, 0.9).decided_at_ms
    assert after(0.9, 0.1, 0.41).headless
    assert after(0.9, 0.1, 0.41).decided_at_ms == NOW


def test_exactly_forty_percent_does_not() -> None:
    host = after(0.4, 0.4, 0.4)
    assert (host.headless, host.decided_at_ms) == (False, NOW)


def test_a_few_shells_among_whole_pages_switch_no_host() -> None:
    host = after(*[1.0] * 5, host=after(*[None] * 20), shells=True)
    assert (host.headless, host.shells, host.plain) == (False, 5, 20)


def test_a_host_of_shells_is_switched_although_no_sample_was_drawn() -> None:
    assert not after(1.0, 1.0, shells=True).headless
    assert after(1.0, 1.0, 1.0, shells=True).headless


def test_shells_that_a_browser_does_not_fill_switch_no_host() -> None:
    assert after(*[0.2] * 9, None, shells=True) == HOST


def test_a_switched_host_goes_back_when_its_pages_have_their_text_again() -> None:
    host = after(1.0, 1.0, 1.0)
    host = after(*[0.0] * 3, host=host)
    assert host.headless
    host = after(0.0, host=host)
    assert (host.headless, host.decided_at_ms > 0) == (False, True)
    assert not after(*[1.0] * 5, host=host, shells=True).headless


def test_samples_end_at_their_limit_even_if_the_browser_never_works() -> None:
    host = HOST
    for _ in range(SETTINGS.sample_pages_max):
        assert is_sample(0, host, SETTINGS)
        host = learned(host, ended(None, key=0), SETTINGS, was_shell=False)
    assert not is_sample(0, host, SETTINGS)
    assert (host.headless, host.decided_at_ms) == (False, NOW)


def test_the_share_of_samples_is_kept() -> None:
    assert sum(is_sample(key, HOST, SETTINGS) for key in range(-50_000, 50_000)) == 20_000
    assert not any(is_sample(key, HOST, replace(SETTINGS, sample_share=0.0)) for key in range(10_000))


def test_outcomes_that_are_no_page_teach_nothing() -> None:
    for outcome in (OutcomeClass.FAILED, OutcomeClass.REFUSED, OutcomeClass.ALIAS, OutcomeClass.WITHDRAWN):
        assert learned(HOST, ended(None, outcome), SETTINGS, was_shell=False) == HOST


def test_a_host_that_needs_no_browser_is_looked_at_anew_after_a_time() -> None:
    host, week_ms = after(0.0, 0.0, 0.0), int(1000 * SETTINGS.decided_seconds)
    assert not is_old(host, NOW + week_ms, SETTINGS)
    assert is_old(host, NOW + week_ms + 1, SETTINGS)
    assert not is_old(after(1.0, 1.0, 1.0), NOW + 9 * week_ms, SETTINGS)


def test_only_the_latest_shares_are_kept() -> None:
    assert len(after(*[1.0] * 50).shares) == SETTINGS.sample_pages_max


def test_a_mode_that_is_none_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"browser\.render = 'maybe'"):
        Rendering(BrowserSettings(render="maybe"))
