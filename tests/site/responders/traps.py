"""Spider traps: sites without end, whose pages hardly differ. Keys are prefixes for `Site.pages`."""

import datetime as dt
import hashlib
from itertools import product
from urllib.parse import parse_qsl, urlencode

from tests.site.message import Reply, Request
from tests.site.model import Page
from tests.site.responders.pages import html

COLOURS = ("red", "green", "blue", "black", "white")
SIZES = ("s", "m", "l", "xl")
ORDERS = ("price", "name", "newest")


def calendar(prefix: str = "/calendar/") -> dict[str, Page]:
    """Every month links to the months before and after, and to each of its days, for ever."""

    def responder(request: Request) -> Reply:
        parts = request.path.removeprefix(prefix).strip("/").split("/")
        year, month = (int(part) for part in (*parts, "2026", "1")[:2]) if parts[0] else (2026, 1)
        earlier, later = year * 12 + month - 2, year * 12 + month
        links = [f"{prefix}{moment // 12:04d}/{moment % 12 + 1:02d}" for moment in (earlier, later)]
        links += [f"{prefix}{year:04d}/{month:02d}/{day:02d}" for day in range(1, 29)] if len(parts) < 3 else []
        return html("Calendar", "No events are planned in this period.", links=links)

    return {prefix + "*": responder}


def session_ids(path: str = "/shop", name: str = "PHPSESSID") -> dict[str, Page]:
    """Every response links to the same two pages under a session id that is new each time."""

    def responder(request: Request) -> Reply:
        fresh = hashlib.md5(f"{request.at_seconds}{request.target}".encode(), usedforsecurity=False).hexdigest()
        pages = (f"{path}?{name}={fresh}", f"{path}/basket?{name}={fresh}")
        return html(f"Shop {request.path}", "Our shop sells lamps, chairs and tables made of ash.", links=pages)

    return {path: responder, path + "/basket": responder}


def facets(path: str = "/catalogue") -> dict[str, Page]:
    """Filters that combine in any order and number: 5 colours, 4 sizes, 3 orders, every subset, every permutation."""

    def responder(request: Request) -> Reply:
        chosen = parse_qsl(request.query)
        values = (*product(["colour"], COLOURS), *product(["size"], SIZES), *product(["order"], ORDERS))
        links = [f"{path}?{urlencode([*chosen, pair])}" for pair in values if pair not in chosen]
        return html("Catalogue", "Forty-two articles match your choice.", links=links)

    return {path: responder}


def repeating(prefix: str = "/a/") -> dict[str, Page]:
    """A relative link without its slash: `/a/b/b/b/…`, each the same page."""
    return {prefix + "*": html("About us", "We have been baking bread since 1911.", links=["b/", "../c/b/"])}


def counter(prefix: str = "/item/") -> dict[str, Page]:
    """Numbers without end, each page the same but for its number."""

    def responder(request: Request) -> Reply:
        digits = request.path.removeprefix(prefix)
        number = int(digits) if digits.isdecimal() else 0
        links = [f"{prefix}{number + step}" for step in (1, 2, 10)]
        return html(f"Item {number}", "This item is sold out.", links=links)

    return {prefix + "*": responder}


def dates(prefix: str = "/archive/", first: dt.date = dt.date(2026, 1, 1)) -> dict[str, Page]:
    """An archive by day that goes back for ever."""

    def responder(request: Request) -> Reply:
        try:
            day = dt.date.fromisoformat(request.path.removeprefix(prefix))
        except ValueError:
            day = first
        return html("Archive", "Nothing was published.", links=[f"{prefix}{day - dt.timedelta(days=1)}"])

    return {prefix + "*": responder}


def all_traps() -> dict[str, Page]:
    return {**calendar(), **session_ids(), **facets(), **repeating(), **counter(), **dates()}


ENTRANCES = ("/calendar/2026/01", "/shop", "/catalogue", "/a/b/", "/item/1", "/archive/2026-01-01")
"""A link into each of `all_traps`."""
