"""Make the code in which the fingerprint index in Redis keeps URLs: pieces of URLs by how often pages link to them.

    python -m bench.train_url_code --out FILE       write a code; never over the packaged one
    python -m bench.train_url_code                  measure the packaged one on links of hosts

Links are those of the real pages in the folder that TRAWL_DATA names, at most so many a page. Pieces are found by
merging the most frequent pair of neighbours, again and again (byte-pair encoding; Gage, 1994).
"""

import argparse
import gzip
import heapq
import json
import random
import re
from collections import Counter
from itertools import count, pairwise
from pathlib import Path
from statistics import fmean
from urllib.parse import urldefrag

from tests.data import require
from trawl.adapters.redis.urls import packed_url

LINKS_MAX = 15
MERGED_FROM = 4000
PIECES = 64
RARE = 0.2
"""What a symbol that never occurs counts for."""
_HREF = re.compile(r'href="(https?://[^"\s<>]+)"')


def links() -> list[str]:
    """Absolute links of real pages, in one order for ever."""
    source, found = random.Random(1), set[str]()
    for path in sorted((require("wcxb-dev") / "html").glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as page:
            hrefs = sorted({urldefrag(href.replace("&amp;", "&")).url for href in _HREF.findall(page.read())})
        found.update(source.sample(hrefs, min(LINKS_MAX, len(hrefs))))
    shuffled = sorted(link for link in found if link.isascii())
    source.shuffle(shuffled)
    return shuffled


def pieces_of(urls: list[str]) -> list[str]:
    """The pairs that are merged, in their order."""
    split, pieces = [list(url) for url in urls], list[str]()
    while len(pieces) < PIECES:
        pairs = Counter(a + b for url in split for a, b in pairwise(url))
        pieces.append(max(pairs, key=lambda pair: (pairs[pair], pair)))
        split = [_merged(url, pieces[-1]) for url in split]
    return pieces


def _merged(url: list[str], piece: str) -> list[str]:
    merged, at = list[str](), 0
    while at < len(url):
        both = "".join(url[at : at + 2])
        merged.append(both if both == piece else url[at])
        at += 2 if both == piece else 1
    return merged


def lengths_of(urls: list[str], pieces: list[str]) -> list[tuple[int, list[str]]]:
    """Symbols by the bits that Huffman's construction gives them."""
    pattern = re.compile("|".join([*map(re.escape, sorted(pieces, key=len, reverse=True)), "."]), re.DOTALL)
    weights = Counter[str]()
    for url in urls:
        weights.update(pattern.findall(url))
    number = count()
    heap = [
        (weights[symbol] + RARE, next(number), {symbol: 0}) for symbol in (*map(chr, range(256)), *sorted(set(pieces)))
    ]
    heapq.heapify(heap)
    while len(heap) > 1:
        (a, _, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        deeper = {symbol: bits + 1 for symbol, bits in (left | right).items()}
        heapq.heappush(heap, (a + b, next(number), deeper))
    lengths = heap[0][2]
    return [(bits, sorted(s for s in lengths if lengths[s] == bits)) for bits in sorted(set(lengths.values()))]


def main() -> None:
    """Write a code, or measure the one that is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    urls = links()
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(lengths_of(urls, pieces_of(urls[:MERGED_FROM]))) + "\n", "ascii")
        return
    plain, packed = fmean(map(len, urls)), fmean(len(packed_url(url)) for url in urls)
    print(json.dumps({"urls": len(urls), "bytes": round(plain, 1), "bytes_packed": round(packed, 1)}))


if __name__ == "__main__":
    main()
