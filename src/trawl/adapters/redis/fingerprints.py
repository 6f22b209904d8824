"""The duplicate gate in Redis: packed bands (Manku, Jain and Das Sarma, WWW 2007), each decision one script.

All keys share one hash tag, so a cluster keeps the index on one node. Hashes are small enough for Redis to keep them
compact, if the server's hash-max-listpack-value is at least 512; else they take about twice as much memory.
"""

from typing import Any, Final

from trawl.adapters.redis.client import RedisClient, Script
from trawl.adapters.redis.urls import packed_url, unpacked_url
from trawl.errors import SettingsError, StoreError
from trawl.ports import WITHDRAWN_MAX, DedupVerdict, Fingerprint
from trawl.records import Key, Millis
from trawl.settings import RedisSettings

_CHECK: Final = Script("check_and_add", "fingerprints")
_COMMIT: Final = Script("commit_fingerprint", "fingerprints")
_FORGET: Final = Script("forget_fingerprint", "fingerprints")
_TABLES: Final = (4, 10)
_LAYOUT: Final = 2
"""The form of what is stored, the code of URLs included."""
HAMMING_MAX: Final = 3
"""Fingerprints that differ in more bits need not share a band, or a pair of blocks."""


class RedisFingerprintIndex:
    """Exact and near-duplicate fingerprints of documents, shared by every process."""

    def __init__(self, client: RedisClient, settings: RedisSettings, *, withdrawn_max: int = WITHDRAWN_MAX) -> None:
        """Raises SettingsError unless there are 4 or 10 tables."""
        if settings.fingerprint_tables not in _TABLES:
            raise SettingsError(
                f"redis.fingerprint_tables = {settings.fingerprint_tables} cannot be used; it is 4 or 10"
            )
        self._client = client
        self._tables = settings.fingerprint_tables
        self._meta = client.key("fp", "meta")
        self._prefix = client.key("fp", "")
        self._withdrawn_max = withdrawn_max
        self._checked = False

    async def check_and_add(self, fingerprint: Fingerprint, *, hamming_max: int) -> DedupVerdict:
        """Judge a document and store it unless it is a duplicate; see the port. Raises SettingsError over 3 bits."""
        if hamming_max > HAMMING_MAX:
            raise SettingsError(
                f"dedup.hamming_max = {hamming_max} cannot be used with Redis; it is at most {HAMMING_MAX}"
            )
        await self._check_layout()
        asked = fingerprint
        arguments = (
            self._prefix,
            self._tables,
            f"{asked.namespace}\0{asked.version}",
            _bytes(asked.document_key),
            _bytes(asked.request_key),
            _bytes(asked.fetch_id),
            asked.fetched_at_ms,
            bytes.fromhex(asked.sha256),
            _bytes(asked.simhash),
            int(asked.direct),
            int(asked.near),
            hamming_max,
            packed_url(asked.url),
            self._withdrawn_max,
        )
        return _verdict(await self._client.run(_CHECK, (self._meta,), arguments))

    async def commit(self, document_key: Key, fetch_id: Key) -> None:
        """The document of that fetch is indexed; harmless if repeated or superseded."""
        await self._check_layout()
        await self._client.run(_COMMIT, (self._meta,), (self._prefix, _bytes(document_key), _bytes(fetch_id)))

    async def forget(self, document_key: Key, *, fetched_at_ms: Millis) -> bool:
        """The document is withdrawn as of that time, unless a newer fetch of it is stored (then False)."""
        await self._check_layout()
        arguments = (self._prefix, self._tables, _bytes(document_key), fetched_at_ms, self._withdrawn_max)
        return bool(await self._client.run(_FORGET, (self._meta,), arguments))

    async def size(self) -> int:
        """Documents stored."""
        return int(await self._client.ask("HGET", self._meta, "documents") or 0)

    async def _check_layout(self) -> None:
        """Raise StoreError if the index was made with other tables; they are fixed when it is made."""
        if self._checked:
            return
        await self._client.ask("HSETNX", self._meta, "layout", f"{_LAYOUT}:{self._tables}")
        found = (await self._client.ask("HGET", self._meta, "layout")).decode()
        if found != f"{_LAYOUT}:{self._tables}":
            raise StoreError(
                f"the fingerprint index in Redis has layout {found}, not {_LAYOUT}:{self._tables}: set"
                f" redis.fingerprint_tables as it was, or make it anew with `trawl rebuild --anew`"
            )
        self._checked = True


def _bytes(key: Key) -> bytes:
    return key.to_bytes(8, "big", signed=True)


def _key(data: bytes) -> Key | None:
    return int.from_bytes(data, "big", signed=True) if data else None


def _verdict(answer: list[Any]) -> DedupVerdict:
    kind, duplicate_of, url, distance, sha256, simhash = answer
    return DedupVerdict(
        kind=kind.decode(),
        duplicate_of=_key(duplicate_of),
        duplicate_of_url=unpacked_url(url) if url else "",
        distance=int(distance),
        previous_sha256=sha256.hex(),
        previous_simhash=_key(simhash),
    )
