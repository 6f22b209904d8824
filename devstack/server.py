"""What all servers have in common: installed, started, watched and stopped; every step may be taken again."""

import http.client
import os
import signal
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from devstack import guard
from devstack.process import DevstackError, Process, is_open

_HTTP_SECONDS: Final = 3.0
_ANSWER_BYTES_MAX: Final = 1_000_000
_POLL_SECONDS: Final = 0.1


class Server(ABC):
    """A server on loopback with a folder of its own; every method may be called at any time, and again.

    Started by `start`, it runs until `stop`; in a `with` statement, until its end or that of this process.
    """

    name: str
    start_seconds_max: float = 60.0

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.process = Process(self.name, folder)

    def __enter__(self) -> Self:
        self.install()
        guard.watch(self.process)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def place(self) -> Path:
        """The folder that it runs in."""
        return self.folder

    @property
    def ports(self) -> Mapping[str, int]:
        """All ports that it listens on, by their names in the table of ports."""
        return {self.name: self.port}

    @abstractmethod
    def install(self) -> None:
        """Fetch what it is made of, once; raises DevstackError."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """What starts it, after it was installed and prepared."""

    @abstractmethod
    def healthy(self) -> bool:
        """Whether it serves."""

    def prepare(self) -> None:
        """Write its configuration, and its data folder if that is empty."""
        return

    def environment(self) -> dict[str, str]:
        """The variables that it gets."""
        return dict(os.environ)

    def start(self) -> None:
        """Start it and wait until it serves; raises DevstackError with the end of its log. It stays if it runs."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it without waiting; raises DevstackError if a port of it is taken. It stays if it runs."""
        if self.process.pid is None:
            self._check_ports()
            self.folder.mkdir(parents=True, exist_ok=True)
            self.prepare()
            self.process.start(self.command(), self.environment(), cwd=self.place)

    def _check_ports(self) -> None:
        for name, port in self.ports.items():
            if is_open(port):
                raise DevstackError(
                    f"{self.name} cannot start: another process listens on port {port}; stop it, or choose another with"
                    f" DEVSTACK_{name.upper()}_PORT"
                )

    def wait(self) -> None:
        """Wait until it serves; raises DevstackError with the end of its log, and what it says that it waits for."""
        end = time.monotonic() + self.start_seconds_max
        while not self.healthy():
            if self.process.pid is None:
                raise DevstackError(f"{self.name} has ended at its start; {self._log()}")
            if time.monotonic() > end:
                raise DevstackError(f"{self.name} does not serve after {self.start_seconds_max:.0f} s; {self._log()}")
            time.sleep(_POLL_SECONDS)

    def complaint(self) -> str:
        """What it says itself that it waits for; empty if it cannot say."""
        return ""

    def _log(self) -> str:
        complaint = self.complaint()
        told = f"it waits for:\n{complaint}\n" if complaint else ""
        return f"{told}the end of {self.process.log}:\n{self.process.last_lines()}"

    def stop(self) -> None:
        """Let it end in order."""
        self.process.stop()

    def kill(self) -> None:
        """End it as a power failure would."""
        self.process.stop(signal.SIGKILL)


def ask(url: str) -> tuple[int, bytes]:
    """The status and the first megabyte of an answer, asked for without a proxy; status 0 without an answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_HTTP_SECONDS) as answer:
            return int(answer.status), bytes(answer.read(_ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(_ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException):
        return 0, b""


def answers(url: str) -> bytes | None:
    """The body of a successful answer; None without one."""
    status, body = ask(url)
    return body if status == http.HTTPStatus.OK else None
