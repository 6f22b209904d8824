"""At a release: promise that bytes written by the current schemas can be read for ever.

    python tools/freeze.py

keeps each schema in `schemas/history/` under its fingerprint, and a record written with it in `tests/golden/`: the
bytes, and beside them the expected value as JSON. A file that exists is never written again.
"""

import dataclasses
import json
import sys
import types
import zlib
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from trawl.adapters.avro import AvroCodec, fingerprint
from trawl.adapters.schemas import schema_text
from trawl.plain import RECORD_CLASSES, to_plain

ROOT = Path(__file__).resolve().parents[1]
HISTORY = ROOT / "schemas" / "history"
GOLDEN = ROOT / "tests" / "golden"


def main() -> int:
    """Keep what is not kept yet; give the exit code."""
    codec = AvroCodec()
    for name, cls in RECORD_CLASSES.items():
        stem = f"{name}.{fingerprint(schema_text(name)).hex()}"
        record = sample(cls, name)
        plain = json.dumps(to_plain(record), ensure_ascii=False, indent=2) + "\n"
        keep(HISTORY / f"{stem}.avsc", schema_text(name).encode())
        keep(GOLDEN / f"{stem}.avro", codec.encode(record))
        keep(GOLDEN / f"{stem}.json", plain.encode())
    return 0


def keep(path: Path, data: bytes) -> None:
    """Write a file unless it exists."""
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(data)
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def sample(cls: type, path: str) -> Any:
    """Give a record with a value in every field that tells it from the others and from the default."""
    hints = get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]
    return cls(**{name: sample_value(hints[name], f"{path}.{name}") for name in names})


def sample_value(hint: Any, path: str) -> Any:
    """Give a value of a type, made from the path of its field."""
    if get_origin(hint) is types.UnionType:
        return sample_value(next(arm for arm in get_args(hint) if arm is not types.NoneType), path)
    if get_origin(hint) is tuple:
        return tuple(sample_value(get_args(hint)[0], f"{path}.{index}") for index in range(2))
    if dataclasses.is_dataclass(hint):
        return sample(hint, path)  # type: ignore[arg-type]  # mypy: instance or class; hints are classes
    if issubclass(hint, StrEnum):
        return list(hint)[-1]
    number = zlib.crc32(path.encode())
    scalars = {str: f"{path} \u00e9\U0001f577", bytes: path.encode() + b"\x00\xff", int: number - 2**62, bool: True}
    return scalars.get(hint, number / 1024)


if __name__ == "__main__":
    sys.exit(main())
