"""A signed-in crawl: the pages come, and the secret stays where it belongs."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from tests.e2e.running import Corpus, crawl, trawl
from tests.site import FakeWeb, Reply, Request, Site
from tests.site.responders import pages, redirects, robots

CANARY = "canary-7d02"
SHOWN = b64encode(f"me:{CANARY}".encode())


def guarded(page: Reply) -> Callable[[Request], Reply]:
    """A page for those who are signed in."""

    def reply(request: Request) -> Reply:
        signed_in = request.headers.get("authorization") == f"Basic {SHOWN.decode()}"
        return page if signed_in else Reply(status=401, body=b"who are you?")

    return reply


def test_a_signed_in_crawl_leaves_no_trace_of_the_secret(web: FakeWeb, tmp_path: Path) -> None:
    text = "The inner manual tells how the pump is primed, which nobody outside is told. " * 8
    web.add(
        Site(
            "in.test",
            {
                "/robots.txt": guarded(robots.rules("User-agent: *\nDisallow: /secret\n")),
                "/": guarded(pages.html("Inside", text, links=["/away", "/secret", "/gone", "/broken"])),
                "/away": redirects.redirect("http://out.test/"),
                "/secret": guarded(pages.html("Secret", text)),
                "/gone": Reply(status=404, body=b"gone"),
                "/broken": Reply(body=b"\x1f\x8bbroken", headers=(("Content-Encoding", "gzip"),)),
            },
        ),
        Site("out.test", {"/": pages.html("Outside", text.replace("pump", "mill"))}),
    )
    access = tmp_path / "access.toml"
    access.write_text(
        '[[rule]]\nhosts = ["http://in.test"]\nbasic = { user = "me", password = { variable = "IN_PASSWORD" } }\n'
    )
    access.chmod(0o600)
    out = tmp_path / "out"

    ran = crawl(
        web, "http://in.test/", "--scope", "any", "--access", access, out=out, env={"IN_PASSWORD": CANARY}
    )  # fmt: skip

    assert ran.code == 0, ran.err
    assert {"http://in.test/", "http://out.test/"} <= Corpus(out).urls | {row["final_url"] for row in Corpus(out).rows}
    assert all("authorization" in one.headers for one in web.hits("in.test"))
    assert not web.hits("in.test", "/secret"), "robots.txt was read as us"
    assert not any("authorization" in one.headers for one in web.hits("out.test"))
    written = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    for data in (*written, ran.out.encode(), ran.err.encode()):
        assert CANARY.encode() not in data
        assert SHOWN not in data


def test_an_access_file_that_cannot_be_used_ends_the_command(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(f'[[rule]]\nhosts = ["*.com"]\nbearer = "{CANARY}"\n')
    ran = trawl("crawl", "https://a.example/", "--access", access, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "all of *.com" in ran.err
    assert CANARY not in ran.err + ran.out
