"""Compare grid searches: dcsvm-grid with GridSearchCV, svm-grid and one run of svm-train.

    python selection.py --data FOLDER [--only NAME,...] [--peers ours,svm-grid,sklearnex]

10 x 10 settings of C and gamma with five folds each, one run, two threads or --threads. Exact
models have a bias, like the peers' models. The peers are GridSearchCV over the SVC of dcsvm or of
scikit-learn-intelex, and svm-grid over dcsvm-train. They try every third value of C and of gamma.
Prints a line per search, in seconds per setting.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

C = (-3, 15)  # exponents of 2
STEP = 2
SOME = 3  # the peers try every third value
REFERENCE = "covtype.20000.tr"  # svm-train runs on it with C = gamma = 32


@dataclass(frozen=True)
class Case:
    name: str
    file: str
    is_early: bool = False
    test: str | None = None
    gamma: tuple[int, int] = (-5, 13)  # exponents of 2


CASES = [
    Case("covtype early", "covtype.tr", True, "covtype.te"),
    Case("ijcnn1 early", "ijcnn1", True, "ijcnn1.t"),
    Case("ijcnn1", "ijcnn1", False, "ijcnn1.t"),
    Case("a9a", "a9a", False, "a9a.t"),
    Case("letter", "letter", False, "letter.t"),
    Case("covtype 20k", "covtype.20000.tr", False, "covtype.te"),
    Case("MNIST", "mnist.tr", False, "mnist.te", (-29, -11)),
]


def timed(command: list[str], **how) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True, **how)
    return time.perf_counter() - begin, done.stdout


def our_program(name: str) -> str:
    return os.path.join(os.path.dirname(sys.executable), name)


def ranges(case: Case, step: int) -> list[str]:
    """Return the options of svm-grid for the ranges of C and gamma."""
    (c, last_c), (g, last_g) = C, case.gamma
    return ["-log2c", f"{c},{last_c},{step}", "-log2g", f"{g},{last_g},{step}"]


def exponents(ends: tuple[int, int], step: int) -> list[float]:
    return [2.0**power for power in range(ends[0], ends[1] + 1, step)]


def grid(case: Case, args) -> str:
    """Measure dcsvm-grid, including the training of the best setting, and its test accuracy."""
    with tempfile.TemporaryDirectory() as folder:
        model, report = (os.path.join(folder, name) for name in ("model", "report"))
        command = [our_program("dcsvm-grid"), "-q", "--threads", str(args.threads)]
        command += [*ranges(case, STEP), "--early" if case.is_early else "--bias"]
        command += ["-out", "null", "--report", report]
        seconds, printed = timed([*command, os.path.join(args.data, case.file), model])
        with open(report, encoding="utf-8") as file:
            found = json.load(file)
        test = os.path.join(args.data, case.test)
        how = ["--early"] * case.is_early
        predict = [our_program("dcsvm-predict"), *how, test, model, os.path.join(folder, "out")]
        accuracy = timed(predict)[1].split()[2]
    n_left = sum(not one["is_complete"] for one in found["settings"])
    n_missed = sum(not one["converged"] for one in found["settings"])
    return (
        f"{seconds:.1f} s, {found['seconds']['search'] / len(found['settings']):.2f} a setting, "
        f"{n_left} left, {n_missed} not converged, {found['peak_rss_mb']:.0f} MB; "
        f"best {' '.join(printed.split())}, test {accuracy}"
    )


def of_peer(case: Case, args, peer: str) -> str:
    """Measure the seconds per setting of a peer."""
    values = [exponents(ends, SOME * STEP) for ends in (C, case.gamma)]
    n_settings = len(values[0]) * len(values[1])
    command = [sys.executable, __file__, "--data", args.data, "--threads", str(args.threads)]
    command += ["--only", case.name, "--run", peer]
    if peer == "svm-grid":
        command = ["svm-grid", "-svmtrain", our_program("dcsvm-train"), "-gnuplot", "null"]
        command += [*ranges(case, SOME * STEP), "-out", "null", "--bias", "--threads"]
        command += [str(args.threads), os.path.join(args.data, case.file)]
    try:
        seconds, printed = timed(command, timeout=args.timeout)
    except subprocess.TimeoutExpired:
        return f"more than {args.timeout / n_settings:.1f} a setting"
    if peer != "svm-grid":
        return printed.strip()
    return f"{seconds / n_settings:.2f} a setting, best {' '.join(printed.split()[-3:])}"


def run(case: Case, args, peer: str) -> None:
    from sklearn.datasets import load_svmlight_file
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    if peer == "ours":
        from dcsvm.sklearn import SVC
    else:
        import daal4py
        from sklearnex.svm import SVC

        daal4py.daalinit(args.threads)
    X, y = load_svmlight_file(os.path.join(args.data, case.file))
    values = {"C": exponents(C, SOME * STEP), "gamma": exponents(case.gamma, SOME * STEP)}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(SVC(), values, cv=folds, refit=False)
    begin = time.perf_counter()
    search.fit(X.toarray() if X.shape[1] < 1000 else X, y)
    seconds = time.perf_counter() - begin
    n_settings = len(values["C"]) * len(values["gamma"])
    best = " ".join(f"{search.best_params_[name]:g}" for name in ("C", "gamma"))
    print(f"{seconds / n_settings:.2f} a setting, best {best} {100 * search.best_score_:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default=",".join(case.name for case in CASES))
    parser.add_argument("--peers", default="ours,svm-grid,sklearnex")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    args = parser.parse_args()
    chosen = [case for case in CASES if case.name in args.only.split(",")]
    if args.run:
        run(chosen[0], args, args.run)
        return
    reference = os.path.join(args.data, REFERENCE)
    options = ["-q", "-c", "32", "-g", "32", "-m", "2000"]
    seconds, _ = timed(["svm-train", *options, reference, os.devnull])
    print(f"svm-train, {REFERENCE}, C = gamma = 32: {seconds:.1f} s", flush=True)
    for case in chosen:
        print(f"{case.name}: {grid(case, args)}", flush=True)
        for peer in [] if case.is_early else args.peers.split(","):
            name = peer if peer == "svm-grid" else f"GridSearchCV, {peer}"
            print(f"    {name}: {of_peer(case, args, peer)}", flush=True)


if __name__ == "__main__":
    main()
