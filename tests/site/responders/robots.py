"""robots.txt in every state it is found in (RFC 9309)."""

from collections.abc import Iterator

from tests.site.message import Reply, Request
from tests.site.model import NOT_FOUND, Page, Site
from tests.site.responders import delays, faults, limits, redirects
from tests.site.responders.pages import html

RULES = "User-agent: *\nDisallow: /private/\nAllow: /\n"
CLOSED = "User-agent: *\nDisallow: /\n"
ALLOWING_ERROR = b"<!doctype html><title>Error</title>\nUser-agent: *\nAllow: /\n"
_PLAIN = "text/plain; charset=utf-8"


def rules(text: str | bytes = RULES, content_type: str | None = _PLAIN) -> Reply:
    return Reply(200, text.encode() if isinstance(text, str) else text, content_type)


def huge(rules_at_byte: int = 600 * 1024, tail: bytes = b"\nUser-agent: *\nDisallow: /late/\n") -> Reply:
    """Comments up to a byte, a rule before it and one after it: a reader with a 500 KiB cap sees only the first."""
    start = b"User-agent: *\nDisallow: /early/\n"
    comment = b"# " + b"x" * 77 + b"\n"

    def stream() -> Iterator[bytes]:
        yield start
        for _ in range((rules_at_byte - len(start)) // len(comment)):
            yield comment
        yield tail

    return Reply(content_type=_PLAIN, stream=stream)


STATES: dict[str, Page] = {
    "ok": rules(),
    "closed": rules(CLOSED),
    "empty": rules(""),
    "missing": NOT_FOUND,
    "forbidden": Reply(403, b"<h1>Forbidden</h1>"),
    "unauthorised": Reply(401, b"<h1>Who are you?</h1>"),
    "gone": Reply(410, b"<h1>Gone</h1>"),
    "busy": limits.busy(3600),
    "error": Reply(500, ALLOWING_ERROR),
    "unavailable": Reply(503, b"User-agent: *\nAllow: /\n", _PLAIN),
    "timeout": delays.never(),
    "reset": faults.reset(rules(), 5),
    "truncated": faults.truncated(rules(), 20),
    "redirect": redirects.redirect("/robots-moved.txt", 301),
    "redirect-loop": redirects.redirect("/robots.txt"),
    "redirect-to-private": redirects.redirect("http://169.254.169.254/robots.txt"),
    "bom": rules(b"\xef\xbb\xbf" + RULES.encode()),
    "latin-1": rules("User-agent: *\nDisallow: /größe/\nDisallow: /private/\n".encode("latin-1"), "text/plain"),
    "utf-16": rules("\ufeff".encode("utf-16-le") + RULES.encode("utf-16-le"), "text/plain; charset=utf-16"),
    "binary": rules(bytes(range(256)) * 8, "application/octet-stream"),
    "html": Reply(200, b"<!doctype html><title>Home</title><h1>Welcome</h1>"),
    "huge": huge(),
    "slow": delays.slow(rules(), 40),
    "endless": delays.endless(b"# and so on\n" * 5000, content_type=_PLAIN),
    "carriage-returns": rules(RULES.replace("\n", "\r")),
    "crawl-delay": rules("User-agent: *\nCrawl-delay: 3\nDisallow: /private/\n"),
    "empty-disallow-first": rules("User-agent: *\nDisallow:\nDisallow: /wp-admin\n"),
    "own-group": rules("User-agent: *\nDisallow: /\n\nUser-agent: trawl\nDisallow: /private/\n"),
}
"""By the name of the state. Where rules are readable, `/private/` is closed unless the name says otherwise."""


def sites(domain: str = "robots.test") -> list[Site]:
    """One site for each state, `<state>.robots.test`, with pages `/`, `/page` and `/private/page`."""
    return [site(f"{state}.{domain}", robots) for state, robots in STATES.items()]


def site(host: str, robots: Page) -> Site:
    """A site of three pages under a robots.txt."""

    def private(_: Request) -> Reply:
        return html("Private", f"The private page of {host}.")

    return Site(
        host,
        {
            "/robots.txt": robots,
            "/robots-moved.txt": rules(),
            "/": html(f"Home of {host}", f"Welcome to {host}.", links=["/page", "/private/page"]),
            "/page": html(f"A page of {host}", f"This page of {host} is open to all."),
            "/private/page": private,
        },
    )
