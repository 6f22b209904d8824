"""`trawl status`: where a crawl stands."""

import asyncio
import json
from pathlib import Path
from typing import Any

import click

from trawl.assembly import crawl_status, newest_folder
from trawl.cli.options import json_option
from trawl.cli.progress import counted


@click.command(short_help="Show where a crawl stands.")
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path))
@json_option
def status(folder: Path | None, as_json: bool) -> int:
    """Show queue, hosts, outcomes, refusals by reason and duplicates of a crawl, also while it is running."""
    found = asyncio.run(crawl_status(folder or newest_folder()))
    click.echo(json.dumps(found, ensure_ascii=False) if as_json else _told(found))
    return 0


def _told(found: dict[str, Any]) -> str:
    stored = f"{counted(found['documents'], 'document')}, {counted(found['chunks'], 'chunk')}"
    lines = [found["dir"], f"  {stored}; {counted(found['queued'], 'URL')} queued, {found['leased']} in flight"]
    for heading, counts in (("URLs by outcome", found["reasons"]), ("links not followed", found["refusals"])):
        if counts:
            lines.append(heading)
            lines.extend(f"  {count:>8}  {reason.replace(':', ': ')}" for reason, count in counts.items())
    if found["hosts"]:
        lines.append("hosts, most queued first")
        lines.append("    queued  in flight  admitted  robots         waits")
        lines.extend(
            f"  {host['queued']:>8}  {host['leased']:>9}  {host['admitted']:>8}  {host['robots']:<11}"
            f"  {host['waits_seconds']:>4.0f} s  {host['origin']}"
            for host in found["hosts"]
        )
    return "\n".join(lines)
