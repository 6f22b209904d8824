"""The window into a fake web in another process: a site that tells what was asked."""

import dataclasses
import json
from urllib.parse import parse_qs

from tests.site.log import CONTROL_HOST, RequestLog
from tests.site.message import Reply, Request
from tests.site.model import Site


def control(log: RequestLog) -> Site:
    """`/total`, `/hits?host=&path=`, `/hosts` and `/clear` as JSON."""
    return Site(
        CONTROL_HOST,
        {
            "/total": lambda _: _json(log.total),
            "/hits": lambda request: _json(_hits(log, request)),
            "/hosts": lambda _: _json(log.hosts()),
            "/clear": lambda _: _cleared(log),
        },
    )


def _hits(log: RequestLog, request: Request) -> list[tuple[dict[str, object], str]]:
    asked = parse_qs(request.query)
    found = log.hits(*(asked.get(name, [None])[0] for name in ("host", "path")))
    return [_entry(one) for one in found]


def _entry(request: Request) -> tuple[dict[str, object], str]:
    fields: dict[str, object] = {item.name: getattr(request, item.name) for item in dataclasses.fields(request)}
    del fields["head"]
    return fields, request.head.decode("latin-1")


def _cleared(log: RequestLog) -> Reply:
    log.clear()
    return _json(value=None)


def _json(value: object) -> Reply:
    return Reply(body=json.dumps(value).encode(), content_type="application/json")
