"""The command line: `trawl --help`."""

from trawl.cli.main import main

__all__ = ["main"]
