"""Bodies that are broken, huge or not what their label says."""

import random
from collections.abc import Iterator

from tests.site.message import Reply
from tests.site.model import Page
from tests.site.responders.prose import paragraph

_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40
_PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Type /Catalog >>\nendobj\n" + bytes(range(256)) * 8


def noise(octets: int = 100_000, seed: int = 1) -> bytes:
    """Random bytes, the same for the same seed."""
    return random.Random(seed).randbytes(octets)


def huge(page_bytes: int = 100 * 1000 * 1000, *, content_type: str = "text/html; charset=utf-8") -> Reply:
    """A page of a size, made while it is sent, chunked, of distinct paragraphs of prose."""

    def stream() -> Iterator[bytes]:
        yield b"<!doctype html><html><head><title>Huge</title></head><body><main>"
        sent = 0
        while sent < page_bytes:
            piece = f"<p>{paragraph(sent)}</p>\n".encode() * 50
            sent += len(piece)
            yield piece

    return Reply(content_type=content_type, stream=stream)


def deep(levels: int = 20_000) -> Reply:
    """Elements nested so deeply that a recursive reader dies."""
    return Reply(body=b"<!doctype html><title>Deep</title>" + b"<div>" * levels + b"<p>bottom of the page")


def wide(links: int = 20_000) -> Reply:
    """A page with very many links."""
    anchors = b"".join(b'<a href="/w/%d">w</a> ' % number for number in range(links))
    return Reply(body=b"<!doctype html><title>Wide</title>" + anchors)


BROKEN_HTML: dict[str, bytes] = {
    "no-end-tags": b"<html><head><title>Open<body><p>First<p>Second <b>bold <i>both</b> italic<p>Third",
    "misnested": b"<b><p>One<div></b>Two</p><span>Three</div></span>",
    "two-bodies": b"<body><p>First body</p></body><body><p>Second body</p></body></html><p>After the end",
    "head-in-body": b"<p>Before<head><title>Late title</title></head><base href='/late/'><a href='x'>x</a>",
    "unquoted": b"<a href=/un quoted>one</a><a href='/single'>two</a><a href=\"/open>three</a><a href=/four>four</a>",
    "unclosed-comment": b"<p>Seen</p><!-- never closed <p>Hidden</p><a href='/hidden'>x</a>",
    "unclosed-script": b"<p>Seen</p><script>var a = '<p>no</p>';",
    "nul-bytes": b"<p>Nul\x00byte</p>\x00<a href='/a\x00b'>x</a>",
    "control-characters": b"<p>\x01\x02\x07bell\x1b[31m</p>",
    "entities": b"<p>&nosuch; &#0; &#x110000; &#xD800; &amp &lt;ok&gt; &copy &notit; &#150;</p>",
    "table-soup": b"<table><p>Out<tr><td>1<td>2<tr><p>Out again<table><td>inner</table><td>3</table>",
    "form-soup": b"<form><form><input><p></form><p>After</form>",
    "svg-soup": b"<svg><p>Escaped</p><title>svg title</title></svg><math><mi>x<p>also</math>",
    "template": b"<template><p>inert</p></template><noscript><p>No script</p></noscript><p>Live</p>",
    "no-html": b"just some words without any markup at all",
    "only-space": b" \n\t\r\n",
    "nothing": b"",
    "invalid-utf-8": b"<p>caf\xe9 \xff\xfe \xc3\x28 \xed\xa0\x80 \xf0\x9f</p>",
    "doctype-only": b'<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01//EN" [ <!ENTITY a "aaaa"> ]>',
    "cdata": b"<![CDATA[ <p>not in html</p> ]]><p>after</p>",
    "attributes": b"<p " + b" ".join(b"a%d=1" % i for i in range(5000)) + b">many attributes",
}
"""Markup by name of the fault; none may crash a reader."""

MISLABELLED: dict[str, Page] = {
    "png-as-html": Reply(body=_PNG),
    "pdf-as-html": Reply(body=_PDF),
    "noise-as-html": Reply(body=noise(20_000)),
    "html-as-text": Reply(body=b"<!doctype html><title>Hidden</title><p>html as text", content_type="text/plain"),
    "html-as-xml": Reply(body=b"<!doctype html><title>Page</title><p>html under xml", content_type="application/xml"),
    "html-as-octets": Reply(body=b"<!doctype html><p>html as octets", content_type="application/octet-stream"),
    "html-as-json": Reply(body=b"<!doctype html><p>html as json", content_type="application/json"),
    "html-without-type": Reply(body=b"<!doctype html><title>Page</title><p>no type", content_type=None),
    "html-as-nonsense": Reply(body=b"<!doctype html><p>nonsense type", content_type=";;/=charset"),
    "text-as-html": Reply(body=b"3 < 4 & 5 > 2, plain text under text/html"),
    "json-as-html": Reply(body=b'{"title": "JSON", "text": "<p>not markup</p>"}'),
    "feed-as-html": Reply(
        body=b"<?xml version='1.0'?><rss version='2.0'><channel><item><link>/x</link></item></channel></rss>"
    ),
    "sitemap-as-html": Reply(
        body=b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'></urlset>"
    ),
}
"""Bodies whose Content-Type says something else, by name."""
