"""Runs a command and measures its whole process tree: wall time, CPU time and memory.

CPU is what the kernel accounts to the command and to its descendants that ended and were waited for (`wait4`), so it is
exact but for descendants that outlive their parent. Memory is sampled: the sum of the resident sets of the tree at one
moment, in which pages shared by forked processes count once for each. Which process used the CPU is sampled too.
Linux reads /proc; elsewhere `ps` is asked.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository, where commands run."""
WORK = ROOT / ".bench"
"""Where everything that benchmarks write goes."""
_LINUX = sys.platform.startswith("linux")
_SAMPLE_SECONDS = 0.1 if _LINUX else 0.5
_TAIL_BYTES = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """One process at one moment."""

    pid: int
    parent: int
    cpu_seconds: float
    rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a command cost."""

    exit_code: int
    """Negative if a signal ended it; -9 if it took too long."""
    wall_seconds: float
    cpu_seconds: float
    """Of the whole tree."""
    child_cpu_seconds: float
    """The part used by descendants, sampled; the rest is the command's own process."""
    rss_bytes_max: int
    """The largest sum of resident sets seen."""
    output: str
    """Standard output."""
    error_tail: str
    """The end of standard error."""

    @property
    def last_line(self) -> str:
        """The last line of standard output that is not empty."""
        return next((line for line in reversed(self.output.splitlines()) if line.strip()), "")


class _Sampler(threading.Thread):
    """Watches one process and its descendants until told to stop."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self._cpu_seconds: dict[int, float] = {}
        self.rss_bytes_max = 0

    def run(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            tree = descendants(self._pid, processes())
            self.rss_bytes_max = max(self.rss_bytes_max, sum(one.rss_bytes for one in tree))
            self._cpu_seconds.update((one.pid, one.cpu_seconds) for one in tree)

    def stop(self) -> None:
        self._ended.set()
        self.join()

    @property
    def child_cpu_seconds(self) -> float:
        return sum(seconds for pid, seconds in self._cpu_seconds.items() if pid != self._pid)


def measure(
    command: Sequence[str | Path],
    log: Path,
    *,
    seconds_max: float = 3600.0,
    environ: Mapping[str, str] | None = None,
) -> Measurement:
    """Run a command in the repository to its end, with its standard output and error in `log`.out and `log`.err.

    After `seconds_max` the command and all of its session is killed. Raises OSError if it cannot be started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    out_path, err_path = log.with_suffix(".out"), log.with_suffix(".err")
    with out_path.open("wb") as out, err_path.open("wb") as err:
        started = time.monotonic()
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=ROOT,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environ or {})},  # else each start compiles anew
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        sampler = _Sampler(process.pid)
        timer = threading.Timer(seconds_max, os.killpg, (process.pid, signal.SIGKILL))
        sampler.start()
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            wall_seconds = time.monotonic() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            timer.cancel()
            sampler.stop()
            if process.returncode is None:  # interrupted: leave nothing behind
                os.killpg(process.pid, signal.SIGKILL)
    return Measurement(
        exit_code=process.returncode,
        wall_seconds=wall_seconds,
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        child_cpu_seconds=sampler.child_cpu_seconds,
        rss_bytes_max=sampler.rss_bytes_max,
        output=out_path.read_text("utf-8", "replace"),
        error_tail=err_path.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip(),
    )


def descendants(pid: int, samples: Mapping[int, ProcessSample]) -> list[ProcessSample]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for one in samples.values():
        children.setdefault(one.parent, []).append(one.pid)
    found, waiting = [], [pid]
    while waiting:
        current = waiting.pop()
        if current in samples:
            found.append(samples[current])
        waiting += children.get(current, ())
    return found


def cpu_seconds_of(pid: int) -> float:
    """CPU time that a running process has used so far; 0 if it is gone."""
    sample = processes().get(pid)
    return sample.cpu_seconds if sample else 0.0


def processes() -> dict[int, ProcessSample]:
    """All processes of the machine that can be read, by pid."""
    return _from_proc() if _LINUX else _from_ps()


def _from_proc() -> dict[int, ProcessSample]:
    ticks, page_bytes = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - ten times a second, and only the names are needed
        if not name.isdecimal():
            continue
        try:
            text = Path("/proc", name, "stat").read_text("utf-8", "replace")
        except OSError:
            continue  # it ended since the listing
        # proc(5): the name in brackets may hold anything, so count from its end; utime and stime are fields 14 and 15
        fields = text.rpartition(")")[2].split()
        found[int(name)] = ProcessSample(
            pid=int(name),
            parent=int(fields[1]),
            cpu_seconds=(int(fields[11]) + int(fields[12])) / ticks,
            rss_bytes=int(fields[21]) * page_bytes,
        )
    return found


def _from_ps() -> dict[int, ProcessSample]:
    command = ["ps", "-A", "-o", "pid=,ppid=,rss=,time="]
    return parsed_ps(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def parsed_ps(listing: str) -> dict[int, ProcessSample]:
    """Processes of a listing of `ps -o pid=,ppid=,rss=,time=`."""
    found = {}
    for line in listing.splitlines():
        pid, parent, kilobytes, spent = line.split()[:4]
        found[int(pid)] = ProcessSample(
            pid=int(pid), parent=int(parent), cpu_seconds=_seconds(spent), rss_bytes=int(kilobytes) * 1024
        )
    return found


def _seconds(text: str) -> float:
    """Seconds of what ps calls TIME: [[days-]hours:]minutes:seconds, the seconds with or without hundredths."""
    days, _, clock = text.rpartition("-")
    total = float(days or 0) * 24
    parts = [float(part) for part in clock.split(":")]
    hours, minutes, seconds = ([0.0] * 3 + parts)[-3:]
    return ((total + hours) * 60 + minutes) * 60 + seconds
