import asyncio
import tempfile
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tests.contract.conftest import SPILLS, Open
from trawl.ports import SpillQueue


async def test_what_went_in_first_comes_out_first(spill: SpillQueue) -> None:
    await spill.push([b"1", b"2"])
    await spill.push([b"3"])
    assert await spill.size() == 3
    assert list(await spill.pull(2)) == [b"1", b"2"]
    assert list(await spill.pull(2)) == [b"3"]
    assert list(await spill.pull(2)) == []
    assert await spill.size() == 0


async def test_items_are_any_bytes(spill: SpillQueue) -> None:
    items = [b"", b"\0\xff", b"x" * 100_000]
    await spill.push(items)
    assert list(await spill.pull(3)) == items


async def test_pushing_or_pulling_nothing_changes_nothing(spill: SpillQueue) -> None:
    await spill.push([])
    assert list(await spill.pull(0)) == []
    assert await spill.size() == 0


async def test_what_waits_outlives_the_process(durable_spill: Any) -> None:
    await durable_spill.store.push([b"1", b"2", b"3"])
    await durable_spill.store.pull(1)
    spill: SpillQueue = durable_spill.reopen()
    assert await spill.size() == 2
    await spill.push([b"4"])
    assert list(await spill.pull(10)) == [b"2", b"3", b"4"]


class Fifo(RuleBasedStateMachine):
    """The queue against a deque."""

    open_store: Open[SpillQueue]

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.opened = self.open_store(Path(self.folder.name))
        self.runner = asyncio.Runner()
        self.model: deque[bytes] = deque()

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.opened.close()
            self.runner.close()
            self.folder.cleanup()

    @rule(items=st.lists(st.binary(max_size=3), max_size=5))
    def push(self, items: list[bytes]) -> None:
        self.runner.run(self.opened.store.push(items))
        self.model.extend(items)

    @rule(limit=st.integers(0, 7))
    def pull(self, limit: int) -> None:
        expected = [self.model.popleft() for _ in range(min(limit, len(self.model)))]

        async def pulled() -> list[bytes]:
            return list(await self.opened.store.pull(limit))

        assert self.runner.run(pulled()) == expected

    @rule()
    def size(self) -> None:
        async def sized() -> int:
            return await self.opened.store.size()

        assert self.runner.run(sized()) == len(self.model)


@pytest.mark.parametrize("name", list(SPILLS))
def test_it_is_a_queue_whatever_is_done(name: str) -> None:
    machine = type("Machine", (Fifo,), {"open_store": staticmethod(SPILLS[name])})
    run_state_machine_as_test(machine, settings=settings(max_examples=20, stateful_step_count=30, deadline=None))
