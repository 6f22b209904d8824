"""The fake web: a real HTTP/1.1 server on loopback that plays many hosts, directly and as a forward proxy."""

import asyncio
import ssl
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.site.authority import Authority
from tests.site.connection import Connection
from tests.site.log import RequestLog
from tests.site.message import Reply, Request
from tests.site.model import NOT_FOUND, Site

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
UNKNOWN_HOST = Reply(502, b"the fake web knows no such host\n", "text/plain", (("X-Fake-Web", "unknown host"),))


class FakeWeb:
    """An async context manager that serves `sites` until it is left.

    Directly (`web.url`, `web.https_url`) the Host field decides; `127.0.0.1` and `localhost` are the first site unless
    a site of that name exists. Through `web.proxy` any host name and scheme reaches its site; the certificates are
    signed by `web.ca_file`. A host that is not there is a 502 from the proxy.
    """

    def __init__(self, *sites: Site, address: str = "127.0.0.1", log_requests_max: int = 200_000) -> None:
        self.log = RequestLog(log_requests_max)
        self._sites: dict[str, Site] = {}
        self._default: Site | None = None
        self._address = address
        self._connections: set[Connection] = set()
        self._folder = tempfile.TemporaryDirectory(prefix="fake-web-")
        self.authority = Authority(Path(self._folder.name))
        self._servers: list[asyncio.Server] = []
        self.port = 0
        self.https_port = 0
        self.add(*sites)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        context = self.authority.context("localhost")
        context.sni_callback = self._choose_certificate
        plain = await loop.create_server(lambda: self._connection("http"), self._address, 0, backlog=1024)
        secure = await loop.create_server(lambda: self._connection("https"), self._address, 0, ssl=context)
        self._servers = [plain, secure]
        self.port = plain.sockets[0].getsockname()[1]
        self.https_port = secure.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.end(reset=True)
        await asyncio.sleep(0.01)  # lets the transports close, so that none is left to the garbage collector
        self._folder.cleanup()

    def add(self, *sites: Site) -> None:
        """Add or replace hosts, at any time."""
        for site in sites:
            self._sites[site.host] = site
            self._default = self._default or site
        self.authority.share([site.host for site in sites])

    # where it is

    @property
    def url(self) -> str:
        return f"http://{self._address}:{self.port}"

    @property
    def https_url(self) -> str:
        return f"https://{self._address}:{self.https_port}"

    @property
    def proxy(self) -> str:
        return self.url

    @property
    def ca_file(self) -> Path:
        return self.authority.ca_file

    # what it was asked

    def hits(self, host: str | None = None, path: str | None = None) -> list[Request]:
        return self.log.hits(host, path)

    def gaps(self, host: str) -> list[float]:
        return self.log.gaps(host)

    # what connections ask

    def answer(self, request: Request, *, proxied: bool) -> Reply:
        site = self._sites.get(request.host)
        if site is None:
            site = None if proxied and request.host not in LOOPBACK_NAMES else self._default
        if site is None or not site.reachable:
            return UNKNOWN_HOST if proxied else NOT_FOUND
        return site.reply(request)

    def tunnel(self, host: str) -> ssl.SSLContext | Reply:
        site = self._sites.get(host)
        if site is None and host in LOOPBACK_NAMES:
            site = self._default
        if site is None or not site.reachable:
            return UNKNOWN_HOST
        if site.tls == "broken":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # has no certificate: every handshake fails
        return self.authority.context(host, site.tls)

    def _connection(self, scheme: str) -> Connection:
        return Connection(self, self._connections, scheme=scheme)

    def _choose_certificate(self, handshake: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        """Direct TLS: the server name decides, for clients that pin a host to this address."""
        if name is not None and name.lower() in self._sites:
            found = self.tunnel(name.lower())
            if isinstance(found, ssl.SSLContext):
                handshake.context = found
