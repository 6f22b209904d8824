"""`python -m devstack up | down [NAME] | ps | logs [NAME] | env | pin NAME`."""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from devstack import packages, stack
from devstack.process import DevstackError
from devstack.server import Server

_TOPICS_SECONDS_MAX: Final = 120
_UNUSABLE: Final = 2
"""The exit code of `trawl` for settings that cannot be used."""
_NEXT: Final = """
its settings      eval "$(.venv/bin/python -m devstack env)"    # in each new shell, before the commands below
publish a seed    .venv/bin/trawl seed https://docs.example.com
how far it is     .venv/bin/trawl status --kafka {kafka} --redis {redis}
search            .venv/bin/trawl search --opensearch {opensearch} how to begin
what runs         make ps, and metrics on {prometheus}
stop everything   make down
"""
_MEND: Final = "What was started runs on. Mend it and run make up again, which starts the rest; make down stops all.\n"


def up(*, servers_only: bool) -> None:
    """Start what does not run: the servers together, each after what it needs, then the services together."""
    for server in stack.servers():
        server.install()
    _start(stack.servers())
    _make_topics()
    if not servers_only:
        _start(stack.services())
    urls = {server.name: server.url for server in stack.servers()}
    _print(_NEXT.format(**urls))


def _start(several: Sequence[Server]) -> None:
    ran = {server.name for server in several if server.process.pid is not None}
    for server in several:
        server.launch()
    for server in several:
        server.wait()
        _print(f"{server.name:<12} {'runs already' if server.name in ran else 'started':<12}  {server.url}")


def _make_topics() -> None:
    done = subprocess.run(
        stack.topics_command(),
        env={**stack.variables(), **os.environ},
        capture_output=True,
        text=True,
        timeout=_TOPICS_SECONDS_MAX,
        check=False,
    )
    if done.returncode == _UNUSABLE:
        raise DevstackError(f"the settings cannot be used: {done.stderr.strip()}")
    if done.returncode:
        raise DevstackError(f"the topics are not as they should be: {(done.stdout + done.stderr).strip()}")


def down(name: str | None) -> None:
    """Stop what was started here, in the reverse order, or one of it."""
    for server in reversed(_named(name)):
        if server.process.pid is not None:
            server.stop()
            _print(f"{server.name:<12} stopped")


def ps() -> None:
    """Show what runs."""
    _print(f"{'name':<12} {'state':<10} {'pid':>7} {'port':>5} {'memory':>8}  {'url':<42} log")
    for server in [*stack.servers(), *stack.services()]:
        pid = server.process.pid
        state = "stopped" if pid is None else "healthy" if server.healthy() else "not ready"
        memory = "" if pid is None else f"{server.process.memory_bytes // 2**20} MB"
        _print(
            f"{server.name:<12} {state:<10} {pid or '':>7} {server.port:>5} {memory:>8}  {server.url:<42}"
            f" {server.process.log}"
        )


def logs(name: str | None) -> None:
    """Show the ends of the logs, or of one."""
    for server in _named(name):
        _print(f"== {server.name}: {server.process.log}\n{server.process.last_lines()}")


def _named(name: str | None) -> list[Server]:
    """Everything, or the one of that name."""
    everything = [*stack.servers(), *stack.services()]
    found = [server for server in everything if name in {None, server.name}]
    if not found:
        raise DevstackError(f"there is no {name} here; there are {', '.join(server.name for server in everything)}")
    return found


def env() -> None:
    """Show, for a shell, the variables that lead `trawl` to this stack."""
    for variable, text in stack.variables().items():
        _print(f"export {variable}={shlex.quote(text)}")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> int:
    """Run one command; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m devstack", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "ps", "logs", "env", "pin"))
    parser.add_argument("name", nargs="?", help="one server or service, for down and logs; for pin one of artifacts")
    parser.add_argument("--servers-only", action="store_true", help="start no services")
    asked = parser.parse_args(arguments)
    if asked.command == "pin" and asked.name not in packages.RECIPES:
        parser.error(f"pin takes one of {', '.join(packages.RECIPES)}")
    try:
        _run(asked.command, asked.name, servers_only=asked.servers_only)
    except DevstackError as error:
        sys.stderr.write(f"devstack: {error}\n{_MEND if asked.command == 'up' else ''}")
        return 1
    return 0


def _run(command: str, name: str | None, *, servers_only: bool) -> None:
    match command:
        case "up":
            up(servers_only=servers_only)
        case "down":
            down(name)
        case "ps":
            ps()
        case "logs":
            logs(name)
        case "env":
            env()
        case _:
            packages.pin(str(name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
