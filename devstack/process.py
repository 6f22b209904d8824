"""A process that is ours: started once, found again by a later command, and stopped alone."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_STOP_SECONDS_MAX: Final = 30.0
_POLL_SECONDS: Final = 0.05
_LOG_LINES: Final = 15


class DevstackError(Exception):
    """A server cannot be installed, started or stopped; the text says what happened and what to do."""


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
        try:
            number, _, began = self._file.read_text().partition(" ")
        except FileNotFoundError:
            return None
        return int(number) if number.isdigit() and _began(int(number)) == began != "" else None

    def start(self, command: Sequence[str], environment: Mapping[str, str], *, cwd: Path | None = None) -> None:
        """Start it in a session of its own, so that no signal of a terminal reaches it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
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
        self._file.write_text(f"{child.pid} {_began(child.pid)}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Stop it, and only it; KILL after half a minute. Harmless if it does not run."""
        pid = self.pid
        if pid is not None:
            _signal(pid, number)
            if not _gone(pid, _STOP_SECONDS_MAX):
                _signal(pid, signal.SIGKILL)
                _gone(pid, _STOP_SECONDS_MAX)
            if pid in _CHILDREN:
                _CHILDREN.pop(pid).wait()
        self._file.unlink(missing_ok=True)

    def last_lines(self) -> str:
        """The end of its log."""
        try:
            text = self.log.read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-_LOG_LINES:])


_CHILDREN: dict[int, "subprocess.Popen[bytes]"] = {}
"""Processes started by this one, to be reaped when they end."""


def _began(pid: int) -> str:
    """When a process began, as the system tells it; empty if there is none, or only its remains."""
    child = _CHILDREN.get(pid)
    if child is not None and child.poll() is not None:
        return ""
    done = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, began = done.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else " ".join(began.split())


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
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
