"""A real server that speaks S3, in a process of its own."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devstack.process import free_port

BUCKET: Final = "trawl-blobs"
_START_SECONDS: Final = 60.0


@dataclass(frozen=True)
class S3Server:
    """A server that runs, with one bucket."""

    url: str
    bucket: str = BUCKET


@contextmanager
def s3_running(folder: Path, *, port: int = 0, open_requests: int | None = None) -> Iterator[S3Server]:
    """Start moto's server with one bucket; it is stopped at the end.

    After that many requests, each must be signed by a user that it knows; it knows none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {} if open_requests is None else {"INITIAL_NO_AUTH_ACTION_COUNT": str(open_requests)}
    with (folder / "s3.log").open("wb") as log:
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environ})
    try:
        _wait(url, process)
        urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT")).close()
        yield S3Server(url)
    finally:
        process.terminate()
        process.wait(10)


def _wait(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _START_SECONDS
    while True:
        assert process.poll() is None, "the S3 server ended at its start"
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except (urllib.error.URLError, TimeoutError):
            assert time.monotonic() < until, "the S3 server did not start"
            time.sleep(0.1)
        else:
            return
