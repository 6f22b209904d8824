"""A fake web in a process of its own, started and asked from synchronous code."""

import http.client
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

from tests.site.log import CONTROL_HOST
from tests.site.message import Request

_ROOT = Path(__file__).resolve().parents[2]


class WebProcess:
    """A context manager around `python -m tests.site`; `sites` are KIND[:HOST[:N]], see `tests.site.__main__`.

    `at_seconds` of its hits is `time.monotonic()`, which on Linux and macOS is one clock for all processes.
    """

    def __init__(self, *sites: str, log: bool = True, data: Path | None = None) -> None:
        arguments = [item for site in sites for item in ("--site", site)]
        arguments += [] if log else ["--no-log"]
        arguments += ["--data", str(data)] if data else []
        self._command = [sys.executable, "-m", "tests.site", *arguments]
        self._process: subprocess.Popen[str] | None = None
        self.url = self.https_url = self.proxy = ""
        self.ca_file = Path()
        self.pid = 0

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.__exit__(None, None, None)
            raise RuntimeError(f"the fake web did not start: {' '.join(self._command)}")
        places = json.loads(line)
        self.url, self.https_url, self.proxy = places["url"], places["https_url"], places["proxy"]
        self.ca_file, self.pid = Path(places["ca_file"]), places["pid"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        with self._process:  # closes its standard input, which ends it, and waits
            pass

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def total(self) -> int:
        """Requests so far, to all hosts."""
        return int(self._ask("/total"))

    def hits(self, host: str | None = None, path: str | None = None) -> list[Request]:
        chosen = {name: value for name, value in (("host", host), ("path", path)) if value is not None}
        return [Request(**row, head=head.encode("latin-1")) for row, head in self._ask(f"/hits?{urlencode(chosen)}")]

    def gaps(self, host: str) -> list[float]:
        times = [one.at_seconds for one in self.hits(host)]
        return [later - earlier for earlier, later in pairwise(times)]

    def clear(self) -> None:
        self._ask("/clear")

    def _ask(self, target: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", target, headers={"Host": CONTROL_HOST})
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()
