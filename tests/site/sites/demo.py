"""The bundled demo site under a host name of its own."""

from tests.site.message import Reply, Request
from tests.site.model import Site
from trawl.demo import demo_reply


def demo(host: str = "demo.test") -> Site:
    def page(request: Request) -> Reply:
        found = demo_reply(request.path, request.origin)
        headers = () if found.location is None else (("Location", found.location),)
        etag = found.etag if found.status == 200 else None
        return Reply(found.status, found.body, found.content_type, headers, etag=etag)

    return Site(host, {}, fallback=page)
