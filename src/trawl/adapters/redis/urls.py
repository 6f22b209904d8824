"""URLs in about half of their bytes: a fixed prefix code for what URLs are made of.

The code never changes: what is stored was written by it. `python -m bench.train_url_code` made it, from the links of
real pages: common pieces of URLs, and every single byte, by how often they occur (Huffman, "A method for the
construction of minimum-redundancy codes", 1952).
"""

import json
import re
from functools import cache
from importlib import resources
from typing import Final

CODE_FILE: Final = "url_code.json"
"""A list of [bits, symbols of that many bits], in ascending order; symbols are latin-1 texts."""


def packed_url(url: str) -> bytes:
    """A URL by the code; any text can be packed, an ordinary URL takes about half of its bytes."""
    codes, _, pieces = _code()
    # The leading 1 keeps the zeros after it.
    bits = "".join([codes[piece] for piece in pieces.findall(url.encode("utf-8", "surrogatepass"))])
    return int("1" + bits, 2).to_bytes(len(bits) // 8 + 1, "big")


def unpacked_url(data: bytes) -> str:
    """What `packed_url` was given. Raises ValueError for bytes that it never returned."""
    _, symbols, _ = _code()
    found, code = [], ""
    for bit in f"{int.from_bytes(data, 'big'):b}"[1:]:
        code += bit
        if code in symbols:
            found.append(symbols[code])
            code = ""
    if code:
        raise ValueError(f"{data.hex()} is no packed URL")
    return b"".join(found).decode("utf-8", "surrogatepass")


@cache
def _code() -> tuple[dict[bytes, str], dict[str, bytes], re.Pattern[bytes]]:
    """The bits of each symbol, the symbol of each, and what finds the symbols of a URL, the longest first."""
    lengths = json.loads((resources.files(__package__) / CODE_FILE).read_text("ascii"))
    codes: dict[bytes, str] = {}
    value = before = 0
    for bits, symbols in lengths:
        for symbol in symbols:
            value <<= bits - before
            before = bits
            codes[symbol.encode("latin-1")] = f"{value:0{bits}b}"
            value += 1
    pieces = sorted((symbol for symbol in codes if len(symbol) > 1), key=len, reverse=True)
    pattern = re.compile(b"|".join([*map(re.escape, pieces), b"."]), re.DOTALL)
    return codes, {bits: symbol for symbol, bits in codes.items()}, pattern
