"""The access file: read once, when a process begins."""

import logging
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

from trawl.access import AccessRules
from trawl.adapters.http.profiles import is_known
from trawl.errors import SettingsError

_LOG = logging.getLogger(__name__)
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_access(path: str, environ: Mapping[str, str]) -> AccessRules:
    """The rules of an access file (docs/access.md), none without a path; raises SettingsError, showing no secret."""
    if not path:
        return AccessRules()
    try:
        with Path(path).open("rb") as file:
            mode = stat.S_IMODE(Path(path).stat().st_mode)
            document = tomllib.load(file)
    except FileNotFoundError:
        raise SettingsError(f"there is no access file {path} (fetch.access_file)") from None
    except OSError as error:
        raise SettingsError(f"the access file {path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # what tomllib says of it names a place, not the text there
        raise SettingsError(f"the access file {path} is no TOML: {error}") from None
    if mode & _OTHERS:
        _LOG.warning("others on this machine can read the access file %s; close it with: chmod 600 %s", path, path)
    rules = AccessRules.compile(document, environ)
    for profile in sorted(rules.profiles):
        if not is_known(profile):
            raise SettingsError(
                f"the access file {path} impersonates {profile!r}, which libcurl does not know; "
                "it knows chrome, firefox, safari and edge, and their versions such as chrome131"
            )
    return rules
