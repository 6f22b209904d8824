"""`trawl url` and `trawl robots`: what Trawl thinks of a URL."""

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from trawl.assembly import Network
from trawl.cli.options import config_option, json_option, network_options, settings_of
from trawl.cli.terminal import tell
from trawl.frontier.admission import canonical_rules
from trawl.frontier.traps import static_trap
from trawl.kinds import ScopeKind
from trawl.url import canonical, host_of, in_scope, key_hex, origin_of, request_key, template


@click.command(short_help="Show what Trawl makes of a URL.")
@click.argument("url")
@click.option("--seed", help="Decide scope relative to this seed (default: the URL itself).")
@click.option("--scope", type=click.Choice([kind.value for kind in ScopeKind]), default="host", show_default=True)
@click.option("--allow-domain", multiple=True, metavar="D", help="A domain in scope besides the seed's.")
@config_option
@json_option
def url(
    url: str, seed: str | None, scope: str, allow_domain: tuple[str, ...], config: Path | None, as_json: bool
) -> int:
    """Show the canonical form, key, template and scope decision of URL."""
    settings = settings_of(config, {})
    rules = canonical_rules(settings)
    form = canonical(url, rules)
    answer = {
        "url": url,
        "canonical": form,
        "host": host_of(form),
        "origin": origin_of(form),
        "request_key": key_hex(request_key("default", form)),
        "template": template(form),
        "in_scope": in_scope(form, ScopeKind(scope), canonical(seed or url, rules), allow_domain),
        "trap": static_trap(form, settings.frontier, settings.url.url_chars_max),
    }
    show(answer, as_json=as_json)
    return 0


@click.command(short_help="Show what robots.txt says of a URL.")
@click.argument("url")
@network_options
@config_option
@json_option
def robots(url: str, config: Path | None, as_json: bool, **options: Any) -> int:
    """Fetch the robots.txt that holds for URL and show the rule that decides, its group, and the delay."""
    settings = settings_of(config, options)
    form = canonical(url, canonical_rules(settings))
    answer = asyncio.run(_robots(form, Network(settings)))
    show(answer, as_json=as_json)
    return 0 if answer["allowed"] else 1


async def _robots(url: str, network: Network) -> dict[str, Any]:
    async with network:
        return await network.robots_answer(url)


def show(answer: dict[str, Any], *, as_json: bool) -> None:
    """Print an answer as one JSON object or as aligned lines."""
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    width = max(map(len, answer))
    for name, value in answer.items():
        first, *more = _lines(value)
        tell(f"{name.replace('_', ' '):<{width}}  {first}")
        for line in more:
            tell(f"{'':<{width}}  {line}")


def _lines(value: object) -> list[str]:
    """A value for people: yes, no, a dash for none, one line for each of several."""
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        return [str(item) for item in value] or ["-"]
    return ["-" if value in {None, ""} else str(value)]
