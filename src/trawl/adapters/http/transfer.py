"""One request on the wire: what libcurl calls back with, judged as it comes."""

from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

from curl_cffi import Curl, CurlInfo

from trawl.adapters.http.decoding import Body, BodyCaps
from trawl.ports import HttpRequest
from trawl.records import Header
from trawl.settings import FetchSettings

_ABORT: Final = 0xFFFFFFFF  # CURL_WRITEFUNC_ERROR
_FINAL_STATUS_MIN: Final = 200


class Transfer:
    """The answer to one request so far, and the reason why it was stopped, if it was."""

    def __init__(
        self,
        request: HttpRequest,
        settings: FetchSettings,
        curl: Curl,
        now: Callable[[], float],
        *,
        offered: bool = False,
    ) -> None:
        self.request = request
        self.stopped = ""
        """The typed reason; `cut` if the body was cut on purpose."""
        self.offered = offered
        """Whether HTTP/3 was tried."""
        self.status = 0
        self.http_version = ""
        self.headers: list[Header] = []
        self.body: Body | None = None
        self.address = ""
        self.started = self.last_activity = now()
        self._settings = settings
        self._curl = curl
        self._now = now
        self._head_bytes = 0
        self._head_lines = 0

    @property
    def is_new(self) -> bool:
        """Whether a connection was made for it, or tried."""
        return not self.answered or self._curl.getinfo(CurlInfo.NUM_CONNECTS) != 0

    @property
    def answered(self) -> bool:
        """Whether the answer has begun."""
        return self._head_lines > 0

    def on_header(self, line: bytes) -> int:
        """Take a header line, the status line and the empty line included."""
        self.last_activity = self._now()
        if not self._head_lines and not self._peer_is_checked():
            return self._stop("peer_address_mismatch")
        self._head_bytes += len(line)
        self._head_lines += 1
        if self._head_bytes > self._settings.header_bytes_max:
            return self._stop("headers_too_large")
        if self._head_lines > self._settings.header_count_max + 2 and len(line) > 2:
            return self._stop("headers_too_large")
        if self.body is not None:  # a trailer
            return len(line)
        if line.startswith(b"HTTP/") and not self.headers:
            self._status_line(line)
        elif line in {b"\r\n", b"\n"}:
            return self._end_of_head(len(line))
        else:
            self._field(line.decode("latin-1"))
        return len(line)

    def on_body(self, data: bytes) -> int:
        """Take a piece of the body as it came from the wire."""
        self.last_activity = self._now()
        if self.body is None:  # libcurl gives no body without a head
            return self._stop("protocol_error")
        reason = self.body.feed(data)
        return self._stop(reason) if reason else len(data)

    def _stop(self, reason: str) -> int:
        cut = reason == "body_too_large" and self.request.cut_body
        self.stopped = self.stopped or ("cut" if cut else reason)
        return _ABORT

    def _peer_is_checked(self) -> bool:
        """Whether the connection leads to the checked address; one that is used again was checked when it began."""
        peer = self._curl.getinfo(CurlInfo.PRIMARY_IP)
        self.address = peer.decode("ascii", "replace") if isinstance(peer, bytes) else ""
        wanted = self.request.address
        if not wanted or self.address == wanted:
            return True
        if self._curl.getinfo(CurlInfo.NUM_CONNECTS) == 0:
            return True
        try:
            return ip_address(self.address) == ip_address(wanted)
        except ValueError:
            return False

    def _status_line(self, line: bytes) -> None:
        version, _, rest = line.partition(b" ")
        self.http_version = version[5:].decode("ascii", "replace")
        code = rest[:3]
        self.status = int(code) if code.isdigit() else 0

    def _field(self, line: str) -> None:
        name, colon, value = line.partition(":")
        if line[:1] in " \t" and self.headers:  # a folded line (RFC 9112, section 5.2)
            last = self.headers[-1]
            self.headers[-1] = Header(name=last.name, value=f"{last.value} {line.strip()}")
        elif colon:
            self.headers.append(Header(name=name.strip().lower(), value=value.strip()))

    def _end_of_head(self, size: int) -> int:
        if self.status < _FINAL_STATUS_MIN:  # interim: the real head follows (RFC 9110, section 15.2)
            self.headers.clear()
            return size
        settings, request = self._settings, self.request
        caps = BodyCaps(
            body_bytes_max=request.body_bytes_max,
            wire_bytes_max=settings.wire_bytes_max,
            ratio_max=settings.decode_ratio_max,
            ratio_bytes_min=settings.decode_ratio_bytes_min,
            layers_max=settings.encoding_layers_max,
        )
        self.body = Body([header.value for header in self.headers if header.name == "content-encoding"], caps)
        length = next((header.value for header in self.headers if header.name == "content-length"), "")
        claimed = int(length) if length.isdecimal() and len(length) < 19 else 0
        if claimed > settings.wire_bytes_max:
            return self._stop("wire_too_large")
        if claimed > request.body_bytes_max and not self.body.is_coded and not request.cut_body:
            return self._stop("body_too_large")
        return size
