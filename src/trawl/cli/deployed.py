"""`trawl seed` and `trawl topics`: what a person asks of a deployed system, over Kafka."""

import asyncio
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from trawl.cli.options import config_option, json_option, kafka_option, kafka_settings, needs
from trawl.cli.progress import counted
from trawl.cli.seeds import read_list, seed_url
from trawl.cli.terminal import tell
from trawl.errors import SettingsError
from trawl.frontier.admission import canonical_rules
from trawl.kinds import DedupScope, ScopeKind, SeedKind
from trawl.records import Seed
from trawl.settings import Settings

_BATCH = 1000


@click.command(short_help="Publish seeds to a deployed system.")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option("--from-file", type=click.Path(path_type=Path, allow_dash=True), help="URLs, one a line; - is stdin.")
@click.option(
    "--crawl", "crawl_id", default="default", show_default=True, metavar="ID", help="The crawl they belong to."
)
@click.option("--kind", type=click.Choice([kind.value for kind in SeedKind]), default="auto", show_default=True,
              help="What the URLs point at; auto decides by the body.")  # fmt: skip
@click.option("--scope", type=click.Choice([kind.value for kind in ScopeKind]), default="host", show_default=True,
              help="Which URLs are followed: the seed's host, its registrable domain, its folder, or any.")  # fmt: skip
@click.option("--allow-domain", multiple=True, metavar="D", help="Follow links to this domain too.")
@click.option("--depth", type=click.IntRange(0), default=16, show_default=True, help="Steps from a seed.")
@click.option(
    "--max-pages", type=click.IntRange(0), default=0, help="Budget of the crawl; 0 is no limit.  [default: 0]"
)
@click.option(
    "--priority", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="From 0, last, to 1, first."
)
@click.option("--dedup-scope", type=click.Choice([scope.value for scope in DedupScope]), default="crawl",
              show_default=True, help="Among which documents duplicates are looked for.")  # fmt: skip
@click.option("--tag", "tags", multiple=True, help="A label that travels to the indexed documents.")
@kafka_option
@config_option
@json_option
def seed(urls: tuple[str, ...], from_file: Path | None, config: Path | None, as_json: bool, **options: Any) -> int:
    """Publish URLs on the topic trawl.seeds; the frontier takes them from there.

    A bare URL, or a JSON object, that any console producer writes there does the same.
    """
    settings = kafka_settings(config, options["kafka"])
    rules = canonical_rules(settings)
    found = [seed_url(url, rules) for url in urls]
    notes: list[str] = []
    if from_file is not None:
        listed, notes = read_list(from_file, rules)
        found += listed
    if not found:
        raise SettingsError("there is nothing to publish; name a URL, or --from-file")
    seeds = [_seed(url, options) for url in found]
    asyncio.run(_publish(seeds, settings))
    if as_json:
        click.echo(json.dumps({"crawl_id": options["crawl_id"], "published": len(seeds), "notes": notes}))
    else:
        tell(f"{counted(len(seeds), 'seed')} published for the crawl {options['crawl_id']!r}")
        for note in notes:
            tell(f"  note: {note}")
    return 0


@click.command(short_help="Make and check the topics of a deployed system.")
@click.option("--check", is_flag=True, help="Make nothing; the exit code is 1 if anything differs.")
@kafka_option
@config_option
@json_option
def topics(check: bool, kafka: str | None, config: Path | None, as_json: bool) -> int:
    """Make the topics that are missing, and name every difference from what they should be. Nothing is ever deleted."""
    made, differences = asyncio.run(_topics(kafka_settings(config, kafka), make=not check))
    if as_json:
        click.echo(json.dumps({"made": made, "differences": differences}))
    else:
        for name in made:
            tell(f"made {name}")
        for text in differences:
            tell(text)
        if not made and not differences:
            tell("all topics are as they should be")
    return int(bool(differences))


def _seed(url: str, options: dict[str, Any]) -> Seed:
    return Seed(
        url=url,
        kind=SeedKind(options["kind"]),
        crawl_id=options["crawl_id"],
        scope=ScopeKind(options["scope"]),
        allowed_domains=options["allow_domain"],
        depth_max=options["depth"],
        pages_max=options["max_pages"],
        priority=options["priority"],
        dedup_scope=DedupScope(options["dedup_scope"]),
        tags=options["tags"],
        submitted_at_ms=int(1000 * time.time()),
    )


async def _publish(seeds: Sequence[Seed], settings: Settings) -> None:
    with needs("kafka"):
        from trawl.adapters.kafka import RecordProducer, open_codec  # noqa: PLC0415 - an extra
    codec = await open_codec(settings.kafka, blobs=None)
    producer = RecordProducer(settings.kafka, codec)
    try:
        await producer.open()
        for start in range(0, len(seeds), _BATCH):
            await producer.send(seeds[start : start + _BATCH])
    finally:
        await producer.close()
        await codec.close()


async def _topics(settings: Settings, *, make: bool) -> tuple[list[str], list[str]]:
    with needs("kafka"):
        from trawl.adapters.kafka import Topics  # noqa: PLC0415 - an extra
    admin = Topics(settings.kafka)
    try:
        made = await admin.create() if make else []
        return made, await admin.differences()
    finally:
        await admin.close()
