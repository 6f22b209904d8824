"""What the servers are made of: Maven artifacts of pinned versions and checksums, and packages of the system."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from devstack.process import DevstackError

ROOT: Final = Path(__file__).resolve().parent
CACHE: Final = Path(os.environ.get("DEVSTACK_CACHE", ROOT.parent / ".devstack" / "cache"))
"""Where artifacts are kept; ignored by git."""
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
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    _run(["apt-get", "update", "-qq"], environment)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", package], environment)
    found = shutil.which(command)
    if found is None:
        raise DevstackError(f"the package {package} was installed, but there is no command {command}")
    return found


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=_APT_SECONDS_MAX, check=False
    )
    if done.returncode:
        raise DevstackError(f"{' '.join(command)} failed: {done.stderr[-_TAIL_CHARS:]}")


def java() -> str:
    """The path of a Java runtime."""
    return require("java", "openjdk-17-jre-headless")


def maven(name: str, *, pinned: bool = True) -> Path:
    """The folder of a server's artifacts by its `NAME/pom.xml`, downloaded once and checked; raises DevstackError."""
    folder = CACHE / f"{name}-{_version(name)}"
    if (folder / ".complete").exists():
        return folder
    command = require("mvn", "maven")
    java()
    staged = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir(parents=True)
    done = subprocess.run(
        [command, "-B", "-q", "-f", str(ROOT / name / "pom.xml"), "process-resources", f"-Dos.stage={staged}"],
        capture_output=True,
        text=True,
        timeout=_MAVEN_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise DevstackError(
            f"the artifacts of {name} could not be fetched: {(done.stdout + done.stderr)[-_TAIL_CHARS:]}"
        )
    if pinned:
        check(name, staged)
    (staged / ".complete").touch()
    shutil.rmtree(folder, ignore_errors=True)
    staged.replace(folder)
    return folder


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
