"""Ends the servers of a process that cannot end them itself any more, because it was killed.

A test run starts servers in sessions of their own, so that no Ctrl-C reaches them. If the run is killed, nobody would
stop them. So a small process waits for the end of a pipe that only the run holds open, then ends what it was told.
"""

import atexit
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from devstack.process import Process

_CHECKOUT: Final = Path(__file__).resolve().parents[1]
_END_SECONDS_MAX: Final = 60.0
_GUARDS: Final[list["subprocess.Popen[str]"]] = []


def watch(process: Process) -> None:
    """End a process when this one has ended, however it ends. What was stopped, or runs on its own, is left alone."""
    _tell("end", process.name, process.folder)


def forget(folder: Path) -> None:
    """Delete a folder when this process and those that it watches have ended."""
    _tell("forget", "-", folder)


def _tell(order: str, name: str, folder: Path) -> None:
    if not _GUARDS:
        guard = subprocess.Popen(
            [sys.executable, "-m", "devstack.guard"],
            cwd=_CHECKOUT,
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        _GUARDS.append(guard)
        atexit.register(_let_go, guard)
    pipe = _GUARDS[0].stdin
    assert pipe is not None
    pipe.write(f"{order} {name} {folder.resolve()}\n")
    pipe.flush()


def _let_go(guard: "subprocess.Popen[str]") -> None:
    assert guard.stdin is not None
    guard.stdin.close()
    guard.wait(_END_SECONDS_MAX)


def main(lines: Iterable[str]) -> None:
    """Read orders until the pipe ends, then end the processes that still run, then delete folders."""
    orders = [line.rstrip("\n").split(" ", 2) for line in lines]
    for order, name, folder in sorted(orders, key=lambda told: told[0]):
        if order == "end":
            Process(name, Path(folder)).stop(signal.SIGKILL)
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.stdin)
