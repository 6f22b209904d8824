"""Content codings taken off while the body streams, with every cap enforced on the way (pure).

Every decoder gives its output in pieces of bounded size, whatever the ratio, so that a bomb is stopped at the cap and
never unpacked beyond it. Codings are those of RFC 9110, section 8.4.1, with br (RFC 7932) and zstd (RFC 8878; windows
up to 8 MiB, RFC 9659).
"""

import codecs
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

ACCEPT_ENCODING: Final = "gzip, deflate, br, zstd"

_PIECE_BYTES: Final = 65_536
_ZSTD_STEP_BYTES: Final = 256  # a zstd block of 4 bytes gives 128 KiB, so one step gives 8 MiB at the most
_ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
_KEPT_BYTES_MAX: Final = 65_536
_LOOKED_AT_BYTES: Final = 512
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\f\r\x1b")) + b"\x7f"


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyCaps:
    """How large a body may be."""

    body_bytes_max: int
    """After decoding, and after each layer of it."""
    wire_bytes_max: int
    ratio_max: float
    ratio_bytes_min: int
    """The ratio is judged from this size on."""
    layers_max: int


class _RefusedError(Exception):
    """The body breaks a cap or its label; the text is the typed reason."""


class _Decoder(Protocol):
    complete: bool
    """Whether the coded stream has come to its end."""

    def feed(self, data: bytes) -> Iterator[bytes]: ...


class _Inflate:
    """gzip of one or more members, or deflate with or without its zlib frame; what follows the end is ignored."""

    def __init__(self, *, gzip: bool) -> None:
        self.complete = False
        self._gzip = gzip
        self._inflate = zlib.decompressobj(31) if gzip else None
        self._held = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        data = self._held + data
        self._held = b""
        while data:
            if self._inflate is None:
                if len(data) < 2:
                    self._held = data
                    return
                if not self._begin(data):
                    return
            inflate = self._inflate
            assert inflate is not None
            piece = inflate.decompress(data, _PIECE_BYTES)
            if piece:
                yield piece
            data = inflate.unconsumed_tail
            if inflate.eof:
                data, self._inflate, self.complete = inflate.unused_data, None, True

    def _begin(self, data: bytes) -> bool:
        """Start a member; False if the bytes are only litter after the end."""
        if self._gzip:
            if not data.startswith(b"\x1f\x8b"):
                return False
            self._inflate = zlib.decompressobj(31)
        elif self.complete:
            return False
        else:
            framed = data[0] & 0x0F == 8 and int.from_bytes(data[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(15 if framed else -15)
        self.complete = False
        return True


class _Brotli:
    def __init__(self) -> None:
        self.complete = False
        self._brotli = brotli.Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        if self.complete:
            return
        piece = self._brotli.process(data, output_buffer_limit=_PIECE_BYTES)
        while True:
            if piece:
                yield piece
            self.complete = self._brotli.is_finished()
            if self.complete or self._brotli.can_accept_more_data():
                return
            piece = self._brotli.process(b"", output_buffer_limit=_PIECE_BYTES)


class _Zstd:
    def __init__(self) -> None:
        self.complete = False
        self._zstd = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES_MAX)
        self._frame = self._zstd.decompressobj()

    def feed(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP_BYTES):
            yield from self._step(data[start : start + _ZSTD_STEP_BYTES])

    def _step(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self.complete:
                if data[0] not in b"\x28\x50\x51\x52\x53\x54\x55\x56\x57\x58\x59\x5a\x5b\x5c\x5d\x5e\x5f":
                    return  # litter: neither a frame nor a skippable one
                self._frame, self.complete = self._zstd.decompressobj(), False
            piece = self._frame.decompress(data)
            if piece:
                yield piece
            if not self._frame.eof:
                return
            data, self.complete = self._frame.unused_data, True


class _Unknown:
    """A coding that nobody knows: the body is delivered if it is plain text after all."""

    complete = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        if data:
            raise _RefusedError("bad_encoding")
        yield data


_DECODERS: Final[dict[str, Callable[[], _Decoder]]] = {
    "gzip": lambda: _Inflate(gzip=True),
    "x-gzip": lambda: _Inflate(gzip=True),
    "deflate": lambda: _Inflate(gzip=False),
    "br": _Brotli,
    "zstd": _Zstd,
}


class Body:
    """A body under way: `feed` it what comes from the wire, then `finish`."""

    def __init__(self, content_encodings: Sequence[str], caps: BodyCaps) -> None:
        codings = [part.strip().lower() for value in content_encodings for part in value.split(",")]
        codings = [coding for coding in codings if coding not in {"", "identity"}]
        self.wire_bytes = 0
        self._caps = caps
        self._too_many = len(codings) > caps.layers_max
        layers = [] if self._too_many else [_DECODERS.get(coding, _Unknown)() for coding in reversed(codings)]
        self._layers: list[_Decoder] = layers
        self._sizes = [0] * (len(layers) + 1)
        self._pieces: list[bytes] = []
        self._kept: list[bytes] | None = [] if layers else None
        self._kept_bytes = 0

    @property
    def is_coded(self) -> bool:
        """Whether there is any coding to take off."""
        return bool(self._layers)

    def feed(self, data: bytes) -> str:
        """Take bytes from the wire; the typed reason to stop at once, or empty."""
        self.wire_bytes += len(data)
        if self._too_many:
            return "bad_encoding"
        try:
            if self._layers:
                self._keep(data)
                self._decode(0, data)
            else:
                self._collect(data, 0)
            if self.wire_bytes > self._caps.wire_bytes_max:
                return "wire_too_large"
        except _RefusedError as refused:
            return str(refused) if str(refused) != "bad_encoding" else self._as_text("bad_encoding")
        except (zlib.error, brotli.error, zstandard.ZstdError):
            return self._as_text("bad_encoding")
        return ""

    def finish(self) -> str:
        """The message has ended; the typed reason why the body is not whole, or empty."""
        if not self.wire_bytes or all(layer.complete for layer in self._layers):
            return ""
        return self._as_text("truncated")

    def content(self) -> bytes:
        """The decoded body so far, at most `body_bytes_max`."""
        return b"".join(self._pieces)[: self._caps.body_bytes_max]

    def _keep(self, data: bytes) -> None:
        """Hold the first bytes as they came, in case their label is wrong."""
        if self._kept is None:
            return
        self._kept.append(data)
        self._kept_bytes += len(data)
        if self._kept_bytes > _KEPT_BYTES_MAX:
            self._kept = None

    def _decode(self, layer: int, data: bytes) -> None:
        if layer == len(self._layers):
            self._pieces.append(data)
            return
        for piece in self._layers[layer].feed(data):
            self._count(piece, layer)
            self._decode(layer + 1, piece)

    def _collect(self, data: bytes, layer: int) -> None:
        self._pieces.append(data)
        self._count(data, layer)

    def _count(self, piece: bytes, layer: int) -> None:
        self._sizes[layer] += len(piece)
        size, caps = self._sizes[layer], self._caps
        if size > caps.body_bytes_max:
            if layer == len(self._layers) - 1:
                self._pieces.append(piece)
            raise _RefusedError("body_too_large")
        if size > caps.ratio_bytes_min and size > caps.ratio_max * self.wire_bytes and self._layers:
            raise _RefusedError("decode_ratio")

    def _as_text(self, reason: str) -> str:
        """Deliver a body that was labelled wrongly as it came, if it is text; else the reason."""
        if self._kept is None or not is_text(b"".join(self._kept)):
            return reason
        kept, self._kept, self._layers = self._kept, None, []
        self._pieces, self._sizes = [], [0]
        try:
            for piece in kept:
                self._collect(piece, 0)
        except _RefusedError as refused:
            return str(refused)
        return ""


def is_text(data: bytes) -> bool:
    """Whether bytes begin like HTML or other text, in UTF-8 or (after a `<`) any encoding that extends ASCII."""
    head = data[:_LOOKED_AT_BYTES]
    if not head.strip() or head.translate(None, _CONTROLS) != head:
        return False
    if head.lstrip().startswith(b"<"):
        return True
    try:
        codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
