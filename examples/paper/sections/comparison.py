"""The main tables: seconds and accuracy of every method beside the paper's, times over LIBSVM's."""

from __future__ import annotations

from dataclasses import dataclass

from paper import published
from paper.baselines import COMPETITORS, METHODS, TITLES, ours_beside
from paper.cells import Cell
from paper.experiments.comparison import cell, problems
from paper.fewer import pair
from paper.markdown import BAR, SHORTEST, joined, number, over, paragraphs, percent, points, table
from paper.sections import (
    BELOW,
    NOT_MEASURED,
    Page,
    in_paper,
    model_size,
    on_fewer_rows,
    shown_seconds,
    title,
)

HEADING = (
    "method | seconds | LIBSVM's seconds over these | accuracy % | model | threads | MB added | "
    "paper: seconds | paper: LIBSVM's over these | paper: accuracy %"
)
FAR = 5  # per cent of the test rows
EARLY = "early model | accuracy less DC-SVM's, % | its seconds, of DC-SVM's"


@dataclass(frozen=True)
class Problem:
    """A problem's cells and results by method, and the paper's (seconds, accuracy in %).

    `fewer` has the results of a method and of DC-SVM on the most rows, where not all were possible.
    Part of a data set that is here whole, too, has nothing in the paper.
    """

    name: str
    cells: dict[str, Cell]
    results: dict[str, dict]
    fewer: dict[str, tuple[dict, dict | None]]
    theirs: dict[str, tuple[float, float]]
    is_part: bool

    def beside(self, method: str) -> tuple[dict, dict] | None:
        """Return the results of a method and of DC-SVM with as many threads on the same rows.

        They are all rows, or as many as the method can have.
        """
        both = self.results.get(method), self.results.get(ours_beside(method))
        both = both if both[0] else self.fewer.get(method, (None, None))
        return both if both[0] and both[1] else None


def problems_of(page: Page) -> list[Problem]:
    chosen = problems(page.scale, page.names)
    names = [title(one["data"]) for one in chosen]
    found = []
    for one, name in zip(chosen, names, strict=True):
        cells = {method: cell(page.scale, one, method, page.threads) for method in METHODS}
        results = {method: page.of(own) for method, own in cells.items()}
        fewer = {method: pair(page.scale, own, page.results) for method, own in cells.items()}
        is_part = one["rows"] and names.count(name) > 1
        found.append(
            Problem(
                f"{one['rows']:,} rows of {name}" if is_part else name,
                cells,
                {method: result for method, result in results.items() if result},
                {method: both for method, both in fewer.items() if both},
                {} if is_part else published.comparison().get(in_paper(one["data"]), {}),
                bool(is_part),
            )
        )
    return found


def tables(page: Page) -> str:
    return paragraphs(table_of(page, problem) for problem in problems_of(page))


def table_of(page: Page, problem: Problem) -> str:
    libsvm = problem.results.get("libsvm")
    limit = page.results.limit(problem.cells["libsvm"])
    lines = []
    for method, own in problem.cells.items():
        result = problem.results.get(method)
        absent = BELOW if page.results.exceeded(own) else NOT_MEASURED
        ours = [percent(result["accuracy"]), model_size(result)] if result else [absent, absent]
        line = [TITLES[method], page.seconds(own), ratio(libsvm, limit, result), *ours]
        line += [str(own.settings["threads"]), number(result and result.get("added_mb"))]
        lines.append([*line, *paper(problem.theirs, method)])
    settings = problem.cells["dcsvm"].settings
    rows = f", {problem.results['dcsvm']['n_rows']:,} rows" if "dcsvm" in problem.results else ""
    C, gamma = settings["C"], settings["kernel"]["gamma"]
    heading = f"**{problem.name}**{rows}, C={C:g}, gamma={gamma:.3g}"
    on_fewer = on_fewer_rows(page, list(problem.cells.values()))
    return paragraphs([heading, table(HEADING, lines), on_fewer])


def ratio(libsvm: dict | None, limit: float | None, result: dict | None) -> str:
    """Return LIBSVM's seconds, or the limit that it exceeded, over seconds of the result."""
    if not result or not (libsvm or limit) or result["seconds"] < SHORTEST:
        return "-"
    if libsvm:
        return over(libsvm["seconds"], result["seconds"])
    return f">{number(limit / result['seconds'])}"


def paper(theirs: dict, method: str) -> list[str]:
    if method not in theirs:
        return ["-"] * 3
    seconds, accuracy = theirs[method]
    return [f"{seconds:,g}", number(theirs["libsvm"][0] / seconds), f"{accuracy:g}"]


def early(page: Page) -> str:
    """Compare early prediction with the exact solution."""
    lines = []
    for problem in problems_of(page):
        if both := problem.beside("early"):
            line = [problem.name, points(both[0]["accuracy"] - both[1]["accuracy"])]
            line.append(over(both[0]["seconds"], both[1]["seconds"]))
            lines.append(line + of_early_in_paper(problem.theirs))
    return table(f"{EARLY} | paper: accuracy | paper: seconds", lines)


def of_early_in_paper(theirs: dict) -> list[str]:
    if "early" not in theirs:
        return ["-", "-"]
    (seconds, accuracy), (all_seconds, all_accuracy) = theirs["early"], theirs["dcsvm"]
    return [points((accuracy - all_accuracy) / 100), number(seconds / all_seconds)]


def exact(page: Page) -> str:
    """Compare the exact solvers: LIBSVM's seconds over DC-SVM's, and the solver without levels."""
    lines = []
    for problem in problems_of(page):
        line = [problem.name, *of_libsvm(page, problem), paper(problem.theirs, "dcsvm")[1]]
        direct = problem.beside("direct")
        line.append(over(*(one["seconds"] for one in direct)) if direct else NOT_MEASURED)
        lines.append(line)
    heading = f"LIBSVM over DC-SVM | rows | {page.threads} threads | one thread | "
    return table(
        f"{heading}accuracy of LIBSVM less DC-SVM's, % | paper | *direct* over DC-SVM", lines
    )


def of_libsvm(page: Page, problem: Problem) -> list[str]:
    """Return rows, LIBSVM's seconds over DC-SVM's with several threads and with one, accuracy."""
    libsvm, single = problem.results.get("libsvm"), problem.results.get("single")
    several = problem.results.get("dcsvm")
    if not libsvm and "libsvm" in problem.fewer:
        libsvm, single = problem.fewer["libsvm"]
        several = None  # on these rows there is DC-SVM with LIBSVM's one thread
    limit = page.results.limit(problem.cells["libsvm"])
    bound = f"{ratio(None, limit, problem.results.get('dcsvm'))} on all rows"
    if not libsvm or not single:
        return [NOT_MEASURED, bound if limit else NOT_MEASURED, NOT_MEASURED, NOT_MEASURED]
    shown = over(libsvm["seconds"], several["seconds"]) if several else bound
    apart = points(libsvm["accuracy"] - single["accuracy"])
    return [f"{libsvm['n_rows']:,}", shown, over(libsvm["seconds"], single["seconds"]), apart]


def competitors(page: Page) -> str:
    """Make the table of every competitor's accuracy and seconds relative to DC-SVM's."""
    lines = []
    for problem in problems_of(page):
        line = [problem.name]
        for method in COMPETITORS:
            both = problem.beside(method)
            wanted = problem.cells[method].settings["options"].get("features", 0)
            is_fewer = method in problem.fewer
            line.append(
                relative(*both, is_fewer, wanted) if both else not_known(page, problem, method)
            )
        lines.append(line)
    titles = BAR.join(TITLES[method] for method in COMPETITORS)
    return table(f"accuracy less DC-SVM's, %; seconds over its | {titles}", lines)


def relative(result: dict, ours: dict, is_on_fewer: bool, wanted: int) -> str:
    """Format accuracy and seconds relative to DC-SVM's, with what the method lacks."""
    lacks = [f"{result['n_rows']:,} rows"] * is_on_fewer
    lacks += [model_size(result)] * (result.get("size", wanted) < wanted)
    lacks += ["not converged"] * (not result.get("converged", True))
    apart = points(result["accuracy"] - ours["accuracy"])
    shown = f"{apart}; {over(result['seconds'], ours['seconds'])}"
    return f"{shown} ({', '.join(lacks)})" if lacks else shown


def not_known(page: Page, problem: Problem, method: str) -> str:
    """Return the bound of the seconds relative to DC-SVM's, of a method without a result."""
    limit, ours = (
        page.results.limit(problem.cells[method]),
        problem.results.get(ours_beside(method)),
    )
    return f"-; {ratio(None, limit, ours)}" if limit and ours else NOT_MEASURED


def far(page: Page) -> str:
    """Name the competitors whose accuracy is far from the paper's on data where DC-SVM's is not."""
    apart = []
    for one in problems_of(page):
        away = {
            method: abs(100 * result["accuracy"] - one.theirs[method][1])
            for method, result in one.results.items()
            if method in one.theirs
        }
        if away.get("dcsvm", FAR) < FAR:
            for method in (m for m, value in away.items() if value > FAR):
                ours, theirs = percent(one.results[method]["accuracy"]), one.theirs[method][1]
                apart.append(f"{TITLES[method]} on {one.name} ({ours}, in the paper {theirs:g} %)")
    text = f"Farther than {FAR} % from the paper's accuracy, where DC-SVM is not: {joined(apart)}."
    return text * bool(apart)


def winners(page: Page) -> str:
    """Name the competitors that are more accurate or faster than DC-SVM on the same rows.

    DC-SVM has as many threads as the competitor.
    """
    better: list[str] = []
    faster: list[str] = []
    for problem in problems_of(page):
        for method in COMPETITORS:
            result, ours = problem.beside(method) or (None, None)
            if not result:
                continue
            rows = f"{result['n_rows']:,} rows of " if method in problem.fewer else ""
            where = f"{TITLES[method]} on {rows}{problem.name}"
            if round(result["accuracy"] - ours["accuracy"], 4) > 0:
                accuracies = percent(result["accuracy"]), percent(ours["accuracy"])
                better.append(f"{where} ({accuracies[0]} against {accuracies[1]} %)")
            if result["seconds"] < ours["seconds"]:
                seconds = shown_seconds(result), shown_seconds(ours)
                faster.append(f"{where} ({seconds[0]} against {seconds[1]} s)")
    if not problems_of(page):
        return ""
    said = f"More accurate than DC-SVM on the same rows: {joined(better) if better else 'none'}."
    return f"{said} Faster, with as many threads: {joined(faster) if faster else 'none'}."
