"""`--render` with a real browser, from the command line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.packages import require
from tests.e2e.running import Corpus, crawl, serving, through, trawl
from tests.site import FakeWeb, Site
from tests.site.responders import pages

HOST = "app.test"
APP = """
fetch('/api' + location.pathname).then((answer) => answer.json()).then((page) => {
  document.title = page.title;
  const links = page.links.map((to) => `<a href="${to}">${to}</a>`).join(' ');
  document.getElementById('root').innerHTML = `<main><h1>${page.title}</h1><p>${page.text}</p>${links}</main>`;
});
"""
SHELL = '<!doctype html><html lang="en"><title>App</title><div id="root"></div><script src="/app.js"></script></html>'
COUNT = 6


def _text(number: int) -> str:
    return f"Keeper number {number} of the lantern tower " + " ".join(
        f"counts lamp {number * 100 + at}," for at in range(60)
    )


def _site() -> Site:
    api = {
        f"/api/{number or ''}": pages.text(
            json.dumps({"title": f"Tower {number}", "text": _text(number), "links": [f"/{number + 1}"]}),
            "application/json",
        )
        for number in range(COUNT)
    }
    shells = {f"/{number or ''}": SHELL for number in range(COUNT)}
    return Site(HOST, {**shells, **api, "/app.js": pages.text(APP, "text/javascript")})


@pytest.fixture(scope="module")
def web() -> Iterator[FakeWeb]:
    require("chromium-headless-shell", "chromium-headless-shell")
    with serving(_site()) as served:
        yield served


def test_an_application_is_crawled_whole_with_a_browser_and_empty_without(web: FakeWeb, tmp_path: Path) -> None:
    plain = crawl(web, f"http://{HOST}/", out=tmp_path / "plain").summary
    assert plain["rendered"]["pages"] == 0
    assert "Keeper" not in str(Corpus(tmp_path / "plain").rows)

    web.log.clear()
    found = crawl(web, f"http://{HOST}/", "--render", "auto", out=tmp_path / "auto").summary
    texts = {row["url"]: row["text"] for row in Corpus(tmp_path / "auto").rows}
    for number in range(COUNT):  # each is linked by what a script made of the one before
        assert _text(number)[:40] in texts[f"http://{HOST}/{number or ''}"]
    assert found["rendered"]["pages"] == COUNT
    assert found["rendered"]["hosts"] == 1
    assert found["rendered"]["shells"] < COUNT  # the host was switched on the way
    assert found["politeness_violations"] == 0
    modes = {row["render_mode"] for row in Corpus(tmp_path / "auto").rows}
    assert modes == {"headless"}


def test_one_page_is_extracted_as_a_browser_shows_it(web: FakeWeb, tmp_path: Path) -> None:
    for mode in ("auto", "always"):
        ran = trawl("extract", f"http://{HOST}/2", "--render", mode, *through(web), cwd=tmp_path)
        assert ran.code == 0, ran.err
        assert _text(2)[:40] in ran.out
    assert "Keeper" not in trawl("extract", f"http://{HOST}/2", *through(web), cwd=tmp_path).out


def test_a_browser_that_is_not_there_ends_the_command_with_what_to_do(web: FakeWeb, tmp_path: Path) -> None:
    ran = crawl(
        web, f"http://{HOST}/", "--render", "always", out=tmp_path / "none",
        env={"TRAWL_BROWSER_EXECUTABLE": str(tmp_path / "none")},
    )  # fmt: skip
    assert ran.code == 2
    assert "apt-get install chromium-headless-shell" in ran.err
