"""One polite request: checked, waited for, sent, learned from. Every request of the fetcher goes through here."""

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

from trawl.access import AccessRules
from trawl.fetcher.addresses import AddressGuard, port_refused, written_address
from trawl.fetcher.politeness import backoff_ms, breaker_ms, interval_ms
from trawl.fetcher.requests import Fields
from trawl.fetcher.retry_after import retry_after_ms
from trawl.ports import (
    Clock,
    HttpClient,
    HttpFailure,
    HttpRequest,
    HttpResponse,
    PolitenessState,
    PolitenessStore,
    Reservation,
    Resolver,
    Signer,
)
from trawl.records import Millis
from trawl.rules import Rules
from trawl.settings import Settings
from trawl.url import host_of, hostname_of, origin_of

THROTTLED: Final = frozenset({429, 503})
HOST_FAILURES: Final = frozenset(
    {"connect_failed", "connect_timeout", "connection_lost", "first_byte_timeout", "tls_failed"}
)
"""Failures that speak of the host; enough of them in a row open the breaker."""
_PROXY_FAILURES: Final = frozenset({"proxy_auth_required", "proxy_failed"})
"""Failures that say nothing of the host."""
_UNREACHED: Final = frozenset({"connect_failed", "connect_timeout"})
"""Failures after which another address of the host may answer."""
_UNREACHED_MS: Final = 600_000
"""For so long an address that could not be connected to is tried after the host's others."""
_CONNECT_MS: Final = 10
"""A connection that is there sooner delays nothing worth a write."""
_HOSTS_MAX: Final = 65_536
_PERMIT_MARGIN_MS: Final = 30_000

_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A request that somebody wants to be sent."""

    url: str
    canonical_url: str
    fields: Fields
    body_bytes_max: int
    total_seconds_max: float
    cut_body: bool = False
    attempt: int = 1
    """From the second on, the next of the host's addresses is tried first."""
    not_before_ms: Millis = 0
    patient: bool = False
    """Whether one interval of the host may be waited for on top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request that was sent, and what came of it."""

    answer: HttpResponse | HttpFailure
    started_ms: Millis
    retry_after_ms: int | None
    """What the server asked for, if it did."""
    address: str
    resolve_ms: float
    gap_required_ms: int
    gap_actual_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSent:
    """A request that was not sent."""

    reason: str
    """address_refused, port_refused, dns_not_found, dns_failed, politeness or visit_time."""
    detail: str
    deferred_until_ms: Millis | None = None
    """For politeness and visit_time: when to ask again."""


class Hops:
    """Sends requests when the host's and the address's slots allow it."""

    def __init__(
        self,
        http: HttpClient,
        resolver: Resolver,
        politeness: PolitenessStore,
        rules: Rules,
        clock: Clock,
        settings: Settings,
        *,
        access: AccessRules | None = None,
        signer: Signer | None = None,
    ) -> None:
        self._access = access or AccessRules()
        self._signer = signer
        self._http = http
        self._resolver = resolver
        self._politeness = politeness
        self._rules = rules
        self._clock = clock
        self._settings = settings
        self._guard = AddressGuard.compile(settings.fetch.allow_networks)
        self._starts: _Recent[str, Millis] = _Recent(_HOSTS_MAX)
        self._parked: _Recent[str, Millis] = _Recent(_HOSTS_MAX)
        self._dead: _Recent[tuple[str, str], Millis] = _Recent(_HOSTS_MAX)

    async def go(self, wish: Wish) -> Sent | NotSent:
        """Send one request, or say why not; waits for a slot within the horizon, never beyond it.

        An address to which no connection can be made is followed by the host's next, each with slots of its own.
        """
        found = await self._addresses(wish)
        if isinstance(found, NotSent):
            return found
        addresses, resolve_ms = found
        last = addresses[-1]
        for address in addresses:
            sent = await self._try(wish, address, resolve_ms, is_last=address == last)
            if isinstance(sent, NotSent) or address == last or not _unreached(sent.answer):
                break
            wish = replace(wish, patient=True)  # the gap to this host's own dead address is no reason to give up
        return sent

    async def _try(self, wish: Wish, address: str, resolve_ms: float, *, is_last: bool) -> Sent | NotSent:
        """Send the request to one address; that it does not connect is the host's failure if it is the last one."""
        host = host_of(wish.canonical_url)
        interval = await self._interval_ms(host, origin_of(wish.canonical_url))
        slot = await self._slot(host, address, interval, wish)
        if not slot.granted:
            return _put_off(host, slot.at_ms)
        try:
            start = await self._start(host, slot, interval)
            if isinstance(start, NotSent):
                return start
            started_ms, gap_ms = start
            access = self._access.of(wish.canonical_url)
            request = HttpRequest(
                url=wish.url,
                headers=(*wish.fields, *self._signed(wish.url)),
                address=address,
                proxy=access.proxy,
                impersonate=access.impersonate,
                body_bytes_max=wish.body_bytes_max,
                cut_body=wish.cut_body,
                total_seconds_max=wish.total_seconds_max,
            )
            answer = await self._http.fetch(request)
            await self._connected(host, answer, started_ms, interval)
            asked = None
            if self._reached(host, address, answer) or is_last:
                asked = await self._learn(host, answer)  # before the permit is free: nobody may slip in before a block
        finally:
            await self._politeness.release(_host_key(host), slot.permit)
        return Sent(
            answer=answer,
            started_ms=started_ms,
            retry_after_ms=asked,
            address=answer.address or address,
            resolve_ms=resolve_ms,
            gap_required_ms=interval,
            gap_actual_ms=gap_ms,
        )

    # Before

    async def _addresses(self, wish: Wish) -> tuple[Sequence[str], float] | NotSent:
        """The checked addresses to try, in order, and the time that resolving took; no address through a proxy."""
        parts = urlsplit(wish.canonical_url)
        if parts.port is not None and port_refused(parts.port):
            detail = f"{wish.url}: port {parts.port} belongs to another protocol and is never fetched"
            return NotSent(reason="port_refused", detail=detail)
        host = hostname_of(wish.canonical_url)
        if self._proxied(wish):  # it resolves names; an address that is written out can be judged all the same
            literal = written_address(host)
            kind = self._guard.refusal(literal) if literal else ""
            return _refused(wish.url, host, literal, kind) if kind else (("",), 0.0)
        found = await self._resolver.resolve(host)
        if not found.addresses:
            await self._failed(host_of(wish.canonical_url))
            return NotSent(reason=found.error, detail=f"{wish.url}: {found.detail}")
        refusals = {address: self._guard.refusal(address) for address in found.addresses}
        allowed = [address for address, refusal in refusals.items() if not refusal]
        if not allowed:
            address, kind = next(iter(refusals.items()))
            return _refused(wish.url, host, address, kind)
        return self._ordered(host_of(wish.canonical_url), allowed, wish.attempt), found.elapsed_ms

    def _proxied(self, wish: Wish) -> bool:
        proxy = self._access.of(wish.canonical_url).proxy
        return bool(self._settings.fetch.proxy if proxy is None else proxy)

    def _signed(self, url: str) -> Fields:
        """The fields that say who we are, made anew for each request; none without a key."""
        return self._signer.fields(url) if self._signer is not None else ()

    def _ordered(self, host: str, allowed: Sequence[str], attempt: int) -> Sequence[str]:
        """As many addresses as may be tried; those that could not be connected to a while ago come last."""
        first = (attempt - 1) % len(allowed)
        turned = (*allowed[first:], *allowed[:first])
        forgotten_ms = self._clock.now_ms() - _UNREACHED_MS
        ordered = sorted(turned, key=lambda address: (self._dead.get((host, address)) or 0) > forgotten_ms)
        return ordered[: max(1, self._settings.fetch.addresses_tried_max)]

    def _reached(self, host: str, address: str, answer: HttpResponse | HttpFailure) -> bool:
        """Whether the address could be connected to; it is remembered if not."""
        if not _unreached(answer):
            return True
        self._dead.put((host, address), self._clock.now_ms())
        return False

    async def _interval_ms(self, host: str, origin: str) -> int:
        state = await self._politeness.state(_host_key(host))
        return interval_ms(state, await self._rules.asked_delay(origin), self._settings.politeness)

    async def _slot(self, host: str, address: str, interval: int, wish: Wish) -> Reservation:
        """The host's slot, not before the address's; not granted if it lies beyond the horizon.

        The address is asked first and the host from that time on, so that the host's next slot counts from the later
        of the two.
        """
        horizon = round(1000 * self._settings.politeness.horizon_seconds)
        deadline = self._clock.now_ms() + horizon + (interval if wish.patient else 0)
        while True:
            at_ms = max(self._clock.now_ms(), wish.not_before_ms)
            slot = await self._reserve_address(address, at_ms, deadline, interval)
            if slot.granted:
                slot = await self._reserve_host(host, slot.at_ms, deadline, interval)
            if slot.granted or slot.at_ms > deadline:
                return slot
            await self._clock.sleep((slot.at_ms - self._clock.now_ms()) / 1000)

    async def _reserve_address(self, address: str, at_ms: Millis, deadline: Millis, host_interval: int) -> Reservation:
        # Looser than the host's own: many hosts share an address, and one that asks for no delay needs none.
        interval = min(round(1000 * self._settings.politeness.address_delay_seconds), host_interval)
        if at_ms > deadline:
            return Reservation(granted=False, at_ms=at_ms)
        if not address or not interval:
            return Reservation(granted=True, at_ms=at_ms)
        return await self._politeness.reserve(
            f"address:{address}",
            at_ms,
            interval_ms=interval,
            horizon_ms=deadline - at_ms,
            concurrency_max=0,
            permit_ms=1,  # addresses have no permits to give back
        )

    async def _reserve_host(self, host: str, at_ms: Millis, deadline: Millis, interval: int) -> Reservation:
        return await self._politeness.reserve(
            _host_key(host),
            at_ms,
            interval_ms=interval,
            horizon_ms=max(0, deadline - at_ms),
            concurrency_max=self._settings.politeness.per_host_concurrency,
            permit_ms=round(1000 * self._settings.fetch.total_seconds_max) + _PERMIT_MARGIN_MS,
        )

    async def _start(self, host: str, slot: Reservation, interval: int) -> tuple[Millis, int | None] | NotSent:
        """Sleep until the slot; the real time of the start, and the gap to the start before it.

        A start that comes late moves the host's next slot, so that the gap after it is kept as well. A slot that was
        given before the host asked to be left alone is not used.
        """
        while True:
            before = self._starts.get(host)
            earliest = slot.at_ms if before is None else max(slot.at_ms, before + interval)
            now = self._clock.now_ms()
            if slot.at_ms < self._parked_until(host):
                return _put_off(host, self._parked_until(host))
            if now >= earliest:
                break
            await self._clock.sleep((earliest - now) / 1000)
        self._starts.put(host, now)
        if interval and now > slot.at_ms:
            await self._politeness.block(_host_key(host), now + interval)
        return now, slot.gap_actual_ms if before is None else now - before

    # After

    async def _connected(
        self, host: str, answer: HttpResponse | HttpFailure, started_ms: Millis, interval: int
    ) -> None:
        """A connection that took long made the request late: the gap after it counts from when it was really sent."""
        if not interval or not isinstance(answer, HttpResponse) or answer.connect_ms < _CONNECT_MS:
            return
        sent_ms = started_ms + round(answer.connect_ms)
        self._starts.put(host, max(sent_ms, self._starts.get(host) or 0))
        await self._politeness.block(_host_key(host), sent_ms + interval)

    async def _learn(self, host: str, answer: HttpResponse | HttpFailure) -> int | None:
        """Teach the politeness store; how long the server asked to be left alone, if it did."""
        if isinstance(answer, HttpFailure) and answer.reason in HOST_FAILURES:
            await self._failed(host)
            return None
        if isinstance(answer, HttpFailure) and answer.reason in _PROXY_FAILURES:
            return None
        throttled = answer.status in THROTTLED
        response_ms = answer.first_byte_ms if isinstance(answer, HttpResponse) and not throttled else None
        state = await self._politeness.observe(
            _host_key(host), response_ms=response_ms, failed=False, throttled=throttled
        )
        return await self._park(host, answer, state) if answer.status >= 400 else None

    async def _park(self, host: str, answer: HttpResponse | HttpFailure, state: PolitenessState) -> int | None:
        """Leave the whole host alone for as long as it asks, or, when it only says it is busy, for the back-off."""
        now = self._clock.now_ms()
        value = next((header.value for header in answer.headers if header.name == "retry-after"), "")
        asked = retry_after_ms(value, now)
        wait = asked or (backoff_ms(state, self._settings.politeness) if answer.status in THROTTLED else 0)
        if wait:
            self._parked.put(host, max(now + wait, self._parked_until(host)))
            await self._politeness.block(_host_key(host), now + wait)
        return asked

    def _parked_until(self, host: str) -> Millis:
        """Until when the host asked this process to leave it alone; its slots were given before that."""
        return self._parked.get(host) or 0

    async def _failed(self, host: str) -> None:
        """Count a failure of the host; from `breaker_failures` in a row on, leave it alone."""
        state = await self._politeness.observe(_host_key(host), response_ms=None, failed=True, throttled=False)
        pause = breaker_ms(state, self._settings.politeness)
        if pause:
            await self._politeness.block(_host_key(host), self._clock.now_ms() + pause)


class _Recent(Generic[_K, _V]):
    """The values of the keys put last, up to a number."""

    def __init__(self, keys_max: int) -> None:
        self._keys_max = keys_max
        self._values: OrderedDict[_K, _V] = OrderedDict()

    def get(self, key: _K) -> _V | None:
        return self._values.get(key)

    def put(self, key: _K, value: _V) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._keys_max:
            self._values.popitem(last=False)


def _unreached(answer: HttpResponse | HttpFailure) -> bool:
    return isinstance(answer, HttpFailure) and answer.reason in _UNREACHED


def _refused(url: str, host: str, address: str, kind: str) -> NotSent:
    named = "this address" if host.strip("[]") == address else f"{host} is {address}, which"
    detail = f"{url}: {named} is not fetched ({kind}); if you mean it, allow it with --allow-network {address}"
    return NotSent(reason="address_refused", detail=detail)


def _put_off(host: str, until_ms: Millis) -> NotSent:
    detail = f"{host} may be fetched again later than politeness.horizon_seconds from now"
    return NotSent(reason="politeness", detail=detail, deferred_until_ms=until_ms)


def _host_key(host: str) -> str:
    return f"host:{host}"
