"""Precision and recall of near-duplicate fingerprints on real texts; one JSON line for each Hamming threshold.

Duplicates: each text of the corpus with 0.1, 1 and 5 % of its words (one at the least) replaced by words of other
texts. Non-duplicates: random pairs of different texts. `corpus_pairs` counts the pairs among all texts, each with
each, within the threshold: real near-duplicates of the corpus, or false alarms; they are few enough to be read with
`--show`. Usage: python bench/neardup.py [--show]
"""

import json
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trawl.fingerprint import NEAR_DUPLICATE_TOKENS_MIN, SimHash, hamming, simhash64

DATA = Path(os.environ.get("TRAWL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
EDITS = (0.001, 0.01, 0.05)
THRESHOLDS = (2, 3, 4)


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the corpus."""

    url: str
    words: list[str]
    simhash: SimHash


def corpus() -> list[Text]:
    """The ground-truth texts that are long enough to be compared by fingerprint."""
    folder = DATA / "wcxb-dev" / "ground-truth"
    if not folder.is_dir():
        sys.exit(f"{folder} is missing; set TRAWL_DATA to the folder of the public data sets")
    texts = []
    for path in sorted(folder.glob("*.json")):
        page = json.loads(path.read_bytes())
        content = page["ground_truth"].get("main_content") or ""
        simhash = simhash64(content)
        if simhash.tokens >= NEAR_DUPLICATE_TOKENS_MIN:
            texts.append(Text(page.get("url") or path.stem, content.split(), simhash))
    return texts


def edited(words: list[str], share: float, vocabulary: list[str], rng: random.Random) -> str:
    """The text with that share of its words, one at the least, replaced."""
    changed = list(words)
    for at in rng.sample(range(len(words)), max(1, round(share * len(words)))):
        changed[at] = rng.choice(vocabulary)
    return " ".join(changed)


def corpus_distances(texts: list[Text]) -> list[tuple[int, int, int]]:
    """The pairs of the corpus within the largest threshold, as (distance, index, index)."""
    values = np.array([text.simhash.value for text in texts], dtype=np.int64).view(np.uint64)
    pairs = []
    for i in range(1, len(values)):
        bits = np.unpackbits((values[:i] ^ values[i]).view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)
        pairs += [(int(bits[j]), i, int(j)) for j in np.flatnonzero(bits <= max(THRESHOLDS))]
    return pairs


def main() -> None:
    """Print one JSON line for each threshold."""
    rng = random.Random(1)
    texts = corpus()
    vocabulary = [word for text in texts for word in rng.sample(text.words, min(20, len(text.words)))]
    start = time.process_time()
    distances = {
        share: [hamming(t.simhash.value, simhash64(edited(t.words, share, vocabulary, rng)).value) for t in texts]
        for share in EDITS
    }
    pairs = [rng.sample(texts, 2) for _ in range(len(texts) * len(EDITS))]
    different = [hamming(one.simhash.value, other.simhash.value) for one, other in pairs]
    near = corpus_distances(texts)
    for threshold in THRESHOLDS:
        found = {share: sum(d <= threshold for d in distances[share]) for share in EDITS}
        alarms = sum(d <= threshold for d in different)
        line = {
            "threshold": threshold,
            "texts": len(texts),
            **{f"recall_{share * 100:g}pct": round(found[share] / len(texts), 3) for share in EDITS},
            "precision": round(sum(found.values()) / max(1, sum(found.values()) + alarms), 4),
            "false_alarms": alarms,
            "different_pairs": len(pairs),
            "different_bits_mean": round(float(np.mean(different)), 1),
            "corpus_pairs": sum(distance <= threshold for distance, _, _ in near),
            "cpu_seconds": round(time.process_time() - start, 1),
        }
        print(json.dumps(line))
    if "--show" in sys.argv[1:]:
        for distance, i, j in sorted(near):
            print(distance, texts[i].url, texts[j].url, file=sys.stderr)


if __name__ == "__main__":
    main()
