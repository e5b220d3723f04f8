"""Run a command under a time limit and measure it: wall clock, processor time, peak memory.

A small separate process (this file as a program) starts the command, because Linux counts the
memory of the process that starts a command as the command's.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Finished:
    """How a command ended. `code` is negative for a signal; a missing measurement is None."""

    code: int
    timed_out: bool
    stdout: str
    stderr: str
    wall: float | None = None
    processor: float | None = None
    peak_mb: float | None = None


def run(command: list, timeout: float | None, threads: int | None) -> Finished:
    """Run and measure a command, which may use `threads` cores; None: no limit."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("stdout", "stderr", "measured")]
        given = {} if threads is None else dict.fromkeys(THREAD_VARIABLES, str(threads))
        given["TMPDIR"] = folder  # what a killed command leaves there goes with it
        with open(paths[0], "wb") as stdout, open(paths[1], "wb") as stderr:
            process = subprocess.Popen(
                starter(command, threads, paths[2]), stdin=subprocess.DEVNULL,
                stdout=stdout, stderr=stderr, start_new_session=True, env=os.environ | given,
            )  # fmt: skip
            timed_out = wait(process, timeout)
        texts = [path.read_text(errors="replace") for path in paths[:2]]
        if timed_out or process.returncode:
            return Finished(process.returncode, timed_out, *texts)
        measured = json.loads(paths[2].read_text())
        return Finished(measured.pop("code"), False, *texts, **measured)


def starter(command: list, threads: int | None, measured: Path) -> list[str]:
    """Return the command line of the small process, which writes `measured` as JSON."""
    words = [sys.executable, "-I", "-S", __file__, measured, threads or 0, *command]
    return [str(word) for word in words]


def wait(process: subprocess.Popen, timeout: float | None) -> bool:
    """Wait for the process; return whether it was killed at the timeout, with its process group."""
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        return True
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return False


def start(result: str, threads: str, *command: str) -> None:
    """Start the command, wait for it and write its measurements (in the small process)."""
    if int(threads) and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    if sys.platform == "linux":  # if the runner is killed, nobody else stops the command
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    begin = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    measured = {
        "code": os.waitstatus_to_exitcode(status),
        "wall": time.perf_counter() - begin,
        "processor": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss / 1024,
    }
    Path(result).write_text(json.dumps(measured))


if __name__ == "__main__":
    start(*sys.argv[1:])
