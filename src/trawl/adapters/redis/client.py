"""One client of Redis or Redis Cluster: keys with hash tags, scripts by their digest, errors that say what to do."""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext
from functools import cached_property
from importlib import resources
from typing import Any, Final, TypeAlias

from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.cluster import RedisCluster

from trawl.adapters.masked import masked
from trawl.errors import SettingsError, StaleEpochError, StoreError, StoreFullError
from trawl.settings import RedisSettings

_LOG = logging.getLogger(__name__)
_LUA: Final = "lua"
_VERSION_MIN: Final = 7
_POOL_SECONDS: Final = 60.0
"""A command waits this long for one of the connections to be free."""
_SKEW_SECONDS_MAX: Final = 0.1
"""A clock that differs by more from the server's would break the gaps that replicas keep between fetches."""
_LOST: Final = (exceptions.RedisError, OSError, TimeoutError, AttributeError)
"""What a command raises when its connection is lost; AttributeError is redis-py's, when another command closed it."""

Argument: TypeAlias = bytes | str | int | float
Call: TypeAlias = tuple[Sequence[str], Sequence[Argument]]
"""The keys and arguments of one run of a script."""


class Script:
    """A Lua script of the package by its name, behind what it shares with others."""

    def __init__(self, name: str, *shared: str) -> None:
        self.name = name
        self._files = ("prelude", *shared, name)

    @cached_property
    def text(self) -> str:
        """The whole script."""
        folder = resources.files(__package__) / _LUA
        return "".join((folder / f"{file}.lua").read_text("utf-8") for file in self._files)

    @cached_property
    def digest(self) -> str:
        """The digest by which the server knows it."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class RedisClient:
    """What the adapters of this package share. Not tied to a loop until its first command."""

    def __init__(self, settings: RedisSettings) -> None:
        self._settings = settings
        self._redis = _open(settings)
        # A pool lets commands wait for a connection; the client of a cluster fails if all are taken.
        self._free = asyncio.Semaphore(settings.connections_max) if settings.cluster else nullcontext()

    def key(self, tag: str, name: str) -> str:
        """A key; all keys of one tag lie on one node of a cluster, so that one script may touch them."""
        return f"{self._settings.prefix}:{{{tag}}}:{name}"

    async def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Argument]) -> Any:
        """Run a script as one atomic step; raises StoreError."""
        async with self._connection():
            try:
                return await self._redis.evalsha(script.digest, len(keys), *keys, *arguments)
            except exceptions.NoScriptError:
                return await self._redis.eval(script.text, len(keys), *keys, *arguments)

    async def run_all(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        """Run a script for several groups of keys in one round trip; each is atomic, all together are not."""
        answers = await self.attempt_all(script, calls)
        for answer in answers:
            if isinstance(answer, StoreError):
                raise answer
        return answers

    async def attempt_all(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        """The same, with the StoreError of a call that a server refused in the place of its answer."""
        if self._settings.cluster:
            return list(await asyncio.gather(*(self._attempt(script, call) for call in calls)))
        if len(calls) < 2:
            return [await self._attempt(script, call) for call in calls]
        async with self._connection():
            answers = await self._piped(script, calls)
            if any(isinstance(answer, exceptions.NoScriptError) for answer in answers):
                await self._redis.script_load(script.text)
                missing = [at for at, answer in enumerate(answers) if isinstance(answer, exceptions.NoScriptError)]
                again = await self._piped(script, [calls[at] for at in missing])
                for at, answer in zip(missing, again, strict=True):
                    answers[at] = answer
        where = masked(self._settings.url)
        return [_of_answer(where, one) if isinstance(one, exceptions.ResponseError) else one for one in answers]

    async def _attempt(self, script: Script, call: Call) -> Any:
        try:
            return await self.run(script, *call)
        except StoreError as error:
            if isinstance(error.__cause__, exceptions.ResponseError):
                return error
            raise

    async def _piped(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        pipe = self._redis.pipeline(transaction=False)
        for keys, arguments in calls:
            pipe.evalsha(script.digest, len(keys), *keys, *arguments)
        answers: list[Any] = await pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, Exception) and not isinstance(answer, exceptions.ResponseError):
                raise answer
        return answers

    async def ask(self, *words: Argument) -> Any:
        """The answer to one command; its first key decides the node of a cluster."""
        async with self._connection():
            return await self._redis.execute_command(*words)

    async def ask_all(self, commands: Sequence[Sequence[Argument]]) -> list[Any]:
        """The answers to several commands in one round trip; together they are not atomic."""
        if not commands:
            return []
        async with self._connection():
            pipe = self._redis.pipeline(transaction=False) if not self._settings.cluster else self._redis.pipeline()
            for words in commands:
                pipe.execute_command(*words)
            return list(await pipe.execute())

    async def scan(self, pattern: str) -> AsyncIterator[bytes]:
        """Keys by pattern: for tests and tools, never for a decision."""
        with self._named():
            async for key in self._redis.scan_iter(match=pattern, count=1000):
                yield key

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def check(self) -> None:
        """Raise StoreError if the server does not answer, is too old, evicts keys, or has another time than we."""
        with self._named():
            info = await self._info()
            asked = time.time()
            seconds, micros = await self._time()
            answered = time.time()
        where = masked(self._settings.url)
        version = str(info.get("redis_version", "0"))
        if int(version.partition(".")[0]) < _VERSION_MIN:
            raise StoreError(f"Redis at {where} is version {version}; Trawl needs {_VERSION_MIN} or newer")
        policy = info.get("maxmemory_policy", "noeviction")
        if int(info.get("maxmemory", 0)) and policy != "noeviction":
            raise StoreError(
                f"Redis at {where} evicts keys when it is full (maxmemory-policy {policy}), which loses queued URLs;"
                f" set maxmemory-policy noeviction"
            )
        if not int(info.get("aof_enabled", 0)):
            _LOG.warning("Redis at %s has no append-only file: a restart loses its state; set appendonly yes", where)
        skew = (asked + answered) / 2 - (seconds + micros / 1_000_000)
        if abs(skew) > _SKEW_SECONDS_MAX + (answered - asked) / 2:
            raise StoreError(
                f"the clock of this machine differs by {skew:.2f} s from that of Redis at {where}; politeness needs one"
                f" time: synchronise the clocks (NTP)"
            )

    async def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = await self._redis.info()
        if isinstance(self._redis, RedisCluster):
            return next(iter(info.values())) if info and isinstance(next(iter(info.values())), dict) else info
        return info

    async def _time(self) -> tuple[int, int]:
        answer = await self._redis.time()
        found = next(iter(answer.values())) if isinstance(answer, dict) else answer
        return int(found[0]), int(found[1])

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[None]:
        """One of the connections, and the errors of what is done with it by their names."""
        async with self._free:
            with self._named():
                yield

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise what the client raises as the StoreError that says what to do."""
        where = masked(self._settings.url)
        try:
            yield
        except exceptions.OutOfMemoryError as error:
            raise StoreFullError(
                f"Redis at {where} is full ({error}); raise its maxmemory, or lower frontier.queue_urls_max"
            ) from error
        except exceptions.AuthenticationError as error:
            raise StoreError(f"Redis at {where} refuses the name or password in redis.url: {error}") from error
        except exceptions.ResponseError as error:
            raise _of_answer(where, error) from error
        except _LOST as error:
            raise StoreError(
                f"Redis does not answer at {where}: {error or type(error).__name__}; is it running, and is redis.url"
                f" right?"
            ) from error


def connect(settings: RedisSettings) -> RedisClient:
    """A client for these settings; it connects at its first command. Raises SettingsError for a bad URL."""
    return RedisClient(settings)


def _open(settings: RedisSettings) -> Any:
    options: dict[str, Any] = {
        "socket_timeout": settings.timeout_seconds,
        "socket_connect_timeout": settings.timeout_seconds,
        "max_connections": settings.connections_max,
    }
    try:
        if settings.cluster:
            # After a few moved slots it would close the connections that others are using; each MOVED says enough.
            return RedisCluster.from_url(settings.url, reinitialize_steps=0, **options)
        pool = BlockingConnectionPool.from_url(settings.url, timeout=_POOL_SECONDS, **options)
        return Redis.from_pool(pool)
    except (ValueError, exceptions.RedisError) as error:
        why = error if "@" not in settings.url else "in a name or password, characters such as / ? # @ are written %2F"
        raise SettingsError(f"redis.url = {masked(settings.url)} cannot be used: {why}") from None


def _of_answer(where: str, error: exceptions.ResponseError) -> StoreError:
    text = str(error)
    if "STALE" in text:
        return StaleEpochError(f"another owner has taken over a shard of the frontier ({text})")
    if text.startswith(("NOAUTH", "WRONGPASS", "NOPERM")):
        return StoreError(f"Redis at {where} refuses the name or password in redis.url: {text}")
    if "OOM" in text:
        return StoreFullError(f"Redis at {where} is full ({text}); raise its maxmemory")
    return StoreError(f"Redis at {where} cannot serve: {text}")
