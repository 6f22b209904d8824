"""What `trawl status --kafka` tells people of a crawl."""

from typing import Any

import pytest

from trawl.cli.standing import told


def frontier(**changed: Any) -> dict[str, Any]:
    known = {"crawl_id": "c", "known": True, "crawls": ["c"], "pages_max": 0, "paused": False, "queued": 0, "leased": 0}
    rest = {"charged": 0, "outcomes": {}, "reasons": {}, "refusals": {}, "hosts": [], "hosts_in_backoff": []}
    return {"groups": [], "topics": {}, "seconds": 0.0, "frontier": {**known, **rest, **changed}}


@pytest.mark.parametrize(
    ("charged", "pages_max", "line"),
    [
        (1, 0, "crawl 'c': 0 URLs queued, 0 in flight, 1 page charged"),
        (8, 9, "crawl 'c': 0 URLs queued, 0 in flight, 8 of 9 pages of its budget charged"),
        (9, 9, "9 of 9 pages of its budget charged; it is used up, a seed with a larger one goes on"),
    ],
)  # fmt: skip
def test_the_budget_is_told_and_that_it_is_used_up(charged: int, pages_max: int, line: str) -> None:
    lines = told(frontier(charged=charged, pages_max=pages_max)).splitlines()
    assert [one for one in lines if one.endswith(line)]


def test_a_crawl_that_is_paused_says_so() -> None:
    assert "0 pages charged, paused" in told(frontier(paused=True))
