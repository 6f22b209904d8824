"""The system's resolver behind the port."""

import asyncio
import socket
import threading
import time

import pytest

from trawl.adapters.http import SystemResolver
from trawl.settings import FetchSettings

Rows = list[tuple[int, int, int, str, tuple[str, int]]]


def rows(*addresses: str) -> Rows:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0)) for address in addresses]


class System:
    """Stands for getaddrinfo, which no test may ask about the real internet."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[bytes] = []
        self.answer: Rows | OSError = rows("192.0.2.1")
        self.wait = threading.Event()
        self.wait.set()
        monkeypatch.setattr(socket, "getaddrinfo", self)

    def __call__(self, host: bytes, _: None, **__: object) -> Rows:
        self.asked.append(host)
        self.wait.wait(5)
        if isinstance(self.answer, OSError):
            raise self.answer
        return self.answer


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    return System(monkeypatch)


async def test_localhost_is_loopback() -> None:
    resolver = SystemResolver(FetchSettings())
    found = await resolver.resolve("localhost")
    await resolver.close()
    assert set(found.addresses) & {"127.0.0.1", "::1"}
    assert found.error == ""


@pytest.mark.parametrize(
    ("host", "address"), [("192.0.2.7", "192.0.2.7"), ("[2001:db8::1]", "2001:db8::1"), ("[0:0::1]", "::1")]
)
async def test_a_literal_address_is_itself_and_asks_nobody(system: System, host: str, address: str) -> None:
    assert (await SystemResolver(FetchSettings()).resolve(host)).addresses == (address,)
    assert system.asked == []


@pytest.mark.parametrize("host", ["x" * 300, "a..b", "größe.test", "x_y-.test", "1.2.3.4.5", "\0"])
async def test_a_name_that_is_none_is_an_error_and_not_an_exception(host: str) -> None:
    resolver = SystemResolver(FetchSettings(dns_seconds_max=5.0))
    found = await resolver.resolve(host)
    await resolver.close()
    assert found.error in {"dns_not_found", "dns_failed"}


async def test_answers_are_kept_and_equal_questions_asked_once(system: System) -> None:
    resolver = SystemResolver(FetchSettings())
    system.wait.clear()
    questions = [asyncio.create_task(resolver.resolve("a.test")) for _ in range(20)]
    await asyncio.sleep(0.05)
    system.wait.set()
    answers = await asyncio.gather(*questions)
    again = await resolver.resolve("a.test")
    assert {answer.addresses for answer in (*answers, again)} == {("192.0.2.1",)}
    assert system.asked == [b"a.test"]
    assert again.elapsed_ms == 0.0
    await resolver.close()


async def test_answers_grow_old_and_failures_sooner(system: System) -> None:
    resolver = SystemResolver(FetchSettings(dns_cache_seconds=0.2))
    await resolver.resolve("a.test")
    system.answer = socket.gaierror(socket.EAI_NONAME, "not known")
    assert (await resolver.resolve("b.test")).error == "dns_not_found"
    await asyncio.sleep(0.05)
    system.answer = rows("192.0.2.2", "192.0.2.2", "192.0.2.3")
    assert (await resolver.resolve("b.test")).addresses == ("192.0.2.2", "192.0.2.3")
    assert (await resolver.resolve("a.test")).addresses == ("192.0.2.1",)
    await asyncio.sleep(0.2)
    assert (await resolver.resolve("a.test")).addresses == ("192.0.2.2", "192.0.2.3")
    await resolver.close()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (socket.gaierror(socket.EAI_NONAME, "not known"), "dns_not_found"),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), "dns_failed"),
        (OSError("broken"), "dns_failed"),
    ],
)
async def test_each_failure_has_its_reason(system: System, error: OSError, reason: str) -> None:
    system.answer = error
    resolver = SystemResolver(FetchSettings())
    found = await resolver.resolve("a.test")
    assert (found.addresses, found.error) == ((), reason)
    assert "a.test" in found.detail
    await resolver.close()


async def test_a_resolver_that_hangs_is_not_waited_for(system: System) -> None:
    resolver = SystemResolver(FetchSettings(dns_seconds_max=0.1))
    system.wait.clear()
    begun = time.monotonic()
    assert (await resolver.resolve("a.test")).error == "dns_failed"
    assert time.monotonic() - begun < 1
    system.wait.set()
    await resolver.close()


async def test_the_cache_is_bounded(system: System) -> None:
    resolver = SystemResolver(FetchSettings(dns_cache_names_max=10))
    for number in range(30):
        await resolver.resolve(f"h{number}.test")
    assert len(resolver._cache) == 10
    await resolver.resolve("h29.test")
    assert len(system.asked) == 30
    await resolver.close()


async def test_a_question_whose_asker_leaves_is_answered_for_the_others(system: System) -> None:
    resolver = SystemResolver(FetchSettings())
    system.wait.clear()
    first, second = (asyncio.create_task(resolver.resolve("a.test")) for _ in range(2))
    await asyncio.sleep(0.05)
    first.cancel()
    await asyncio.sleep(0)
    system.wait.set()
    assert (await second).addresses == ("192.0.2.1",)
    await resolver.close()
