"""What `trawl status --kafka` tells of a deployed system: consumer groups, and the frontier in Redis."""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Final

from trawl.cli.options import needs
from trawl.cli.progress import counted
from trawl.errors import TrawlError
from trawl.kinds import Stage
from trawl.pipeline import HOST_SHARDS
from trawl.settings import Settings

_ORIGINS_MAX: Final = 1000
"""Hosts looked at, most queued first."""
_HOSTS_SHOWN_MAX: Final = 20
_CRAWLS_SHOWN_MAX: Final = 20
_QUICK_SECONDS: Final = 3.0


async def look(settings: Settings, *, seconds: float, redis: str | None, crawl_id: str) -> dict[str, Any]:
    """Where the deployed system stands, for JSON; raises KafkaError, and StoreError for Redis."""
    found = await _groups(settings, seconds)
    if redis is not None:
        settings = replace(settings, redis=replace(settings.redis, url=redis))
        found["frontier"] = await _frontier(settings, crawl_id)
    return found


async def running_services(settings: Settings) -> list[str]:
    """Services that Kafka counts as members of their groups, the indexer apart; none if Kafka does not say so soon."""
    quick = replace(settings.kafka, request_seconds_max=min(settings.kafka.request_seconds_max, _QUICK_SECONDS))
    try:
        found = await _groups(replace(settings, kafka=quick), 0.0)
    except TrawlError:
        return []
    return [group["stage"] for group in found["groups"] if group["members"] and group["stage"] != Stage.INDEXER]


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
        from trawl.adapters.redis.crawls import RedisCrawls  # noqa: PLC0415 - an extra
    client, now_ms = connect(settings.redis), int(1000 * time.time())
    try:
        store = RedisFrontierStore(client, shards=HOST_SHARDS)
        policy, (_, crawls) = await store.crawl(crawl_id), await RedisCrawls(client).changes(0)
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
        "known": policy is not None,
        "crawls": sorted(crawls),
        "pages_max": policy.pages_max if policy is not None else 0,
        "paused": policy is not None and policy.paused,
        "queued": progress.queued,
        "leased": progress.leased,
        "charged": progress.charged,
        "outcomes": dict(progress.outcomes),
        "reasons": dict(progress.reasons),
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
    lines.append("  unread: not committed yet, be it under way; committed: how many more in that time")
    letters = found["topics"].get("trawl.dead-letters", 0)
    if letters:
        told = f"{counted(letters, 'message')} on trawl.dead-letters, letters and notes of what was sent again"
        lines.append(f"{told}; trawl dlq list tells which")
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
    lines = _crawl_lines(frontier) if frontier["known"] else [_unknown(frontier)]
    queued = [host for host in frontier["hosts"] if host["queued"]]
    lines += _hosts("hosts of all crawls, most queued first", queued)
    return lines + _hosts("hosts in back-off", frontier["hosts_in_backoff"][:_HOSTS_SHOWN_MAX])


def _crawl_lines(frontier: dict[str, Any]) -> list[str]:
    queue = f"{counted(frontier['queued'], 'URL')} queued, {frontier['leased']} in flight"
    lines = [f"crawl {frontier['crawl_id']!r}: {queue}, {_budget(frontier)}{', paused' if frontier['paused'] else ''}"]
    return lines + outcome_lines(frontier)


def _budget(frontier: dict[str, Any]) -> str:
    charged, pages_max = frontier["charged"], frontier["pages_max"]
    if not pages_max:
        return f"{counted(charged, 'page')} charged"
    spent = "; it is used up, a seed with a larger one goes on" if charged >= pages_max else ""
    return f"{charged} of {pages_max} pages of its budget charged{spent}"


def _unknown(frontier: dict[str, Any]) -> str:
    crawls = frontier["crawls"]
    names, more = ", ".join(crawls[:_CRAWLS_SHOWN_MAX]), len(crawls) - _CRAWLS_SHOWN_MAX
    known = f"there are: {names}{f' and {more} more' if more > 0 else ''}" if crawls else "none has begun"
    return f"no seed of a crawl {frontier['crawl_id']!r} has come to the frontier; {known}"


def outcome_lines(found: dict[str, Any]) -> list[str]:
    """The URLs of a crawl by outcome and reason, and the links that were not followed by reason."""
    lines = []
    for heading, counts in (("URLs by outcome", found["reasons"]), ("links not followed", found["refusals"])):
        if counts:
            lines.append(heading)
            lines.extend(f"  {count:>8}  {reason.replace(':', ': ')}" for reason, count in counts.items())
    return lines


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
