"""Measure training with half and with double of each constant that was chosen by measurement.

Prints a line per constant: for each case the ratios of the
median seconds with half and with double to the median seconds with its value. The three values are
measured in turn. A limit that cannot double is taken near its end. Ratios within 0.1 of 1 are noise
on an idle machine with two cores.
"""

import sys
from importlib import import_module
from statistics import median

import measure
from cases import FULL, Case

from dcsvm.data.dataset import Dataset
from dcsvm.problem.options import TrainOptions
from dcsvm.training.fit import fit

CASES = ("ijcnn1", "covtype-20k g=2", "covtype-20k g=32", "a9a")
CONSTANTS = (  # module, name, half, double
    ("kernel.encodings", "CODING_THRESHOLD", 0.65, 2.6),
    ("kernel.row_components", "MIN_COMPONENT", 125, 500),
    ("kernel.row_components", "ORDERING_THRESHOLD", 0.25, 1.0),
    ("kernel.row_components", "SKIPPING_THRESHOLD", 0.1, 0.4),
    ("kernel.row_components", "LEFT_OUT", 0.025, 0.1),
    ("kernel.cluster_tree", "MAX_SAMPLED", 32, 128),
    ("training.memory", "DEFAULT_MEAN_CLUSTER", 500, 2000),
    ("training.memory", "LEVEL_STEP", 1, 4),
    ("training.run", "LEVEL_TOLERANCE", 0.05, 0.2),
    ("training.early_level", "EARLY_TOLERANCE", 5e-4, 2e-3),
    ("training.certificate", "RANDOM_SHARE", 0.025, 0.1),
    ("training.certificate", "NEAREST_ROWS", 500, 2_000),
    ("training.certificate", "OBJECTIVE_ERROR", 1e-6, 4e-6),
    ("training.certificate", "SAFETY", 2.0, 8.0),
    ("training.conquer", "SOLVER_TOLERANCE", 0.45, 0.99),
)


def main() -> None:
    options = measure.parser_of(__doc__, "data rounds").parse_args()
    cases = [case for case in FULL if case.name in CASES]
    data = {case: Dataset.read(options.data / case.train) for case in cases}
    for case in cases:
        seconds(case, data[case])  # warm up
    for module, name, *others in CONSTANTS:
        usual = getattr(import_module(f"dcsvm.{module}"), name)
        found = []
        for case in cases:
            values = (usual, *others)
            half, double = ratios(case, data[case], name, values, options.rounds)
            found.append(f"{case.name} {half:.2f} {double:.2f}")
        print(f"{name}: {'; '.join(found)}", flush=True)


def ratios(case: Case, data: Dataset, name: str, values: tuple[float, ...], rounds: int):
    """Return the ratios of seconds with half and with double to seconds with the current value."""
    modules = [module for key, module in sys.modules.items() if key.startswith("dcsvm.")]
    users = [module for module in modules if vars(module).get(name) is values[0]]
    found = {value: [] for value in values}
    for _ in range(rounds):
        for value in (*values[1:], values[0]):  # the last one stays
            for module in users:
                setattr(module, name, value)
            found[value].append(seconds(case, data))
    base, half, double = (median(times) for times in found.values())
    return half / base, double / base


def seconds(case: Case, data: Dataset) -> float:
    options = TrainOptions(C=case.C, gamma=case.gamma, cache_mb=4000)
    return fit(data, options).report.seconds_train


if __name__ == "__main__":
    main()
