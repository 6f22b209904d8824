"""Any number of tiny pages, made when they are asked for."""

from tests.site.message import Reply, Request
from tests.site.model import NOT_FOUND, Site
from tests.site.responders.prose import sentences, title

BRANCHES = 10
PAGES_MAX = 200_000


def tiny(host: str = "tiny.test", n: int = 2_000, *, crawl_delay_seconds: int = 0) -> Site:
    """`n` pages of about 1 kB: `/` and `/n/1` to `/n/<n-1>`.

    Page i links to its children 10i+1 … 10i+10 (a tree in which all are reachable within log10(n)+1 clicks), to its
    parent and to one page far away. Texts are distinct and the same on every run. robots.txt allows everything, and may
    ask for a Crawl-delay.
    """
    if not 1 <= n <= PAGES_MAX:
        raise ValueError(f"a tiny site has 1 to {PAGES_MAX} pages, not {n}")

    def page(request: Request) -> Reply:
        digits = request.path.removeprefix("/n/")
        number = int(digits) if digits.isdecimal() else 0
        if str(number) != digits or not 1 <= number < n:
            return NOT_FOUND
        return _page(number, n)

    rules = "User-agent: *\nAllow: /\n" + (f"Crawl-delay: {crawl_delay_seconds}\n" if crawl_delay_seconds else "")
    robots = Reply(body=rules.encode(), content_type="text/plain; charset=utf-8")
    return Site(host, {"/robots.txt": robots, "/": lambda _: _page(0, n), "/n/*": page})


def tiny_paths(n: int) -> list[str]:
    """The paths of all pages of `tiny(host, n)`."""
    return [_path(number) for number in range(n)]


def _page(number: int, n: int) -> Reply:
    children = range(number * BRANCHES + 1, min((number + 1) * BRANCHES + 1, n))
    targets = [*children, (number - 1) // BRANCHES if number else 0, (number * 7919 + 1) % n]
    links = "".join(f'<li><a href="{_path(target)}">Page {target}</a></li>' for target in targets)
    source = sentences(number)
    text = "".join(f"<p>{next(source)} {next(source)}</p>\n" for _ in range(2))
    heading = title(number)
    return Reply(
        body=(
            f'<!doctype html><html lang="en"><head><title>{heading}</title></head><body><article>'
            f"<h1>{heading}</h1>\n{text}</article><nav><ul>{links}</ul></nav></body></html>\n"
        ).encode()
    )


def _path(number: int) -> str:
    return f"/n/{number}" if number else "/"
