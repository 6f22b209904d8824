"""Names to addresses by the system's resolver, in threads, with a small cache."""

import asyncio
import socket
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

from trawl.ports import Resolution
from trawl.settings import FetchSettings

_NOT_FOUND = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})


class SystemResolver:
    """A Resolver over getaddrinfo: a bounded number of threads, a time limit, a cache of limited age and size.

    Equal questions at the same time are asked once. Answers are kept `dns_cache_seconds`, failures a tenth of that;
    getaddrinfo does not tell a record's own time to live.
    """

    def __init__(self, settings: FetchSettings) -> None:
        self._settings = settings
        self._threads = ThreadPoolExecutor(settings.dns_threads_max, thread_name_prefix="trawl-dns")
        self._cache: OrderedDict[str, tuple[float, Resolution]] = OrderedDict()
        self._asked: dict[str, asyncio.Task[Resolution]] = {}

    async def resolve(self, host: str) -> Resolution:
        """All addresses of a host; a literal address resolves to itself. Never raises for a bad name."""
        literal = _literal(host)
        if literal:
            return Resolution(addresses=(literal,))
        cached = self._cache.get(host)
        if cached is not None and cached[0] > time.monotonic():
            return cached[1]
        task = self._asked.get(host)
        if task is None:
            task = self._asked[host] = asyncio.create_task(self._ask(host))
            task.add_done_callback(lambda _: self._asked.pop(host, None))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop the threads; one that hangs in the system's resolver is left behind."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, host: str) -> Resolution:
        started = time.monotonic()
        seconds = self._settings.dns_seconds_max
        loop = asyncio.get_running_loop()
        try:
            found = await asyncio.wait_for(loop.run_in_executor(self._threads, _addresses, host), seconds)
        except TimeoutError:
            found = Resolution(error="dns_failed", detail=f"{host} was not resolved within {seconds:g} s")
        elapsed_ms = (time.monotonic() - started) * 1000
        result = Resolution(
            addresses=found.addresses, error=found.error, detail=found.detail, elapsed_ms=round(elapsed_ms, 3)
        )
        self._remember(host, Resolution(addresses=found.addresses, error=found.error, detail=found.detail))
        return result

    def _remember(self, host: str, resolution: Resolution) -> None:
        keep = self._settings.dns_cache_seconds * (0.1 if resolution.error else 1.0)
        self._cache[host] = (time.monotonic() + keep, resolution)
        self._cache.move_to_end(host)
        while len(self._cache) > self._settings.dns_cache_names_max:
            self._cache.popitem(last=False)


def _literal(host: str) -> str:
    """The address that a host of a canonical URL is itself, or empty."""
    text = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" not in text and not text[-1:].isdigit():
        return ""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def _addresses(host: str) -> Resolution:
    """Ask the system; runs in a thread."""
    try:
        # As bytes, because Python's IDNA codec fails on names that resolvers take (long labels, underscores).
        rows = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    except UnicodeError:
        return Resolution(error="dns_not_found", detail=f"{host} is not a host name")
    except socket.gaierror as error:
        kind = "dns_not_found" if error.errno in _NOT_FOUND else "dns_failed"
        return Resolution(error=kind, detail=f"{host} does not resolve: {error.strerror}")
    except OSError as error:
        return Resolution(error="dns_failed", detail=f"{host} was not resolved: {error}")
    found = dict.fromkeys(str(row[4][0]).partition("%")[0] for row in rows)
    if not found:
        return Resolution(error="dns_not_found", detail=f"{host} has no address")
    return Resolution(addresses=tuple(found))
