"""Addresses of servers as they may be shown (pure): a name and password in them are for the server alone."""

from urllib.parse import urlsplit


def masked(url: str) -> str:
    """The scheme, host, port and path of a URL; of one that can be read in several ways the scheme alone."""
    scheme, separator, _ = url.partition("://")
    hidden = f"{scheme}://…" if separator else "…"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return hidden
    beyond = parts.path + parts.fragment + ("" if "@" in parts.netloc else parts.query)
    if not separator or "@" in beyond or (not parts.hostname and parts.netloc):
        return hidden
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{scheme}://{host}{'' if port is None else f':{port}'}{parts.path}"
