"""The group of commands, its exit codes, and how errors are told."""

import logging
import os
import sys
from typing import Any

import click

from trawl._version import __version__
from trawl.cli.terminal import tell
from trawl.errors import EmbedderError, FetchRefusedError, KafkaError, StoreError, TrawlError

EXIT_CODES = """\b
Exit codes:
  0    done
  1    done, but not one page could be fetched, or nothing was found or extracted
  2    the command, a setting or a URL cannot be used
  3    a store, Kafka or the embedder cannot serve: folder in use, disk full, newer version, damaged, not reachable
  130  interrupted; the same command goes on where it stopped
"""

_COMMANDS = {
    "crawl": ("trawl.cli.crawl", "crawl"),
    "extract": ("trawl.cli.extract", "extract"),
    "search": ("trawl.cli.search", "search"),
    "status": ("trawl.cli.status", "status"),
    "robots": ("trawl.cli.inspect", "robots"),
    "policy": ("trawl.cli.policy", "policy"),
    "url": ("trawl.cli.inspect", "url"),
    "botauth": ("trawl.cli.botauth", "botauth"),
    "seed": ("trawl.cli.deployed", "seed"),
    "topics": ("trawl.cli.deployed", "topics"),
    "dlq": ("trawl.cli.letters", "dlq"),
    "rebuild": ("trawl.cli.rebuild", "rebuild"),
}


class _Commands(click.Group):
    """Loads a command when it is asked for, so that `trawl --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of use."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        loaded = __import__(module, fromlist=[name])
        command: click.Command = getattr(loaded, name)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, "-V", "--version", prog_name="trawl", message="%(prog)s %(version)s")
def cli() -> None:
    """Crawl the web politely into a clean, searchable corpus.

    \b
      trawl crawl https://docs.example.com     crawl a site into ./crawls/docs.example.com
      trawl search "how do I log in"           search what was crawled
      trawl extract page.html                  one page as Markdown

    Every setting can stand in a TOML file (--config), in a variable such as TRAWL_FETCH_BODY_BYTES_MAX, or on the
    command line, which wins.
    """  # noqa: D301 - \b keeps the lines as they are


def main() -> None:
    """Run the command line and exit with one of the documented codes."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is loaded: its threads spin, and ours have work
    for name in ("aiokafka", "opensearch"):  # what they log of an error, the error says better
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        result: Any = cli.main(standalone_mode=False)
    except click.exceptions.Abort:
        tell("interrupted", err=True)
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except FetchRefusedError as error:
        _tell(error)
        sys.exit(1)
    except (StoreError, KafkaError, EmbedderError) as error:
        _tell(error)
        sys.exit(3)
    except TrawlError as error:
        _tell(error)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    sys.exit(result if isinstance(result, int) else 0)


def _tell(error: TrawlError) -> None:
    tell(f"trawl: {error}", err=True)
