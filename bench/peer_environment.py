"""The virtual environment of the peers, `.bench/peers`: made when it is asked for, from `bench/peers.lock`."""

import hashlib
import subprocess
import sys
from pathlib import Path

from bench.measure import ROOT, WORK

LOCK = ROOT / "bench" / "peers.lock"
_FOLDER = WORK / "peers"
_INSTALL_SECONDS_MAX = 1200
_ERROR_CHARS = 400


class PeerInstallError(Exception):
    """The peers cannot be installed; the text is the end of what the installer said."""


def peer_python() -> Path:
    """The interpreter that has the peers; raises PeerInstallError."""
    python, stamp = _FOLDER / "bin" / "python", _FOLDER / ".installed"
    wanted = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    sys.stderr.write(f"installing the peers into {_FOLDER.relative_to(ROOT)} (once, about two minutes)\n")
    _run([sys.executable, "-m", "venv", "--clear", str(_FOLDER)])
    _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", str(LOCK)])
    stamp.write_text(wanted)
    return python


def locked_version(name: str) -> str:
    """The version of a distribution in the lock, or nothing."""
    for line in LOCK.read_text().splitlines():
        package, _, version = line.partition("==")
        if package == name:
            return version.split()[0]
    return ""


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerInstallError(f"the peers cannot be installed: {error}") from error
    if done.returncode:
        raise PeerInstallError(f"the peers cannot be installed: {done.stderr.strip()[-_ERROR_CHARS:]}")
