"""Fixtures of the end-to-end tests."""

from collections.abc import Iterator

import pytest

from tests.e2e.running import serving
from tests.site import FakeWeb


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    """An empty fake web on a thread of its own; add sites to it at any time."""
    with serving() as served:
        yield served
