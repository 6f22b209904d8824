"""A service whose settings cannot be used ends at once with a line that names the setting: waiting would not help."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def ended(stage: str, **variables: str) -> str:
    """What a service tells that ends by itself, and with 1."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAWL_")}
    done = subprocess.run(
        [sys.executable, "-m", f"services.{stage}"],
        cwd=ROOT, env={**kept, **variables}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("stage", "variable", "value", "told"),
    [
        ("frontier", "TRAWL_KAFKA_BOOTSTRAP", "127.0.0.1:9092", "TRAWL_KAFKA_BOOTSTRAP names no setting; did you mean"),
        ("fetcher", "TRAWL_SERVICE_IN_FLIGHT_MAX", "0", "service.in_flight_max = 0 cannot be used"),
        ("extractor", "TRAWL_KAFKA_SECURITY_PROTOCOL", "TLS", "kafka.security_protocol = 'TLS' cannot be used"),
        ("dedup", "TRAWL_BLOBS_URL", "ftp://blobs", "blobs.url"),
        ("dedup", "TRAWL_SERVICE_PORT", "70000", "service.host, service.port = 127.0.0.1:70000 cannot be opened"),
        ("indexer", "TRAWL_SERVICE_LOG_LEVEL", "loud", "service.log_level = 'loud' cannot be used"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(stage: str, variable: str, value: str, told: str) -> None:
    line = ended(stage, **{variable: value})
    assert line.startswith(f"trawl {stage}: ")
    assert told in line


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = ended("dedup", TRAWL_SERVICE_PORT=str(port))
    assert f"trawl dedup: service.host, service.port = 127.0.0.1:{port} cannot be opened" in line


@pytest.mark.parametrize("text", [None, "[kafka", "[kafka]\npartitions = 'many'\n"])
def test_a_file_of_settings_that_cannot_be_used_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "trawl.toml"
    if text is not None:
        file.write_text(text)
    line = ended("frontier", TRAWL_SETTINGS=str(file))
    assert line.startswith("trawl frontier: ")
    assert str(file) in line or "kafka.partitions = 'many' cannot be used" in line
