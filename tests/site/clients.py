"""Independent clients of a fake web, for tests of the fake web itself and for comparison with a crawl."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urljoin

from curl_cffi.requests import AsyncSession, Response

from tests.site.process import WebProcess
from tests.site.web import FakeWeb

_ANCHOR = re.compile(rb"""<a\b[^>]*?\shref=["']([^"'#]*)""", re.IGNORECASE)


@asynccontextmanager
async def browser(web: FakeWeb | WebProcess, *, direct: bool = False) -> AsyncIterator[AsyncSession[Response]]:
    """A client that reaches every host of the web through its proxy, or (`direct`) only what DNS knows."""
    session = AsyncSession[Response](
        verify=str(web.ca_file),  # type: ignore[arg-type]  # a path is documented, its annotation says bool
        proxy=None if direct else web.proxy,
        allow_redirects=False,
        timeout=10,
    )
    async with session:
        yield session


async def exchange(web: FakeWeb, *requests: str) -> bytes:
    """What the server sends to raw requests on one connection until it closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", web.port)
    writer.write("".join(requests).replace("\n", "\r\n").encode())
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    await writer.wait_closed()
    return answer


async def crawl(web: FakeWeb | WebProcess, origin: str) -> dict[str, bytes]:
    """The bodies of all pages of a site that links reach from its root, by path, robots.txt unread."""
    found: dict[str, bytes] = {}
    seen: set[str] = set()
    waiting = ["/"]
    async with browser(web) as client:
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            response = await client.get(origin + path)
            if response.status_code == 200:
                found[path] = response.content
                urls = [urljoin(origin + path, link) for link in links_of(response.content)]
                waiting += [url.removeprefix(origin) for url in urls if url.startswith(origin + "/")]
    return found


def links_of(body: bytes) -> list[str]:
    """The targets of the anchors, as they stand; good enough for the markup of the sites here."""
    return [value.decode("latin-1") for value in _ANCHOR.findall(body)]
