"""Train the segment scorer: features of real pages, labels from the ground truth, two small networks, numpy only.

    python bench/train_scorer.py --out src/trawl/extractor/scorer.npz       train on all pages, write the model
    python bench/train_scorer.py --folds 5                                  out-of-fold F1, split by host

A segment's label is the share of its tokens that the ground truth holds in the same order of three. Pages weigh the
same, segments by their length. The second network sees the first one's opinion of the neighbours.
"""

import argparse
import json
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))
from bench import extract as bench
from trawl.extractor.charset import decode
from trawl.extractor.content import Segment, segments
from trawl.extractor.features import groups_of, matrix
from trawl.extractor.page_type import hints
from trawl.extractor.scoring import Model, Network, context
from trawl.extractor.structured import structured_data
from trawl.extractor.tree import parse
from trawl.settings import ExtractSettings

Array = npt.NDArray[np.float32]


@dataclass(slots=True)
class Sample:
    """One page ready for training."""

    page: bench.BenchPage
    found: list[Segment]
    x: Array
    groups: list[npt.NDArray[np.intp]]
    labels: Array
    tokens: list[list[str]]
    weights: Array


def sample_of(page: bench.BenchPage) -> Sample | None:
    """Features and labels of a page, or None if it has no segment."""
    settings = ExtractSettings()
    text = decode(page.html).text
    tree = parse(text.encode("utf-8", "replace"), nodes_max=settings.nodes_max, depth_max=settings.depth_max)
    found = segments(tree.body)
    if not found:
        return None
    groups = groups_of(found)
    data = structured_data(tree, settings.structured_bytes_max)
    x = matrix(found, groups, hints(page.url, data))
    tokens = [bench.WORD.findall(segment.text.lower()) for segment in found]
    labels = labels_of(tokens, page.truth)
    lengths = np.array([len(words) for words in tokens], dtype=np.float32)
    weights = np.sqrt(lengths) + 0.05
    return Sample(page, found, x, groups, labels, tokens, (weights / weights.sum()).astype(np.float32))


def labels_of(tokens: list[list[str]], truth: str) -> Array:
    """The share of each segment's trigrams (or the whole of a shorter one) that the ground truth holds."""
    want = bench.WORD.findall(truth.lower())
    grams = {tuple(want[i : i + 3]) for i in range(len(want) - 2)}
    lines = {tuple(bench.WORD.findall(line.lower())) for line in truth.split("\n")}
    joined = " " + " ".join(want) + " "
    labels = []
    for words in tokens:
        if len(words) >= 4:
            own = [tuple(words[i : i + 3]) for i in range(len(words) - 2)]
            labels.append(sum(gram in grams for gram in own) / len(own))
        elif words:
            whole = tuple(words) in lines
            labels.append(1.0 if whole else 0.7 if len(words) > 1 and f" {' '.join(words)} " in joined else 0.0)
        else:
            labels.append(0.0)
    return np.array(labels, dtype=np.float32)


def fit(xs: Array, ys: Array, ws: Array, *, epochs: int, seed: int, hidden: tuple[int, int] = (48, 16)) -> Network:
    """A network of two hidden layers, by Adam on weighted cross entropy with soft labels and weight decay."""
    rng = np.random.default_rng(seed)
    mean, deviation = xs.mean(axis=0), xs.std(axis=0) + 1e-3
    sizes = (xs.shape[1], *hidden, 1)
    params = []
    for a, b in pairwise(sizes):
        params += [(rng.standard_normal((a, b)) * np.sqrt(2 / a)).astype(np.float32), np.zeros(b, dtype=np.float32)]
    moments = [(np.zeros_like(p), np.zeros_like(p)) for p in params]
    normal = np.clip((xs - mean) / deviation, -6, 6).astype(np.float32)
    weights = ws / ws.mean()
    step = 0
    batch = 4096
    total = epochs * (len(xs) // batch + 1)
    for _ in range(epochs):
        order = rng.permutation(len(xs))
        for start in range(0, len(xs), batch):
            rows = order[start : start + batch]
            grads = _gradients(params, normal[rows], ys[rows], weights[rows], rng)
            step += 1
            rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / total)) + 1e-5
            for index, (p, g) in enumerate(zip(params, grads, strict=True)):
                m = 0.9 * moments[index][0] + 0.1 * g
                v = 0.999 * moments[index][1] + 0.001 * g * g
                moments[index] = (m, v)
                move = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
                params[index] = (p - rate * (move + 1e-3 * p * (p.ndim > 1))).astype(np.float32)
    return Network(mean.astype(np.float32), (1 / deviation).astype(np.float32), tuple(params))


def _gradients(params: list[Array], x: Array, y: Array, w: Array, rng: np.random.Generator) -> list[Array]:
    w1, b1, w2, b2, w3, b3 = params
    x = x * ((rng.random(x.shape) > 0.05) / 0.95).astype(np.float32)
    h1 = np.maximum(x @ w1 + b1, 0)
    drop = ((rng.random(h1.shape) > 0.2) / 0.8).astype(np.float32)
    h1 = h1 * drop
    h2 = np.maximum(h1 @ w2 + b2, 0)
    p = 1 / (1 + np.exp(-np.clip(h2 @ w3 + b3, -30, 30)))[:, 0]
    d3 = ((p - y) * w / len(y))[:, None].astype(np.float32)
    d2 = (d3 @ w3.T) * (h2 > 0)
    d1 = (d2 @ w2.T) * (h1 > 0) * drop
    return [x.T @ d1, d1.sum(0), h1.T @ d2, d2.sum(0), h2.T @ d3, d3.sum(0)]


def train(samples: list[Sample], *, epochs: int, seed: int) -> Model:
    """Both networks; the second learns from opinions that the first gave on pages it had not seen."""
    xs, ys, ws = (np.concatenate(parts) for parts in zip(*((s.x, s.labels, s.weights) for s in samples), strict=True))
    first = fit(xs, ys, ws, epochs=epochs, seed=seed)
    halves = [half_of(sample.page) for sample in samples]
    opinions: list[Array] = [np.empty(0, dtype=np.float32)] * len(samples)
    for side in (0, 1):
        seen = [sample for sample, half in zip(samples, halves, strict=True) if half != side]
        x, y, w = (np.concatenate(p) for p in zip(*((s.x, s.labels, s.weights) for s in seen), strict=True))
        partial = fit(x, y, w, epochs=epochs, seed=seed + 1)
        for index, sample in enumerate(samples):
            if halves[index] == side:
                opinions[index] = partial.probabilities(sample.x)
    wide = np.concatenate([context(s.x, o, s.groups) for s, o in zip(samples, opinions, strict=True)])
    return Model(first, fit(wide, ys, ws, epochs=epochs, seed=seed + 2))


def host_number(page: bench.BenchPage) -> int:
    """A stable number of the page's host, for splits."""
    return int.from_bytes((urlsplit(page.url).hostname or page.name).encode(), "big") % 1_000_003


def half_of(page: bench.BenchPage) -> int:
    """The half of the pages, by host, that a page belongs to."""
    return (host_number(page) // 7_919) % 2


def evaluate(samples: list[Sample], model: Model, thresholds: list[float]) -> dict[float, list[tuple[str, float]]]:
    """F1 of each page at each threshold, from the segments' own text."""
    results: dict[float, list[tuple[str, float]]] = defaultdict(list)
    for sample in samples:
        chances = model.probabilities(sample.x, sample.groups)
        for threshold in thresholds:
            text = " ".join(s.text for s, chance in zip(sample.found, chances, strict=True) if chance >= threshold)
            results[threshold].append((sample.page.page_type, bench.bag_scores(sample.page.truth, text)[0]))
    return results


def report(results: dict[float, list[tuple[str, float]]]) -> None:
    """Mean F1 by threshold and page type."""
    for threshold, rows in sorted(results.items()):
        by_type: dict[str, list[float]] = defaultdict(list)
        for kind, value in rows:
            by_type[kind].append(value)
        print(
            json.dumps(
                {
                    "threshold": threshold,
                    "f1": round(fmean(value for _, value in rows), 4),
                    **{kind: round(fmean(values), 4) for kind, values in sorted(by_type.items())},
                }
            ),
            flush=True,
        )


def main() -> None:
    """Train, or cross-validate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    samples = [sample for page in bench.wcxb(arguments.every) if (sample := sample_of(page)) is not None]
    thresholds = [0.3, 0.35, 0.4, 0.45, 0.5]
    print(f"{len(samples)} pages, {sum(len(s.found) for s in samples)} segments, {samples[0].x.shape[1]} features")
    oracle = [
        bench.bag_scores(s.page.truth, " ".join(p.text for p, y in zip(s.found, s.labels, strict=True) if y > 0.4))[0]
        for s in samples
    ]
    print("with the labels themselves:", round(fmean(oracle), 4))
    if arguments.folds:
        merged: dict[float, list[tuple[str, float]]] = defaultdict(list)
        for fold in range(arguments.folds):
            inside = [s for s in samples if host_number(s.page) % arguments.folds != fold]
            outside = [s for s in samples if host_number(s.page) % arguments.folds == fold]
            model = train(inside, epochs=arguments.epochs, seed=7 * fold)
            for threshold, rows in evaluate(outside, model, thresholds).items():
                merged[threshold].extend(rows)
            print("fold", fold, flush=True)
        report(merged)
    if arguments.out:
        model = train(samples, epochs=arguments.epochs, seed=1)
        model.save(arguments.out)
        report(evaluate(samples, model, thresholds))


if __name__ == "__main__":
    main()
