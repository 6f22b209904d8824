"""Archived real pages under their own host names, schemes and paths."""

import gzip
import json
import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from tests.site.encodings import choose
from tests.site.message import Reply, Request
from tests.site.model import NOT_FOUND, Page, Site, resolve

DATA_SET = "wcxb-dev"
_TRACKING = re.compile(r"(?<=[?&])(?:srsltid|gclid|fbclid|utm_\w+)=[^&]*&?")
_KEPT = "!$&'()*+,-./:;=?@_~%"  # what clients leave as it is in a target


def archive(data: Path, *, robots: Page = NOT_FOUND) -> list[Site]:
    """The 1,492 pages of `data`/wcxb-dev that have a URL, one site a host (1,295 of them); all else is 404.

    The stored pages were decoded and stored again as UTF-8, whatever their meta elements say, so they are served as
    `text/html; charset=utf-8` (a header beats a meta element). Bodies are read from disk when asked for.
    """
    by_host: dict[str, dict[str, Page]] = defaultdict(lambda: {"/robots.txt": robots})
    for url, file in archived_urls(data).items():
        parts = urlsplit(url)
        target = quote(parts.path or "/", safe=_KEPT) + (f"?{quote(parts.query, safe=_KEPT)}" if parts.query else "")
        page = partial(_stored, parts.scheme, file)
        by_host[(parts.hostname or "")].update({target: page, _without_tracking(target): page})
    return [Site(host, pages) for host, pages in sorted(by_host.items())]


def _without_tracking(target: str) -> str:
    """The target without parameters that servers ignore and canonical forms drop; the real sites answer to both."""
    return _TRACKING.sub("", target).rstrip("?&")


def archived_urls(data: Path) -> dict[str, Path]:
    """The files of the archived pages by URL, in the order of their ids."""
    folder = data / DATA_SET
    urls: dict[str, Path] = {}
    for path in sorted((folder / "ground-truth").glob("*.json")):
        truth = json.loads(path.read_bytes())
        if truth.get("url"):
            urls[truth["url"]] = folder / "html" / f"{truth['file_id']}.html.gz"
    return urls


def _stored(scheme: str, file: Path, request: Request) -> Reply:
    """The page as it is stored, compressed, to those who accept gzip; decompressed to others; nothing to http if it
    was found under https."""
    if request.scheme != scheme:
        return resolve(NOT_FOUND, request)
    octets = file.read_bytes()
    if choose(("gzip",), request.headers.get("accept-encoding")):
        return Reply(body=octets, headers=(("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")))
    return Reply(body=gzip.decompress(octets))
