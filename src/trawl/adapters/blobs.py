"""Blobs as files, named by the SHA-256 of their bytes, so that a name can never leave the folder."""

import contextlib
import errno
import hashlib
import os
import re
from pathlib import Path
from typing import Final

import zstandard

from trawl.errors import BlobNotFoundError, SettingsError, StoreCorruptError, StoreError, StoreFullError
from trawl.records import Millis
from trawl.settings import BlobSettings

_REF: Final = re.compile(r"[0-9a-f]{64}")
_SUFFIX: Final = ".zst"
_TEMPORARY: Final = ".tmp"
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_BLOB_BYTES_MAX: Final = 1 << 30


class FileBlobStore:
    """Large bytes by reference, compressed, in two levels of folders.

    A file is written under another name and then renamed, so a blob is there whole or not at all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._compressor = zstandard.ZstdCompressor(level=1)

    async def put(self, data: bytes) -> str:
        """Store the bytes (once, by content); the reference. Raises StoreFullError."""
        ref = hashlib.sha256(data).hexdigest()
        path = self._path(ref)
        try:
            if path.exists():
                os.utime(path)
            else:
                self._write(path, self._compressor.compress(data))
        except OSError as error:
            if error.errno in _DISK_FULL:
                raise StoreFullError(f"there is no space left in {self._folder}; free some and run again") from error
            raise StoreError(f"the blob {path} cannot be written: {error}") from error
        return ref

    async def get(self, ref: str) -> bytes:
        """The bytes; raises BlobNotFoundError, or StoreCorruptError if the file was damaged."""
        if not _REF.fullmatch(ref):
            raise BlobNotFoundError(f"{ref[:100]!r} is not the reference of a blob")
        path = self._path(ref)
        try:
            data = zstandard.decompress(path.read_bytes(), max_output_size=_BLOB_BYTES_MAX)
        except FileNotFoundError as error:
            raise BlobNotFoundError(f"there is no blob {ref} in {self._folder}; it was swept") from error
        except zstandard.ZstdError as error:
            raise StoreCorruptError(f"the blob {path} is damaged ({error}); delete the file") from error
        return data

    async def delete(self, ref: str) -> None:
        """Forget the bytes; harmless if they are not there."""
        if _REF.fullmatch(ref):
            self._path(ref).unlink(missing_ok=True)

    async def sweep(self, older_than_ms: Millis, keep: frozenset[str]) -> int:
        """Delete blobs last put before that time, except those to keep; how many."""
        swept = 0
        for path in self._folder.glob(f"??/??/*{_SUFFIX}*"):
            name, _, temporary = path.name.partition(_SUFFIX)
            if name in keep and not temporary:
                continue
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime_ns < older_than_ms * 1_000_000:
                    path.unlink()
                    swept += not temporary
        return swept

    def _path(self, ref: str) -> Path:
        return self._folder / ref[:2] / ref[2:4] / f"{ref}{_SUFFIX}"

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}{_TEMPORARY}{os.getpid()}")
        try:
            temporary.write_bytes(data)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def open_blobs(settings: BlobSettings, base: Path) -> FileBlobStore:
    """The store that the settings name, a relative folder below `base`; raises SettingsError for another kind."""
    kind, _, folder = settings.url.partition(":")
    if kind != "file" or not folder:
        raise SettingsError(f"blobs.url = {settings.url!r} cannot be used; it is file:FOLDER")
    return FileBlobStore(base / folder)
