"""Compare grid searches: dcsvm-grid with GridSearchCV, svm-grid and one run of svm-train.

10 x 10 settings of C and gamma with five folds each, one run, two threads or --threads. Exact
models have a bias, like the peers' models. The peers are GridSearchCV over the SVC of dcsvm or of
scikit-learn-intelex, and svm-grid over dcsvm-train. They try every third value of C and of gamma.
Prints a line per search, in seconds per setting.
"""

import os
from dataclasses import KW_ONLY, dataclass

import measure
from cases import Files
from process import Finished
from programs import Job, fitted_apart, jobs

C = (-3, 15)  # exponents of 2
STEP = 2
SOME = 3  # the peers try every third value
REFERENCE = "covtype.20000.tr"  # svm-train runs on it with C = gamma = 32


@dataclass(frozen=True)
class Case(Files):
    _: KW_ONLY
    is_early: bool = False
    gamma: tuple[int, int] = (-5, 13)  # exponents of 2


CASES = [
    Case("covtype early", "covtype.tr", "covtype.te", is_early=True),
    Case("ijcnn1 early", "ijcnn1", "ijcnn1.t", is_early=True),
    Case("ijcnn1", "ijcnn1", "ijcnn1.t"),
    Case("a9a", "a9a", "a9a.t"),
    Case("letter", "letter", "letter.t"),
    Case("covtype 20k", "covtype.20000.tr", "covtype.te"),
    Case("MNIST", "mnist.tr", "mnist.te", gamma=(-29, -11)),
]


def main() -> None:
    parser = measure.parser_of(__doc__, "data names threads timeout", threads=2, timeout=1800)
    parser.add_argument("--peers", default="ours,svm-grid,sklearnex", metavar="LIST")
    options = parser.parse_args()
    command = ["svm-train", "-q", "-c", "32", "-g", "32", "-m", "2000"]
    reference = measure.run(*command, options.data / REFERENCE, os.devnull)
    print(f"svm-train, {REFERENCE}, C = gamma = 32: {reference.wall:.1f} s", flush=True)
    for job in jobs(measure.chosen(CASES, options.only, ","), options):
        print(f"{job.case.name}: {grid(job)}", flush=True)
        for peer in [] if job.case.is_early else options.peers.split(","):
            search = svm_grid if peer == "svm-grid" else grid_search_cv
            name = peer if peer == "svm-grid" else f"GridSearchCV, {peer}"
            print(f"    {name}: {search(job, peer)}", flush=True)


def grid(job: Job) -> str:
    """Measure dcsvm-grid, including the training of the best setting, and its test accuracy."""
    early, threads = job.case.is_early, ("--threads", job.options.threads)
    model, how = job.work / "model", [*ranges(job, STEP), "--early" if early else "--bias"]
    words = [*threads, *how, "-out", "null", job.train, model]
    found = measure.reported(measure.beside_python("dcsvm-grid"), *words)
    words = [*["--early"] * early, job.test, model, job.work / "out"]
    tested = measure.reported(measure.beside_python("dcsvm-predict"), *words)
    n_left = sum(not one["is_complete"] for one in found["settings"])
    n_missed = sum(not one["converged"] for one in found["settings"])
    return (
        f"{found['wall']:.1f} s, {found['seconds']['search'] / len(found['settings']):.2f} "
        f"a setting, {n_left} left, {n_missed} not converged, {found['peak_rss_mb']:.0f} MB; "
        f"best {' '.join(found['printed'].split())}, "
        f"test {100 * tested['metrics']['accuracy']:g}%"
    )


def svm_grid(job: Job, peer: str) -> str:
    """Measure svm-grid over dcsvm-train, in seconds per setting."""
    train = measure.beside_python("dcsvm-train")
    command = ["svm-grid", "-svmtrain", train, "-gnuplot", "null", *ranges(job, SOME * STEP)]
    command += ["-out", "null", "--bias", "--threads", job.options.threads, job.train]
    finished = job.run(command)
    if finished.timed_out or finished.code:
        return unfinished(finished, job)
    seconds = finished.wall / n_settings(job)
    return f"{seconds:.2f} a setting, best {' '.join(finished.stdout.split()[-3:])}"


def grid_search_cv(job: Job, library: str) -> str:
    values = {"C": exponents(C), "gamma": exponents(job.case.gamma)}
    finished, found = fitted_apart(library, "SVC", {}, job, False, grid=values)
    if not found:
        return unfinished(finished, job)
    best = " ".join(f"{found['best'][name]:g}" for name in values)
    return f"{found['fit'] / n_settings(job):.2f} a setting, best {best} {100 * found['score']:.2f}"


def ranges(job: Job, step: int) -> list[str]:
    """Return the options of svm-grid for the ranges of C and gamma."""
    (c, last_c), (g, last_g) = C, job.case.gamma
    return ["-log2c", f"{c},{last_c},{step}", "-log2g", f"{g},{last_g},{step}"]


def exponents(ends: tuple[int, int]) -> list[float]:
    """Return the peers' values between the exponents of 2."""
    return [2.0**power for power in range(ends[0], ends[1] + 1, SOME * STEP)]


def n_settings(job: Job) -> int:
    return len(exponents(C)) * len(exponents(job.case.gamma))


def unfinished(finished: Finished, job: Job) -> str:
    if finished.timed_out:
        return f"more than {job.options.timeout / n_settings(job):.1f} a setting"
    return finished.stderr.strip().splitlines()[-1]


if __name__ == "__main__":
    main()
