"""Bodies that are packed once more than HTTP knows: gzip by its magic bytes, in a stream, with a cap (pure)."""

import zlib
from collections.abc import Iterator
from typing import Final

_GZIP: Final = b"\x1f\x8b"
_CHUNK_BYTES: Final = 65_536


class Unpacked:
    """The chunks of a body with up to `layers_max` layers of gzip taken off, at most `bytes_max` bytes in all.

    Iterate once. Afterwards `truncated` says whether the cap cut the body, or a damaged layer ended early. A bomb costs
    no more than the cap: each layer is inflated in steps of bounded output.
    """

    def __init__(self, body: bytes, *, bytes_max: int, layers_max: int) -> None:
        self._body = body
        self._bytes_max = bytes_max
        self._layers_max = layers_max
        self.truncated = False

    def __iter__(self) -> Iterator[bytes]:
        chunks: Iterator[bytes] = (self._body[at : at + _CHUNK_BYTES] for at in range(0, len(self._body), _CHUNK_BYTES))
        for _ in range(self._layers_max):
            chunks = self._layer(chunks)
        left = self._bytes_max
        for chunk in chunks:
            if len(chunk) > left:
                self.truncated = True
                yield chunk[:left]
                return
            left -= len(chunk)
            yield chunk

    def _layer(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """One layer taken off if it is there; concatenated members are one stream (RFC 1952, section 2.2)."""
        first = next(chunks, b"")
        if not first.startswith(_GZIP):
            yield first
            yield from chunks
            return
        inflater = zlib.decompressobj(wbits=31)
        pending = first
        try:
            while pending:
                yield inflater.decompress(pending, _CHUNK_BYTES)
                pending = inflater.unconsumed_tail
                if inflater.eof:
                    pending = inflater.unused_data
                    inflater = zlib.decompressobj(wbits=31)
                    if not pending.startswith(_GZIP):
                        pending = b""  # padding after the last member is ignored
                pending = pending or next(chunks, b"")
        except zlib.error:
            self.truncated = True


def unpacked(body: bytes, *, bytes_max: int, layers_max: int) -> tuple[bytes, bool]:
    """The whole body, and whether it was cut; see `Unpacked`."""
    chunks = Unpacked(body, bytes_max=bytes_max, layers_max=layers_max)
    data = b"".join(chunks)
    return data, chunks.truncated
