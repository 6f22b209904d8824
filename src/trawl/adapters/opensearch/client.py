"""One client of OpenSearch: requests, bulk writes item by item, and errors that say what to do."""

import asyncio
import random
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from opensearchpy import AsyncOpenSearch
from opensearchpy import exceptions as client_errors

from trawl.errors import StoreError, StoreFullError
from trawl.settings import OpenSearchSettings

_TRIES: Final = 5
_FIRST_WAIT_SECONDS: Final = 0.2
_BUSY: Final = frozenset({429, 502, 503, 504})
_PASSWORD: Final = re.compile(r"//[^@/]*@")
_SHOWN_CHARS: Final = 300
_NDJSON: Final = {"Content-Type": "application/x-ndjson"}
_JSON: Final = {"Content-Type": "application/json"}


class NotThereError(StoreError):
    """An index or a document that was asked for is not there."""


class ConflictingError(StoreError):
    """A document has changed since it was read."""


class OpenSearchClient:
    """What the adapters of this package share."""

    def __init__(self, settings: OpenSearchSettings) -> None:
        self._settings = settings
        self.where = _PASSWORD.sub("//", settings.url)
        self._client = AsyncOpenSearch(
            hosts=[settings.url],
            http_auth=(settings.username, settings.password) if settings.username else None,
            ca_certs=settings.ca_file or None,
            timeout=settings.timeout_seconds,
            maxsize=settings.connections_max,
            max_retries=0,
        )

    def name(self, name: str) -> str:
        """An index, alias or template of this deployment."""
        return f"{self._settings.prefix}-{name}"

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def check(self) -> None:
        """Raise StoreError unless the cluster answers and can be written to."""
        await self.ask("GET", "/")

    async def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """The answer to one request; what is busy is asked again. Raises StoreError and its two kinds above."""
        data = None if body is None else msgspec.json.encode(body)
        return await self._patiently(method, path, data, _JSON, parameters)

    async def bulk(self, lines: Sequence[bytes], *, refresh: bool) -> None:
        """Write many; each action is one item of two lines, or one. Items that fail for a time are tried again.

        Raises StoreError naming the first item that cannot be written; the others are.
        """
        left = list(lines)
        for attempt in range(_TRIES):
            answer = await self._patiently(
                "POST", "/_bulk", b"\n".join(left) + b"\n", _NDJSON, {"refresh": "true" if refresh else "false"}
            )
            failed = [
                (item, result)
                for item, one in zip(left, answer["items"], strict=True)
                if (result := next(iter(one.values())))["status"] >= 300 and result["status"] != 404
            ]
            if not failed:
                return
            for _, result in failed:
                if result["status"] not in _BUSY:
                    raise self._of_item(result)
            left = [item for item, _ in failed]
            await asyncio.sleep(_wait(attempt))
        raise StoreError(f"OpenSearch at {self.where} is too busy: {len(left)} of {len(lines)} items were not written")

    async def _patiently(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], parameters: dict[str, Any]
    ) -> Any:
        for attempt in range(_TRIES):
            try:
                return await self._client.transport.perform_request(
                    method, path, params=parameters, body=data, headers=headers
                )
            except client_errors.TransportError as error:
                if error.status_code not in _BUSY or attempt == _TRIES - 1:
                    raise self._named(error) from error
            except (OSError, TimeoutError) as error:
                raise StoreError(f"OpenSearch does not answer at {self.where}: {error}") from error
            await asyncio.sleep(_wait(attempt))
        raise AssertionError("unreachable")

    def _named(self, error: client_errors.TransportError) -> StoreError:
        """The StoreError that says what to do."""
        text = f"{error.error} {error.info}"[:_SHOWN_CHARS]
        if isinstance(error, client_errors.NotFoundError):
            return NotThereError(f"OpenSearch at {self.where} has no such thing: {text}")
        if isinstance(error, client_errors.ConflictError):
            return ConflictingError(f"OpenSearch at {self.where}: it has changed meanwhile: {text}")
        if isinstance(error, client_errors.ConnectionError):
            return StoreError(
                f"OpenSearch does not answer at {self.where}: {error.error}; is it running, and is opensearch.url"
                f" right?"
            )
        if error.status_code in {401, 403} and "cluster_block" not in text:
            return StoreError(
                f"OpenSearch at {self.where} refuses the name or password: look at opensearch.username and"
                f" opensearch.password, and at the rights of that name ({text})"
            )
        if "cluster_block" in text or "read-only" in text or "flood" in text:
            return self._read_only(text)
        return StoreError(f"OpenSearch at {self.where} refuses a request: {error.status_code} {text}")

    def _of_item(self, result: dict[str, Any]) -> StoreError:
        text = str(result.get("error"))[:_SHOWN_CHARS]
        if "cluster_block" in text:
            return self._read_only(text)
        return StoreError(
            f"OpenSearch at {self.where} cannot write {result.get('_id')} to {result.get('_index')}: {text}"
        )

    def _read_only(self, text: str) -> StoreFullError:
        return StoreFullError(
            f"an index of OpenSearch at {self.where} is read-only, as it is when the disk is nearly full: free space,"
            f" and lift the block (index.blocks.read_only_allow_delete) ({text})"
        )


def connect(settings: OpenSearchSettings) -> OpenSearchClient:
    """A client for these settings; it connects at its first request."""
    return OpenSearchClient(settings)


def _wait(attempt: int) -> float:
    return float(_FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not secrecy
