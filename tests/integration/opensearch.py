"""What the tests of the OpenSearch adapters share: stores of their own on the real node, and a proxy before it."""

import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import aiohttp
from aiohttp import web

from trawl.adapters.opensearch import OpenSearchClient, connect
from trawl.adapters.opensearch.client import NotThereError
from trawl.ports import Chunk, StoredPage
from trawl.records import ExtractedDocument
from trawl.settings import OpenSearchSettings

Fault: TypeAlias = Callable[[bytes], "web.Response | None"]
"""What is answered to a request with that body instead of passing it on; None passes it on."""
Change: TypeAlias = Callable[[Any], Any]
"""What is made of the node's answer."""


@asynccontextmanager
async def connected(settings: OpenSearchSettings) -> AsyncIterator[OpenSearchClient]:
    """A client; what was stored under its prefix is deleted at the end."""
    client = connect(settings)
    try:
        yield client
    finally:
        await client.ask("DELETE", f"/{settings.prefix}-*")
        with suppress(NotThereError):
            await client.ask("DELETE", f"/_index_template/{settings.prefix}-*")
        await client.close()


def page(document_key: int, fetched_at_ms: int = 1000, **fields: Any) -> StoredPage:
    """A page of the crawl c."""
    document = ExtractedDocument(
        document_key=document_key,
        crawl_id="c",
        request_key=1,
        fetch_id=2,
        url=f"https://a.example/{document_key}",
        final_url=f"https://a.example/{document_key}",
        fetched_at_ms=fetched_at_ms,
        text=f"text {document_key}",
    )
    return StoredPage(document=document, **fields)


def chunk(chunk_id: int, text: str = "heron", **fields: Any) -> Chunk:
    """A chunk of the crawl c."""
    made = Chunk(
        chunk_id=chunk_id,
        document_key=7,
        crawl_id="c",
        url=f"https://a.example/{chunk_id}",
        title="",
        heading_path=(),
        text=text,
        position=0,
        fetched_at_ms=1000,
    )
    return replace(made, **fields)


@dataclass
class Proxy:
    """Passes requests on to a node, unless it is told otherwise."""

    target: str
    url: str = ""
    faults: list[Fault] = field(default_factory=list)
    """One for each of the next requests."""
    always: Fault | None = None
    changes: list[Change] = field(default_factory=list)
    """One for each of the next answers."""
    login: str = ""
    """NAME:PASSWORD that every request must bring; none if empty."""
    bodies: list[bytes] = field(default_factory=list)
    """What was asked."""

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        body = await request.read()
        self.bodies.append(body)
        wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        if self.login and request.headers.get("authorization") != wanted:
            return web.Response(status=401, text="Unauthorized")
        fault = self.faults.pop(0) if self.faults else self.always
        answer = fault(body) if fault is not None else None
        return answer if answer is not None else await self._passed_on(request, body)

    async def _passed_on(self, request: web.Request, body: bytes) -> web.Response:
        headers = {"content-type": request.headers.get("content-type", "application/json")}
        url = f"{self.target}{request.rel_url}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=body, headers=headers) as answer,
        ):
            found = await answer.json()
            if self.changes:
                found = self.changes.pop(0)(found)
            return web.json_response(found, status=answer.status)


def failing(status: int, text: str = "busy") -> Fault:
    """Answers with that status."""
    return lambda _: web.Response(status=status, text=json.dumps({"error": text}), content_type="application/json")


@asynccontextmanager
async def proxy(target: str, context: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """A proxy before the node, on loopback; over TLS with a context."""
    made = Proxy(target)
    application = web.Application(client_max_size=100_000_000)
    application.router.add_route("*", "/{path:.*}", made.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    made.url = f"http{'s' if context else ''}://127.0.0.1:{port}"
    try:
        yield made
    finally:
        await runner.cleanup()
