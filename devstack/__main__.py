"""`python -m devstack up | down | ps | logs [NAME] | pin NAME`."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from devstack import packages, stack
from devstack.process import DevstackError
from devstack.server import Server

_TOPICS_SECONDS_MAX: Final = 120
_NEXT: Final = """
publish a seed    .venv/bin/trawl seed https://docs.example.com
metrics           http://127.0.0.1:{prometheus}
stop everything   make down
"""


def up(*, servers_only: bool) -> None:
    """Start what does not run, each after those that it needs."""
    for server in stack.servers():
        server.install()
        _start(server)
    _make_topics()
    if not servers_only:
        for service in stack.services():
            _start(service)
    _print(_NEXT.format(prometheus=stack.port("prometheus")))


def _make_topics() -> None:
    environment = {**stack.variables(), **os.environ}
    done = subprocess.run(
        stack.topics_command(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TOPICS_SECONDS_MAX,
        check=False,
    )
    if done.returncode:
        raise DevstackError(f"the topics are not as they should be: {done.stdout}{done.stderr}")


def _start(server: Server) -> None:
    ran = server.process.pid is not None
    server.start()
    _print(f"{server.name:<12} {'runs already' if ran else 'started'}  {server.url}")


def down() -> None:
    """Stop what was started here, in the reverse order."""
    for server in reversed([*stack.servers(), *stack.services()]):
        if server.process.pid is not None:
            server.stop()
            _print(f"{server.name:<12} stopped")


def ps() -> None:
    """Show what runs."""
    _print(f"{'name':<12} {'state':<10} {'pid':>7} {'memory':>8}  {'url':<42} log")
    for server in [*stack.servers(), *stack.services()]:
        pid = server.process.pid
        state = "stopped" if pid is None else "healthy" if server.healthy() else "not ready"
        memory = "" if pid is None else f"{server.process.memory_bytes // 2**20} MB"
        _print(f"{server.name:<12} {state:<10} {pid or '':>7} {memory:>8}  {server.url:<42} {server.process.log}")


def logs(name: str | None) -> None:
    """Show the ends of the logs, or of one."""
    everything = [*stack.servers(), *stack.services()]
    if name is not None and name not in {server.name for server in everything}:
        names = ", ".join(server.name for server in everything)
        raise DevstackError(f"there is no {name} to show the log of; there are {names}")
    for server in everything:
        if name in {None, server.name}:
            _print(f"== {server.name}: {server.process.log}\n{server.process.last_lines()}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "ps", "logs", "pin"))
    parser.add_argument("name", nargs="?", help="one server or service, for logs and pin")
    parser.add_argument("--servers-only", action="store_true", help="start no services")
    asked = parser.parse_args(arguments)
    try:
        match asked.command:
            case "up":
                up(servers_only=asked.servers_only)
            case "down":
                down()
            case "ps":
                ps()
            case "logs":
                logs(asked.name)
            case "pin":
                packages.pin(asked.name)
    except DevstackError as error:
        sys.stderr.write(f"devstack: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
