"""Whether a static page is a shell, whose content comes only with its scripts (pure).

What says so: little text beside a mount point of a framework, the state that a framework leaves for its scripts, a
`noscript` that asks for JavaScript, or nothing but scripts. A short page without scripts is a short page.
"""

import re
from typing import Final

from trawl.extractor.extract import Extraction
from trawl.settings import ExtractSettings

_HEAD_BYTES: Final = 2_000_000
"""So much of a page is looked at; what a shell shows stands before."""
_SCRIPT: Final = re.compile(rb"<script\b([^>]*)>", re.IGNORECASE)
_DATA_SCRIPT: Final = re.compile(rb"""\btype\s*=\s*["']?\s*application/(?:ld\+)?json""", re.IGNORECASE)
_MOUNT: Final = re.compile(
    rb"""<(?:app-root|ng-app|router-outlet)\b"""
    rb"""|<[a-z][a-z0-9-]*\b[^>]*\s(?:"""
    rb"""id\s*=\s*["']?(?:root|app|app-root|main-app|react-root|react-app|vue-app|__next|__nuxt|___gatsby|q-app|svelte|ember-app|spa)["'\s>]"""
    rb"""|(?:data-)?ng-(?:app|version|controller)\b|data-reactroot\b|data-server-rendered\b|v-cloak\b|data-v-app\b|data-sveltekit-)""",
    re.IGNORECASE,
)
_STATE: Final = re.compile(
    rb"""__(?:INITIAL_STATE|PRELOADED_STATE|NEXT_DATA|NUXT|NUXT_DATA|APOLLO_STATE|REDUX_STATE|INITIAL_DATA)__"""
    rb"""|self\.__next_f\b|window\.__remixContext\b|id\s*=\s*["']__(?:NEXT|NUXT)_DATA__""",
)
_NOSCRIPT: Final = re.compile(rb"<noscript\b[^>]*>(.*?)</noscript\s*>", re.IGNORECASE | re.DOTALL)
_ASKS: Final = re.compile(rb"java\s?-?script", re.IGNORECASE)
_TAG: Final = re.compile(rb"<[^>]*>")
_ASKING_BYTES_MAX: Final = 600
"""A longer `noscript` is content for readers without scripts, not a request to allow them."""


def shell_reason(html: bytes, found: Extraction, settings: ExtractSettings) -> str:
    """Why a browser should be asked for a static page: empty or shell; an empty text if it should not.

    `found` is what the page gave as it is. Only the page's own bytes and its main text are looked at, so that the
    answer for a page is always the same.
    """
    chars = len(found.text)
    if chars >= settings.shell_chars_max:
        return ""
    head = html[:_HEAD_BYTES]
    scripts = [match[1] for match in _SCRIPT.finditer(head) if not _DATA_SCRIPT.search(match[1])]
    if not scripts:
        return ""
    if not chars and not found.blocks and any(b"src" in attributes.lower() for attributes in scripts):
        return "empty"
    mounted = _MOUNT.search(head) is not None
    if mounted and (chars < settings.shell_chars_max // 2 or _STATE.search(head)):
        return "shell"
    return "shell" if _asks_for_scripts(head) or (_STATE.search(head) and chars < settings.shell_chars_max // 2) else ""


def _asks_for_scripts(head: bytes) -> bool:
    """Whether the page tells its readers to allow JavaScript."""
    for match in _NOSCRIPT.finditer(head):
        told = b" ".join(_TAG.sub(b" ", match[1]).split())
        if len(told) <= _ASKING_BYTES_MAX and _ASKS.search(told):
            return True
    return False
