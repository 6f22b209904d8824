"""Vectors from any embeddings endpoint of the form of OpenAI's, over libcurl."""

import asyncio
import random
import re
import time
from collections.abc import Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
import numpy as np
import numpy.typing as npt
from curl_cffi import CurlOpt
from curl_cffi.requests import AsyncSession, Response
from curl_cffi.requests.exceptions import RequestException

from trawl.adapters.embedders import TEXT_CHARS_MAX
from trawl.errors import EmbedderError, EmbedderMismatchError, SettingsError
from trawl.ports import Vectors
from trawl.settings import EmbedSettings

_FIRST_WAIT_SECONDS: Final = 0.25
_BUSY: Final = frozenset({408, 409, 425, 429})
"""Besides every 5xx: what may be answered otherwise the next time."""
_TOO_LONG: Final = frozenset({400, 413, 422})
"""What servers answer to a text, or a batch, that is longer than their model takes."""
_TEXT_CHARS_MIN: Final = 200
"""A text that is refused is not cut any further: no model is so short-sighted, so its length is not why."""
_NUMBER_BYTES: Final = 32
_ANSWER_BYTES: Final = 1_000_000
"""An answer may have these bytes, and as many for each number that is asked for."""
_SHOWN_CHARS: Final = 200
_LENGTH_MIN: Final = 1e-9
_NUMBER_MAX: Final = 1e30
"""No model gives larger numbers, and their squares must not overflow."""
_SPACE: Final = re.compile(r"\s+")


class _Embedding(msgspec.Struct):
    embedding: list[float]
    index: int = -1


class _Answer(msgspec.Struct):
    data: list[_Embedding]


class _TooLongError(Exception):
    """The endpoint refuses what it was sent, which may be for its length."""


class EndpointEmbedder:
    """An Embedder that asks `embed.url`/embeddings; its vectors are scaled to length 1.

    A request that fails for a time (429, 5xx, no answer) is made again, after what Retry-After says or a growing wait,
    `embed.attempts_max` times in all. Texts that the endpoint refuses are sent again in smaller parts, and one alone
    cut to half, because some models take no more than a few hundred tokens. Redirects are not followed: the key is for
    the endpoint only. Bound to the event loop of its first request. Raises SettingsError for settings of no use.
    """

    def __init__(self, settings: EmbedSettings) -> None:
        self._settings = settings
        self._url = f"{_checked_url(settings).rstrip('/')}/embeddings"
        self._session: AsyncSession[Response] | None = None

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self._settings.model

    @property
    def dimensions(self) -> int:
        """The length of a vector, as the settings say it."""
        return self._settings.dimensions

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text.

        Raises EmbedderError if the endpoint cannot serve, EmbedderMismatchError if its vectors have other dimensions.
        """
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        cut = [_clean(text) for text in texts]
        for start in range(0, len(cut), self._settings.batch_max):
            part = cut[start : start + self._settings.batch_max]
            vectors[start : start + len(part)] = await self._part(part)
        return vectors

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _part(self, texts: Sequence[str]) -> Vectors:
        """The vectors of one request, or of the smaller ones that it is parted into."""
        try:
            return self._vectors(await self._answer(texts), len(texts))
        except _TooLongError as error:
            if len(texts) > 1:
                middle = len(texts) // 2
                return np.concatenate([await self._part(texts[:middle]), await self._part(texts[middle:])])
            if len(texts[0]) <= _TEXT_CHARS_MIN:
                raise EmbedderError(
                    f"{self._url} refuses to embed a text of {len(texts[0])} characters: are embed.url and embed.model"
                    f" ({self.name!r}) right? ({error})"
                ) from None
            return await self._part([texts[0][: max(_TEXT_CHARS_MIN, len(texts[0]) // 2)]])

    async def _answer(self, texts: Sequence[str]) -> bytes:
        """The body of the endpoint's answer, asked for until it serves."""
        body = msgspec.json.encode({"model": self.name, "input": texts, "encoding_format": "float"})
        attempt = 0
        while True:
            attempt += 1
            wait: float | None = None
            try:
                response = await self._post(body)
            except RequestException as error:
                failure = f"no answer: {error}"
            else:
                if response.status_code == 200:
                    return response.content
                failure = f"status {response.status_code}: {response.content.decode('utf-8', 'replace')}"
                self._raise_if_final(response, failure)
                wait = _retry_after_seconds(response.headers.get("retry-after") or "")
            wait = _wait(attempt) if wait is None else wait
            if attempt >= self._settings.attempts_max or wait > self._settings.retry_seconds_max:
                raise EmbedderError(f"{self._url} does not serve after {attempt} tries ({self._shown(failure)})")
            await asyncio.sleep(min(wait, self._settings.retry_seconds_max))

    async def _post(self, body: bytes) -> Response:
        if self._session is None:
            self._session = self._new_session()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._settings.api_key:
            headers["Authorization"] = f"Bearer {self._settings.api_key}"
        return await self._session.post(
            self._url, data=body, headers=headers, timeout=self._settings.timeout_seconds, accept_encoding=None
        )

    def _new_session(self) -> AsyncSession[Response]:
        longest = _ANSWER_BYTES + _NUMBER_BYTES * self._settings.batch_max * self.dimensions
        options: dict[CurlOpt, int | str] = {CurlOpt.MAXFILESIZE_LARGE: longest, CurlOpt.PROXY: ""}
        if self._settings.ca_file:
            options[CurlOpt.CAINFO] = self._settings.ca_file
        return AsyncSession(trust_env=False, allow_redirects=False, discard_cookies=True, curl_options=options)

    def _raise_if_final(self, response: Response, failure: str) -> None:
        """Raise unless the same request may be answered otherwise the next time."""
        status = response.status_code
        if status in _BUSY or status >= 500:
            return
        if status in _TOO_LONG:
            raise _TooLongError(self._shown(failure))
        what = "look at embed.url and embed.model"
        if status in {401, 403}:
            what = "look at embed.api_key"
        elif 300 <= status < 400:
            what = "redirects are not followed; set embed.url to where it points"
        raise EmbedderError(f"{self._url} does not serve: {what} ({self._shown(failure)})")

    def _vectors(self, body: bytes, rows: int) -> Vectors:
        """The vectors in an answer, in the order of the texts, each of length 1."""
        try:
            found = msgspec.json.decode(body, type=_Answer).data
        except msgspec.DecodeError as error:
            raise EmbedderError(
                f"{self._url} answers what is no list of embeddings ({self._shown(str(error))})"
            ) from None
        if any(one.index >= 0 for one in found):
            found.sort(key=lambda one: one.index)
            if [one.index for one in found] != list(range(rows)):
                raise EmbedderError(
                    f"{self._url} answers embeddings that are not those of the {rows} texts it was sent"
                )
        if len(found) != rows:
            raise EmbedderError(f"{self._url} answers {len(found)} embeddings to {rows} texts")
        lengths = {len(one.embedding) for one in found}
        if lengths != {self.dimensions}:
            raise EmbedderMismatchError(
                f"{self._url} gives vectors of {min(lengths)} dimensions with the model {self.name!r}, but"
                f" embed.dimensions is {self.dimensions}"
            )
        return self._scaled(np.array([one.embedding for one in found], dtype=np.float64))

    def _scaled(self, vectors: npt.NDArray[np.float64]) -> Vectors:
        if not (np.abs(vectors) < _NUMBER_MAX).all():
            raise EmbedderError(f"{self._url} answers numbers that are not finite, or too large")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[(lengths < _LENGTH_MIN)[:, 0], 0] = 1.0  # no direction; any one keeps cosine defined
        scaled: Vectors = (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), _LENGTH_MIN)).astype(
            np.float32
        )
        return scaled

    def _shown(self, text: str) -> str:
        """What may be told of an answer: in one line, not all of it, and never the key."""
        if self._settings.api_key:
            text = text.replace(self._settings.api_key, "***")
        return _SPACE.sub(" ", text).strip()[:_SHOWN_CHARS]


def _clean(text: str) -> str:
    """The text as it is sent: valid Unicode, not endless, and not empty, which most endpoints refuse."""
    return text[:TEXT_CHARS_MAX].encode("utf-8", "replace").decode("utf-8").strip() or "."


def _checked_url(settings: EmbedSettings) -> str:
    parts = urlsplit(settings.url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise SettingsError(
            f"embed.url = {settings.url!r} cannot be used; it is http(s)://HOST/PATH, up to and with /v1"
        )
    if parts.username or parts.password:
        raise SettingsError("embed.url holds a name or a password; a key goes into embed.api_key")
    if not settings.model:
        raise SettingsError("embed.model is empty; with embed.url, name the model to ask for")
    if settings.dimensions <= 0:
        raise SettingsError(f"embed.dimensions is {settings.dimensions}; with embed.url, say how long its vectors are")
    if any(not " " < letter < "\x7f" for letter in settings.api_key):
        raise SettingsError("embed.api_key holds characters that cannot stand in a header")
    if settings.ca_file and not Path(settings.ca_file).is_file():
        raise SettingsError(f"embed.ca_file = {settings.ca_file!r} is not a file")
    return settings.url


def _wait(attempt: int) -> float:
    return float(_FIRST_WAIT_SECONDS * 2 ** min(attempt - 1, 20) * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not secrecy


def _retry_after_seconds(value: str) -> float | None:
    """How long the endpoint asks to be left alone: seconds or an HTTP-date; none if it says nothing readable."""
    text = value.strip()
    if re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text):
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - time.time())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
