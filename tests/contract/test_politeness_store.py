import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.conftest import POLITENESS
from trawl.ports import PolitenessState, PolitenessStore, Reservation

KEY = "a.example"


async def reserve(store: PolitenessStore, now_ms: int, key: str = KEY, **fields: int) -> Reservation:
    known = {"interval_ms": 100, "horizon_ms": 1000, "concurrency_max": 0, "permit_ms": 10_000, **fields}
    return await store.reserve(key, now_ms, **known)


async def test_the_first_fetch_starts_at_once(politeness: PolitenessStore) -> None:
    slot = await reserve(politeness, 5000)
    assert (slot.granted, slot.at_ms, slot.gap_required_ms, slot.gap_actual_ms) == (True, 5000, 100, None)
    assert slot.permit > 0


async def test_slots_are_an_interval_apart(politeness: PolitenessStore) -> None:
    slots = [await reserve(politeness, now_ms) for now_ms in (5000, 5000, 5050, 5500)]
    assert [slot.at_ms for slot in slots] == [5000, 5100, 5200, 5500]
    assert [slot.gap_actual_ms for slot in slots] == [None, 100, 100, 300]
    assert len({slot.permit for slot in slots}) == 4


async def test_each_reservation_brings_its_own_interval(politeness: PolitenessStore) -> None:
    await reserve(politeness, 5000, interval_ms=10)
    assert (await reserve(politeness, 5000, interval_ms=700)).at_ms == 5700
    assert (await reserve(politeness, 5000, interval_ms=0)).at_ms == 5700


async def test_keys_do_not_wait_for_each_other(politeness: PolitenessStore) -> None:
    await reserve(politeness, 5000)
    assert (await reserve(politeness, 5000, key="b.example")).at_ms == 5000


async def test_a_slot_beyond_the_horizon_is_not_taken(politeness: PolitenessStore) -> None:
    await reserve(politeness, 5000)
    refused = await reserve(politeness, 5000, interval_ms=1001)
    assert (refused.granted, refused.at_ms, refused.permit, refused.gap_actual_ms) == (False, 6001, 0, None)
    assert (await reserve(politeness, 5000, interval_ms=1000)).at_ms == 6000


async def test_case_1_nothing_is_granted_before_a_block_ends(politeness: PolitenessStore) -> None:
    await politeness.block(KEY, 8000)
    await politeness.block(KEY, 7000)
    refused = await reserve(politeness, 5000)
    assert (refused.granted, refused.at_ms) == (False, 8000)
    within = await reserve(politeness, 7500)
    assert (within.granted, within.at_ms) == (True, 8000)
    assert (await reserve(politeness, 9000)).at_ms == 9000


async def test_no_more_permits_than_the_concurrency(politeness: PolitenessStore) -> None:
    first = await reserve(politeness, 5000, concurrency_max=1)
    refused = await reserve(politeness, 5500, concurrency_max=1)
    assert not refused.granted
    assert refused.at_ms > 5500
    await politeness.release(KEY, first.permit)
    assert (await reserve(politeness, 5500, concurrency_max=1)).granted


async def test_a_refusal_for_concurrency_takes_no_slot(politeness: PolitenessStore) -> None:
    await reserve(politeness, 5000, concurrency_max=1)
    await reserve(politeness, 5000, concurrency_max=1)
    assert (await reserve(politeness, 5000, concurrency_max=2)).at_ms == 5100


async def test_a_permit_given_back_twice_frees_one_place(politeness: PolitenessStore) -> None:
    first = await reserve(politeness, 5000, concurrency_max=2)
    await reserve(politeness, 5200, concurrency_max=2)
    for _ in range(2):
        await politeness.release(KEY, first.permit)
    assert (await reserve(politeness, 5400, concurrency_max=2)).granted
    assert not (await reserve(politeness, 5600, concurrency_max=2)).granted
    await politeness.release("unknown", 1)


async def test_case_43_a_permit_that_nobody_gives_back_expires(politeness: PolitenessStore) -> None:
    slot = await reserve(politeness, 5000, concurrency_max=1, permit_ms=300)
    refused = await reserve(politeness, 5299, concurrency_max=1)
    assert (refused.granted, refused.at_ms) == (False, 5300)
    assert (await reserve(politeness, 5300, concurrency_max=1)).granted
    await politeness.release(KEY, slot.permit)
    assert not (await reserve(politeness, 5301, concurrency_max=1)).granted


async def test_a_permit_expires_counted_from_its_start(politeness: PolitenessStore) -> None:
    await politeness.block(KEY, 6000)
    assert (await reserve(politeness, 5000, concurrency_max=1, permit_ms=300)).at_ms == 6000
    assert not (await reserve(politeness, 6299, concurrency_max=1)).granted
    assert (await reserve(politeness, 6300, concurrency_max=1)).granted


async def test_response_times_are_smoothed(politeness: PolitenessStore) -> None:
    for response_ms, expected in ((100.0, 100.0), (200.0, 130.0), (None, 130.0)):
        state = await politeness.observe(KEY, response_ms=response_ms, failed=False, throttled=False)
        assert state.response_ms == pytest.approx(expected)
    assert await politeness.state(KEY) == state


async def test_failures_in_a_row_end_with_an_answer(politeness: PolitenessStore) -> None:
    failures = [
        (await politeness.observe(KEY, response_ms=None, failed=failed, throttled=False)).failures
        for failed in (True, True, False, True)
    ]
    assert failures == [1, 2, 0, 1]


async def test_the_back_off_grows_when_throttled_and_recovers_step_by_step(politeness: PolitenessStore) -> None:
    steps = [(True, False), (True, False), (False, True), (False, False), (False, False), (False, False)]
    backoffs = [
        (await politeness.observe(KEY, response_ms=1.0, failed=failed, throttled=throttled)).backoffs
        for throttled, failed in steps
    ]
    assert backoffs == [1, 2, 2, 1, 0, 0]


async def test_state_tells_what_is_known(politeness: PolitenessStore) -> None:
    assert await politeness.state(KEY) == PolitenessState()
    slot = await reserve(politeness, 5000)
    await politeness.block(KEY, 9000)
    assert await politeness.state(KEY) == PolitenessState(last_start_ms=5000, blocked_until_ms=9000, in_flight=1)
    await politeness.release(KEY, slot.permit)
    assert (await politeness.state(KEY)).in_flight == 0


async def test_starts_and_blocks_outlive_the_process(durable_politeness: Any) -> None:
    await reserve(durable_politeness.store, 5000)
    await durable_politeness.store.block("b.example", 9000)
    await durable_politeness.store.observe(KEY, response_ms=50.0, failed=True, throttled=True)
    politeness: PolitenessStore = durable_politeness.reopen()
    assert (await reserve(politeness, 5000)).at_ms == 5100
    assert (await reserve(politeness, 5000, key="b.example")).at_ms == 9000
    state = await politeness.state(KEY)
    assert (state.response_ms, state.failures, state.backoffs) == (50.0, 1, 1)


calls = st.lists(
    st.one_of(
        st.tuples(
            st.just("reserve"),
            st.sampled_from("ab"),
            st.integers(0, 300),
            st.integers(0, 300),
            st.integers(0, 400),
            st.integers(0, 2),
        ),
        st.tuples(st.just("block"), st.sampled_from("ab"), st.integers(0, 500)),
        st.tuples(st.just("release"), st.sampled_from("ab"), st.integers(0, 5)),
    ),
    max_size=40,
)


@pytest.mark.parametrize("served", list(POLITENESS), indirect=True)
@settings(max_examples=60, deadline=None)
@given(calls=calls)
async def test_whatever_is_asked_granted_starts_keep_their_distance(served: str, calls: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        opened = POLITENESS[served](Path(folder))
        try:
            await _keeps_distance(opened.store, calls)
        finally:
            await opened.aclose()


async def _keeps_distance(store: PolitenessStore, calls: list[Any]) -> None:
    now_ms = 1000
    starts: dict[str, list[int]] = defaultdict(list)
    blocked: dict[str, int] = defaultdict(int)
    out: dict[str, dict[int, int]] = defaultdict(dict)
    for call, key, *values in calls:
        if call == "block":
            blocked[key] = max(blocked[key], now_ms + values[0])
            await store.block(key, now_ms + values[0])
        elif call == "release":
            permit = list(out[key])[values[0] % len(out[key])] if out[key] else values[0]
            out[key].pop(permit, None)
            await store.release(key, permit)
        else:
            elapsed, interval_ms, horizon_ms, concurrency_max = values
            now_ms += elapsed
            out[key] = {permit: expires for permit, expires in out[key].items() if expires > now_ms}
            slot = await store.reserve(
                key,
                now_ms,
                interval_ms=interval_ms,
                horizon_ms=horizon_ms,
                concurrency_max=concurrency_max,
                permit_ms=500,
            )
            if not slot.granted:
                assert slot.at_ms > now_ms
                continue
            assert max(now_ms, blocked[key]) <= slot.at_ms <= now_ms + horizon_ms
            assert not concurrency_max or len(out[key]) < concurrency_max
            assert slot.gap_actual_ms == (slot.at_ms - starts[key][-1] if starts[key] else None)
            assert slot.gap_actual_ms is None or slot.gap_actual_ms >= interval_ms
            starts[key].append(slot.at_ms)
            out[key][slot.permit] = slot.at_ms + 500
