"""A web server that speaks HTTP/3 (aioquic), on the UDP port that a test chooses."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent

from tests.site.authority import Authority


@dataclass
class QuicWeb:
    """Bodies by path; a path that is not there never gets an answer."""

    bodies: Mapping[str, bytes]
    headers: tuple[tuple[bytes, bytes], ...] = ()
    asked: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def serving(self, authority: Authority, host: str, port: int) -> AsyncIterator["QuicWeb"]:
        """Serve on loopback."""
        certificate = authority.pem([host])
        configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
        configuration.load_cert_chain(certificate, certificate)
        web = self

        class Protocol(QuicConnectionProtocol):
            def __init__(self, *arguments: Any, **named: Any) -> None:
                super().__init__(*arguments, **named)
                self.http: H3Connection | None = None

            def quic_event_received(self, event: QuicEvent) -> None:
                if isinstance(event, ProtocolNegotiated):
                    self.http = H3Connection(self._quic)
                for found in self.http.handle_event(event) if self.http is not None else ():
                    if isinstance(found, HeadersReceived):
                        self.answer(found.stream_id, dict(found.headers)[b":path"].decode())

            def answer(self, stream: int, path: str) -> None:
                web.asked.append(path)
                if path not in web.bodies or self.http is None:
                    return
                self.http.send_headers(stream, [(b":status", b"200"), (b"content-type", b"text/html"), *web.headers])
                self.http.send_data(stream, web.bodies[path], end_stream=True)
                self.transmit()

        server = await serve("127.0.0.1", port, configuration=configuration, create_protocol=Protocol)
        try:
            yield self
        finally:
            server.close()
