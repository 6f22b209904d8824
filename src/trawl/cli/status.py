"""`trawl status`: where a crawl stands."""

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from trawl.assembly import crawl_status, newest_folder
from trawl.cli import standing
from trawl.cli.options import config_option, json_option, kafka_settings
from trawl.cli.progress import counted
from trawl.cli.terminal import tell
from trawl.errors import SettingsError


@click.command(short_help="Show where a crawl, or a deployed system, stands.")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path))
@click.option("--kafka", metavar="HOST:PORT", help="A broker of a deployed system, instead of a folder.")
@click.option("--redis", metavar="URL", help="With --kafka: the frontier's queues and hosts, in this Redis.")
@click.option("--crawl", "crawl_id", default="default", show_default=True, metavar="ID",
              help="With --redis: of which crawl.")  # fmt: skip
@click.option("--seconds", type=click.FloatRange(0, 600), default=1.0, show_default=True, metavar="S",
              help="With --kafka: the time over which progress is judged.")  # fmt: skip
@config_option
@json_option
def status(
    folder: Path | None, kafka: str | None, redis: str | None, crawl_id: str, seconds: float, config: Path | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Show queue, hosts, outcomes, refusals by reason and duplicates of a crawl, also while it is running.

    With --kafka, show how far the services of a deployed system are: what each has not read, for how long it waits, and
    whether commits get on; with --redis also one crawl of it, and the hosts of all. The exit code is 1 if nobody knows
    that crawl.
    """
    if kafka is None:
        if redis is not None:
            raise SettingsError("--redis needs --kafka; a crawl in a folder keeps its queue there")
        found = asyncio.run(crawl_status(folder or newest_folder()))
        if as_json:
            click.echo(json.dumps(found, ensure_ascii=False))
        else:
            tell(_told(found))
        return 0
    if folder is not None:
        raise SettingsError("name a folder or --kafka, not both")
    settings = kafka_settings(config, kafka)
    found = asyncio.run(standing.look(settings, seconds=seconds, redis=redis, crawl_id=crawl_id))
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        tell(standing.told(found))
    return 0 if found.get("frontier", {}).get("known", True) else 1


def _told(found: dict[str, Any]) -> str:
    stored = f"{counted(found['documents'], 'document')}, {counted(found['chunks'], 'chunk')}"
    lines = [found["dir"], f"  {stored}; {counted(found['queued'], 'URL')} queued, {found['leased']} in flight"]
    lines += standing.outcome_lines(found)
    if found["hosts"]:
        lines.append("hosts, most queued first")
        lines.append("    queued  in flight  admitted  robots         waits")
        lines.extend(
            f"  {host['queued']:>8}  {host['leased']:>9}  {host['admitted']:>8}  {host['robots']:<11}"
            f"  {host['waits_seconds']:>4.0f} s  {host['origin']}"
            for host in found["hosts"]
        )
    return "\n".join(lines)
