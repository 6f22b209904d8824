"""How far a process is behind, by topic, whatever is known of its partitions."""

import pytest

from services.common.lag import Lag, Stand, lag_of

HERE = "trawl.fetched"


@pytest.mark.parametrize(
    ("ends", "stands", "lag"),
    [
        pytest.param({}, {}, Lag(), id="nothing is known"),
        pytest.param({(HERE, 0): 5}, {(HERE, 0): Stand(5, 1_000)}, Lag(), id="at the end, however long ago"),
        pytest.param({(HERE, 0): 5}, {(HERE, 0): Stand(2, 7_000)}, Lag(3, 3.0), id="behind"),
        pytest.param({(HERE, 0): 5}, {(HERE, 0): Stand(2)}, Lag(3), id="behind, and nothing was taken yet"),
        pytest.param({(HERE, 0): 5}, {(HERE, 0): Stand(9, 1_000)}, Lag(), id="the topic was made anew"),
        pytest.param({(HERE, 0): 5}, {(HERE, 0): Stand(4, 12_000)}, Lag(1), id="the broker's clock is ahead"),
        pytest.param(
            {(HERE, 0): 5, (HERE, 1): 5, ("trawl.seeds", 0): 99},
            {(HERE, 0): Stand(1, 9_000), (HERE, 1): Stand(3, 4_000), (HERE, 2): Stand(7), ("trawl.seeds", 0): Stand(0)},
            Lag(6, 6.0),
            id="the sum over partitions, and the oldest",
        ),
    ],
)
def test_the_lag_of_a_topic(ends: dict[tuple[str, int], int], stands: dict[tuple[str, int], Stand], lag: Lag) -> None:
    assert lag_of(HERE, ends, stands, 10_000) == lag
