"""A real server that speaks the embeddings API, with the packaged model behind it, and that misbehaves when told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from trawl.adapters.embedders import WordllamaEmbedder

Reply = tuple[int, dict[str, str], bytes]
"""Status, headers, body."""
Fault = Callable[[list[dict[str, Any]]], Reply | None]
"""What is answered instead of these embeddings; None for nothing at all, for ever."""


@dataclass
class EmbeddingsServer:
    """What it was asked, and what it answers."""

    url: str
    faults: list[Fault] = field(default_factory=list)
    """One for each of the next requests."""
    always: Fault | None = None
    """What every request is answered once `faults` are used up."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """The bodies, in the order of arrival."""
    headers: list[dict[str, str]] = field(default_factory=list)
    words_max: int = 0
    """A request with a text of more words than this is refused, as by a model with a short window; 0 is no limit."""


def answer(data: Any, status: int = 200, **headers: str) -> Reply:
    """A reply with a JSON body."""
    return status, {"content-type": "application/json", **headers}, json.dumps(data).encode()


@asynccontextmanager
async def embeddings_server() -> AsyncIterator[EmbeddingsServer]:
    """Start a server on loopback; it ends with the context."""
    model = WordllamaEmbedder()
    state = EmbeddingsServer("")
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while (request := await _request(reader)) is not None:
                reply = await _reply(state, model, *request)
                if reply is None:
                    await asyncio.Event().wait()
                    return
                writer.write(_encoded(*reply))
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    state.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield state
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes] | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    line, *rest = head.splitlines()
    headers = {name.lower(): value.strip() for name, _, value in (item.partition(":") for item in rest if item)}
    return line, headers, await reader.readexactly(int(headers.get("content-length", "0")))


async def _reply(
    state: EmbeddingsServer, model: WordllamaEmbedder, line: str, headers: dict[str, str], body: bytes
) -> Reply | None:
    asked = json.loads(body)
    state.requests.append(asked)
    state.headers.append(headers)
    if line != "POST /v1/embeddings HTTP/1.1":
        return answer({"error": f"no such path: {line}"}, 404)
    if state.words_max and any(len(text.split()) > state.words_max for text in asked["input"]):
        return answer({"error": "input too long for the model"}, 413)
    vectors = await model.embed(asked["input"])
    data = [
        {"object": "embedding", "index": index, "embedding": (3.0 * row).tolist()}
        for index, row in enumerate(vectors.astype(float))
    ]
    fault = state.faults.pop(0) if state.faults else state.always
    if fault is not None:
        return fault(data)
    return answer({"object": "list", "data": data, "model": asked["model"], "usage": {"total_tokens": 1}})


def _encoded(status: int, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in headers.items())]
    if "transfer-encoding" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
