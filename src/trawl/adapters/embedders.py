"""Embedding models behind the Embedder port."""

import asyncio
import importlib.util
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from tokenizers import Tokenizer

from trawl.errors import SettingsError
from trawl.ports import Vectors

TEXT_CHARS_MAX: Final = 10_000
"""Only this much of a text is embedded: far more than a chunk, and a bound on a hostile query."""

_CONFIG: Final = "l2_supercat"
_DIMENSIONS: Final = 256


@dataclass(frozen=True, slots=True)
class _Model:
    """A tokenizer and one vector per token, shape (tokens, dimensions)."""

    tokenizer: Tokenizer
    table: npt.NDArray[np.float32]


class WordllamaEmbedder:
    """The static token embeddings that the wordllama package ships, mean-pooled: 256 dimensions, no network.

    The package's files are read directly: its own loader imports a HTTP client, sets up the root logger, and pads each
    batch to its longest text. The vectors are the same. Loading takes about 0.15 s and happens at the first use, in
    the thread that embeds; embedding runs outside the event loop.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Use the files of the installed wordllama package, or of a folder laid out like it."""
        self._folder = folder
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def name(self) -> str:
        """The model, its size and the version of its weights."""
        return f"wordllama-{_CONFIG}-{_DIMENSIONS}"

    @property
    def dimensions(self) -> int:
        """256."""
        return _DIMENSIONS

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text, float32; raises SettingsError if the model's files are missing."""
        if not texts:
            return np.empty((0, _DIMENSIONS), dtype=np.float32)
        return await asyncio.to_thread(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Vectors:
        model = self._loaded()
        readable = [text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode("utf-8") for text in texts]
        vectors = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for row, encoding in enumerate(model.tokenizer.encode_batch_fast(readable, add_special_tokens=False)):
            if encoding.ids:
                vectors[row] = model.table[np.array(encoding.ids, dtype=np.intp)].mean(axis=0)
            else:
                vectors[row, 0] = 1.0  # no text has no direction; any one keeps cosine defined
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return vectors

    def _loaded(self) -> _Model:
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder or _package_folder())
            return self._model


def _package_folder() -> Path:
    """Where the wordllama package is, without importing it."""
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SettingsError("the package wordllama is not installed; install it, or configure another embedder")
    return Path(spec.origin).parent


def _load(folder: Path) -> _Model:
    # One thread tokenises a batch: the other cores extract. It must be said before the first batch.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    tokens = folder / "tokenizers" / f"{_CONFIG}_tokenizer_config.json"
    weights = folder / "weights" / f"{_CONFIG}_{_DIMENSIONS}.safetensors"
    for path in (tokens, weights):
        if not path.is_file():
            raise SettingsError(f"the embedding model's file {path} is missing; install wordllama 0.4 again")
    tokenizer = Tokenizer.from_file(str(tokens))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    with safe_open(weights, framework="np") as file:
        return _Model(tokenizer, np.ascontiguousarray(file.get_tensor("embedding.weight"), dtype=np.float32))
