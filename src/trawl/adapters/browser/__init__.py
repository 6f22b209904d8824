"""Pages in a browser: the extra `browser`.

The document is fetched by the fetcher and given to Chromium; all that its scripts fetch passes our egress proxy.
"""

from trawl.adapters.browser.egress import Check
from trawl.adapters.browser.finding import HOW_TO, browser_path, is_there
from trawl.adapters.browser.upstream import RefusedError
from trawl.errors import SettingsError
from trawl.ports import Renderer
from trawl.settings import BrowserSettings

__all__ = ["HOW_TO", "Check", "RefusedError", "browser_path", "is_there", "open_renderer"]


def open_renderer(settings: BrowserSettings, check: Check, *, ca_file: str = "") -> Renderer:
    """A renderer, whose browser starts when it is first needed; raises SettingsError if the extra is missing."""
    try:
        from trawl.adapters.browser.pool import ChromiumRenderer  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"browser.render needs more than is installed ({error}): pip install 'trawl[browser]'"
        ) from None
    return ChromiumRenderer(settings, check, ca_file=ca_file)
