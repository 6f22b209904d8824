"""What the servers are made of: Maven artifacts of pinned versions and checksums, and packages of the system."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from devstack.process import DevstackError

ROOT: Final = Path(__file__).resolve().parent
RECIPES: Final = ("kafka", "registry", "opensearch")
"""Servers that are made of Maven artifacts."""
_PUBLIC: Final = Path("/var/lib/trawl-devstack")


def closed(folder: Path) -> Path | None:
    """The first folder on the way to one that a plain user cannot enter; None if the way is open."""
    existing = (path for path in reversed(folder.absolute().parents) if path.is_dir())
    return next((path for path in existing if not path.stat().st_mode & 0o001), None)


def _place() -> Path:
    place = ROOT.parent / ".devstack"
    return _PUBLIC if os.geteuid() == 0 and closed(place) else place


PLACE: Final = _place()
"""`.devstack` in the checkout, ignored by git. Root's OpenSearch runs as a plain user; if that cannot enter the
checkout, as below /root, it is /var/lib/trawl-devstack."""
CACHE: Final = Path(os.environ.get("DEVSTACK_CACHE", PLACE / "cache"))
"""Where artifacts are kept."""
_MAVEN_SECONDS_MAX: Final = 900
_APT_SECONDS_MAX: Final = 600
_TAIL_CHARS: Final = 2000


def require(command: str, package: str) -> str:
    """The path of a command, its Debian package installed first if it is missing and we may; else DevstackError."""
    found = shutil.which(command)
    if found is not None:
        return found
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise DevstackError(f"the command {command} is missing; install it first: sudo apt-get install {package}")
    sys.stderr.write(f"devstack: installing the package {package}, once\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    _run(["apt-get", "update", "-qq"], environment, _APT_SECONDS_MAX)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], environment, _APT_SECONDS_MAX)
    found = shutil.which(command)
    if found is None:
        raise DevstackError(f"the package {package} was installed, but there is no command {command}")
    return found


def _run(command: list[str], environment: Mapping[str, str], seconds_max: float) -> None:
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=seconds_max, check=False
        )
    except subprocess.TimeoutExpired:
        raise DevstackError(
            f"{' '.join(command)} has not ended after {seconds_max:.0f} s; is the network slow?"
        ) from None
    if done.returncode:
        raise DevstackError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-_TAIL_CHARS:]}")


def java() -> str:
    """The path of a Java runtime."""
    return require("java", "openjdk-17-jre-headless")


def maven(name: str, *, pinned: bool = True) -> Path:
    """The folder of a server's artifacts by its `NAME/pom.xml`, downloaded once and checked; raises DevstackError."""
    folder = CACHE / f"{name}-{_version(name)}"
    if (folder / ".complete").exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    staged.chmod(0o755)
    try:
        _fetch(name, staged)
        if pinned:
            check(name, staged)
        (staged / ".complete").touch()
        _move(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return folder


def _move(staged: Path, folder: Path) -> None:
    try:
        staged.replace(folder)
    except OSError:
        if not (folder / ".complete").exists():  # else another process was first, and what it fetched was checked too
            raise


def _fetch(name: str, folder: Path) -> None:
    java()
    sys.stderr.write(f"devstack: fetching the artifacts of {name}, once\n")
    pom = str(ROOT / name / "pom.xml")
    command = [require("mvn", "maven"), "-B", "-q", "-f", pom, "process-resources", f"-Dos.stage={folder}"]
    try:
        _run(command, os.environ, _MAVEN_SECONDS_MAX)
    except DevstackError as error:
        raise DevstackError(f"the artifacts of {name} could not be fetched: {error}") from None


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a tar archive into a new folder; another process may do the same at the same time."""
    staged = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", suffix=".tmp", dir=folder.parent))
    staged.chmod(0o755)
    try:
        _run(["tar", "-xzf", str(archive), "-C", str(staged)], os.environ, _APT_SECONDS_MAX)
        (staged / ".complete").touch()
        _move(staged, folder)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _version(name: str) -> str:
    """A name for what the recipe of a server makes: it changes when the recipe or a checksum does."""
    parts = [path.read_bytes() for path in sorted((ROOT / name).iterdir()) if path.is_file()]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def check(name: str, folder: Path) -> None:
    """Raise DevstackError unless the jars and archives of a folder are exactly those of `NAME/checksums.txt`."""
    lines = (ROOT / name / "checksums.txt").read_text().splitlines()
    known = {path: digest for digest, path in (line.split("  ", 1) for line in lines)}
    found = dict(checksums(folder))
    for path in sorted(known.keys() | found.keys()):
        if known.get(path) != found.get(path):
            raise DevstackError(
                f"{path} of {name} has the SHA-256 {found.get(path)}, not {known.get(path)}: it is not the artifact"
                f" that was pinned. Delete it from Maven's cache and try again; if it is meant to change, pin it anew"
                f" with `python -m devstack pin {name}`"
            )


def checksums(folder: Path) -> list[tuple[str, str]]:
    """The relative paths of all jars and archives below a folder, each with its SHA-256 in hex."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name.endswith((".jar", ".gz", ".zip"))]
    return sorted(
        (path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files
    )


def pin(name: str) -> None:
    """Write the checksums of a server's artifacts anew, as they are fetched now: after a change of its versions."""
    path = ROOT / name / "checksums.txt"
    path.write_text("")
    lines = [f"{digest}  {file}\n" for file, digest in checksums(maven(name, pinned=False))]
    path.write_text("".join(lines))
