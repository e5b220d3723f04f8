"""Time dcsvm-train and its peers on the same files, in turn, and check every solution.

A peer that is not installed is shown as "-", a run beyond the time limit as ">1200". Failures do
not change the exit status. Measure on an idle machine.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import certificate
import machine
import measure
import numpy as np
import predict
import results as tables
from cases import SUITES, UNIT, Case, random_cases
from measure import talk
from programs import PEERS, Dcsvm, Job, Run, attempt, jobs
from results import Result
from verification import verification_seconds


def main() -> None:
    options = parse_arguments()
    if options.predict:
        bench_predicting(options)
        return
    solvers = [Dcsvm(bias=options.bias)]
    solvers += [Dcsvm("direct", "-l", "0", bias=options.bias)] * options.direct
    solvers += [PEERS[name] for name in options.peers]
    about = machine.describe(options.dcsvm_train)
    results: list[Result] = []
    unit = None
    try:
        if options.suite == "paper":
            solvers, options.peers = solvers[:1], []
            unit = next(bench([UNIT], [PEERS["svm-train"]], options), None)
        for result in bench(cases_of(options), solvers, options):
            results.append(result)
            save(results, about, options)
    except KeyboardInterrupt:
        talk("interrupted: what is finished follows")
    show(results, about, options)
    if unit:
        print("\n" + tables.multiples(results, unit.standing("svm-train")))


def bench_predicting(options: argparse.Namespace) -> None:
    """Time predictions instead of training."""
    lines = [predict.HEADING]
    for job in jobs(cases_of(options), options):
        if job.test is None:
            talk(f"{job.case.name}: no test file, skipped")
            continue
        lines.append(predict.predicted(job))
        talk(*lines[-1])
    print(f"suite: {options.suite}, rounds: {options.rounds} (medians), threads: {options.threads}")
    print("\n" + measure.aligned(lines) + "\n\n" + predict.LEGEND)


def cases_of(options: argparse.Namespace) -> list[Case]:
    if options.suite == "random":
        cases = random_cases(options.count, options.random_seed)
    else:
        cases = SUITES[options.suite]
    more = tuple(options.dcsvm_options.split())
    chosen = measure.chosen(cases, options.only)
    return [replace(case, extra=(*more, *case.extra)) for case in chosen]


def bench(cases: list[Case], solvers: list, options: argparse.Namespace) -> Iterator[Result]:
    """Run all rounds of all solvers on each case whose training file is there."""
    for job in jobs(cases, options):
        result = Result(job.case, options.timeout, len(job.rows), job.rows.n_features)
        result.runs = {solver.name: [] for solver in solvers}
        checked: dict = {}
        for number in range(1, options.rounds + 1):
            for solver in solvers:
                before = result.runs[solver.name]
                if all(run.status == "ok" for run in before):
                    run = attempt(solver, job, options.accuracy and number == 1)
                    if run.status == "ok":
                        run.check = examine(run, solver, job, checked)
                    before.append(run)
                    talk(f"{job.case.name}, round {number}, {run}")
        result.bound = bound(result, job)
        yield result


def examine(run: Run, solver, job: Job, checked: dict) -> dict:
    """Check the solution of a run, unless an earlier round of the solver gave the same one."""
    key = solver.name, run.solution.totals.tobytes()
    if key not in checked:
        data, budget = job.distinct_rows(solver.change), job.options.check_budget
        checked[key] = asdict(certificate.check(run.solution, *data, job.case, solver, budget))
    return checked[key]


def bound(result: Result, job: Job) -> float | None:
    """Compute the verification bound for our first solution."""
    solution = next((run.solution for run in result.runs.get("dcsvm", []) if run.solution), None)
    if solution is None:
        return None
    rows, known = job.distinct_rows(Dcsvm.change)
    support = known.first[np.flatnonzero(solution.totals)]
    points = rows.dense(np.arange(len(rows)), rows.n_features).astype(np.float32)
    try:
        return verification_seconds(points, points[support], job.case.gamma, job.options.threads)
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


def parse_arguments() -> argparse.Namespace:
    parser = measure.parser_of(
        __doc__, "data only rounds threads cache timeout dcsvm-train dcsvm-predict svm-train "
        "svm-predict python-peers",
    )  # fmt: skip
    add = parser.add_argument
    add("--suite", choices=[*SUITES, "random"], default="small", help="which cases")
    add("--peers", default=",".join(PEERS), metavar="LIST", help="of these")
    add("--direct", action="store_true", help="run ours with -l 0 too")
    add("--bias", action="store_true", help="train ours with --bias, as its peers are")
    add("--predict", action="store_true", help="time predicting the test files, not training")
    add("--accuracy", action="store_true", help="predict the test files too")
    add("--json", type=Path, metavar="FILE", help="all raw numbers, rewritten after every case")
    add("--count", type=int, default=20, help="how many random cases")
    add("--random-seed", type=int, default=0, help="of the random cases")
    add("--check-budget", type=float, default=1e12, help="multiply-adds for one check")
    add("--dcsvm-options", default="", metavar="TEXT", help="more options for dcsvm-train")
    options = parser.parse_args()
    options.peers = [name for name in options.peers.split(",") if name]
    if unknown := {*options.peers} - {*PEERS}:
        parser.error(f"no peer {min(unknown)}; there are {', '.join(PEERS)}")
    return options


if __name__ == "__main__":
    main()
