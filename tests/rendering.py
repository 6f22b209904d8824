"""A renderer for tests whose scripts are Python: what a browser would make of a page, without one."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.site.sites.spa import PAGES, paragraph
from trawl.ports import Rendered, RenderFailure, RenderRequest

Script = Callable[[RenderRequest], Rendered | RenderFailure | bytes]


def unchanged(request: RenderRequest) -> bytes:
    """A page whose scripts do nothing."""
    return request.body


@dataclass
class PlayedBrowser:
    """Renders each page by one function; remembers what it was asked."""

    script: Script = unchanged
    asked: list[RenderRequest] = field(default_factory=list)
    closed: bool = False

    async def render(self, request: RenderRequest) -> Rendered | RenderFailure:
        self.asked.append(request)
        await asyncio.sleep(0)
        made = self.script(request)
        if isinstance(made, bytes):
            return Rendered(html=made, final_url=request.url, elapsed_ms=12.5)
        return made

    async def close(self) -> None:
        self.closed = True


def filled(text: str) -> Script:
    """What an application does: it puts text, and a link, into its mount point."""

    def script(request: RenderRequest) -> bytes:
        inner = f'<div id="root"><h1>Filled</h1><p>{text} {request.url}</p><a href="/made">made</a>'
        return request.body.replace(b'<div id="root">', inner.encode())

    return script


def leads(target: str, *, shown: str = "") -> Script:
    """A page that sends its visitors elsewhere, or shows another path as its own."""
    return lambda request: Rendered(html=request.body, final_url=shown or request.url, navigated_to=target)


def fails(reason: str) -> Script:
    """A page that cannot be rendered."""
    return lambda request: RenderFailure(reason=reason, detail=f"{request.url}: {reason}")


def application(request: RenderRequest) -> bytes:
    """The application of the sites of tests/site/sites/spa.py: text by path, and links where it fills a whole page."""
    host, path = urlsplit(request.url).netloc, urlsplit(request.url).path
    number = int(path[1:] or -1)
    text = f"<p>{paragraph(host, number, 'made')}</p>"
    if b"<main>" not in request.body:  # it owns the page
        text += "".join(f'<a href="/{other}">page {other}</a> ' for other in range(PAGES))
    return request.body.replace(b'<div id="root">', f'<div id="root"><h1>Made</h1>{text}'.encode())
