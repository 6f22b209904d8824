"""A page as a browser shows it."""

from dataclasses import dataclass, field
from typing import Protocol

from trawl.records import Header


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRequest:
    """A document that was fetched, to be shown by a browser."""

    url: str
    """The canonical URL of the document, where its redirects ended."""
    status: int
    """Of its answer."""
    headers: tuple[Header, ...] = ()
    """Of its answer, as received."""
    body: bytes = field(default=b"", repr=False)
    """Its decoded bytes; the browser is given them and never fetches the document itself."""
    user_agent: str = ""
    """What the browser calls itself in what it fetches besides; empty for its own name."""
    accept_language: str = ""
    """The Accept-Language of what it fetches besides; empty for its own."""
    fields: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Header fields with credentials, for the document's own origin alone."""
    proxy: str = field(default="", repr=False)
    """The proxy's URL for what it fetches besides; empty for none."""
    country: str = ""
    """Where the browser is to run, two letters; empty for anywhere."""
    engine: str = ""
    """Another engine than Playwright, for hosts that a rule names: patchright."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A page that a browser has shown."""

    html: bytes = field(repr=False)
    """The final DOM as HTML in UTF-8; what stands in open shadow roots is part of it."""
    final_url: str
    """Where the page says that it is; of the same origin as the document."""
    navigated_to: str = ""
    """Where a script wanted to take the page; empty if nowhere. It was not followed."""
    settled: bool = True
    """Whether the page came to rest; if not, it was taken as it was when its time was over."""
    requests: int = 0
    """What the page fetched besides the document."""
    blocked: int = 0
    """What it wanted and was not given: images, trackers, frames, what is beyond a limit or refused."""
    wire_bytes: int = 0
    """What that brought, on the wire."""
    elapsed_ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderFailure:
    """A document that no browser could show."""

    reason: str
    """render_timeout, render_crashed, render_too_large or render_unavailable."""
    detail: str
    """One line for people: what happened, and what to do."""
    elapsed_ms: float = 0.0


class Renderer(Protocol):
    """Shows documents in a browser."""

    async def render(self, request: RenderRequest) -> Rendered | RenderFailure:
        """The final DOM, or a typed failure; never raises for what a page does."""
        ...

    async def close(self) -> None:
        """End the browser and all that it started."""
        ...
