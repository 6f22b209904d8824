"""A process that is ours: started once, found again by a later command, and stopped alone."""

import atexit
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

_STOP_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.05
_PS_SECONDS_MAX: Final = 10
_LOG_LINES: Final = 15
_LOG_BYTES_MAX: Final = 20_000_000
"""A log that is larger when its process starts is put aside; one older log is kept."""
_PROC: Final = Path("/proc")


class DevstackError(Exception):
    """A server cannot be installed, started or stopped; the text says what happened and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """What a pid file holds."""

    pid: int
    began: str
    """When it began: with it, an id that the system has given to another process is not taken for ours."""
    log_from: int
    """Where in the log it began, in bytes."""


class Process:
    """One background process with a log and a pid file that names it beyond doubt: its id and when it began."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.log = folder / f"{name}.log"
        self._file = folder / f"{name}.pid"

    @property
    def pid(self) -> int | None:
        """Its id while it runs; None if it does not, or if the id belongs to another process by now."""
        mark = self._mark()
        return mark.pid if mark is not None and mark.began and _began(mark.pid) == mark.began else None

    def _mark(self) -> _Mark | None:
        try:
            return _Mark(**json.loads(self._file.read_text("utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def start(self, command: Sequence[str], environment: Mapping[str, str], *, cwd: Path | None = None) -> None:
        """Start it in a session of its own, so that no signal of a terminal reaches it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > _LOG_BYTES_MAX:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            log_from = log.tell()
            child = subprocess.Popen(
                command,
                env=dict(environment),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _CHILDREN[child.pid] = child
        mark = _Mark(pid=child.pid, began=_began(child.pid), log_from=log_from)
        self._file.write_text(json.dumps(asdict(mark)), "utf-8")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, and only it; KILL, to what it started as well, after half a minute. Harmless if it does not run."""
        pid = self.pid
        if pid is not None:
            _signal(pid, number)
            if not _gone(pid, _STOP_SECONDS_MAX):
                _signal(pid, signal.SIGKILL)
                if not _gone(pid, _STOP_SECONDS_MAX):
                    raise DevstackError(f"{self.name}, process {pid}, does not end even after SIGKILL")
            if pid in _CHILDREN:
                _CHILDREN.pop(pid).wait()
        self._file.unlink(missing_ok=True)

    def text(self) -> str:
        """Its log since it was last started."""
        mark = self._mark()
        try:
            with self.log.open("rb") as log:
                log.seek(mark.log_from if mark is not None else 0)
                return log.read(_LOG_BYTES_MAX).decode("utf-8", "replace")
        except FileNotFoundError:
            return ""

    def last_lines(self) -> str:
        """The end of its log since it was last started."""
        return "\n".join(self.text().splitlines()[-_LOG_LINES:])

    @property
    def memory_bytes(self) -> int:
        """What it and the processes that it started hold in memory; 0 if it does not run."""
        pid = self.pid
        return 1024 * sum(int(line) for line in _ps("-o", "rss=", "-g", str(pid)).split()) if pid is not None else 0


_CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}
"""Processes started by this one, to be reaped when they end."""


@atexit.register
def _release() -> None:
    """Reap what has ended, and say nothing of what runs on: it is to outlive this process."""
    for child in _CHILDREN.values():
        if child.poll() is None:
            child.returncode = 0


def _began(pid: int) -> str:
    """When a process began, as the system tells it; empty if there is none, or only its remains."""
    child = _CHILDREN.get(pid)
    if child is not None and child.poll() is not None:
        return ""
    if not (_PROC / "self" / "stat").exists():
        state, _, began = _ps("-o", "stat=,lstart=", "-p", str(pid)).strip().partition(" ")
        return "" if state.startswith("Z") else " ".join(began.split())
    try:
        text = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    state, *fields = text.rpartition(")")[2].split()
    return "" if state in "XZ" else fields[18]  # the 22nd of proc(5): clock ticks since the machine was started


def _ps(*arguments: str) -> str:
    command = ["ps", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=_PS_SECONDS_MAX, check=False).stdout


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if number == signal.SIGKILL:
            os.killpg(pid, number)  # it leads a group of its own; asked to end in order, it ends the others itself
        else:
            os.kill(pid, number)


def _gone(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not _began(pid):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def is_open(port: int) -> bool:
    """Whether something listens on a port of loopback."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """A port of loopback that nothing listens on now, below those that the system gives to clients."""
    for port in random.sample(range(20_000, 32_000), 1000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise DevstackError("no port of loopback between 20000 and 32000 is free")
