"""`trawl policy`: what a site permits us to do with a URL, and where it says so."""

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from trawl.assembly import Network
from trawl.cli.options import config_option, json_option, network_options, settings_of
from trawl.cli.terminal import tell
from trawl.compliance.decision import Decision, decide
from trawl.compliance.statements import of_meta
from trawl.errors import FetchRefusedError
from trawl.extractor.extract import extract_body
from trawl.frontier.admission import canonical_rules
from trawl.kinds import Use
from trawl.records import Evidence
from trawl.robots import product_token
from trawl.settings import Settings
from trawl.url import canonical

_UNSPOKEN = "nobody has said anything"


@click.command(short_help="Show what a site permits us to do with a URL.")
@click.argument("url")
@network_options
@config_option
@json_option
def policy(url: str, config: Path | None, as_json: bool, **options: Any) -> int:
    """Fetch URL, if its robots.txt lets us, and show for each use if it is permitted, and which statement decides.

    Statements are read from robots.txt, from the header fields X-Robots-Tag, Content-Usage, Content-Signal and
    TDM-Reservation, and from meta elements. The exit code is 1 if the URL was not fetched.
    """
    settings = settings_of(config, options)
    form = canonical(url, canonical_rules(settings))
    final_url, refused, evidence = asyncio.run(_heard(form, settings))
    decisions = decide(evidence)
    if as_json:
        click.echo(json.dumps(_plain(form, final_url, refused, evidence, decisions), ensure_ascii=False))
    else:
        tell(_told(final_url or form, refused, evidence, decisions))
    return int(bool(refused))


async def _heard(url: str, settings: Settings) -> tuple[str, str, tuple[Evidence, ...]]:
    """Where the URL's redirects end, why it was not fetched if so, and all that was said."""
    agent = product_token(settings.fetch.user_agent)
    async with Network(settings) as network:
        try:
            page = await network.page(url)
        except FetchRefusedError as error:
            return "", str(error), await network.evidence_beforehand(url)
    found = extract_body(page.body.inline, page.final_url, page.content_type, settings.extract)
    return page.final_url, "", (*page.evidence, *of_meta(found.metas, agent, page.fetched_at_ms))


def _plain(
    url: str, final_url: str, refused: str, evidence: tuple[Evidence, ...], decisions: dict[Use, Decision]
) -> dict[str, Any]:
    return {
        "url": url,
        "final_url": final_url or None,
        "refused": refused or None,
        "uses": {
            str(use): {
                "allowed": decision.allowed,
                "because": None if decision.because is None else asdict(decision.because),
            }
            for use, decision in decisions.items()
        },
        "evidence": [asdict(one) for one in evidence],
    }


def _told(url: str, refused: str, evidence: tuple[Evidence, ...], decisions: dict[Use, Decision]) -> str:
    lines = [url, *([f"  not fetched: {refused}"] if refused else []), "  use       permitted  because"]
    for use, decision in decisions.items():
        because = decision.because
        lines.append(_line(use, decision.allowed, _UNSPOKEN if because is None else _place(because)))
    deciding = [decision.because for decision in decisions.values()]
    others = [_line(one.purpose, one.allowed, _place(one)) for one in evidence if one not in deciding]
    return "\n".join([*lines, *(["also said", *others] if others else [])])


def _line(use: str, allowed: bool | None, why: str) -> str:
    return f"  {use:<8}  {'no' if allowed is False else 'yes':<9}  {why}"


def _place(one: Evidence) -> str:
    return f"{one.source}: {one.rule}"
