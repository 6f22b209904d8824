"""Blobs in a bucket of S3, or of any server that speaks its protocol (extra `s3`)."""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from trawl.adapters.blobs import BLOB_BYTES_MAX, SUFFIX, checked_ref, is_ref, packed, ref_of, unpacked
from trawl.errors import BlobNotFoundError, SettingsError, StoreCorruptError, StoreError
from trawl.records import Millis
from trawl.settings import BlobSettings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Config

T = TypeVar("T")
_RETRIES: Final = 8
_STAMP_MS: Final = 1000
"""S3 tells times in whole seconds, cut off: a blob may be this much younger than it says."""
_PAGE: Final = 1000
"""Objects listed, and deleted, in one request; the most that S3 takes."""
_SHOWN_CHARS: Final = 300


class S3BlobStore:
    """Large bytes by reference, compressed, as objects PREFIX/REFERENCE.zst; each put makes a blob young again.

    What fails for a time is asked again by the client, with growing waits, for `blobs.s3_timeout_seconds` in all.
    Between the listing of a page and the deletion of what is old in it, a put of the same bytes can be lost: sweep with
    an age that is far above any that a blob still in use can have. Raises SettingsError if the settings name no bucket.
    """

    def __init__(self, settings: BlobSettings) -> None:
        self.where = settings.url
        bucket, prefix = _bucket_and_prefix(settings)
        self._bucket = bucket
        longest = timedelta(seconds=settings.s3_timeout_seconds)
        try:
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                config=_config(settings),
                client_options=_client(settings, longest),
                retry_config={"max_retries": _RETRIES, "retry_timeout": longest},
            )
        except (BaseError, OSError, ValueError) as error:
            raise SettingsError(f"the settings of blobs.s3_* cannot be used: {_short(error)}") from error

    async def put(self, data: bytes) -> str:
        """Store the bytes, by content; the reference. Raises StoreError."""
        ref = await asyncio.to_thread(ref_of, data)
        stored = await asyncio.to_thread(packed, data)
        await self._answer("put", self._store.put_async(f"{ref}{SUFFIX}", stored, use_multipart=False))
        return ref

    async def get(self, ref: str) -> bytes:
        """The bytes; raises BlobNotFoundError, StoreCorruptError if the object was damaged, or StoreError."""
        name = f"{checked_ref(ref)}{SUFFIX}"
        place = f"{self.where.rstrip('/')}/{name}"
        try:
            found = await self._answer("get", self._store.get_async(name))
        except FileNotFoundError as error:
            raise BlobNotFoundError(f"there is no blob {ref} in {self.where}; it was swept") from error
        size = found.meta["size"]
        if size > BLOB_BYTES_MAX:
            raise StoreCorruptError(f"the object {place} has {size} bytes, which no blob has; delete it")
        stored = bytes(await self._answer("get", found.bytes_async()))
        return await asyncio.to_thread(unpacked, stored, ref, place)

    async def delete(self, ref: str) -> None:
        """Forget the bytes; harmless if they are not there."""
        if is_ref(ref):
            await self._answer("delete", self._store.delete_async([f"{ref}{SUFFIX}"]))

    async def sweep(self, older_than_ms: Millis, keep: frozenset[str]) -> int:
        """Delete blobs last put before that time, except those to keep; how many. Other objects are left alone."""
        swept = 0
        listed = self._store.list(chunk_size=_PAGE)
        while (page := await self._answer("list", _next(listed))) is not None:
            old = [
                meta["path"]
                for meta in page
                if (ref := meta["path"].removesuffix(SUFFIX)) != meta["path"]
                and is_ref(ref)
                and ref not in keep
                and meta["last_modified"].timestamp() * 1000 + _STAMP_MS <= older_than_ms
            ]
            if old:
                await self._answer("delete", self._store.delete_async(old))
            swept += len(old)
        return swept

    async def _answer(self, what: str, call: Awaitable[T]) -> T:
        """What the server answers; raises FileNotFoundError, or a StoreError that says what to do."""
        try:
            return await call
        except (BaseError, OSError) as error:
            no_bucket = "NoSuchBucket" in str(error)
            if isinstance(error, FileNotFoundError) and what == "get" and not no_bucket:
                raise
            raise self._named(what, error, no_bucket=no_bucket) from error

    def _named(self, what: str, error: Exception, *, no_bucket: bool) -> StoreError:
        text = _short(error)
        if no_bucket or isinstance(error, FileNotFoundError):
            return StoreError(f"there is no bucket {self._bucket!r} for {self.where}; make it, or look at blobs.url")
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "403 Forbidden" in text:
            return StoreError(
                f"S3 refuses to {what} in {self.where}: look at blobs.s3_access_key and blobs.s3_secret_key, and at the"
                f" rights of that key ({text})"
            )
        return StoreError(
            f"S3 cannot {what} in {self.where}: is the server there, and are blobs.s3_endpoint and blobs.s3_region"
            f" right? ({text})"
        )


def _short(error: Exception) -> str:
    """What the client says, without its dump of itself."""
    return " ".join(str(error).partition("Debug source:")[0].split())[:_SHOWN_CHARS]


async def _next(listed: Any) -> Any:
    """The next page, or None."""
    return await anext(listed, None)


def _bucket_and_prefix(settings: BlobSettings) -> tuple[str, str]:
    parts = urlsplit(settings.url)
    prefix = parts.path.strip("/")
    if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc or parts.query or parts.fragment:
        raise SettingsError(f"blobs.url = {settings.url!r} cannot be used; it is s3://BUCKET/PREFIX, without a key")
    if any(segment in {"", ".", ".."} for segment in prefix.split("/")) and prefix:
        raise SettingsError(f"blobs.url = {settings.url!r} cannot be used; its prefix has an empty or dotted part")
    return parts.netloc, prefix


def _config(settings: BlobSettings) -> "S3Config":
    config: S3Config = {"region": settings.s3_region}
    if settings.s3_endpoint:
        if urlsplit(settings.s3_endpoint).scheme not in {"http", "https"}:
            raise SettingsError(
                f"blobs.s3_endpoint = {settings.s3_endpoint!r} cannot be used; it is http(s)://HOST:PORT"
            )
        config["endpoint"] = settings.s3_endpoint
    if bool(settings.s3_access_key) != bool(settings.s3_secret_key):
        raise SettingsError("blobs.s3_access_key and blobs.s3_secret_key are set together, or neither is")
    if settings.s3_access_key:
        config["access_key_id"] = settings.s3_access_key
        config["secret_access_key"] = settings.s3_secret_key
    return config


def _client(settings: BlobSettings, longest: timedelta) -> "ClientConfig":
    client: ClientConfig = {
        "timeout": longest,
        "connect_timeout": min(longest, timedelta(seconds=5)),
        "allow_http": settings.s3_endpoint.startswith("http:"),
    }
    if settings.s3_ca_file:
        try:
            client["root_certificate"] = Path(settings.s3_ca_file).read_bytes()
        except OSError as error:
            raise SettingsError(f"blobs.s3_ca_file = {settings.s3_ca_file!r} cannot be read: {error}") from error
    return client
