"""One SQLite database for a process: opening, migrating, transactions, and errors in Trawl's own words.

Every port method of the adapters is one transaction, so after `kill -9` at any point the state is the one before the
call or the one after it. WAL with synchronous=NORMAL keeps that promise without waiting for the disk at each commit; a
power failure may lose the last moments, never more than whole transactions.

Calls are synchronous and take tens of microseconds; they run on the thread of the event loop that opened the database.
"""

import asyncio
import errno
import fcntl
import os
import shutil
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from trawl.adapters.sqlite.schema import MIGRATIONS
from trawl.errors import StoreCorruptError, StoreError, StoreFullError, StoreInUseError, StoreTooNewError

FILE_NAME: Final = "trawl.sqlite"
LOCK_NAME: Final = ".lock"
_SQLITE_MIN: Final = (3, 35, 0)  # RETURNING
_DISK_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_FREE_BYTES_MIN: Final = 1_000_000
_FULL: Final = frozenset({sqlite3.SQLITE_FULL})
_CORRUPT: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Database:
    """A connection to `trawl.sqlite` of a folder, for one process and one thread.

    `write` and `read` give transactions; any SQLite error inside them leaves as a StoreError and changes nothing.
    """

    def __init__(
        self, folder: Path, *, read_only: bool = False, cache_bytes: int = 16_000_000, group_seconds: float = 0.0
    ) -> None:
        """Open or create the database of a folder and bring it up to date; `read_only` opens beside a running crawl.

        With `group_seconds` the transactions of that time are committed together, by the running event loop: a crash
        then loses all of them or none, in order, and a commit costs once. Each stays a transaction of its own in every
        other way.

        Raises StoreTooNewError, StoreCorruptError, StoreFullError, or StoreError if there is nothing to read.
        """
        self.folder = folder
        self.path = folder / FILE_NAME
        self.read_only = read_only
        self.group_seconds = group_seconds
        self._failure: BaseException | None = None
        if sqlite3.sqlite_version_info < _SQLITE_MIN:
            raise StoreError(f"Trawl needs SQLite 3.35 or newer; this Python brings {sqlite3.sqlite_version}")
        if read_only and not self.path.exists():
            raise StoreError(f"there is no crawl in {folder}: {self.path} does not exist")
        try:
            if not read_only:
                folder.mkdir(parents=True, exist_ok=True)
            self.connection = self._reading() if read_only else self._connected("mode=rwc")
        except (sqlite3.Error, OSError) as error:
            raise self.translated(error) from error
        self._write = _Transaction(self, "BEGIN IMMEDIATE")
        self._member = _Member(self)
        self._read = _Transaction(self, "BEGIN")
        self._look = _Look(self)
        try:
            self._configure(cache_bytes)
            self._migrate()
        except BaseException as error:
            self.connection.close()
            if isinstance(error, sqlite3.Error):
                raise self.translated(error) from error
            raise

    def _connected(self, how: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{how}"
        return sqlite3.connect(uri, uri=True, isolation_level=None, cached_statements=256)

    def _reading(self) -> sqlite3.Connection:
        """A connection for reading only, also from a folder that nobody may write to.

        A database in WAL mode needs its shared memory file, which can be made beside it only; where it cannot, and no
        run left a log, nobody is writing, and the database can be read as it stands.
        """
        connection = self._connected("mode=ro")
        try:
            connection.execute("PRAGMA user_version")
        except sqlite3.OperationalError:
            log = self.path.with_name(f"{FILE_NAME}-wal")
            if log.exists() and log.stat().st_size:
                raise
            connection.close()
            return self._connected("mode=ro&immutable=1")
        return connection

    def write(self) -> "_Transaction":
        """A transaction that may write: committed if its block ends well, else undone."""
        return self._member if self._grouped() else self._write

    def read(self) -> "_Transaction":
        """A transaction that sees one state of the database."""
        return self._look if self.connection.in_transaction else self._read

    def commit(self) -> None:
        """Commit what is grouped; raises StoreError if that fails, and then the whole group is undone."""
        if self.connection.in_transaction:
            try:
                self.connection.execute("COMMIT")
            except sqlite3.Error as error:
                self.rollback()
                raise self.translated(error) from error

    def close(self) -> None:
        """Commit what is grouped and close the connection; the database stays usable by others."""
        try:
            self.commit()
        finally:
            self.connection.close()

    def rollback(self) -> None:
        """Undo what is open; SQLite has done so by itself after some errors, a full disk among them."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def fail(self, error: BaseException) -> None:
        """Let every later transaction raise: calls that were answered are undone, so only a new start can go on."""
        self._failure = error

    def _grouped(self) -> bool:
        """Whether the next transaction joins a group; begins one, to be committed by a timer, if none is open."""
        if not self.group_seconds:
            return False
        if self._failure is not None:
            raise self._failure
        if not self.connection.in_transaction:
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                return False  # nobody would end the group
            self._write.begin()
            loop.call_later(self.group_seconds, self._end_of_group)
        return True

    def _end_of_group(self) -> None:
        try:
            self.commit()
        except StoreError as error:
            self.fail(error)
        except sqlite3.ProgrammingError:
            pass  # closed meanwhile, and committed by that

    def translated(self, error: BaseException) -> BaseException:
        """An SQLite or operating system error as the StoreError that a person can act on; any other as it is."""
        if isinstance(error, OSError):
            return StoreFullError(self._full()) if error.errno in _DISK_FULL else StoreError(f"{self.path}: {error}")
        if not isinstance(error, sqlite3.Error):
            return error
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _FULL or "disk is full" in str(error):
            return StoreFullError(self._full())
        if code == sqlite3.SQLITE_IOERR and self._free_bytes() < _FREE_BYTES_MIN:
            return StoreFullError(self._full())
        if code in _CORRUPT:
            return StoreCorruptError(
                f"{self.path} is damaged ({error}); move the folder away and crawl afresh, or restore a copy"
            )
        return StoreError(f"{self.path} cannot be used: {error}")

    def _full(self) -> str:
        return f"there is no space left for {self.path}; free some and run the same command again, nothing is lost"

    def _free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free

    def _configure(self, cache_bytes: int) -> None:
        run = self.connection.execute
        run("PRAGMA busy_timeout = 10000")
        run(f"PRAGMA cache_size = {-(cache_bytes // 1024)}")
        run("PRAGMA temp_store = MEMORY")
        if self.read_only:
            run("PRAGMA query_only = ON")
            return
        run("PRAGMA journal_mode = WAL")
        run("PRAGMA synchronous = NORMAL")
        run("PRAGMA secure_delete = OFF")
        # A page that changes often is copied into the database once a checkpoint, so fewer of them cost less.
        run("PRAGMA wal_autocheckpoint = 8000")
        run("PRAGMA journal_size_limit = 67108864")

    def _migrate(self) -> None:
        version = self._version()
        if version > len(MIGRATIONS):
            raise StoreTooNewError(
                f"{self.path} was written by a newer version of Trawl (format {version}, this one reads"
                f" {len(MIGRATIONS)}); upgrade Trawl, or name another folder"
            )
        if version == len(MIGRATIONS):
            return
        if self.read_only:
            raise StoreError(f"{self.path} has an older format ({version}); run `trawl crawl` on it once to upgrade it")
        with self.write() as connection:
            for number in range(self._version(), len(MIGRATIONS)):
                for statement in MIGRATIONS[number]:
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    def _version(self) -> int:
        return int(self.connection.execute("PRAGMA user_version").fetchone()[0])


class _Transaction:
    """A `with` block that is one transaction; gives the connection."""

    __slots__ = ("_begin", "_database")

    def __init__(self, database: Database, begin: str) -> None:
        self._database = database
        self._begin = begin

    def begin(self) -> None:
        """Open the transaction."""
        try:
            self._database.connection.execute(self._begin)
        except sqlite3.Error as error:
            raise self._database.translated(error) from error

    def end(self) -> None:
        """Close it so that it holds."""
        self._database.commit()

    def undo(self) -> None:
        """Close it so that it never was."""
        self._database.rollback()

    def __enter__(self) -> sqlite3.Connection:
        self.begin()
        return self._database.connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.end()
            return
        self.undo()
        if isinstance(error, sqlite3.Error):
            raise self._database.translated(error) from error


class _Member(_Transaction):
    """A transaction within a group: it can be undone alone, and holds when the group does."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, "SAVEPOINT member")

    def end(self) -> None:
        """Leave it to the group."""
        self._database.connection.execute("RELEASE member")

    def undo(self) -> None:
        """Undo it alone, unless SQLite has undone the whole group."""
        if self._database.connection.in_transaction:
            self._database.connection.execute("ROLLBACK TO member")
            self._database.connection.execute("RELEASE member")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._database.connection.in_transaction:
            self._database.fail(self._database.translated(error))
        super().__exit__(kind, error, trace)


class _Look(_Transaction):
    """A read while a group is open: it sees what the group has written."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, "")

    def begin(self) -> None:
        """The group is open already."""

    def end(self) -> None:
        """The group goes on."""

    def undo(self) -> None:
        """A read has nothing to undo."""


class FolderLock:
    """The right to write to an output folder: one process at a time, given back by the system when it dies.

    Holds an advisory lock (flock) on a file of the folder, which also names the holder's process id.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock; raises StoreInUseError, which names the holder, if another process has it."""
        self._path = folder / LOCK_NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreError(f"{folder} cannot be used as output folder: {error}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._file, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            in_use = StoreInUseError(
                f"{folder} is in use by another run (process {holder}); wait for it, stop it, or name another folder"
            )
            in_use.holder = int(holder) if holder.isdecimal() else 0
            raise in_use from error
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            # A full disk must not keep the holder from freeing space; the lock itself needs no bytes.
            pass

    def close(self) -> None:
        """Give the lock back; harmless if repeated."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
