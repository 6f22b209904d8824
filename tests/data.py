"""Where the public data sets are."""

import os
from pathlib import Path

DATA = Path(os.environ.get("TRAWL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def require(name: str) -> Path:
    """The path of one data set, or a clear failure."""
    path = DATA / name
    if not path.exists():
        raise FileNotFoundError(f"the data set {name} is not in {DATA}; set TRAWL_DATA to the folder that holds it")
    return path
