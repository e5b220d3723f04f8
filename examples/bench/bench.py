"""Time dcsvm-train and its peers on the same files, in turn, and check every solution.

    python bench.py --data DIR --suite small --rounds 3 --threads 2 --python-peers PYTHON

DIR is the output folder of datasets.py. A peer that is not installed is shown as "-", a run beyond
the time limit as ">1200". Failures do not change the exit status. Measure on an idle machine.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import certificate
import machine
import numpy as np
import predict
import tables
from cases import SUITES, UNIT, Case, random_cases
from results import Result
from rows import sample_lines
from solvers import PEERS, Dcsvm, Job, Run, Setup
from verification import verification_seconds


def main() -> int:
    options = parse_arguments()
    if options.predict:
        return bench_predicting(options)
    solvers = [Dcsvm(bias=options.bias)]
    solvers += [Dcsvm("direct", ("-l", "0"), bias=options.bias)] * options.direct
    solvers += [PEERS[name] for name in options.peers]
    about = machine.describe(options.dcsvm_train)
    results: list[Result] = []
    unit = None
    try:
        if options.suite == "paper":
            solvers, options.peers = solvers[:1], []
            unit = bench(UNIT, [PEERS["svm-train"]], options)
        for case in cases_of(options):
            result = bench(case, solvers, options)
            results += [result] if result else []
            save(results, about, options)
    except KeyboardInterrupt:
        talk("interrupted: what is finished follows")
    show(results, about, options)
    if unit:
        print("\n" + tables.multiples(results, unit.standing("svm-train")))
    return 0


def bench_predicting(options: argparse.Namespace) -> int:
    """Time predictions instead of training."""
    results: list[predict.Predicted] = []
    for case in cases_of(options):
        with tempfile.TemporaryDirectory(prefix="dcsvm-bench-") as work:
            job = prepare(case, options.data, Path(work))
            if job is None or job.test is None:
                talk(f"{case.name}: no training or test file, skipped")
                continue
            results.append(predict.predict_case(job, options.rounds, options.threads))
        talk(predict.table(results[-1:]))
    print(f"suite: {options.suite}, rounds: {options.rounds} (medians), threads: {options.threads}")
    print("\n" + predict.table(results) + "\n\n" + predict.LEGEND)
    return 0


def cases_of(options: argparse.Namespace) -> list[Case]:
    if options.suite == "random":
        cases = random_cases(options.count, options.random_seed)
    else:
        cases = SUITES[options.suite]
    return [case for case in cases if options.only in case.name]


def bench(case: Case, solvers: list, options: argparse.Namespace) -> Result | None:
    """Run all rounds of all solvers on one case; None if its training file is absent."""
    with tempfile.TemporaryDirectory(prefix="dcsvm-bench-") as work:
        setup = setup_of(options, Path(work))
        job = prepare(case, options.data, setup.work)
        if job is None:
            talk(f"{case.name}: no file {options.data / case.train}, skipped")
            return None
        result = Result(case, options.timeout, len(job.rows), job.rows.n_features)
        result.runs = {solver.name: [] for solver in solvers}
        checked: dict = {}
        for number in range(1, options.rounds + 1):
            for solver in solvers:
                before = result.runs[solver.name]
                if all(run.status == "ok" for run in before):
                    run = attempt(solver, job, setup, options.accuracy and number == 1)
                    if run.status == "ok":
                        run.check = examine(run, solver, job, options.check_budget, checked)
                    before.append(run)
                    talk(f"{case.name}, round {number}, {progress(run)}")
        result.bound = bound(result, job, setup.threads)
        return result


def setup_of(options: argparse.Namespace, work: Path) -> Setup:
    names = ("dcsvm_train", "dcsvm_predict", "svm_train", "svm_predict", "python_peers")
    programs = {name: getattr(options, name) for name in names}
    extra = tuple(options.dcsvm_options.split())
    return Setup(
        options.threads, options.cache, options.timeout, work, **programs, dcsvm_options=extra
    )


def prepare(case: Case, data: Path, work: Path) -> Job | None:
    train, test = data / case.train, data / case.test if case.test else None
    if not train.exists():
        return None
    if case.rows:
        sample_lines(train, work / "train", case.rows, case.seed)
        train = work / "train"
    return Job(case, train, test if test and test.exists() else None, work)


def attempt(solver, job: Job, setup: Setup, with_accuracy: bool) -> Run:
    return guarded(solver, setup, lambda: solver.run(job, setup, with_accuracy))


def attempt_training(solver, job: Job, setup: Setup) -> Run:
    """Train without reading the solution."""
    return guarded(solver, setup, lambda: solver.train(job, setup))


def guarded(solver, setup: Setup, work: Callable[[], Run]) -> Run:
    """Run a solver without raising: an error becomes the status and message of the run."""
    if shutil.which(solver.program(setup)) is None:
        return Run(solver.name, "missing", message=f"no program {solver.program(setup)}")
    try:
        return work()
    except Exception as error:
        return Run(solver.name, "failed", message=f"{type(error).__name__}: {error}")


def examine(run: Run, solver, job: Job, budget: float, checked: dict) -> dict:
    """Check the solution of a run, unless an earlier round of the solver gave the same one."""
    key = solver.name, run.solution.totals.tobytes()
    if key not in checked:
        rows, known = job.distinct_rows(solver.change)
        how = {"bias": solver.bias, "slack": solver.slack, "budget": budget}
        kernel, C = job.case.kernel, job.case.C
        checked[key] = asdict(certificate.check(run.solution, rows, known, kernel, C, **how))
    return checked[key]


def bound(result: Result, job: Job, threads: int) -> float | None:
    """Compute the verification bound for our first solution."""
    solution = next((run.solution for run in result.runs.get("dcsvm", []) if run.solution), None)
    if solution is None:
        return None
    rows, known = job.distinct_rows(Dcsvm.change)
    support = known.first[np.flatnonzero(solution.totals)]
    points = rows.dense(np.arange(len(rows)), rows.n_features).astype(np.float32)
    try:
        return verification_seconds(points, points[support], job.case.kernel, threads)
    except Exception as error:
        talk(f"{job.case.name}: no verification bound, {type(error).__name__}: {error}")
        return None


def save(results: list[Result], about: dict, options: argparse.Namespace) -> None:
    if options.json:
        given = {key: str(v) if isinstance(v, Path) else v for key, v in vars(options).items()}
        everything = {"machine": about, "options": given, "results": [r.as_dict() for r in results]}
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


def show(results: list[Result], about: dict, options: argparse.Namespace) -> None:
    print("\n".join(f"{key}: {value}" for key, value in about.items()))
    seed = f", --random-seed {options.random_seed}" if options.suite == "random" else ""
    print(f"suite: {options.suite}{seed}, rounds: {options.rounds} (medians)")
    print(f"threads: {options.threads}, cache: {options.cache} MB")
    for table in (
        tables.times(results, options.peers, options.direct),
        tables.LEGEND,
        tables.summary(results, options.peers),
        tables.profile(results),
        tables.solutions(results),
    ):
        print("\n" + table)


def progress(run: Run) -> str:
    time = f"{run.seconds:.3f} s" if run.status == "ok" else run.status
    check = f", violation {run.check['violation']:.2e}" if run.check else ""
    return f"{run.solver}: {time}{check} {run.message.strip()[-300:]}".rstrip()


def talk(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def beside_python(name: str) -> str:
    """Return the path of a command in this Python's environment, or its name for PATH."""
    path = Path(sys.executable).with_name(name)
    return str(path) if path.exists() else name


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder that datasets.py filled")
    add("--suite", choices=[*SUITES, "random"], default="small", help="which cases")
    add("--only", default="", metavar="TEXT", help="only cases with this in their name")
    add("--rounds", type=int, default=3, help="how often everything is run")
    add("--threads", type=int, default=machine.usable_cores(), help="for every program")
    add("--cache", type=int, default=4000, metavar="MB", help="budget of every program (-m)")
    add("--timeout", type=float, default=1200, metavar="S", help="for a single run")
    add("--peers", type=names, default=",".join(PEERS), metavar="LIST", help="of these")
    add("--direct", action="store_true", help="run ours with -l 0 too")
    add("--bias", action="store_true", help="train ours with --bias, as its peers are")
    add("--predict", action="store_true", help="time predicting the test files, not training")
    add("--accuracy", action="store_true", help="predict the test files too")
    add("--json", type=Path, metavar="FILE", help="all raw numbers, rewritten after every case")
    add("--count", type=int, default=20, help="how many random cases")
    add("--random-seed", type=int, default=0, help="of the random cases")
    add("--check-budget", type=float, default=1e12, help="multiply-adds for one check")
    add("--dcsvm-train", default=beside_python("dcsvm-train"), help="program")
    add("--dcsvm-predict", default=beside_python("dcsvm-predict"), help="program")
    add("--dcsvm-options", default="", metavar="TEXT", help="more options for dcsvm-train")
    add("--svm-train", default="svm-train", help="program")
    add("--svm-predict", default="svm-predict", help="program")
    add("--python-peers", default=sys.executable, help="a Python that has scikit-learn(-intelex)")
    return parser.parse_args()


def names(text: str) -> list[str]:
    chosen = [name for name in text.split(",") if name]
    for name in chosen:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"no peer {name}; there are {', '.join(PEERS)}")
    return chosen


if __name__ == "__main__":
    sys.exit(main())
