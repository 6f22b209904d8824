"""Whatever order records end in, and however often they are delivered, only what has all ended is committed."""

from hypothesis import given
from hypothesis import strategies as st

from services.common.progress import Delivery, PartitionProgress


def test_only_the_contiguous_prefix_is_committable() -> None:
    progress = PartitionProgress()
    assert [progress.deliver(offset) for offset in (5, 6, 7, 9)] == [Delivery.NEW] * 4
    progress.end(6)
    progress.end(9)
    assert progress.committable() == 5
    progress.end(5)
    assert progress.committable() == 7
    progress.end(7)
    assert progress.committable() == 10  # 8 was never delivered: a compacted or a control record


def test_there_is_nothing_to_commit_without_progress() -> None:
    progress = PartitionProgress()
    assert progress.committable() is None
    progress.deliver(0)
    progress.end(0)
    progress.commit(1)
    assert progress.committable() is None
    assert progress.span == 0


def test_a_record_that_ends_twice_or_was_never_delivered_changes_nothing() -> None:
    progress = PartitionProgress()
    progress.deliver(0)
    progress.deliver(1)
    for offset in (1, 1, 7):
        progress.end(offset)
    assert (progress.committable(), progress.under_way, progress.span) == (0, 1, 2)


def test_what_is_under_way_or_not_committed_is_known_when_it_is_delivered_again() -> None:
    progress = PartitionProgress()
    for offset in range(4):
        progress.deliver(offset)
    progress.end(2)
    progress.rejoin()
    assert progress.committable() is None  # where the group stands is not known yet
    again = [progress.deliver(offset) for offset in range(5)]
    assert again == [Delivery.UNDER_WAY, Delivery.UNDER_WAY, Delivery.ENDED, Delivery.UNDER_WAY, Delivery.NEW]


def test_a_group_that_went_on_elsewhere_is_not_set_back() -> None:
    progress = PartitionProgress()
    for offset in range(3):
        progress.deliver(offset)
    progress.rejoin()
    assert progress.deliver(500) is Delivery.NEW
    progress.end(0)
    assert progress.committable() is None
    progress.end(500)
    assert progress.committable() == 501


def test_a_group_that_was_set_back_is_not_taken_for_done() -> None:
    progress = PartitionProgress()
    progress.deliver(200)
    progress.rejoin()
    assert progress.deliver(150) is Delivery.NEW
    progress.end(150)
    assert progress.committable() == 151
    assert progress.deliver(151) is Delivery.NEW


def test_a_record_that_was_left_to_another_owner_holds_the_commit_back_and_is_new_when_it_comes_again() -> None:
    progress = PartitionProgress()
    progress.deliver(0)
    progress.deliver(1)
    progress.end(1)
    progress.leave(0)
    assert progress.committable() == 0
    progress.rejoin()
    assert progress.deliver(0) is Delivery.NEW
    progress.end(0)
    assert [progress.deliver(1), progress.committable()] == [Delivery.ENDED, 2]


@given(st.permutations(range(30)), st.sets(st.integers(0, 29)))
def test_in_any_order_of_ends_every_commit_has_all_before_it_ended(order: list[int], redelivered: set[int]) -> None:
    progress = PartitionProgress()
    for offset in range(30):
        progress.deliver(offset)
    ended: set[int] = set()
    for offset in order:
        progress.end(offset)
        ended.add(offset)
        if offset in redelivered:
            progress.end(offset)
        reached = progress.committable()
        if reached is not None:
            assert set(range(reached)) <= ended
            progress.commit(reached)
    assert progress.committable() is None
    assert progress.span == 0
