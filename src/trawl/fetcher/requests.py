"""The header fields that a request sends (pure)."""

import re
from typing import Final

from trawl.access import AccessRules
from trawl.errors import SettingsError
from trawl.kinds import Purpose
from trawl.records import Validators
from trawl.settings import FetchSettings
from trawl.url import host_of

Fields = tuple[tuple[str, str], ...]

_ACCEPT: Final = {
    Purpose.ROBOTS: "text/plain,*/*;q=0.5",
    Purpose.SITEMAP: "application/xml,text/xml,text/plain;q=0.8,*/*;q=0.5",
    Purpose.FEED: "application/rss+xml,application/atom+xml,application/xml;q=0.9,text/xml;q=0.9,*/*;q=0.5",
}
_ACCEPT_PAGE: Final = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
_EXTRA: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\](?::\d+)?|[^\s:\[\]]+(?::\d+)?):\s*(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):\s*(?P<value>[^\r\n\0]*)"
)
_OURS: Final = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class RequestFields:
    """Header fields by host and purpose; extra fields go to the host they were given for, and to no other."""

    def __init__(self, settings: FetchSettings, access: AccessRules | None = None) -> None:
        self._settings = settings
        self._access = access or AccessRules()
        self._extra: dict[str, list[tuple[str, str]]] = {}
        for text in settings.headers:
            host, name, value = extra_header(text)
            self._extra.setdefault(host, []).append((name, value))

    def fields(self, canonical_url: str, purpose: Purpose, validators: Validators = Validators()) -> Fields:
        """The fields of one request; those of an access file come last, and replace others of their names."""
        wanted = {
            "user-agent": ("User-Agent", one_line(self._settings.user_agent)),
            "accept": ("Accept", _ACCEPT.get(purpose, _ACCEPT_PAGE)),
            "accept-language": ("Accept-Language", one_line(self._settings.accept_language)),
        }
        if validators.etag:
            wanted["if-none-match"] = ("If-None-Match", one_line(validators.etag))
        if validators.last_modified:
            wanted["if-modified-since"] = ("If-Modified-Since", one_line(validators.last_modified))
        for name, value in self.credentials(canonical_url):
            wanted[name.lower()] = (name, value)
        return tuple(field for field in wanted.values() if field[1])

    def credentials(self, canonical_url: str) -> Fields:
        """The fields that are for this host or origin and for no other; those of an access file come last."""
        return (*self._extra.get(host_of(canonical_url), ()), *self._access.of(canonical_url).fields)


def extra_header(text: str) -> tuple[str, str, str]:
    """The host key, name and value of an extra header `HOST: NAME: VALUE`; raises SettingsError.

    The error does not show the value, which may be a secret.
    """
    match = _EXTRA.fullmatch(text.strip())
    if match is None:
        shown = ": ".join(text.split(":")[:2]).strip()
        raise SettingsError(f"fetch.headers has {shown!r}…, which cannot be used; write it as 'HOST: NAME: VALUE'")
    if match["name"].lower() in _OURS:
        raise SettingsError(f"fetch.headers sets {match['name']} for {match['host']}, which the fetcher sets itself")
    return match["host"].lower(), match["name"], match["value"].strip()


def one_line(value: str) -> str:
    """A field value that came from a server, without what could begin another field."""
    return value.translate({10: None, 13: None, 0: None})
