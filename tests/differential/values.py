"""Time of a kernel value: the cases, and their measurement in both states.

A case combines a kernel of the project's table, a kind of rows (`ENCODINGS`), a number of columns
and an instruction set. A new kernel needs no change here.
"""

import json
import math
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from builds import ROOT, python
from ratios import SIDES, Measured, Ratio, in_turn
from scipy.sparse import csr_array
from timed_values import N_TARGETS

WORKER = Path(__file__).with_name("timed_values.py")
N_ROWS = 768
COLUMNS = (8, 54, 300, 784)
ENCODINGS = {
    "float32": "numbers from 0 to 1",
    "far": "the same plus 100: distances are sums of differences, for any number of columns",
    "bytes": "integers from 0 to 255",
    "codes": "a few numbers, and sets of columns of which one is 1 in a row",
    "sparse": "3 % of the values are not zero",
    "float64": "as float32, with float64 kernel values",
}
CALLS_MS = 5.0  # of a measurement; determines its number of calls
N_PAIRS = 10  # in a process


@dataclass(frozen=True)
class Values:
    """A case; `file` has its rows."""

    isa: str
    kernel: str
    encoding: str
    file: str
    gamma: float
    is_matrix: bool = False  # the file has kernel values

    @property
    def group(self):
        return f"values-{self.isa}"

    def __str__(self):
        return f"{self.kernel} {Path(self.file).stem}"

    def request(self):
        """Return the case as timed_values.py reads it."""
        return {name: value for name, value in asdict(self).items() if name != "isa"}


def rows_of(encoding, columns):
    """Return rows of a kind, (N_ROWS, columns)."""
    rng = np.random.default_rng(columns)
    X = rng.random((N_ROWS, columns), np.float32)
    if encoding == "far":
        X += np.float32(100)
    elif encoding == "bytes":
        X = np.floor(256 * X).astype(np.uint8)
    elif encoding == "sparse":
        X[rng.random(X.shape) >= 0.03] = 0
    elif encoding == "codes":
        for some in np.array_split(np.arange(columns // 8, columns), -(-columns // 32)):
            X[:, some] = np.eye(len(some))[rng.integers(len(some), size=N_ROWS)]
    return X


def applies(encoding, rows, kernel):
    """Return whether dcsvm evaluates the rows in the way that the encoding names."""
    from dcsvm import _core
    from dcsvm.kernel.encodings import choose_encoding
    from dcsvm.kernel.kernels import DEGREES

    if encoding == "far":
        return kernel.type.argument in DEGREES
    if encoding == "bytes":
        return rows.is_bytes
    if encoding == "codes":
        return isinstance(choose_encoding(rows, kernel, 1, _core.NO_LIMIT), _core.Coding)
    return rows.is_dense != (encoding == "sparse")


def usual_gamma(kernel_type, rows, X):
    """Return a gamma for which most kernel values of the rows are neither 0 nor 1."""
    from dcsvm.kernel.distances import median_distance
    from dcsvm.kernel.kernels import DEGREES, Kernel

    if kernel_type.argument not in DEGREES:
        return float(1 / np.square(X, dtype=np.float64).sum(axis=1).mean())
    median = median_distance(rows, Kernel(kernel_type.name), 1)
    kernel_type = getattr(kernel_type, "fall", kernel_type)  # of an older commit
    return kernel_type.gamma_at(median, math.exp(-1))


def value_cases(folder, isas):
    """Write the rows into the folder and return the cases, grouped by instruction set."""
    from dcsvm.data.rows import Rows
    from dcsvm.kernel.kernels import KERNEL_TYPES, Kernel

    folder.mkdir(parents=True, exist_ok=True)
    matrix, found = np.corrcoef(rows_of("float32", 8)).astype(np.float32), []
    for encoding in ENCODINGS:
        file = str(folder / f"{encoding}-matrix.npy")
        for kernel_type in KERNEL_TYPES:
            if kernel_type.is_precomputed and encoding.startswith("float"):
                np.save(file, matrix)
                found.append(Values("", kernel_type.name, encoding, file, 1.0, True))
        for columns in COLUMNS:
            X = rows_of(encoding, columns)
            rows = Rows.from_array(csr_array(X) if encoding == "sparse" else X)
            file = str(folder / f"{encoding}-{columns}.npy")
            np.save(file, X)
            for kernel_type in KERNEL_TYPES:
                if kernel_type.is_precomputed:
                    continue
                if applies(encoding, rows, Kernel(kernel_type.name)):
                    gamma = usual_gamma(kernel_type, rows, X)
                    found.append(Values("", kernel_type.name, encoding, file, gamma))
    return [replace(case, isa=isa) for isa in isas for case in found]


class OtherInterfaceError(Exception):
    """A state could not be asked for its kernel values."""

    def __init__(self, site, reason):
        super().__init__(f"{site.name}: {reason}")
        self.site = site


class Worker:
    """A process of timed_values.py with the package of a state. `told` is its first line."""

    def __init__(self, site, isa):
        line = python(site, WORKER, DCSVM_ISA=isa)
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.site, self.process = site, subprocess.Popen(line, text=True, bufsize=1, **pipes)
        if hasattr(os, "sched_setaffinity"):
            # both states on one core: other guests of a virtual machine may slow down a single core
            os.sched_setaffinity(self.process.pid, {max(os.sched_getaffinity(0))})
        self.told = self._answer()

    def ask(self, **request):
        print(json.dumps(request), file=self.process.stdin)
        return self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended without an answer"}
        if isinstance(answer, dict) and "error" in answer:
            self.__exit__()
            raise OtherInterfaceError(self.site, answer["error"])
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def told(site, isa="baseline"):
    """Return the first line of a state."""
    with Worker(site, isa) as worker:
        return worker.told


def measure(cases, sites, times=1):
    """Measure cases, each in `times` processes of each state, because memory layouts differ."""
    pairs, forms = {case: [] for case in cases}, {}
    groups = [(isa, [*members]) for isa, members in groupby(cases, key=lambda case: case.isa)]
    for isa, members in groups * times:
        with Worker(sites["base"], isa) as base, Worker(sites["now"], isa) as now:
            workers = dict(zip(SIDES, (base, now), strict=True))
            for case in members:
                forms[case] = [one.ask(case=case.request()) for one in workers.values()]
                call_ms = base.ask(calls=1) * N_TARGETS * (N_ROWS - N_TARGETS) * 1e-6
                calls = math.ceil(CALLS_MS / max(call_ms, 1e-3))
                turns = in_turn(lambda side: workers[side].ask(calls=calls))  # noqa: B023 (at once)
                pairs[case] += islice(turns, N_PAIRS)
    for case in cases:
        before, now = forms[case]
        remark = f"{before} is now {now}" if before != now else ""
        nanoseconds = min(one[1] for one in pairs[case])
        words = f"{nanoseconds:8.3f} ns  {now:10}"
        yield Measured(case, Ratio.of(pairs[case]), words, remark)


def instruction_sets():
    """Return the values of DCSVM_ISA that run here, and the instruction sets that do not."""
    text = "".join(path.read_text() for path in sorted((ROOT / "csrc" / "simd").iterdir()))
    names = dict.fromkeys(re.findall(r'#define DCSVM_ISA_NAME "(\w+)"', text))
    here = [name for name in names if told(ROOT, name)["instruction_set"] == name]
    return here, absent_targets(text, processor_flags())


def absent_targets(text, flags):
    """Return the targets of C++ functions that a processor with these flags lacks."""
    targets = {one for some in re.findall(r'target\("([^"]+)"\)', text) for one in some.split(",")}
    targets |= set(re.findall(r"defined\(__(aarch64)__\)", text))
    plain = {re.sub(r"\W|_", "", flag) for flag in flags}
    return sorted(one for one in targets if re.sub(r"\W|_", "", one) not in plain)


def processor_flags():
    """Return the instruction sets of this processor, as Linux names them, and its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    flags = next((line.partition(":")[2] for line in lines if line.startswith("flags")), "")
    return {*flags.split(), platform.machine()}
