"""Vectors from an endpoint, against a real server that speaks the API and misbehaves when it is told to."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest

from tests.embeddings import EmbeddingsServer, Fault, Reply, answer, embeddings_server
from trawl.adapters.embedders import TEXT_CHARS_MAX, WordllamaEmbedder, open_embedder
from trawl.adapters.embeddings_endpoint import EndpointEmbedder
from trawl.errors import EmbedderError, EmbedderMismatchError, SettingsError
from trawl.settings import EmbedSettings

KEY = "sk-never-to-be-told"
TEXTS = ["the crawler waits", "a heron in the reeds", "robots.txt", "the crawler waits"]


@pytest.fixture
async def server() -> AsyncIterator[EmbeddingsServer]:
    async with embeddings_server() as running:
        yield running


@pytest.fixture
def settings(server: EmbeddingsServer) -> EmbedSettings:
    return EmbedSettings(
        url=server.url, model="tiny", api_key=KEY, dimensions=256, batch_max=3, attempts_max=3, timeout_seconds=5.0
    )


@pytest.fixture
async def embedder(settings: EmbedSettings) -> AsyncIterator[EndpointEmbedder]:
    made = EndpointEmbedder(settings)
    yield made
    await made.close()


def status(code: int, text: str = "", **headers: str) -> Fault:
    """Answers with that status."""
    return lambda _: (code, headers, text.encode())


def data_of(change: Any) -> Fault:
    """Answers with the embeddings changed."""
    return lambda data: answer({"data": change(data)})


async def failing(embedder: EndpointEmbedder, error: type[Exception] = EmbedderError) -> str:
    """The text of the error that embedding ends in; the key is never in it."""
    with pytest.raises(error) as raised:
        await embedder.embed(["one", "two"])
    assert KEY not in str(raised.value)
    assert "\n" not in str(raised.value)
    return str(raised.value)


# What it is asked, and what it answers


async def test_vectors_are_those_of_the_model_in_the_order_of_the_texts(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    vectors = await embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, await WordllamaEmbedder().embed(TEXTS), atol=1e-6)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert [request["input"] for request in server.requests] == [TEXTS[:3], TEXTS[3:]]
    assert {request["model"] for request in server.requests} == {"tiny"}
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    assert (embedder.name, embedder.dimensions) == ("tiny", 256)


async def test_nothing_is_asked_for_no_text(server: EmbeddingsServer, embedder: EndpointEmbedder) -> None:
    assert (await embedder.embed([])).shape == (0, 256)
    assert server.requests == []


async def test_an_answer_out_of_order_is_put_in_order(server: EmbeddingsServer, embedder: EndpointEmbedder) -> None:
    server.faults = [data_of(lambda data: data[::-1])]
    assert np.allclose(await embedder.embed(TEXTS[:3]), await WordllamaEmbedder().embed(TEXTS[:3]), atol=1e-6)


async def test_an_answer_without_indices_is_in_the_order_of_the_texts(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.faults = [data_of(lambda data: [{"embedding": one["embedding"]} for one in data])]
    assert np.allclose(await embedder.embed(TEXTS[:3]), await WordllamaEmbedder().embed(TEXTS[:3]), atol=1e-6)


async def test_a_vector_of_zeros_still_has_length_one(server: EmbeddingsServer, embedder: EndpointEmbedder) -> None:
    server.faults = [data_of(lambda data: [{**one, "embedding": [0.0] * 256} for one in data])]
    assert np.linalg.norm(await embedder.embed(["one"])) == 1.0


async def test_hostile_texts_are_sent_as_valid_and_bounded_ones(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    assert (await embedder.embed(["\ud800 x", "  ", "word " * 10_000])).shape == (3, 256)
    sent = server.requests[0]["input"]
    assert sent[:2] == ["? x", "."]
    assert len(sent[2]) <= TEXT_CHARS_MAX


async def test_no_key_is_sent_if_there_is_none(server: EmbeddingsServer, settings: EmbedSettings) -> None:
    embedder = EndpointEmbedder(replace(settings, api_key=""))
    await embedder.embed(["one"])
    await embedder.close()
    assert "authorization" not in server.headers[0]


# What passes


@pytest.mark.parametrize("code", [408, 429, 500, 502, 503])
async def test_what_fails_for_a_time_is_asked_again(
    server: EmbeddingsServer, embedder: EndpointEmbedder, code: int
) -> None:
    server.faults = [status(code), status(code)]
    assert np.allclose(await embedder.embed(TEXTS[:1]), await WordllamaEmbedder().embed(TEXTS[:1]), atol=1e-6)
    assert len(server.requests) == 3


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_obeyed(server: EmbeddingsServer, embedder: EndpointEmbedder, form: str) -> None:
    began = time.time()
    until = datetime.now(UTC) + timedelta(seconds=2)
    server.faults = [status(429, **{"retry-after": "1" if form == "seconds" else format_datetime(until, usegmt=True)})]
    await embedder.embed(["one"])
    assert time.time() >= (began + 1 if form == "seconds" else math.floor(until.timestamp()))


@pytest.mark.parametrize("value", ["3600", "Fri, 31 Dec 2999 23:59:59 GMT"])
async def test_a_retry_after_beyond_the_limit_ends_the_tries(
    server: EmbeddingsServer, embedder: EndpointEmbedder, value: str
) -> None:
    server.always = status(429, **{"retry-after": value})
    assert "does not serve after 1 tries" in await failing(embedder)


@pytest.mark.parametrize("value", ["soon", "-5", "", "9" * 400, "Fri, 99 Dec 2999"])
async def test_a_retry_after_that_says_nothing_is_no_reason_to_fail(
    server: EmbeddingsServer, embedder: EndpointEmbedder, value: str
) -> None:
    server.faults = [status(503, **{"retry-after": value})]
    assert (await embedder.embed(["one"])).shape == (1, 256)


async def test_a_connection_that_breaks_is_made_again(server: EmbeddingsServer, embedder: EndpointEmbedder) -> None:
    server.faults = [lambda _: (200, {"content-length": "10", "transfer-encoding": "nonsense"}, b"{")]
    assert (await embedder.embed(["one"])).shape == (1, 256)


# What does not


async def test_an_endpoint_that_always_fails_ends_in_an_error(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.always = status(500, f"the key {KEY}\nis overloaded " + "x" * 10_000)
    text = await failing(embedder)
    assert "does not serve after 3 tries (status 500: the key *** is overloaded" in text
    assert len(text) < 500
    assert len(server.requests) == 3


async def test_an_endpoint_that_never_answers_ends_in_an_error(
    server: EmbeddingsServer, settings: EmbedSettings
) -> None:
    server.always = lambda _: None
    embedder = EndpointEmbedder(replace(settings, timeout_seconds=0.2, attempts_max=2))
    assert "does not serve after 2 tries (no answer" in await failing(embedder)
    await embedder.close()


async def test_an_endpoint_that_is_not_there_ends_in_an_error(settings: EmbedSettings) -> None:
    embedder = EndpointEmbedder(replace(settings, url="http://127.0.0.1:1/v1"))
    assert "http://127.0.0.1:1/v1/embeddings does not serve after 3 tries (no answer" in await failing(embedder)
    await embedder.close()


@pytest.mark.parametrize(
    ("code", "headers", "told"),
    [
        (401, {}, "embed.api_key"),
        (403, {}, "embed.api_key"),
        (404, {}, "embed.url and embed.model"),
        (301, {"location": "http://127.0.0.1:1/"}, "redirects are not followed"),
    ],
)
async def test_a_refusal_is_told_at_once_and_says_what_to_do(
    server: EmbeddingsServer, embedder: EndpointEmbedder, code: int, headers: dict[str, str], told: str
) -> None:
    server.always = status(code, f"Incorrect API key provided: {KEY}", **headers)
    assert told in await failing(embedder)
    assert len(server.requests) == 1


def nothing(_: Any) -> Reply:
    return 200, {}, b""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (nothing, "no list of embeddings"),
        (lambda _: answer({"data": "none"}), "no list of embeddings"),
        (lambda _: answer({"error": "none"}), "no list of embeddings"),
        (lambda _: (200, {}, b"\xff\xfe"), "no list of embeddings"),
        (data_of(lambda data: data[:1]), "not those of the 2 texts"),
        (data_of(lambda data: [*data, {**data[0], "index": 2}]), "not those of the 2 texts"),
        (data_of(lambda data: [data[0], data[0]]), "not those of the 2 texts"),
        (data_of(lambda data: [{"embedding": one["embedding"]} for one in data[:1]]), "1 embeddings to 2 texts"),
        (data_of(lambda _: []), "0 embeddings to 2 texts"),
        (data_of(lambda data: [{**one, "embedding": [math.nan] * 256} for one in data]), "no list of embeddings"),
        (data_of(lambda data: [{**one, "embedding": [None] * 256} for one in data]), "no list of embeddings"),
        (data_of(lambda data: [{**one, "embedding": [1e308] * 256} for one in data]), "not finite"),
    ],
)
async def test_an_answer_that_is_no_vectors_is_an_error(
    server: EmbeddingsServer, embedder: EndpointEmbedder, fault: Fault, told: str
) -> None:
    server.always = fault
    assert told in await failing(embedder)


@pytest.mark.parametrize("length", [0, 255, 257])
async def test_other_dimensions_than_those_of_the_settings_are_a_mismatch(
    server: EmbeddingsServer, embedder: EndpointEmbedder, length: int
) -> None:
    server.always = data_of(lambda data: [data[0], {**data[1], "embedding": [0.5] * length}])
    text = await failing(embedder, EmbedderMismatchError)
    assert "embed.dimensions is 256" in text


async def test_an_answer_without_end_is_cut_off(server: EmbeddingsServer, embedder: EndpointEmbedder) -> None:
    server.always = lambda _: (200, {}, b" " * 3_000_000)
    assert "does not serve" in await failing(embedder)
    chunk = b"186a0\r\n" + b" " * 100_000 + b"\r\n"
    server.always = lambda _: (200, {"transfer-encoding": "chunked"}, chunk * 30)
    assert "does not serve" in await failing(embedder)


# Texts that are too long for the model


async def test_texts_that_are_too_long_are_cut_and_the_others_are_not(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.words_max = 100
    long = " ".join(f"word{number}" for number in range(350))
    vectors = await embedder.embed(["one", long, "two"])
    assert np.allclose(vectors[[0, 2]], await WordllamaEmbedder().embed(["one", "two"]), atol=1e-6)
    embedded = max((text for request in server.requests for text in request["input"] if text in long), key=len)
    assert long.startswith(embedded)
    assert len(server.requests) < 10


async def test_an_endpoint_that_refuses_every_text_ends_in_an_error(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.always = status(400, json.dumps({"error": f"unknown model tiny for {KEY}"}))
    text = await failing(embedder)
    assert "embed.model ('tiny')" in text
    assert "unknown model tiny for ***" in text
    assert len(server.requests) == 2


# Lives


async def test_many_calls_at_once(embedder: EndpointEmbedder) -> None:
    texts = [f"text {number}" for number in range(30)]
    found = await asyncio.gather(*[embedder.embed([text]) for text in texts])
    assert np.allclose(np.concatenate(found), await WordllamaEmbedder().embed(texts), atol=1e-6)


async def test_a_closed_embedder_opens_again(embedder: EndpointEmbedder) -> None:
    first = await embedder.embed(["one"])
    await embedder.close()
    assert np.array_equal(await embedder.embed(["one"]), first)


async def test_a_cancelled_call_leaves_the_embedder_usable(
    server: EmbeddingsServer, embedder: EndpointEmbedder
) -> None:
    server.faults = [lambda _: None]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(embedder.embed(["one"]), 0.2)
    assert (await embedder.embed(["one"])).shape == (1, 256)


# Settings


def test_the_settings_decide_which_embedder_is_opened(settings: EmbedSettings) -> None:
    assert isinstance(open_embedder(EmbedSettings()), WordllamaEmbedder)
    assert isinstance(open_embedder(settings), EndpointEmbedder)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"url": "api.example/v1"}, "embed.url"),
        ({"url": "ftp://api.example/v1"}, "embed.url"),
        ({"url": "http://api.example/v1?x=1"}, "embed.url"),
        ({"url": "http://user:secret@api.example/v1"}, "embed.api_key"),
        ({"model": ""}, "embed.model"),
        ({"dimensions": 0}, "embed.dimensions"),
        ({"api_key": "a\r\nb"}, "embed.api_key"),
        ({"ca_file": "/no/such.pem"}, "embed.ca_file"),
    ],
)
def test_settings_that_cannot_be_used_are_named(settings: EmbedSettings, fields: dict[str, Any], told: str) -> None:
    with pytest.raises(SettingsError, match=told) as raised:
        open_embedder(replace(settings, **fields))
    assert "secret" not in str(raised.value)
    assert KEY not in str(raised.value)
