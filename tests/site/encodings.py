"""Content codings: what a request accepts (RFC 9110, 12.5.3) and how bodies are encoded."""

import gzip
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

import cramjam
import zstandard

ALL_CODINGS = ("br", "zstd", "gzip", "deflate")

_ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
    "x-gzip": lambda body: gzip.compress(body, 6, mtime=0),
    "deflate": lambda body: zlib.compress(body, 6),
    "br": lambda body: bytes(cramjam.brotli.compress(body, 5)),
    "zstd": lambda body: zstandard.compress(body, 3),
}


@lru_cache(maxsize=512)
def encoded(body: bytes, coding: str) -> bytes:
    """The body in one coding; encoded once as long as it is asked for often."""
    return _ENCODERS[coding](body)


@lru_cache(maxsize=256)
def accepted(accept_encoding: str) -> frozenset[str]:
    """The codings that an Accept-Encoding field allows; `*` stands for all that are known."""
    allowed: set[str] = set()
    refused: set[str] = set()
    for item in accept_encoding.lower().split(","):
        name, _, parameters = item.partition(";")
        weight = parameters.replace(" ", "").removeprefix("q=") or "1"
        (refused if weight.strip("0.") == "" else allowed).add(name.strip())
    if "*" in allowed:
        allowed.update(ALL_CODINGS)
    return frozenset(allowed - refused)


def choose(offered: Iterable[str], accept_encoding: str | None) -> str | None:
    """The first offered coding that the request accepts, or None for the identity."""
    if not accept_encoding:
        return None
    wanted = accepted(accept_encoding)
    return next((coding for coding in offered if coding in wanted), None)
