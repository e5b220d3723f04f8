"""Compare the estimators of dcsvm.sklearn with scikit-learn's and scikit-learn-intelex's.

Each case is fitted and predicted in its own process, in turn, with two threads or --threads.
`dcsvm.train` runs with the same options, to show the overhead of the estimator. Prints a line per
run, then a table. If a peer exceeds --timeout seconds on a case, the table shows ">" and the limit,
and the case is not repeated. A fit below two seconds is repeated three times, the median counts.
"""

from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from statistics import median

import measure
from cases import Files
from programs import Job, fitted_apart, jobs

OURS = ["ours", "train"]  # the estimator, and dcsvm.train alone
SHORT = 2.0  # seconds


@dataclass(frozen=True)
class Case(Files):
    estimator: str = "SVC"
    params: dict = field(default_factory=dict)
    _: KW_ONLY
    is_sparse: bool = False


DIGITS = Case("digits", "digits.8x8", "digits.8x8")  # scikit-learn's
CASES = [
    DIGITS,
    Case("cpu_small", "cpu_small.tr", "cpu_small.te", "SVR",
         {"C": 1024, "gamma": 0.5, "epsilon": 1.0}),
    Case("letter", "letter", "letter.t", "SVC", {"C": 10, "gamma": 5.0}),
    Case("one-class", "ijcnn1", "ijcnn1.t", "OneClassSVM", {"nu": 0.1, "gamma": 2.0}),
    Case("ijcnn1", "ijcnn1", "ijcnn1.t", "SVC", {"C": 32, "gamma": 2.0}),
    Case("covtype 20k, 32", "covtype.20000.tr", "covtype.te", "SVC", {"C": 32, "gamma": 32.0}),
    Case("covtype 20k, 2", "covtype.20000.tr", "covtype.te", "SVC", {"C": 32, "gamma": 2.0}),
    Case("a9a sparse", "a9a", "a9a.t", "SVC", {"C": 32, "gamma": 2.0**-7}, is_sparse=True),
    Case("MNIST, ten", "digits.tr", "digits.te", "SVC", {"C": 10, "gamma": 2.0**-21}),
]  # fmt: skip


def main() -> None:
    parser = measure.parser_of(
        __doc__, "data names rounds threads timeout", rounds=1, threads=2, timeout=900
    )
    parser.add_argument("--peers", default="sklearn,sklearnex", metavar="LIST", help="of these")
    options = parser.parse_args()
    libraries = [*OURS, *filter(None, options.peers.split(","))]
    cases, lines = measure.chosen(CASES, options.only, ";"), []
    if DIGITS in cases:
        write_digits(options.data / DIGITS.train)
    for job in jobs(cases, options):
        found: dict[str, list] = {library: [] for library in libraries}
        for _ in range(options.rounds):
            for library, known in found.items():
                if None not in known:
                    known.append(measured(job, library))
                    print(job.case.name, library, known[-1], flush=True)
        lines.append([job.case.name, *(cell(one, options.timeout) for one in found.values())])
    print(measure.heading(["case", *(f"{one}: fit, predict s, score" for one in libraries)]))
    print(measure.markdown(*lines))


def write_digits(path: Path) -> None:
    from sklearn.datasets import dump_svmlight_file, load_digits

    if not path.exists():
        dump_svmlight_file(*load_digits(return_X_y=True), str(path), zero_based=False)


def measured(job: Job, library: str) -> dict | None:
    """Return seconds and score, or an error; None beyond the time limit."""
    case = job.case
    more = {"is_sparse": case.is_sparse, "short": SHORT}
    finished, found = fitted_apart(library, case.estimator, case.params, job, True, **more)
    if finished.timed_out:
        return None
    if finished.code != 0:
        return {"error": finished.stderr.strip().splitlines()[-1]}
    return {name: found[name] for name in ("fit", "predict", "score")}


def cell(results: list, timeout: float) -> str:
    if None in results:
        return f"> {timeout:g}"
    if "error" in results[0]:
        return "-"
    fit, predict = (median(one[name] for one in results) for name in ("fit", "predict"))
    return f"{fit:.3f}, {predict:.3f}, {results[0]['score']:.4f}"


if __name__ == "__main__":
    main()
