"""The frontier's inbox: first in, first out, never full."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trawl.adapters.memory import MemorySpillQueue
from trawl.inbox import Inbox
from trawl.kinds import ControlAction
from trawl.records import CrawlControl, Record


def numbered(number: int) -> Record:
    return CrawlControl(crawl_id=str(number), action=ControlAction.PAUSE)


@settings(max_examples=60)
@given(st.integers(1, 6), st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=40))
async def test_records_leave_in_the_order_of_arrival_wherever_they_waited(
    records_max: int, moves: list[tuple[bool, int]]
) -> None:
    spill = MemorySpillQueue()
    inbox = Inbox(spill, records_max)
    put = 0
    taken: list[Record] = []
    for is_put, count in moves:
        if is_put:
            await inbox.put([numbered(put + n) for n in range(count)])
            put += count
        else:
            taken.extend(await inbox.take(count))
        assert len(inbox) == put - len(taken)
    while len(inbox):
        taken.extend(await inbox.take(7))
    assert taken == [numbered(n) for n in range(put)]


async def test_memory_holds_no_more_than_its_bound() -> None:
    spill = MemorySpillQueue()
    inbox = Inbox(spill, 10)
    await inbox.put([numbered(n) for n in range(25)])
    assert await spill.size() == 15


async def test_what_an_earlier_run_spilled_comes_first() -> None:
    spill = MemorySpillQueue()
    before = Inbox(spill, 1)
    await before.put([numbered(n) for n in range(4)])
    inbox = Inbox(spill, 5)
    assert await inbox.open() == 3
    await inbox.put([numbered(9)])
    taken = [*await inbox.take(9), *await inbox.take(9)]
    assert taken == [numbered(n) for n in (1, 2, 3, 9)]
