"""How pages are shown in a browser."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """When a page is shown in a browser, and what it may do there."""

    render: str = "never"
    """Which pages a browser shows: never, auto (shells, and hosts whose pages need it) or always."""
    hydrated_share: float = 0.4
    """If more than this share of the text of a host's pages (the median) comes with scripts, all are rendered."""
    sample_share: float = 0.2
    """Of the pages of a host that is undecided, this share is rendered to compare."""
    sample_pages_min: int = 3
    """So many pages that were compared decide for a host."""
    sample_pages_max: int = 10
    """Pages of an undecided host that are rendered to compare; and so many of the latest shares decide."""
    decided_seconds: float = 604_800.0
    """A host whose pages need no browser is sampled again after this time."""
    executable: str = ""
    """The browser; empty for Chromium of the system, else that of Playwright."""
    cdp_urls: tuple[str, ...] = ()
    """Browsers that run elsewhere, each a CDP endpoint `ws://HOST:PORT` or, for a country's rules, `DE ws://HOST:PORT`."""
    egress_host: str = "127.0.0.1"
    """The address of this machine at which browsers find the proxy that all their requests pass."""
    pages_max: int = 2
    """Pages shown at the same time."""
    pages_per_context_max: int = 50
    """Pages of one origin that share a browser context, and so its cache, one after the other; 1 shares nothing."""
    settle_seconds: float = 0.4
    """A page has come to rest when nothing was changed or fetched for this long."""
    seconds_max: float = 20.0
    """A page that has not come to rest is taken as it is after this time."""
    requests_max: int = 200
    """What a page may fetch besides its document; more is refused."""
    wire_bytes_max: int = 20_000_000
    """Bytes that a page's requests may bring; more is cut off."""
    html_bytes_max: int = 10_000_000
    """A larger DOM ends as render_too_large."""
    memory_bytes_max: int = 2_000_000_000
    """A browser of more resident memory is replaced, and a page that makes it so large ends as render_too_large."""
    sandbox: bool = True
    """Whether Chromium's own sandbox is on; as root it never is, since Chromium has none then."""
    block: tuple[str, ...] = ("image", "media", "font", "tracker")
    """What pages are not given."""
