"""Trawl: polite crawling, real extraction, near-duplicate removal and search."""

from trawl._version import __version__

__all__ = ["__version__"]
