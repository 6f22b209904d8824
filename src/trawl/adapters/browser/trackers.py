"""Hosts that serve trackers and advertisements, whose scripts bring a page no content of its own."""

from functools import lru_cache
from importlib.resources import files


@lru_cache(maxsize=1)
def trackers() -> frozenset[str]:
    """Registrable domains, or hosts below them, of `trackers.txt`."""
    return frozenset(files(__package__).joinpath("trackers.txt").read_text(encoding="ascii").split())


def is_tracker(host: str) -> bool:
    """Whether a host, or one above it, serves trackers."""
    labels = host.lower().rstrip(".").split(".")
    return any(".".join(labels[at:]) in trackers() for at in range(len(labels) - 1))
