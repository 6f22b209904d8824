"""Where the public data sets are."""

import os
import sys
from pathlib import Path

DATA = Path(os.environ.get("TRAWL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def require(name: str) -> Path:
    """The path of one data set.

    Without it a test is skipped, with the reason in the closing lines; in CI, and outside tests, it is an error.
    """
    path = DATA / name
    if path.exists():
        return path
    missing = f"the data set {name} is not in {DATA}; set TRAWL_DATA to the folder that holds it"
    if "pytest" in sys.modules and not os.environ.get("CI"):
        import pytest  # noqa: PLC0415 - the fake web's own process must not need it

        pytest.skip(missing, allow_module_level=True)
    raise FileNotFoundError(missing)
