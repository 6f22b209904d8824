"""What `trawl status --kafka` tells of a deployed system: consumer groups, and the frontier in Redis."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from trawl.cli.options import needs
from trawl.cli.progress import counted
from trawl.pipeline import HOST_SHARDS
from trawl.settings import Settings

_ORIGINS_MAX: Final = 1000
"""Hosts looked at, most queued first."""
_HOSTS_SHOWN_MAX: Final = 20


async def look(settings: Settings, *, seconds: float, redis: str | None, crawl_id: str) -> dict[str, Any]:
    """Where the deployed system stands, for JSON; raises KafkaError, and StoreError for Redis."""
    found = await _groups(settings, seconds)
    if redis is not None:
        settings = replace(settings, redis=replace(settings.redis, url=redis))
        found["frontier"] = await _frontier(settings, crawl_id)
    return found


async def _groups(settings: Settings, seconds: float) -> dict[str, Any]:
    with needs("kafka"):
        from trawl.adapters.kafka import standing  # noqa: PLC0415 - an extra
    found = await standing(settings.kafka, seconds=seconds)
    groups = [
        {
            "stage": str(group.stage),
            "group": group.group,
            "members": group.members,
            "stuck": group.is_stuck,
            "topics": [asdict(topic) for topic in group.topics],
        }
        for group in found.groups
    ]
    return {"groups": groups, "topics": dict(found.records), "seconds": round(found.seconds, 3)}


async def _frontier(settings: Settings, crawl_id: str) -> dict[str, Any]:
    with needs("redis"):
        from trawl.adapters.redis import RedisFrontierStore, connect  # noqa: PLC0415 - an extra
    client, now_ms = connect(settings.redis), int(1000 * time.time())
    try:
        store = RedisFrontierStore(client, shards=HOST_SHARDS)
        progress, origins = await store.progress(crawl_id), await store.origins(_ORIGINS_MAX)
    finally:
        await client.close()
    hosts = [
        {
            "origin": host.origin,
            "queued": host.queued,
            "leased": host.leased,
            "failures": host.failures,
            "robots": str(host.robots),
            "waits_seconds": max(host.blocked_until_ms - now_ms, 0) / 1000,
        }
        for host in origins
    ]
    return {
        "crawl_id": crawl_id,
        "queued": progress.queued,
        "leased": progress.leased,
        "charged": progress.charged,
        "outcomes": dict(progress.outcomes),
        "refusals": dict(progress.refusals),
        "hosts": hosts[:_HOSTS_SHOWN_MAX],
        "hosts_in_backoff": sorted(
            (host for host in hosts if host["waits_seconds"]), key=lambda host: -float(str(host["waits_seconds"]))
        ),
    }


def told(found: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"consumer groups, over {found['seconds']:.1f} s"]
    lines.append("  stage      topic               unread  waits for  committed  processes")
    for group in found["groups"]:
        lines += [_group_line(group, topic) for topic in group["topics"]]
        if group["stuck"]:
            lines.append(f"  {group['stage']} is stuck: records wait, and nothing was committed{_nobody(group)}")
    letters = found["topics"].get("trawl.dead-letters", 0)
    if letters:
        lines.append(f"{counted(letters, 'message')} on trawl.dead-letters; trawl dlq list shows them")
    if "frontier" in found:
        lines += _frontier_lines(found["frontier"])
    return "\n".join(lines)


def _group_line(group: dict[str, Any], topic: dict[str, Any]) -> str:
    committed = "never" if topic["committed"] is None else f"+{topic['advanced']}"
    lost = f"  {counted(topic['lost_records'], 'record')} deleted unread" if topic["lost_records"] else ""
    return (
        f"  {group['stage']:<9}  {topic['topic']:<18}  {topic['lag_records']:>6}  {topic['lag_seconds']:>7.1f} s"
        f"  {committed:>9}  {group['members']:>9}{lost}"
    )


def _nobody(group: dict[str, Any]) -> str:
    return "" if group["members"] else "; no process of this service is in its group: is it running?"


def _frontier_lines(frontier: dict[str, Any]) -> list[str]:
    queue = f"{counted(frontier['queued'], 'URL')} queued, {frontier['leased']} in flight"
    lines = [f"crawl {frontier['crawl_id']!r}: {queue}, {counted(frontier['charged'], 'page')} charged"]
    for heading, counts in (("URLs by outcome", frontier["outcomes"]), ("links not followed", frontier["refusals"])):
        if counts:
            lines.append(heading)
            lines += [f"  {count:>8}  {name}" for name, count in counts.items()]
    lines += _hosts("hosts, most queued first", [host for host in frontier["hosts"] if host["queued"]])
    return lines + _hosts("hosts in back-off", frontier["hosts_in_backoff"][:_HOSTS_SHOWN_MAX])


def _hosts(heading: str, hosts: Sequence[dict[str, Any]]) -> list[str]:
    if not hosts:
        return []
    return [
        heading,
        "    queued  in flight  failures  robots           waits",
        *(
            f"  {host['queued']:>8}  {host['leased']:>9}  {host['failures']:>8}  {host['robots']:<11}"
            f"  {host['waits_seconds']:>6.0f} s  {host['origin']}"
            for host in hosts
        ),
    ]
