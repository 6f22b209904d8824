"""Fetches for a browser: the document by the same polite way, then what its scripts make of it."""

from collections.abc import Mapping

import pytest

from tests.fetching import QUICK, Rig, links_of, outcome_of, with_fetch
from tests.rendering import PlayedBrowser, Script, fails, filled, leads, unchanged
from tests.site import FakeWeb, Site
from tests.site.responders import pages, redirects
from tests.site.responders.pages import html
from trawl.kinds import OutcomeClass, RenderMode
from trawl.records import Hop
from trawl.settings import Settings

HOST = "a.test"
SHELL = '<!doctype html><title>App</title><div id="root"></div><script src=/app.js></script>'
HEADLESS = RenderMode.HEADLESS


def rig(web: FakeWeb, script: Script = unchanged, settings: Settings = QUICK) -> tuple[Rig, PlayedBrowser]:
    browser = PlayedBrowser(script)
    return Rig(web, settings, renderer=browser), browser


def serve(web: FakeWeb, more: Mapping[str, object], host: str = HOST) -> None:
    web.add(Site(host, {"/": SHELL, **more}))  # type: ignore[dict-item]


async def test_a_page_comes_with_what_scripts_made_of_it_and_with_what_was_fetched(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/start": redirects.redirect("/")})
    fetcher, browser = rig(fake_web, filled("Words."))
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST, "/start"), render_mode=HEADLESS)
        url = fetcher.url(HOST)
    assert (page.render_mode, page.rendering, page.final_url) == (HEADLESS, "", url)
    assert b"Words." in page.body.inline
    assert page.static_render is not None
    assert page.static_render.body.inline == SHELL.encode()
    assert page.timings.render_ms == 12.5
    (asked,) = browser.asked
    assert (asked.url, asked.status, asked.body) == (url, 200, SHELL.encode())
    assert asked.user_agent == QUICK.fetch.user_agent
    assert len(fake_web.hits(HOST, "/")) == 1  # the browser never fetches the document


async def test_without_a_task_for_it_no_browser_is_asked(fake_web: FakeWeb) -> None:
    serve(fake_web, {})
    fetcher, browser = rig(fake_web, filled("Words."))
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST))
    assert (page.body.inline, page.static_render, page.rendering) == (SHELL.encode(), None, "")
    assert not browser.asked


@pytest.mark.parametrize("reason", ["render_timeout", "render_crashed", "render_too_large"])
async def test_a_page_that_cannot_be_rendered_comes_as_it_was_fetched_and_says_why(
    fake_web: FakeWeb, reason: str
) -> None:
    serve(fake_web, {})
    fetcher, _ = rig(fake_web, fails(reason))
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST), render_mode=HEADLESS)
    assert (page.render_mode, page.rendering) == (RenderMode.STATIC, reason)
    assert (page.body.inline, page.static_render) == (SHELL.encode(), None)


async def test_a_fetcher_without_a_browser_says_so(fake_web: FakeWeb) -> None:
    serve(fake_web, {})
    async with Rig(fake_web) as fetcher:
        page = await fetcher.page(fetcher.url(HOST), render_mode=HEADLESS)
    assert (page.render_mode, page.rendering) == (RenderMode.STATIC, "render_unavailable")


async def test_what_no_browser_can_change_costs_none(fake_web: FakeWeb) -> None:
    plain = html("A page", "Some words.")
    serve(fake_web, {"/text": pages.text("<script></script>"), "/plain": plain})
    fetcher, browser = rig(fake_web)
    async with fetcher:
        got = [await fetcher.page(fetcher.url(HOST, path), render_mode=HEADLESS) for path in ("/text", "/plain")]
    assert [page.rendering for page in got] == ["not_html", "no_scripts"]
    assert not browser.asked


async def test_where_a_script_leads_is_one_more_redirect_with_status_200(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/target": html("Target", "Here. <script></script>")})
    fetcher, browser = rig(fake_web)
    url = fetcher.url(HOST)
    target = fetcher.url(HOST, "/target")
    browser.script = lambda request: leads(target)(request) if request.url == url else request.body
    async with fetcher:
        page = await fetcher.page(url, render_mode=HEADLESS)
    assert (page.final_url, page.chain) == (target, (Hop(url=url, status=200),))
    assert b"Here." in page.body.inline


async def test_where_a_script_leads_robots_txt_is_asked(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/private": SHELL})
    fetcher, _ = rig(fake_web, leads(f"http://{HOST}:{fake_web.port}/private"))
    async with fetcher:
        await fetcher.rules(fetcher.url(HOST), "User-agent: *\nDisallow: /private\n")
        outcome = await fetcher.outcome(fetcher.url(HOST), render_mode=HEADLESS)
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.REFUSED, "robots_disallowed")
    assert not fake_web.hits(HOST, "/private")


async def test_a_script_that_leads_to_another_host_hands_over(fake_web: FakeWeb) -> None:
    serve(fake_web, {})
    fetcher, _ = rig(fake_web, leads("http://other.test/x"))
    async with fetcher:
        records = await fetcher.records(fetcher.url(HOST), render_mode=HEADLESS)
    outcome = outcome_of(records)
    assert (outcome.outcome, outcome.reason) == (OutcomeClass.ALIAS, "redirect_other_host")
    assert links_of(records)[0].target_host == "other.test"


@pytest.mark.parametrize(
    "target", ["http://a.test/#top", "javascript:alert(1)", "file:///etc/passwd", "http://[broken"]
)
async def test_where_no_redirect_could_lead_no_script_does(fake_web: FakeWeb, target: str) -> None:
    serve(fake_web, {})
    fetcher, _ = rig(fake_web, leads(target.replace("a.test", f"a.test:{fake_web.port}")))
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST), render_mode=HEADLESS)
    assert page.static_render is not None
    assert page.final_url == fetcher.url(HOST)


async def test_scripts_that_lead_on_and_on_end_at_the_limit_of_redirects(fake_web: FakeWeb) -> None:
    serve(fake_web, {"/*": SHELL})
    fetcher, browser = rig(fake_web, settings=with_fetch(QUICK, redirects_max=3))
    browser.script = lambda request: leads(f"{request.url.rstrip('/')}/x")(request)
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST), render_mode=HEADLESS)
    assert len(page.chain) == 3
    assert len(browser.asked) == 4


async def test_a_path_that_a_script_shows_is_not_the_pages_own(fake_web: FakeWeb) -> None:
    """Else a page could take the place of any other document of its origin."""
    serve(fake_web, {})
    fetcher, _ = rig(fake_web, leads("", shown=f"http://{HOST}:{fake_web.port}/theirs"))
    async with fetcher:
        page = await fetcher.page(fetcher.url(HOST), render_mode=HEADLESS)
    assert page.final_url == fetcher.url(HOST)


async def test_credentials_go_to_the_browser_for_their_own_host_alone(fake_web: FakeWeb) -> None:
    serve(fake_web, {})
    serve(fake_web, {}, host="b.test")
    settings = with_fetch(QUICK, headers=(f"a.test:{fake_web.port}: Authorization: Basic c2VjcmV0",))
    fetcher, browser = rig(fake_web, settings=settings)
    async with fetcher:
        for host in (HOST, "b.test"):
            await fetcher.page(fetcher.url(host), render_mode=HEADLESS)
    assert [request.fields for request in browser.asked] == [(("Authorization", "Basic c2VjcmV0"),), ()]
    assert "c2VjcmV0" not in repr(browser.asked)
