"""Blobs as files, and what every lasting blob store shares: names by the SHA-256 of the bytes, compressed content.

A reference is checked before it becomes part of a name, so that a hostile one can never leave the folder.
"""

import contextlib
import errno
import hashlib
import os
import re
import secrets
from pathlib import Path
from typing import Final

import zstandard

from trawl.errors import BlobNotFoundError, SettingsError, StoreCorruptError, StoreError, StoreFullError
from trawl.ports import BlobStore
from trawl.records import Millis
from trawl.settings import BlobSettings

_REF: Final = re.compile(r"[0-9a-f]{64}")
SUFFIX: Final = ".zst"
_TEMPORARY: Final = ".tmp"
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
BLOB_BYTES_MAX: Final = 1 << 30
"""No blob is larger, packed or unpacked."""


def is_ref(ref: str) -> bool:
    """Whether a text has the form of a reference."""
    return _REF.fullmatch(ref) is not None


def checked_ref(ref: str) -> str:
    """The reference, if it has the form of one; raises BlobNotFoundError."""
    if not is_ref(ref):
        raise BlobNotFoundError(f"{ref[:100]!r} is not the reference of a blob")
    return ref


def ref_of(data: bytes) -> str:
    """The reference of these bytes; raises StoreError if they are too many."""
    if len(data) > BLOB_BYTES_MAX:
        raise StoreError(f"a blob of {len(data)} bytes is larger than {BLOB_BYTES_MAX}, and is not stored")
    return hashlib.sha256(data).hexdigest()


def packed(data: bytes) -> bytes:
    """The bytes as they are stored."""
    return zstandard.ZstdCompressor(level=1).compress(data)


def unpacked(stored: bytes, ref: str, place: str) -> bytes:
    """The bytes of that reference; raises StoreCorruptError unless they are what was stored under it."""
    data = b""
    why = "its content is not what its name says"
    try:
        if zstandard.frame_content_size(stored) <= BLOB_BYTES_MAX:  # what the header says is believed below
            data = zstandard.decompress(stored, max_output_size=BLOB_BYTES_MAX)
    except zstandard.ZstdError as error:
        why = str(error)
    if hashlib.sha256(data).hexdigest() != ref:
        raise StoreCorruptError(f"the blob {place} is damaged ({why}); delete it")
    return data


class FileBlobStore:
    """Large bytes by reference, compressed, in two levels of folders.

    A file is written under another name and then renamed, so a blob is there whole or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, data: bytes) -> str:
        """Store the bytes (once, by content); the reference. Raises StoreFullError."""
        ref = ref_of(data)
        path = self._path(ref)
        try:
            if path.exists():
                os.utime(path)
            else:
                self._write(path, packed(data))
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise StoreFullError(f"there is no space left in {self._folder}; free some and run again") from error
            raise StoreError(f"the blob {path} cannot be written: {error}") from error
        return ref

    async def get(self, ref: str) -> bytes:
        """The bytes; raises BlobNotFoundError, or StoreCorruptError if the file was damaged."""
        path = self._path(checked_ref(ref))
        try:
            stored = path.read_bytes()
        except FileNotFoundError as error:
            raise BlobNotFoundError(f"there is no blob {ref} in {self._folder}; it was swept") from error
        except OSError as error:
            raise StoreError(f"the blob {path} cannot be read: {error}") from error
        return unpacked(stored, ref, str(path))

    async def delete(self, ref: str) -> None:
        """Forget the bytes; harmless if they are not there."""
        if is_ref(ref):
            self._path(ref).unlink(missing_ok=True)

    async def sweep(self, older_than_ms: Millis, keep: frozenset[str]) -> int:
        """Delete blobs last put before that time, except those to keep; how many."""
        swept = 0
        for path in self._folder.glob(f"??/??/*{SUFFIX}*"):
            name, _, temporary = path.name.partition(SUFFIX)
            if name in keep and not temporary:
                continue
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < older_than_ms * 1_000_000:
                    path.unlink()
                    swept += not temporary
        return swept

    def _path(self, ref: str) -> Path:
        return self._folder / ref[:2] / ref[2:4] / f"{ref}{SUFFIX}"

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}{_TEMPORARY}{secrets.token_hex(8)}")
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def open_blobs(settings: BlobSettings, base: Path) -> BlobStore:
    """The store that the settings name, a relative folder below `base`; raises SettingsError for another kind."""
    kind, _, place = settings.url.partition(":")
    if kind == "file" and place:
        return FileBlobStore(base / place)
    if kind != "s3":
        raise SettingsError(f"blobs.url = {settings.url!r} cannot be used; it is file:FOLDER or s3://BUCKET/PREFIX")
    try:
        from trawl.adapters.s3 import S3BlobStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError(f"blobs in S3 need more than is installed ({error}): pip install 'trawl[s3]'") from error
    return S3BlobStore(settings)
