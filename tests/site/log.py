"""What the fake web was asked, and when."""

from collections import defaultdict
from itertools import pairwise

from tests.site.message import Request

CONTROL_HOST = "control.fake-web.invalid"
"""The host at which a fake web in another process is asked what it saw; never logged."""


class RequestLog:
    """Requests by host, in order of arrival. Counting never stops; the entries themselves stop at `requests_max`."""

    def __init__(self, requests_max: int) -> None:
        self.requests_max = requests_max
        self.total = 0
        self._by_host: dict[str, list[Request]] = defaultdict(list)
        self._in_flight: dict[str, int] = defaultdict(int)
        self._in_flight_max: dict[str, int] = defaultdict(int)

    def add(self, request: Request) -> None:
        if request.host == CONTROL_HOST:
            return
        self.total += 1
        if self.total <= self.requests_max:
            self._by_host[request.host].append(request)

    def began(self, host: str) -> None:
        self._in_flight[host] += 1
        self._in_flight_max[host] = max(self._in_flight_max[host], self._in_flight[host])

    def ended(self, host: str) -> None:
        self._in_flight[host] -= 1

    def hits(self, host: str | None = None, path: str | None = None) -> list[Request]:
        """Requests to a host (all hosts if None) for a path, or for a path with its query, in order of arrival."""
        if host is None:
            found = sorted((one for many in self._by_host.values() for one in many), key=lambda one: one.at_seconds)
        else:
            found = list(self._by_host.get(host.lower(), ()))
        return found if path is None else [one for one in found if path in (one.path, one.target)]

    def gaps(self, host: str) -> list[float]:
        """Seconds between each request to a host and the one before, robots.txt included."""
        times = [one.at_seconds for one in self.hits(host)]
        return [later - earlier for earlier, later in pairwise(times)]

    def hosts(self) -> list[str]:
        return sorted(self._by_host)

    def in_flight_max(self, host: str) -> int:
        """The most requests of a host that were being answered at one moment; plain replies are instant and count 0."""
        return self._in_flight_max[host.lower()]

    def clear(self) -> None:
        """Forget all requests; those in flight go on."""
        self.total = 0
        self._by_host.clear()
        self._in_flight_max.clear()
