"""One client of OpenSearch: requests, bulk writes item by item, and errors that say what to do."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from opensearchpy import AsyncOpenSearch
from opensearchpy import exceptions as client_errors

from trawl.adapters.masked import masked
from trawl.errors import RecordRefusedError, StoreError, StoreFullError
from trawl.settings import OpenSearchSettings

_TRIES: Final = 5
_FIRST_WAIT_SECONDS: Final = 0.2
_BUSY: Final = frozenset({429, 502, 503, 504})
_CONFLICT: Final = 409
_SHOWN_CHARS: Final = 300
_SHOWN_ITEMS: Final = 3
_NDJSON: Final = {"Content-Type": "application/x-ndjson"}
_RESULTS: Final = "items.*.status,items.*.error,items.*._id,items.*._index"
"""What is read of a bulk's answer; the rest is most of it."""
_JSON: Final = {"Content-Type": "application/json"}
_NO_INDEX: Final = "index_not_found_exception"
_MOVING: Final = "index write (api)"
"""In the answer to a write while a migration holds writes up; see `trawl.adapters.opensearch.indices`."""


class NotThereError(StoreError):
    """An index or a document that was asked for is not there."""


class OpenSearchClient:
    """What the adapters of this package share."""

    def __init__(self, settings: OpenSearchSettings) -> None:
        self._settings = settings
        self.where = masked(settings.url)
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
        """Raise StoreError unless the cluster answers."""
        await self.ask("GET", "/")

    async def ask(self, method: str, path: str, body: Any = None, **parameters: Any) -> Any:
        """The answer to one request; what is busy is asked again. Raises StoreError, or NotThereError."""
        data = None if body is None else msgspec.json.encode(body)
        return await self._patiently(method, path, data, _JSON, parameters)

    async def ask_many(self, path: str, bodies: Sequence[Any]) -> Any:
        """The answer to one request of many lines, each a body."""
        data = b"".join(msgspec.json.encode(body) + b"\n" for body in bodies)
        return await self._patiently("POST", path, data, _NDJSON, {})

    async def documents(self, index: str, ids: Sequence[str], **parameters: Any) -> list[dict[str, Any]]:
        """The documents of these ids, in order, as they are now; each says whether it is `found`."""
        for attempt in range(_TRIES):
            try:
                answer = await self.ask("POST", f"/{index}/_mget", {"ids": ids}, **parameters)
            except NotThereError:
                return [{"found": False} for _ in ids]
            found: list[dict[str, Any]] = answer["docs"]
            errors = [one["error"] for one in found if "error" in one and one["error"].get("type") != _NO_INDEX]
            if not errors:
                return [{"found": False, **one} for one in found]
            if attempt < _TRIES - 1:  # an index that was just made has no shard yet that serves
                await asyncio.sleep(_wait(attempt))
        raise StoreError(f"OpenSearch at {self.where} cannot read from {index}: {_short(str(errors[0]))}")

    async def bulk(self, items: Sequence[bytes], *, refresh: bool = False) -> list[bool]:
        """Write many, each an action of one line or two, in requests of at most `opensearch.bulk_bytes_max`.

        For each whether it was written; what was not has a newer version there. Items that fail for a time are tried
        again, and what can be written is. Raises StoreError if items are left, or RecordRefusedError, which names those
        that will never be taken.
        """
        written: list[bool] = []
        refused: list[dict[str, Any]] = []
        for part in _parts(items, self._settings.bulk_bytes_max):
            for result in await self._bulk(part, refresh=refresh):
                written.append(result["status"] != _CONFLICT)
                if "error" in result and result["status"] != _CONFLICT:
                    refused.append(result)
        if refused:
            raise self._of_items(refused, len(items))
        return written

    async def _bulk(self, items: Sequence[bytes], *, refresh: bool) -> list[dict[str, Any]]:
        """The result of each item, once none is left that failed for a time."""
        results: dict[int, dict[str, Any]] = {}
        left = list(range(len(items)))
        parameters = {"refresh": "true" if refresh else "false", "require_alias": "true", "filter_path": _RESULTS}
        for attempt in range(_TRIES):
            data = b"\n".join([*(items[number] for number in left), b""])
            answer = await self._patiently("POST", "/_bulk", data, _NDJSON, parameters)
            results.update(
                (number, next(iter(one.values()))) for number, one in zip(left, answer["items"], strict=True)
            )
            left = [number for number in left if _passes(results[number])]
            if not left:
                return [results[number] for number in range(len(items))]
            if attempt < _TRIES - 1:
                await asyncio.sleep(_wait(attempt))
        raise StoreError(f"OpenSearch at {self.where} is too busy: {len(left)} of {len(items)} items were not written")

    async def _patiently(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], parameters: dict[str, Any]
    ) -> Any:
        for attempt in range(_TRIES):
            try:
                return await self._client.transport.perform_request(
                    method, path, params=parameters, body=data, headers=headers
                )
            except client_errors.TransportError as error:
                blocked = "cluster_block" in str(error.info)
                if error.status_code not in _BUSY or blocked or attempt == _TRIES - 1:
                    raise self._named(error) from error
            except (OSError, TimeoutError, client_errors.SerializationError) as error:
                raise StoreError(f"OpenSearch does not answer as such at {self.where}: {error!r}") from error
            await asyncio.sleep(_wait(attempt))
        raise AssertionError("unreachable")

    def _named(self, error: client_errors.TransportError) -> StoreError:
        """The StoreError that says what to do."""
        text = _short(f"{error.error} {error.info}")
        if isinstance(error, client_errors.ConnectionError):
            return StoreError(
                f"OpenSearch does not answer at {self.where}: {error.error}; is it running, and is opensearch.url"
                f" right?"
            )
        if "cluster_block" in text:
            return self._blocked(text)
        if isinstance(error, client_errors.NotFoundError):
            return NotThereError(f"OpenSearch at {self.where} has no such thing: {text}")
        if error.status_code in {401, 403}:
            return StoreError(
                f"OpenSearch at {self.where} refuses the name or password: look at opensearch.username and"
                f" opensearch.password, and at the rights of that name ({text})"
            )
        if error.status_code in _BUSY:
            return StoreError(f"OpenSearch at {self.where} is too busy: {error.status_code} {text}")
        return StoreError(f"OpenSearch at {self.where} refuses a request: {error.status_code} {text}")

    def _of_items(self, refused: Sequence[dict[str, Any]], total: int) -> StoreError | RecordRefusedError:
        """The error for items that were not written; one that passes, if any does, before one that does not."""
        for result in refused:
            text = _short(str(result["error"]))
            if "cluster_block" in text:
                return self._blocked(text)
            if result["status"] == 404:
                return NotThereError(f"OpenSearch at {self.where} has no index {result.get('_index')}: {text}")
            if "strict_dynamic_mapping" in text:
                return StoreError(
                    f"the index {result.get('_index')} at {self.where} does not know a field of this version: upgrade"
                    f" Trawl, or migrate the index ({text})"
                )
        shown = "; ".join(
            f"{result.get('_id')} to {result.get('_index')}: {_short(str(result['error']))}"
            for result in refused[:_SHOWN_ITEMS]
        )
        return RecordRefusedError(f"OpenSearch at {self.where} refuses {len(refused)} of {total} items: {shown}")

    def _blocked(self, text: str) -> StoreError:
        if _MOVING in text:
            return StoreError(
                f"an index of OpenSearch at {self.where} takes no writes (index.blocks.write), as while it is moved to"
                f" a new version; what waits is written afterwards ({text})"
            )
        return StoreFullError(
            f"an index of OpenSearch at {self.where} is read-only, as it is when the disk is nearly full: free space,"
            f" and lift the block (index.blocks.read_only_allow_delete) ({text})"
        )


def connect(settings: OpenSearchSettings) -> OpenSearchClient:
    """A client for these settings; it connects at its first request."""
    return OpenSearchClient(settings)


def _parts(items: Sequence[bytes], bytes_max: int) -> list[list[bytes]]:
    """The items in order, in parts of at most so many bytes, or of one item."""
    parts: list[list[bytes]] = []
    size = 0
    for item in items:
        if not parts or size + len(item) > bytes_max:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += len(item)
    return parts


def _passes(result: dict[str, Any]) -> bool:
    return result["status"] in _BUSY and "cluster_block" not in str(result.get("error"))


def _short(text: str) -> str:
    return " ".join(text.split())[:_SHOWN_CHARS]


def _wait(attempt: int) -> float:
    return float(_FIRST_WAIT_SECONDS * 2**attempt * random.uniform(0.5, 1.0))  # noqa: S311 - spread, not secrecy
