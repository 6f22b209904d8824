"""One host with every fault at a path of its own."""

from tests.site.message import Reply, Request
from tests.site.model import Page, Site, sequence
from tests.site.responders import (
    bodies,
    bombs,
    charsets,
    delays,
    faults,
    feeds,
    limits,
    mirrors,
    redirects,
    sitemaps,
    traps,
)
from tests.site.responders.pages import encoded_as, html, negotiated, text, validated

_TEXT = html("Some page", "The quick brown fox jumps over the lazy dog. " * 40)


def misbehaving(host: str = "bad.test") -> Site:
    """`/` links to the entrances of everything that ends; `everything(host).keys()` are all paths.

    Hosts that misbehave as a whole (robots.txt, TLS) are in `responders.robots.sites()` and `Site(tls=…)`.
    """
    pages = everything(host)
    entrances = [path for path in pages if not path.endswith("*") and path not in _NEVER_ENDING]
    return Site(
        host,
        {
            "/robots.txt": text("User-agent: *\nDisallow: /forbidden/\nAllow: /\n"),
            "/": html("Everything that goes wrong", links=[*entrances, *traps.ENTRANCES, "/forbidden/page"]),
            "/target": html("The target", "Every redirect that ends well ends here."),
            "/forbidden/page": html("Forbidden", "Nobody obeying robots.txt reads this."),
            **pages,
        },
    )


_NEVER_ENDING = frozenset({"/slow/never", "/slow/endless", "/slow/endless-headers", "/slow/stalled", "/body/huge"})


def everything(host: str) -> dict[str, Page]:
    """All faulty pages by path."""
    return {
        **_redirects(host),
        **_connections(),
        **_refusals(),
        **_bodies(),
        **_discovery(),
        **mirrors.same_text_elsewhere(),
        **traps.all_traps(),
    }


def _redirects(host: str) -> dict[str, Page]:
    return {
        **{f"/redirect/{status}": redirects.redirect("/target", status) for status in redirects.REDIRECT_STATUSES},
        **redirects.chain(10, "/target", prefix="/chain-10/"),
        **redirects.chain(11, "/target", prefix="/chain-11/"),
        **redirects.loop("/loop/a", "/loop/b", "/loop/c"),
        **redirects.loop("/loop/self"),
        **redirects.growing(),
        **redirects.odd_locations(),
        "/redirect/elsewhere": redirects.to_host(f"www.{host}"),
        "/redirect/https": redirects.to_scheme("https"),
        "/redirect/to-error": redirects.redirect("/status/500"),
    }


def _connections() -> dict[str, Page]:
    return {
        "/slow/drip": delays.slow(_TEXT, 1_000),
        "/slow/late": delays.delayed(_TEXT, 1.0),
        "/slow/never": delays.never(),
        "/slow/stalled": delays.stalled(_TEXT, 500),
        "/slow/endless": delays.endless(),
        "/slow/endless-headers": delays.endless_headers(),
        "/fault/reset": faults.reset(_TEXT, 500),
        "/fault/truncated": faults.truncated(_TEXT, 500),
        "/fault/truncated-chunked": faults.truncated(delays.chunked(_TEXT), 500),
        "/fault/length-too-long": faults.wrong_length(_TEXT, len(_TEXT.body) + 100),
        "/fault/length-too-short": faults.wrong_length(_TEXT, 100),
        "/fault/hang-up": faults.hang_up(),
        "/fault/garbage": faults.garbage(),
        "/fault/headers": faults.many_headers(_TEXT),
        "/fault/coding-lie": faults.content_encoding_lie(),
        "/fault/bare-newlines": faults.raw(b"HTTP/1.0 200 OK\nContent-Type: text/html\n\n<p>HTTP of 1993"),
    }


def _refusals() -> dict[str, Page]:
    statuses = (400, 401, 403, 404, 410, 418, 451, 500, 501, 502, 503, 504, 520, 599, 999)
    return {
        **{f"/status/{status}": Reply(status, b"<h1>Error</h1>") for status in statuses},
        "/status/204": Reply(204, content_type=None),
        "/status/402": limits.payment_required(),
        "/busy/seconds": limits.busy_at_first(_TEXT, retry_after=1),
        "/busy/date": sequence(limits.busy_until(2), _TEXT),
        "/busy/503": limits.busy_at_first(_TEXT, retry_after=1, status=503),
        "/busy/nonsense": limits.busy_at_first(_TEXT, retry_after="soon"),
        "/busy/negative": limits.busy_at_first(_TEXT, retry_after="-5"),
        "/busy/for-ever": limits.busy(10**9),
        "/busy/silent": limits.busy_at_first(_TEXT),
        "/flaky": limits.failing_at_first(_TEXT, times=2),
    }


def _bodies() -> dict[str, Page]:
    return {
        **{f"/charset/{name}": case.page for name, case in charsets.CASES.items()},
        **{f"/broken/{name}": Reply(body=markup) for name, markup in bodies.BROKEN_HTML.items()},
        **{f"/mislabelled/{name}": page for name, page in bodies.MISLABELLED.items()},
        **{f"/bomb/{kind}": _bomb(kind, chunked=False) for kind in bombs.KINDS},
        **{f"/bomb/{kind}-chunked": _bomb(kind, chunked=True) for kind in bombs.KINDS},
        **{f"/coding/{coding}": encoded_as(_TEXT, coding) for coding in ("gzip", "deflate", "br", "zstd")},
        "/coding/negotiated": negotiated(_TEXT),
        "/coding/twice": encoded_as(_TEXT, "gzip", "gzip"),
        "/coding/undeclared": encoded_as(_TEXT, "gzip", declared=""),
        "/body/huge": bodies.huge(),
        "/body/deep": bodies.deep(),
        "/body/wide": bodies.wide(),
        "/body/chunked": delays.chunked(_TEXT),
        "/body/until-close": delays.chunked(_TEXT, close=True),
        "/cached": validated(_TEXT, etag='"v1"', last_modified="Thu, 01 Jan 2026 00:00:00 GMT"),
        **{f"/near/{percent}": mirrors.near_duplicate("near", percent / 100) for percent in (0, 1, 5, 50)},
    }


def _bomb(kind: str, *, chunked: bool) -> Page:
    """Made when it is asked for: most tests never do."""

    def responder(_: Request) -> Reply:
        return bombs.bomb(kind, chunked=chunked)

    return responder


def _discovery() -> dict[str, Page]:
    listed = ("/target", "/coding/gzip", "/cached")
    return {
        "/sitemap.xml": sitemaps.index("/sitemap-plain.xml", "/sitemap-cdata.xml", "/sitemap-file.xml.gz"),
        "/sitemap-plain.xml": sitemaps.urlset(*listed, lastmod="2026-01-01", priority=0.8),
        "/sitemap-cdata.xml": sitemaps.urlset(*listed, cdata=True),
        "/sitemap-index-cdata.xml": sitemaps.index("/sitemap-cdata.xml", cdata=True),
        "/sitemap.txt": sitemaps.text_list(*listed),
        "/sitemap-broken.xml": sitemaps.broken(*listed),
        "/sitemap-entities.xml": sitemaps.entity_bomb(),
        "/sitemap-external.xml": sitemaps.external_entity(),
        "/sitemap-bomb.xml.gz": lambda _: bombs.gzip_file(),
        **sitemaps.gz_variants(*listed),
        **sitemaps.recursive(),
        "/feed.rss": feeds.rss(*listed),
        "/feed.atom": feeds.atom(*listed),
        "/feed.rdf": feeds.rdf(*listed),
        "/feed-cdata.rss": feeds.rss(*listed, cdata=True),
    }
