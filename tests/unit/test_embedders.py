"""The packaged embedding model: offline, exact, quick to load."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from trawl.adapters import embedders
from trawl.adapters.embedders import TEXT_CHARS_MAX, WordllamaEmbedder
from trawl.errors import SettingsError


@pytest.fixture(scope="module")
def embedder() -> WordllamaEmbedder:
    return WordllamaEmbedder()


async def test_vectors_are_unit_rows_of_256_float32(embedder: WordllamaEmbedder) -> None:
    texts = ["a polite crawler", "", " ", "漢字とかな", "\ud800 lone surrogate", "x" * 100_000, "\x00"]
    vectors = await embedder.embed(texts)
    assert vectors.shape == (len(texts), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert (await embedder.embed([])).shape == (0, 256)


async def test_a_text_has_the_same_vector_alone_and_in_any_batch(embedder: WordllamaEmbedder) -> None:
    texts = ["short", "a much longer text " * 50, "déjà vu"]
    together = await embedder.embed(texts)
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, (await embedder.embed([text]))[0])


async def test_vectors_are_those_of_the_packages_own_loader(embedder: WordllamaEmbedder) -> None:
    texts = ["Crawl-delay of robots.txt, a\u2581mark", "a recipe (for bread)!", "les vins de Bourgogne 漢字 😀 naïve"]
    script = (
        "import pathlib, sys, wordllama\n"
        "model = wordllama.WordLlama.load(cache_dir=pathlib.Path(wordllama.__file__).parent, disable_download=True)\n"
        "sys.stdout.buffer.write(model.embed(sys.argv[1:], norm=True).astype('<f4').tobytes())\n"
    )
    command = [sys.executable, "-c", script, *texts]
    theirs = (await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)).stdout
    expected = np.frombuffer(theirs, dtype="<f4").reshape(len(texts), 256)
    assert np.allclose(await embedder.embed(texts), expected, atol=1e-6)


async def test_remembered_words_never_change_a_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["one two three", "two \u2581marked wo\u2581rds three", "\u2581", "three one", "漢字 two"]
    fresh = [(await WordllamaEmbedder().embed([text]))[0] for text in texts]
    one = WordllamaEmbedder()
    for limit in (50_000, 2):
        monkeypatch.setattr(embedders, "WORDS_MAX", limit)
        assert np.allclose([(await one.embed([text]))[0] for text in texts], fresh, atol=1e-6)
        assert np.allclose(await one.embed(texts), fresh, atol=1e-6)


async def test_related_texts_are_closer_than_unrelated_ones(embedder: WordllamaEmbedder) -> None:
    one, near, far = await embedder.embed(
        ["How to bake sourdough bread at home", "A recipe for homemade loaves", "Kernel memory allocator internals"]
    )
    assert one @ near > one @ far + 0.1


async def test_only_the_beginning_of_a_hostile_text_is_embedded(embedder: WordllamaEmbedder) -> None:
    text = "word " * (TEXT_CHARS_MAX // 5)
    one, other = await embedder.embed([text, text + "another " * 10_000])
    assert np.array_equal(one, other)


async def test_a_missing_model_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"l2_supercat_tokenizer_config\.json is missing"):
        await WordllamaEmbedder(tmp_path).embed(["x"])


async def test_a_batch_of_ten_chunks_takes_a_few_milliseconds(embedder: WordllamaEmbedder) -> None:
    chunks = ["the crawl delay of a host is kept by every fetcher that asks " * 16] * 10  # 1,000 characters each
    await embedder.embed(chunks)
    best = min([await _seconds(embedder, chunks) for _ in range(5)])
    assert best < 0.05, f"{best * 1000:.1f} ms; about 4 ms on an idle core"


async def _seconds(embedder: WordllamaEmbedder, chunks: list[str]) -> float:
    start = time.perf_counter()
    await embedder.embed(chunks)
    return time.perf_counter() - start


def test_loading_touches_no_network_and_no_http_client() -> None:
    script = (
        "import asyncio, socket, sys\n"
        "from trawl.adapters.embedders import WordllamaEmbedder\n"
        "def refuse(*args, **kwargs): raise AssertionError('the network was touched')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse\n"
        "assert asyncio.run(WordllamaEmbedder().embed(['x'])).shape == (1, 256)\n"
        "loaded = {'requests', 'httpx', 'huggingface_hub', 'wordllama'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
