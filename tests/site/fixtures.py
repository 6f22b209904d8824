"""pytest fixtures of the fake web; imported by tests/conftest.py."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack

import pytest
import pytest_asyncio

from tests.site.process import WebProcess
from tests.site.web import FakeWeb


@pytest_asyncio.fixture
async def fake_web() -> AsyncIterator[FakeWeb]:
    """An empty fake web in this process; add sites to it."""
    async with FakeWeb() as web:
        yield web


@pytest.fixture
def web_process() -> Iterator[Callable[..., WebProcess]]:
    """Starts fake webs in processes of their own: `web = web_process("tiny:tiny.test:2000")`; stopped at the end."""
    with ExitStack() as stack:
        yield lambda *sites, **options: stack.enter_context(WebProcess(*sites, **options))
