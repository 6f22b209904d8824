"""Which browser there is on this machine."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from trawl.settings import BrowserSettings

NAMES: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
"""Of the system, the quickest first."""
_MACOS: Final = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
HOW_TO: Final = (
    "install one: apt-get install chromium-headless-shell, or playwright install chromium-headless-shell;"
    " or name it in browser.executable"
)


def browser_path(settings: BrowserSettings) -> str:
    """The browser to start: that of the settings, of the system, or of Playwright; empty if there is none."""
    if settings.executable:
        return settings.executable if shutil.which(settings.executable) else ""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        found = next((path for path in _MACOS if Path(path).exists()), None)
    return found or _of_playwright()


def is_there(settings: BrowserSettings) -> bool:
    """Whether pages can be shown: the extra `browser` is installed, and there is a browser here or elsewhere."""
    return find_spec("playwright") is not None and bool(settings.cdp_urls or browser_path(settings))


def _of_playwright() -> str:
    """The browser that Playwright has downloaded; empty if none."""
    home = Path.home()
    for folder in (home / ".cache" / "ms-playwright", home / "Library" / "Caches" / "ms-playwright"):
        for pattern in ("chromium_headless_shell-*/*/headless_shell", "chromium-*/*/chrome"):
            found = sorted(folder.glob(pattern))
            if found:
                return str(found[-1])
    return ""
