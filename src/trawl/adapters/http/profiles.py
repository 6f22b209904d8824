"""The browsers whose handshakes libcurl can speak."""

from functools import lru_cache

from curl_cffi import Curl
from curl_cffi.requests.impersonate import REAL_TARGET_MAP


def prepared(curl: Curl, profile: str) -> bool:
    """Let a handle speak as a browser (`chrome` is its newest version, `chrome131` that one); whether it is known.

    The handshake alone: no header field of the browser is sent.
    """
    return curl.impersonate(REAL_TARGET_MAP.get(profile, profile), default_headers=False) == 0


@lru_cache(maxsize=64)
def is_known(profile: str) -> bool:
    """Whether there is such a browser."""
    curl = Curl()
    try:
        return prepared(curl, profile)
    finally:
        curl.close()
