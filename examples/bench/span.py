"""What a training run would take on more cores than there are: its work and its span.

The run is done by one thread, with decisions for so many. Every loop of the core that threads share
is timed chunk by chunk; list scheduling on that many cores says how long it would be
(csrc/threads/simulated_cores.h). Python, NumPy and whatever else is outside such loops counts as
it is. Cores are taken to be as fast together as one alone: caches, memory and clocks are not
simulated.

As a program (options of TrainOptions in JSON, a training file) this file is the run itself.
"""

import cProfile
import json
import pstats
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import process
from cases import LINEAR, POLYNOMIAL, RBF, SIGMOID, Case

KERNELS = {LINEAR: "linear", POLYNOMIAL: "polynomial", RBF: "rbf", SIGMOID: "sigmoid"}
# functions of dcsvm and what their time is called, each without that of those listed after it
PHASES = {
    "divide": "levels",
    "refine": "refine",
    "extend_gradient": "gradient",
    "conquer": "conquer",
    "prepare": "prepare",
    "divided": "cluster",
    "verify": "check",
}
INSIDE = {"divided": "divide", "verify": "conquer"}


@dataclass(frozen=True)
class Span:
    """Seconds by number of cores, and those of the phases on the most."""

    case: Case
    seconds: dict[int, float]
    phases: dict[int, dict[str, float]]
    solver: dict[int, dict[str, float]]


def measure(case: Case, train: Path, cores: list[int], cache_mb: int, timeout: float) -> Span:
    """One run for each number of cores. Raises RuntimeError where one fails."""
    span = Span(case, {}, {}, {})
    for n in [1, *cores]:
        spec = {
            "C": case.C,
            "kernel": KERNELS[case.kernel.type],
            "gamma": case.kernel.gamma,
            "degree": case.kernel.degree,
            "coef0": case.kernel.coef0,
            "tolerance": case.tolerance,
            "cache_mb": cache_mb,
            "threads": n,
        }
        finished = process.run([sys.executable, __file__, json.dumps(spec), train], timeout, 1)
        if finished.code:
            raise RuntimeError(finished.stderr[-300:] or f"no answer in {timeout:g} s")
        found = json.loads(finished.stdout)
        span.seconds[n], span.phases[n] = found["seconds"], found["phases"]
        span.solver[n] = found["solver"]
    return span


def lines(spans: list[Span], cores: list[int]) -> list[list[str]]:
    """A table: seconds of one core, and for each number of cores seconds and speed-up."""
    heading = ["span", "1 core"]
    for n in cores:
        heading += [f"{n} cores", "speed-up"]
    table = [heading]
    for span in spans:
        work = span.seconds[1]
        line = [span.case.name, f"{work:.2f}"]
        for n in cores:
            line += [f"{span.seconds[n]:.3f}", f"{work / span.seconds[n]:.1f}"]
        table.append(line)
    return table


def phase_lines(spans: list[Span], n_cores: int) -> list[list[str]]:
    """A table: seconds of the phases on so many cores, and of the solver's own, where those of
    clusters side by side add up."""
    names, inner = [*PHASES.values(), "rest"], ["tiles", "inner", "newton", "selection", "rebuild"]
    table = [[f"seconds on {n_cores} cores", *names, *(f"({name})" for name in inner)]]
    for span in spans:
        phases, solver = span.phases[n_cores], span.solver[n_cores]
        values = [*(phases[name] for name in names), *(solver[name] for name in inner)]
        table.append([span.case.name, *(f"{value:.3f}" for value in values)])
    return table


def run(spec: dict, train: str) -> dict:
    """One training run on as many simulated cores as it has threads."""
    from dcsvm import _core
    from dcsvm.data.dataset import read_dataset
    from dcsvm.problem.options import TrainOptions
    from dcsvm.training.train import train_rows

    data = read_dataset(train)
    wall = time.perf_counter

    def seconds() -> float:
        return wall() - _core.seconds_saved()

    time.perf_counter = seconds  # dcsvm's own clock
    _core.simulate_cores(True)
    profile = cProfile.Profile(seconds)
    start = seconds()
    report = profile.runcall(
        train_rows, data.rows, data.labels, TrainOptions(**spec), consume=True
    )[1]
    total = seconds() - start
    phases = phases_of(pstats.Stats(profile))
    if "--profile" in sys.argv:
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(30)
    phases["rest"] = total - sum(phases.values())
    return {"seconds": total, "phases": phases, "solver": report.phases}


def phases_of(stats: pstats.Stats) -> dict[str, float]:
    spent = dict.fromkeys(PHASES, 0.0)
    for (path, _, name), (_, _, _, seconds, _) in stats.stats.items():
        if name in PHASES and "dcsvm" in path:
            spent[name] += seconds
    for inner, outer in INSIDE.items():
        spent[outer] -= spent[inner]
    return {PHASES[name]: seconds for name, seconds in spent.items()}


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]), sys.argv[2])))
