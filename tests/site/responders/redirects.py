"""Redirects of every kind (RFC 9110, 15.4)."""

from tests.site.message import Reply, Request
from tests.site.model import Page, Site

REDIRECT_STATUSES = (301, 302, 303, 307, 308)


def redirect(to: str | bytes | None, status: int = 302) -> Reply:
    """A redirect whose Location is `to` as it stands: relative, absolute, `file://`, with a fragment, raw non-ASCII
    bytes (str is sent as UTF-8 as browsers receive it), empty, or missing (None)."""
    octets = to.encode() if isinstance(to, str) else to
    headers = () if octets is None else (("Location", octets),)
    return Reply(status, b"<!doctype html><title>Moved</title><h1>Moved</h1>", headers=headers)


def chain(hops: int, end: str, *, prefix: str = "/hop/", status: int = 302) -> dict[str, Page]:
    """Paths prefix+"1" to prefix+str(hops), each redirecting to the next, the last to `end`."""
    targets = [*(f"{prefix}{number}" for number in range(2, hops + 1)), end]
    return {f"{prefix}{number}": redirect(target, status) for number, target in enumerate(targets, start=1)}


def loop(*urls: str, status: int = 302) -> dict[str, Page]:
    """Each path redirects to the next and the last to the first; of one path, to itself."""
    return {here: redirect(there, status) for here, there in zip(urls, (*urls[1:], urls[0]), strict=True)}


def growing(prefix: str = "/grow/") -> dict[str, Page]:
    """A redirect loop that never repeats a URL: each hop leads to a longer path."""
    return {prefix + "*": lambda request: redirect(request.target + "a/")}


def to_scheme(scheme: str, status: int = 301) -> Page:
    """A redirect to the same host and target under another scheme, as http to https."""

    def responder(request: Request) -> Reply:
        return redirect(f"{scheme}://{request.host}{request.target}", status)

    return responder


def to_host(host: str, status: int = 301) -> Page:
    """A redirect to the same target on another host, as example.test to www.example.test."""

    def responder(request: Request) -> Reply:
        return redirect(f"{request.scheme}://{host}{request.target}", status)

    return responder


def loop_of_hosts(*hosts: str, path: str = "/around", scheme: str = "http") -> list[Site]:
    """One site a host; the same path on each redirects to the next host, and on the last to the first."""
    following = (*hosts[1:], hosts[0])
    return [
        Site(here, {path: redirect(f"{scheme}://{there}{path}")}) for here, there in zip(hosts, following, strict=True)
    ]


def odd_locations(target: str = "/target") -> dict[str, Page]:
    """Locations that are allowed or seen in the wild; those that lead anywhere lead to `target`."""
    return {
        "/to/relative": redirect(target.lstrip("/")),
        "/to/dots": redirect(f"a/b/../../..{target}"),
        "/to/fragment": redirect(f"{target}#part"),
        "/to/query": redirect(f"{target}?a=1&b=2"),
        "/to/space": redirect(f"{target} with space"),
        "/to/non-ascii": redirect("/größe/日本"),
        "/to/latin-1": redirect("/größe".encode("latin-1")),
        "/to/nothing": redirect(None),
        "/to/empty": redirect(""),
        "/to/file": redirect("file:///etc/hostname"),
        "/to/javascript": redirect("javascript:alert(1)"),
        "/to/ftp": redirect("ftp://files.test/a"),
        "/to/loopback": redirect("http://127.0.0.1:1/"),
        "/to/metadata": redirect("http://169.254.169.254/latest/meta-data/"),
        "/to/invalid": redirect("http://[broken"),
        "/to/credentials": redirect("http://user:secret@elsewhere.test/"),
        "/to/huge": redirect("/" + "a" * 20_000),
    }
