"""Which static pages are shells: what only scripts fill, and not what is short by itself."""

import gzip
from dataclasses import replace

import pytest

from tests.data import require
from trawl.extractor.extract import extract_body
from trawl.extractor.shell import shell_reason
from trawl.settings import ExtractSettings

SETTINGS = ExtractSettings()
TEXT = "A sentence about the harbour that is long enough to be read as content, with commas, and an end. "
SCRIPT = "<script src=/main.js></script>"
SHELLS_MAX = 15
"""Of 1,497 real pages; 10 when this was written, of which 9 gave under 60 characters of text."""


def reason(html: str, settings: ExtractSettings = SETTINGS) -> str:
    body = html.encode()
    return shell_reason(body, extract_body(body, "https://example.com/", "text/html", settings), settings)


@pytest.mark.parametrize(
    "body",
    [
        "<div id=root>Loading…</div>" + SCRIPT,
        '<div id="app"><p>Please wait</p></div>' + SCRIPT,
        "<app-root>Loading</app-root>" + SCRIPT,
        "<body ng-app=shop><p>{{ title }}</p>" + SCRIPT,
        '<div id="__next"><p>Shop</p></div><script id="__NEXT_DATA__" type="application/json">{}</script>' + SCRIPT,
        "<p>Shop</p><script>window.__INITIAL_STATE__ = {}</script>",
        "<p>Shop</p><noscript>You need to enable <b>JavaScript</b> to run this app.</noscript>" + SCRIPT,
        '<p>Laden</p><noscript lang=de>Bitte aktivieren Sie Java-Script.</noscript><script type="module">1</script>',
    ],
)
def test_a_page_that_waits_for_its_scripts_is_a_shell(body: str) -> None:
    assert reason(body) == "shell"


def test_a_page_of_nothing_but_scripts_is_empty() -> None:
    assert reason(f"<title>Shop</title><body>{SCRIPT}") == "empty"


@pytest.mark.parametrize(
    "body",
    [
        "<div id=root><p>Closed on Mondays.</p></div>",
        "<p>Closed on Mondays.</p>" + SCRIPT,
        "<img src=a.jpg><img src=b.jpg>" + SCRIPT,
        '<div id=app><p>Closed.</p></div><script type="application/ld+json">{}</script>',
        "<div id=roots><p>Short.</p></div>" + SCRIPT,
        "<p>Short.</p><noscript><img src=https://track.example/pixel.gif></noscript>" + SCRIPT,
        f"<div id=root><p>{TEXT * 5}</p></div>" + SCRIPT,
        f"<p>{TEXT * 5}</p><noscript>Enable JavaScript to comment.</noscript>" + SCRIPT,
    ],
)
def test_short_pages_pictures_and_pages_with_their_text_are_none(body: str) -> None:
    assert reason(body) == ""


def test_a_long_noscript_is_content_and_asks_for_nothing() -> None:
    assert reason(f"<p>x</p><noscript><p>JavaScript: {TEXT * 8}</p></noscript>{SCRIPT}") == ""


def test_text_at_the_limit_is_enough() -> None:
    html = f"<div id=root><p>{TEXT}</p></div><script>window.__INITIAL_STATE__ = 1</script>"
    chars = len(extract_body(html.encode(), "https://example.com/", "text/html").text)
    assert reason(html, replace(SETTINGS, shell_chars_max=chars)) == ""
    assert reason(html, replace(SETTINGS, shell_chars_max=chars + 1)) == "shell"


@pytest.mark.data
def test_hardly_any_of_1497_real_pages_is_taken_for_a_shell() -> None:
    found = []
    for path in sorted((require("wcxb-dev") / "html").glob("*.html.gz"))[::3]:
        body = gzip.decompress(path.read_bytes())
        extraction = extract_body(body, "https://example.com/page", "text/html", SETTINGS)
        if shell_reason(body, extraction, SETTINGS):
            found.append((path.name, len(extraction.text)))
    assert len(found) <= SHELLS_MAX // 3, found
