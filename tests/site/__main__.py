"""The fake web as a process of its own: `python -m tests.site --site KIND[:HOST[:N]] …`.

Prints one JSON line (`url`, `https_url`, `proxy`, `ca_file`, `pid`), then serves until standard input closes or
SIGTERM.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.data import DATA
from tests.site.control import control
from tests.site.model import Site
from tests.site.responders import robots
from tests.site.sites import archive, demo, misbehaving, onesite, onesite_generated, tiny
from tests.site.web import FakeWeb

Maker = Callable[[str, int | None, Path], list[Site]]

KINDS: Mapping[str, tuple[str, Maker]] = {
    "demo": ("demo.test", lambda host, _n, _data: [demo(host)]),
    "misbehaving": ("bad.test", lambda host, _n, _data: [misbehaving(host)]),
    "robots": ("robots.test", lambda domain, _n, _data: robots.sites(domain)),
    "tiny": ("tiny.test", lambda host, n, _data: [tiny(host, n or 2_000)]),
    "tiny-delay": ("tiny.test", lambda host, n, _data: [tiny(host, n or 100, crawl_delay_seconds=1)]),
    "archive": ("", lambda _host, _n, data: archive(data)),
    "onesite": ("onesite.test", lambda host, n, data: [onesite(data, host, pages_max=n)]),
    "onesite-generated": ("onesite.test", lambda host, n, _data: [onesite_generated(n or 2_000, host)]),
}


def sites_of(specification: str, data: Path) -> list[Site]:
    """The sites that `KIND[:HOST[:N]]` means."""
    kind, host, number = (*specification.split(":"), "", "")[:3]
    default_host, make = KINDS[kind]
    return make(host or default_host, int(number) if number else None, data)


async def serve(specifications: list[str], data: Path, *, log_requests_max: int) -> None:
    stop = _stop_event()  # before anyone is told where we are: a signal that comes first would leave the folder behind
    web = FakeWeb(log_requests_max=log_requests_max)
    for specification in specifications:
        web.add(*sites_of(specification, data))
    web.add(control(web.log))
    gc.collect()
    gc.freeze()  # the pages stay: collections need not look at them
    async with web:
        places = {"url": web.url, "https_url": web.https_url, "proxy": web.proxy, "ca_file": str(web.ca_file)}
        sys.stdout.write(json.dumps({**places, "pid": os.getpid()}) + "\n")
        sys.stdout.flush()
        await stop.wait()


def _stop_event() -> asyncio.Event:
    """Set by SIGTERM, by Ctrl-C and by the end of standard input."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    # A thread, because not everything that can be standard input can be polled.
    threading.Thread(target=_wait_for_end_of_input, args=(loop, stop), daemon=True).start()
    return stop


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(0, 65536):
        pass
    with contextlib.suppress(RuntimeError):  # the loop has already ended, by a signal
        loop.call_soon_threadsafe(stop.set)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description=__doc__)
    kinds = ", ".join(KINDS)
    parser.add_argument("--site", action="append", required=True, help=f"KIND[:HOST[:N]], KIND one of {kinds}")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data sets (default: TRAWL_DATA)")
    parser.add_argument("--no-log", action="store_true", help="count requests without keeping them")
    options = parser.parse_args()
    log_requests_max = 0 if options.no_log else 1_000_000
    asyncio.run(serve(options.site, options.data, log_requests_max=log_requests_max))


if __name__ == "__main__":
    main()
