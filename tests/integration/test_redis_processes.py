"""Several processes over one Redis, alone or as a cluster: what each was promised holds for all of them together."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.integration.redis_worker import HOST, INTERVAL_MS, PERMIT_MS, RESERVATIONS, TEXTS
from trawl.adapters.redis import RedisPolitenessStore, connect
from trawl.settings import RedisSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
SKEWS_MS = (0, -700, 700)


@pytest.fixture(params=["server", "cluster"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> RedisSettings:
    """Settings of a Redis that runs, with keys of the test's own."""
    cluster = request.param == "cluster"
    server = request.getfixturevalue("redis_cluster" if cluster else "redis_server")
    return replace(Settings().redis, url=server.url, cluster=cluster, prefix=tmp_path.name)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _start(stack: ExitStack, kind: str, settings: RedisSettings, number: int) -> "subprocess.Popen[str]":
    form = "cluster" if settings.cluster else "server"
    arguments = [kind, settings.url, form, settings.prefix, str(number)]
    command = [sys.executable, "-m", "tests.integration.redis_worker", *arguments]
    worker = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    )
    stack.callback(worker.kill)
    return worker


def _answers(workers: list["subprocess.Popen[str]"]) -> list[list[Any]]:
    """What each was answered, all of them started at one moment."""
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    told = [worker.communicate(timeout=60)[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return [[json.loads(line) for line in lines.splitlines()] for lines in told]


def test_processes_with_wrong_clocks_never_get_slots_closer_than_the_interval(
    shared: RedisSettings, stack: ExitStack
) -> None:
    told = _answers([_start(stack, "reserve", shared, skew_ms) for skew_ms in SKEWS_MS])

    slots = sorted((at_ms, gap_ms) for answers in told for granted, at_ms, gap_ms in answers if granted)
    assert len(slots) == len(SKEWS_MS) * RESERVATIONS
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(slots)]
    assert min(gaps) >= INTERVAL_MS
    assert [gap_ms for _, gap_ms in slots] == [None, *gaps], "the gaps that were told are the real ones"


async def test_a_permit_of_a_killed_process_is_out_for_a_time_only(shared: RedisSettings, stack: ExitStack) -> None:
    worker = _start(stack, "hold", shared, 0)
    assert worker.stdout is not None
    assert worker.stdin is not None
    worker.stdin.write("go\n")
    worker.stdin.flush()
    assert worker.stdout.readline() == "ready\n"
    granted, at_ms = json.loads(worker.stdout.readline())
    worker.kill()
    client = connect(shared)
    store = RedisPolitenessStore(client, shared)

    async def ask(now_ms: int) -> tuple[bool, int]:
        slot = await store.reserve(HOST, now_ms, interval_ms=0, horizon_ms=0, concurrency_max=1, permit_ms=PERMIT_MS)
        return slot.granted, slot.at_ms

    assert granted
    refused, again_ms = await ask(at_ms + PERMIT_MS - 1)
    assert (refused, again_ms) == (False, at_ms + PERMIT_MS)
    assert (await store.state(HOST)).in_flight == 1
    assert (await ask(at_ms + PERMIT_MS))[0]
    for name in ("state", "permits"):
        left_ms = await client.ask("PTTL", client.key(f"p:{HOST}", name))
        assert 0 < left_ms <= 1000 * shared.politeness_seconds + 2 * PERMIT_MS + 1000
    await client.close()


def test_of_the_same_and_of_near_texts_of_several_processes_one_is_canonical(
    shared: RedisSettings, stack: ExitStack
) -> None:
    told = _answers([_start(stack, "check", shared, worker) for worker in range(2)])

    texts: dict[int, list[Any]] = defaultdict(list)
    for number, *answer in (answer for answers in told for answer in answers):
        texts[number].append(answer)
    assert len(texts) == TEXTS
    for number, answers in texts.items():
        kinds = sorted(kind for _, kind, _ in answers)
        assert kinds == sorted(["new", "near" if number % 2 else "exact"]), answers
        canonical = next(key for key, kind, _ in answers if kind == "new")
        assert {of for _, kind, of in answers if kind != "new"} == {canonical}


async def test_blocks_outlive_the_time_for_which_hosts_are_remembered(shared: RedisSettings) -> None:
    brief = replace(shared, politeness_seconds=0.05)
    client = connect(brief)
    store = RedisPolitenessStore(client, brief)
    until_ms = round(1000 * time.time()) + 60_000
    await store.block(HOST, until_ms)
    await store.observe(HOST, response_ms=1.0, failed=False, throttled=True)
    assert await client.ask("PTTL", client.key(f"p:{HOST}", "state")) > 55_000
    refused = await store.reserve(HOST, until_ms - 60_000, interval_ms=1, horizon_ms=10, concurrency_max=0, permit_ms=1)
    assert (refused.granted, refused.at_ms) == (False, until_ms)
    await client.close()
