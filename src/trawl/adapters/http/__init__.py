"""HTTP and name resolution as they really are."""

from trawl.adapters.http.client import CurlHttpClient
from trawl.adapters.http.resolver import SystemResolver

__all__ = ["CurlHttpClient", "SystemResolver"]
