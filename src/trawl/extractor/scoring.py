"""Which segments are main content: two small learned networks over the segments' features (pure).

The first network gives each segment a chance on its own; the second sees these chances around it (neighbours, and the
mean within each ancestor), so that decisions agree with their surroundings. `scorer.npz` holds the weights;
`bench/train_scorer.py` makes it and measures it on pages that it was not trained on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from trawl.extractor.content import Segment
from trawl.extractor.features import Matrix, groups_of, matrix

THRESHOLD: Final = 0.4
"""A segment at least this likely is kept."""
_MODEL: Final = "scorer.npz"


@dataclass(frozen=True, slots=True)
class Network:
    """Inputs normalised, two hidden layers of rectified units, one logistic output."""

    mean: Matrix
    scale: Matrix
    params: tuple[Matrix, ...]

    def probabilities(self, x: Matrix) -> Matrix:
        """The chance of each row, shape (rows,)."""
        w1, b1, w2, b2, w3, b3 = self.params
        hidden = np.clip((x - self.mean) * self.scale, -6, 6) @ w1 + b1
        hidden = np.maximum(hidden, 0) @ w2 + b2
        logits = (np.maximum(hidden, 0) @ w3 + b3)[:, 0]
        chances: Matrix = (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).astype(np.float32)
        return chances


@dataclass(frozen=True, slots=True)
class Model:
    """The two networks."""

    first: Network
    second: Network

    def probabilities(self, x: Matrix, groups: Sequence[npt.NDArray[np.intp]]) -> Matrix:
        """The chance of each segment of one page."""
        return self.second.probabilities(context(x, self.first.probabilities(x), groups))

    def save(self, path: Path) -> None:
        """Write the weights, in half precision."""
        arrays = {
            f"{name}_{index}": array.astype(np.float16 if index > 1 else np.float32)
            for name, network in (("first", self.first), ("second", self.second))
            for index, array in enumerate((network.mean, network.scale, *network.params))
        }
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


@cache
def packaged_model() -> Model:
    """The model that comes with the package, loaded once per process."""
    with resources.files("trawl.extractor").joinpath(_MODEL).open("rb") as file, np.load(file) as arrays:
        networks = []
        for name in ("first", "second"):
            mean, scale, *params = (arrays[f"{name}_{index}"].astype(np.float32) for index in range(8))
            networks.append(Network(mean, scale, tuple(params)))
    return Model(*networks)


def context(x: Matrix, chances: Matrix, groups: Sequence[npt.NDArray[np.intp]]) -> Matrix:
    """The features with the chances around each segment: its own, neighbours', ancestors' means, the page's."""
    weights = np.expm1(x[:, 0]) + 1.0
    padded = np.pad(chances, 4, mode="edge")
    count = len(chances)
    near = [padded[4 + offset : 4 + offset + count] for offset in (-4, -3, -2, -1, 1, 2, 3, 4)]
    means = []
    for numbers in groups:
        total = np.bincount(numbers, weights)
        plain = np.bincount(numbers)
        means.append((np.bincount(numbers, weights * chances) / total)[numbers])
        means.append((np.bincount(numbers, chances) / plain)[numbers])
    mass = weights * chances
    before = np.cumsum(mass) / max(mass.sum(), 1e-6)
    page = np.full(count, mass.sum() / weights.sum())
    peak = np.full(count, chances.max())
    return np.column_stack([x, chances, *near, *means, before, page, peak]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Selection:
    """The segments to keep, in document order, and how clear the decision was, from 0 to 1."""

    kept: list[Segment]
    margin: float


def select(found: list[Segment], hints: Sequence[float]) -> Selection:
    """Choose the main content; a page on which nothing is likely keeps its likeliest segments."""
    if not found:
        return Selection([], 0.0)
    groups = groups_of(found)
    chances = packaged_model().probabilities(matrix(found, groups, hints), groups)
    threshold = min(THRESHOLD, float(chances.max()))
    kept = [segment for segment, chance in zip(found, chances, strict=True) if chance >= threshold]
    sizes = np.array([segment.chars for segment in found], dtype=np.float32) + 1
    margin = float((np.abs(chances - 0.5) * 2 * sizes).sum() / sizes.sum())
    return Selection(kept, margin)
