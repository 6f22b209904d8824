"""What a browser makes of a page: it gets the answer as it came, and never asks for the page itself."""

import re
from dataclasses import replace
from typing import Final

from trawl.access import AccessRules
from trawl.fetcher.requests import RequestFields, one_line
from trawl.fetcher.visit import header
from trawl.kinds import RenderMode
from trawl.ports import HttpResponse, Rendered, Renderer, RenderFailure, RenderRequest
from trawl.records import FetchedPage, Payload, StaticRender
from trawl.settings import FetchSettings

_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_HEAD_BYTES: Final = 1024
_MARKUP: Final = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body|!--)", re.IGNORECASE)
_RUNS: Final = re.compile(rb"<script\b|\bonload\s*=|\bhttp-equiv\s*=|<iframe\b|javascript:", re.IGNORECASE)


class PageRendering:
    """Gives pages to a browser, with the credentials of their own origin and no others."""

    def __init__(
        self, renderer: Renderer | None, fields: RequestFields, access: AccessRules, settings: FetchSettings
    ) -> None:
        self._renderer = renderer
        self._fields = fields
        self._access = access
        self._settings = settings

    async def render(self, url: str, answer: HttpResponse) -> Rendered | str:
        """What the page at a canonical URL became, or why it stays as it was fetched.

        Reasons besides those of the renderer: not_html, no_scripts (nothing in it could run), render_unavailable.
        """
        if not is_html(answer):
            return "not_html"
        if not _RUNS.search(answer.body):
            return "no_scripts"
        if self._renderer is None:
            return "render_unavailable"
        proxy = self._access.of(url).proxy
        request = RenderRequest(
            url=url,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            user_agent=one_line(self._settings.user_agent),
            accept_language=one_line(self._settings.accept_language),
            fields=self._fields.credentials(url),
            proxy=self._settings.proxy if proxy is None else proxy,
        )
        result = await self._renderer.render(request)
        return result.reason if isinstance(result, RenderFailure) else result


def is_html(answer: HttpResponse) -> bool:
    """Whether an answer is a page for a browser, by its label, or by its beginning where it has none."""
    label = header(answer.headers, "content-type").partition(";")[0].strip().lower()
    return label in _HTML if label else _MARKUP.match(answer.body[:_HEAD_BYTES]) is not None


def with_rendering(page: FetchedPage, result: Rendered | str) -> FetchedPage:
    """The page with what a browser made of it beside what was fetched; or as it was fetched, with the reason.

    Its URL stays where its redirects ended: a script may show any other path of its origin, which is not its own.
    """
    if isinstance(result, str):
        return replace(page, render_mode=RenderMode.STATIC, rendering=result)
    return replace(
        page,
        body=Payload(inline=result.html, size_bytes=len(result.html)),
        static_render=StaticRender(body=page.body, fetched_at_ms=page.fetched_at_ms),
        timings=replace(page.timings, render_ms=round(result.elapsed_ms, 3)),
    )
