"""Requests, origins and completions for the frontier's tests."""

from typing import Any

from trawl.kinds import OutcomeClass, RobotsState
from trawl.ports import Completion, FrontierStore, OriginUpdate, Request
from trawl.url import origin_of, request_key, template_key

SITE = "https://a.example"
FAR_MS = 10**13


def request(url: str = f"{SITE}/1", crawl_id: str = "c", **fields: Any) -> Request:
    """A request of a URL."""
    known = {"template": template_key(origin_of(url)), **fields}
    return Request(request_key=request_key(crawl_id, url), crawl_id=crawl_id, url=url, origin=origin_of(url), **known)


def completion(leased: Request, outcome: OutcomeClass = OutcomeClass.INDEXED, **fields: Any) -> Completion:
    """How the lease of a request ends."""
    return Completion(
        request_key=leased.request_key, url=leased.url, fetch_id=leased.fetch_id, outcome=outcome, **fields
    )


async def open_origin(
    frontier: FrontierStore, origin: str = SITE, *, delay_ms: int = 0, concurrency_max: int = 1000, **fields: Any
) -> None:
    """Let an origin be served: robots.txt known for ever, no delay."""
    update = OriginUpdate(
        robots=RobotsState.RULES,
        robots_expires_ms=FAR_MS,
        delay_ms=delay_ms,
        concurrency_max=concurrency_max,
        **fields,
    )
    await frontier.update_origin(origin, update)


async def admit(frontier: FrontierStore, *requests: Request, **limits: int) -> list[bool]:
    """Admit requests under generous limits; which were admitted."""
    known = {"queue_urls_max": 10**6, "host_urls_max": 10**6, **limits}
    return [admission.admitted for admission in await frontier.admit(requests, **known)]


async def lease(frontier: FrontierStore, now_ms: int = 1000, limit: int = 100, lease_ms: int = 60_000) -> list[Request]:
    """What can be leased now."""
    return list(await frontier.lease(now_ms, limit, lease_ms, origins_max=1000))
