"""Embedding models behind the Embedder port."""

import asyncio
import importlib.util
import os
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from safetensors import safe_open
from tokenizers import Tokenizer

from trawl.errors import SettingsError
from trawl.ports import Embedder, Vectors
from trawl.settings import EmbedSettings

TEXT_CHARS_MAX: Final = 10_000
"""Only this much of a text is embedded: far more than a chunk, and a bound on a hostile query."""

WORDS_MAX: Final = 50_000
"""The memory for tokenised words is emptied when it holds more: about 20 MB."""

_WORD_MARK: Final = "\u2581"
_CONFIG: Final = "l2_supercat"
_DIMENSIONS: Final = 256


class _Model:
    """A tokenizer with a memory for words, and one vector per token, shape (tokens, dimensions).

    The tokenizer's merges never cross a space (SentencePiece marks word starts), so a text's tokens are those of its
    words one after the other, and common words need not be tokenised again. That halves the cost of a chunk.
    """

    def __init__(self, tokenizer: Tokenizer, table: npt.NDArray[np.float32]) -> None:
        self._tokenizer = tokenizer
        self._table = table
        self._openers = frozenset(key for token, key in tokenizer.get_vocab().items() if token.startswith(_WORD_MARK))
        self._ids: dict[str, list[int]] = {}

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """The mean token vector of each text, scaled to length 1; runs of white space count as one space."""
        split = [text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode("utf-8").split() for text in texts]
        self._learn({word for words in split for word in words})
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        for row, words in enumerate(split):
            ids = list(chain.from_iterable(map(self._ids.__getitem__, words)))
            if ids:
                # A product with ones sums the rows faster than sum(); the length is scaled away below.
                vectors[row] = np.ones(len(ids), dtype=np.float32) @ self._table.take(ids, axis=0)
            else:
                vectors[row, 0] = 1.0  # no text has no direction; any one keeps cosine defined
        if len(self._ids) > WORDS_MAX:
            self._ids.clear()
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return vectors

    def _learn(self, words: Iterable[str]) -> None:
        """Remember the tokens of words: of all at once, parted where a token begins a word."""
        unknown = [word for word in words if word not in self._ids]
        ids = self._encode(" ".join(unknown))
        starts = [at for at, token in enumerate(ids) if token in self._openers]
        if len(starts) == len(unknown):
            self._ids.update(
                (word, ids[i:j]) for word, (i, j) in zip(unknown, pairwise([*starts, len(ids)]), strict=True)
            )
        else:  # a word holds the mark that the tokenizer puts before words
            self._ids.update((word, self._encode(word)) for word in unknown)

    def _encode(self, text: str) -> list[int]:
        return self._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids


class WordllamaEmbedder:
    """The static token embeddings that the wordllama package ships, mean-pooled: 256 dimensions, no network.

    The package's files are read directly: its own loader imports an HTTP client, sets up the root logger, and pads each
    batch to its longest text. The vectors are the same, except that a line break counts as a space. Loading takes about
    0.15 s and happens at the first use, in the thread that embeds; embedding runs outside the event loop. The CPU time
    spent so far is in `cpu_seconds`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """Use the files of the installed wordllama package, or of a folder laid out like it."""
        self._folder = folder
        self._lock = threading.Lock()
        self._model: _Model | None = None
        self.cpu_seconds = 0.0

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

    async def close(self) -> None:
        """Forget the model; it is loaded again at the next use."""
        self._model = None

    def _embed(self, texts: list[str]) -> Vectors:
        began = time.thread_time()
        with self._lock:
            if self._model is None:
                self._model = _load(self._folder or _package_folder())
            vectors = self._model.vectors(texts)
        self.cpu_seconds += time.thread_time() - began
        return vectors


def open_embedder(settings: EmbedSettings) -> Embedder:
    """The packaged model, or the endpoint that the settings name; raises SettingsError for settings of no use."""
    if not settings.url:
        return WordllamaEmbedder()
    from trawl.adapters.embeddings_endpoint import EndpointEmbedder  # noqa: PLC0415 - few need its HTTP client

    return EndpointEmbedder(settings)


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
