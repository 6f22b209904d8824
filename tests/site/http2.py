"""A web server that speaks HTTP/2 over TLS (h2), and misbehaves by path."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from tests.site.authority import Authority

_READ_BYTES = 65_536


@dataclass
class Http2Web:
    """Bodies by path. `/reset` resets its stream, `/cut` does so in the body, `/goaway` closes the connection."""

    bodies: Mapping[str, bytes]
    connections: int = 0
    asked: list[str] = field(default_factory=list)
    port: int = 0

    @asynccontextmanager
    async def serving(self, authority: Authority, host: str) -> AsyncIterator["Http2Web"]:
        """Serve on loopback."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(authority.pem([host]))
        context.set_alpn_protocols(["h2"])
        async with await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context) as server:
            self.port = server.sockets[0].getsockname()[1]
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        connection.initiate_connection()
        with suppress(ConnectionError, h2.exceptions.ProtocolError):
            writer.write(connection.data_to_send())
            while data := await reader.read(_READ_BYTES):
                for event in connection.receive_data(data):
                    if isinstance(event, h2.events.RequestReceived):
                        self._answer(connection, event)
                writer.write(connection.data_to_send())
                await writer.drain()
        writer.close()

    def _answer(self, connection: h2.connection.H2Connection, event: h2.events.RequestReceived) -> None:
        headers = {bytes(name): bytes(value) for name, value in event.headers or ()}
        path, stream = headers[b":path"].decode(), event.stream_id or 0
        self.asked.append(path)
        if path == "/reset":
            connection.reset_stream(stream, h2.errors.ErrorCodes.INTERNAL_ERROR)
        elif path == "/goaway":
            connection.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
        else:
            connection.send_headers(stream, [(":status", "200"), ("content-type", "text/html")])
            connection.send_data(stream, self.bodies.get(path, b"<p>part"), end_stream=path != "/cut")
            if path == "/cut":
                connection.reset_stream(stream, h2.errors.ErrorCodes.CANCEL)
