"""Small bodies that decode to enormous ones."""

import gzip
import struct
import zlib
from collections.abc import Callable
from functools import lru_cache

import cramjam
import zstandard

from tests.site.message import Reply

BOMB_BYTES = 300 * 1000 * 1000
_BLOCK = bytes(1000 * 1000)


@lru_cache(maxsize=4)
def gzip_zeros(decoded_bytes: int = BOMB_BYTES) -> bytes:
    """About 1/1000 of `decoded_bytes` (whole megabytes). One compressed block is repeated, which takes no time."""
    blocks = decoded_bytes // len(_BLOCK)
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = deflate.compress(_BLOCK) + deflate.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(blocks):
        checksum = zlib.crc32(_BLOCK, checksum)
    head = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"
    tail = struct.pack("<II", checksum, blocks * len(_BLOCK) & 0xFFFFFFFF)
    return head + block * blocks + deflate.flush() + tail


@lru_cache(maxsize=4)
def brotli_zeros(decoded_bytes: int = BOMB_BYTES) -> bytes:
    compressor = cramjam.brotli.Compressor(5)
    for _ in range(decoded_bytes // len(_BLOCK)):
        compressor.compress(_BLOCK)
    return bytes(compressor.finish())


@lru_cache(maxsize=4)
def zstd_zeros(decoded_bytes: int = BOMB_BYTES) -> bytes:
    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    pieces = [compressor.compress(_BLOCK) for _ in range(decoded_bytes // len(_BLOCK))]
    return b"".join([*pieces, compressor.flush()])


@lru_cache(maxsize=4)
def deflate_zeros(decoded_bytes: int = BOMB_BYTES) -> bytes:
    compressor = zlib.compressobj(9)
    pieces = [compressor.compress(_BLOCK) for _ in range(decoded_bytes // len(_BLOCK))]
    return b"".join([*pieces, compressor.flush()])


def nested_gzip(decoded_bytes: int = BOMB_BYTES) -> bytes:
    """A gzip of a gzip: about a thousandth of a thousandth."""
    return gzip.compress(gzip_zeros(decoded_bytes), 9, mtime=0)


_BODIES: dict[str, tuple[Callable[[int], bytes], str]] = {
    "gzip": (gzip_zeros, "gzip"),
    "br": (brotli_zeros, "br"),
    "zstd": (zstd_zeros, "zstd"),
    "deflate": (deflate_zeros, "deflate"),
    "nested": (nested_gzip, "gzip, gzip"),
}
KINDS = tuple(_BODIES)


def bomb(
    kind: str, decoded_bytes: int = BOMB_BYTES, *, chunked: bool = False, content_type: str = "text/html"
) -> Reply:
    """A bomb of one of `KINDS`, sent whether or not the request accepts its coding; `chunked` hides its length."""
    make, coding = _BODIES[kind]
    body = make(decoded_bytes)
    headers = (("Content-Encoding", coding),)
    return Reply(body=body, content_type=content_type, headers=headers, framing="chunked" if chunked else "length")


def gzip_file(decoded_bytes: int = BOMB_BYTES) -> Reply:
    """The bomb as a file, as for a sitemap.xml.gz: no Content-Encoding."""
    return Reply(body=gzip_zeros(decoded_bytes), content_type="application/gzip")
