import json
import sys
import time
from pathlib import Path

import pytest

from bench.crawl import has_text, middle
from bench.measure import ProcessSample, cpu_seconds_of, descendants, measure, parsed_ps

BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"


def test_the_cpu_of_a_child_counts_and_is_told_apart(tmp_path: Path) -> None:
    child = BURN.format(seconds=0.8)
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    measured = measure([sys.executable, "-c", code], tmp_path / "run.log")
    assert measured.exit_code == 0
    assert 0.8 <= measured.cpu_seconds < 3
    assert 0.4 <= measured.child_cpu_seconds <= measured.cpu_seconds
    assert measured.wall_seconds >= 0.8


def test_peak_memory_is_that_of_the_whole_tree(tmp_path: Path) -> None:
    hold = "import time; kept = b'x' * 60_000_000; time.sleep(0.8)"
    code = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {hold!r}]); {hold}; child.wait()"
    measured = measure([sys.executable, "-c", code], tmp_path / "run.log")
    assert 120_000_000 < measured.rss_bytes_max < 250_000_000


def test_output_and_exit_code_are_kept(tmp_path: Path) -> None:
    code = "import sys; print('one'); print('two'); print(); print('why', file=sys.stderr); sys.exit(3)"
    measured = measure([sys.executable, "-c", code], tmp_path / "run.log")
    assert (measured.exit_code, measured.last_line, measured.error_tail) == (3, "two", "why")


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)"
    )
    measured = measure([sys.executable, "-c", code], tmp_path / "run.log", seconds_max=0.7)
    assert measured.exit_code == -9
    assert measured.wall_seconds < 10
    deadline = time.monotonic() + 5  # whoever inherits the child has to collect it first
    while (left := cpu_seconds_of(int(measured.last_line))) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert left == 0.0


def test_descendants_are_found_at_any_depth_and_strangers_are_not() -> None:
    parents = {1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20}
    samples = {
        pid: ProcessSample(pid=pid, parent=parent, cpu_seconds=0, rss_bytes=0) for pid, parent in parents.items()
    }
    assert sorted(one.pid for one in descendants(10, samples)) == [10, 11, 12]
    assert descendants(99, samples) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:00.52", 0.52), ("12:34.50", 754.5), ("01:02:03", 3723.0), ("2-01:00:00", 176_400.0)],
)
def test_times_of_ps_in_every_spelling(text: str, seconds: float) -> None:
    assert parsed_ps(f"  501     1  2048 {text}\n") == {
        501: ProcessSample(pid=501, parent=1, cpu_seconds=seconds, rss_bytes=2_097_152)
    }


def test_a_page_with_front_matter_only_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    for text, expected in (("", False), ("---\nurl: x\n---\n\n", False), ("---\nurl: x\n---\nText", True), ("a", True)):
        file.write_text(text)
        assert has_text(file) is expected


def test_several_runs_become_their_medians_and_one_failure_fails_all() -> None:
    rows = [{"tool": "x", "pages": 30, "pages_s": value} for value in (3.0, 1.0, 2.0)]
    assert json.dumps(middle(rows)) == '{"tool": "x", "pages": 30, "pages_s": 2.0, "repeat": 3}'
    assert middle([*rows, {"tool": "x", "error": "no"}]) == {"tool": "x", "error": "no"}
