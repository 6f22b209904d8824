"""The declarative model of a site: a host and its pages."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Literal

from tests.site.message import Reply, Request

Responder = Callable[[Request], Reply]
Page = str | Reply | Responder
"""A page is HTML text, a fixed reply, or a function that makes the reply of a request."""

Tls = Literal["good", "expired", "wrong-name", "untrusted", "broken"]

NOT_FOUND = Reply(404, b"<!doctype html><title>Not found</title><h1>Not found</h1>")


class Site:
    """One host.

    `pages` is looked up by the whole target (path and query), then by the path, then by the longest key that ends
    with `*` and is otherwise a prefix of the target; then `fallback` answers, by default with 404. The mapping may be
    changed at any time. `scheme` restricts the site to http or https (the other one answers 404). `tls` says what is
    wrong with the host's certificate, `reachable=False` makes the proxy answer 502 as for a host that is down.
    """

    def __init__(
        self,
        host: str,
        pages: Mapping[str, Page],
        *,
        fallback: Page = NOT_FOUND,
        scheme: str | None = None,
        tls: Tls = "good",
        reachable: bool = True,
    ) -> None:
        self.host = host.lower()
        self.pages: dict[str, Page] = dict(pages)
        self.fallback = fallback
        self.scheme = scheme
        self.tls = tls
        self.reachable = reachable

    def reply(self, request: Request) -> Reply:
        if self.scheme is not None and self.scheme != request.scheme:
            return NOT_FOUND
        page = self.pages.get(request.target)
        if page is None:
            page = self.pages.get(request.path)
        if page is None:
            page = self._by_prefix(request.target)
        return resolve(page, request)

    def _by_prefix(self, target: str) -> Page:
        keys = [key for key in self.pages if key.endswith("*") and target.startswith(key[:-1])]
        return self.pages[max(keys, key=len)] if keys else self.fallback


def resolve(page: Page, request: Request) -> Reply:
    """The reply of a page to a request."""
    if isinstance(page, Reply):
        return page
    if isinstance(page, str):
        return Reply(body=page.encode())
    return page(request)


def altered(page: Page, **fields: Any) -> Page:
    """The page with fields of its reply replaced; how every responder composes with every other."""
    if isinstance(page, str):
        page = Reply(body=page.encode())
    if isinstance(page, Reply):
        return replace(page, **fields)
    inner = page
    return lambda request: replace(inner(request), **fields)


def with_headers(page: Page, *headers: tuple[str, str | bytes]) -> Page:
    """The page with header fields added."""
    return lambda request: _with_headers(resolve(page, request), headers)


def sequence(*pages: Page) -> Responder:
    """The first page for the first request, and so on; the last one for ever."""
    counter = count()
    return lambda request: resolve(pages[min(next(counter), len(pages) - 1)], request)


def _with_headers(reply: Reply, headers: tuple[tuple[str, str | bytes], ...]) -> Reply:
    return replace(reply, headers=reply.headers + headers)
