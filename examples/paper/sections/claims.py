"""The paper's claims: its number, ours from the same cells as the tables, and whether it holds.

A claim about a data set that is replaced is compared on the substitute.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from paper import published
from paper.baselines import COMPETITORS
from paper.experiments import (
    bias,
    comparison,
    convergence,
    grid,
    level_times,
    polynomial,
    prediction,
    support_vectors,
)
from paper.markdown import SHORTEST, joined, number, percent, points, table, times
from paper.sections import Page, in_paper, title
from paper.sections import comparison as compared
from paper.sections import grid as grids
from paper.sections import level_times as by_level
from paper.sections import prediction as predicted
from paper.sections.support_vectors import first_found

HOLDS, NOT, OPEN = "holds", "does not hold", "open: a lower bound"
SIMILAR = 0.1  # per cent of the test rows: accuracies that the paper would print as similar
ABOUT_90 = 0.85  # a share from here on rounds to 90 per cent, in tens
NEAR_OPTIMAL = 0.002  # share of the test rows by which our worst may be below the paper's worst
FASTER_ON_GRIDS = {"ijcnn1": 10, "webspam": 30, "covtype": 50, "census": 50}  # captions
SMALL = (-10, -6)  # exponents of a small gamma
CUT_SHORT = {(10, -10): "52.5", (10, -6): "57.1"}  # covtype: exponents, accuracy of exact solvers

Line = tuple[str, str, str, str]  # claim, the paper's number, ours, verdict


def claims(page: Page) -> str:
    makers = (
        on_covtype, with_bias, vectors_found, vectors_sooner, early_accuracy, fold_speedup,
        convergence_of_objective, on_all_settings, captions, small_gamma, robust, polynomial_speed,
        cut_short, census_gamma, prediction_methods, growing_levels,
    )  # fmt: skip
    lines = [list(line) for make in makers for line in make(page)]
    return table(["claim", "paper", "here", ""], lines) if lines else ""


def verdict(holds: bool) -> str:
    return HOLDS if holds else NOT


def factor(claim: str, wanted: float, shown: str) -> Line:
    """Compare a factor, which may be a lower bound, with the paper's."""
    is_bound, value = shown.startswith(">"), float(shown.strip(">").replace(",", ""))
    held = value >= wanted
    return claim, f"{wanted:g}", shown, OPEN if is_bound and not held else verdict(held)


def problem_of(page: Page, name: str) -> compared.Problem | None:
    """Return the problem of all rows of a data set of the paper."""
    own = page.about(comparison)
    for chosen, problem in zip(
        comparison.problems(page.scale, own.names), compared.problems_of(own), strict=True
    ):
        if in_paper(chosen["data"]) == name and chosen["rows"] == page.scale.rows:
            return problem
    return None


def on_covtype(page: Page) -> Iterator[Line]:
    problem = problem_of(page, "covtype")
    several = f"early prediction, {page.threads} threads, is more than 100 times faster"
    for method, claim, wanted in (
        ("single", "covtype: DC-SVM, one thread each, is 7 times faster than LIBSVM (abstract)", 7),
        ("early", f"covtype: {several} than LIBSVM (abstract)", 100),
    ):
        result = problem and problem.results.get(method)
        limit = problem and page.results.limit(problem.cells["libsvm"])
        shown = compared.ratio(problem and problem.results.get("libsvm"), limit, result)
        if shown != "-":
            yield factor(claim, wanted, shown)
        if result and method == "early":
            claim = "covtype: early prediction has about 96 % (abstract)"
            held = round(100 * result["accuracy"]) >= 96
            yield claim, "96.03 to 96.12", percent(result["accuracy"]), verdict(held)


def with_bias(page: Page) -> Iterator[Line]:
    claim = "LIBSVM has similar accuracy with and without a bias (5)"
    if (problem := problem_of(page, "ijcnn1")) and {"libsvm", "direct"} <= set(problem.results):
        own = [problem.results[method]["accuracy"] for method in ("libsvm", "direct")]
        shown = "{} with, {} without".format(*map(percent, own))
        held = abs(own[0] - own[1]) <= SIMILAR / 100
        rows = problem.results["direct"]["n_rows"]
        yield f"{claim}: {rows:,} rows of ijcnn1", "98.69", shown, verdict(held)
    apart = {}
    own = page.about(bias)
    for name in own.names:
        pair = [
            page.of(bias.cell(page.scale, name, method, None, page.threads))
            for method in ("biased", "direct")
        ]
        if all(pair):
            apart[title(name)] = pair[0]["accuracy"] - pair[1]["accuracy"]
    if apart:
        within = sum(abs(value) <= SIMILAR / 100 for value in apart.values())
        widest = max(apart, key=lambda name: abs(apart[name]))
        text = f"within {SIMILAR} % on {within} of {len(apart)}; {points(apart[widest])} ({widest})"
        yield f"{claim}: parts of all data sets", "similar", text, verdict(within == len(apart))


def vectors_found(page: Page) -> Iterator[Line]:
    for name in page.about(support_vectors).names:
        found = {
            method: page.of(support_vectors.cell(page.scale, name, "rbf", method, page.threads))
            for method in ("dcsvm", "cascade")
        }
        if not all(found.values()):
            continue
        ours = {point["clusters"]: point for point in found["dcsvm"]["points"]}
        if 256 in ours:
            shown = [ours[256][measure] for measure in ("precision", "recall")]
            text = "precision {}, recall {}".format(*map(percent, shown))
            claim = f"{title(name)}: 256 clusters find about 90 % of the support vectors (4)"
            yield claim, "90", text, verdict(min(shown) >= ABOUT_90)
        first, last = found["dcsvm"]["points"][0], found["cascade"]["points"][-1]
        held = all(last[measure] < first[measure] for measure in ("precision", "recall"))
        claim = f"{title(name)}: CascadeSVM finds them less accurately (4)"
        shown = [100 * last[m] for m in ("precision", "recall")]
        text = "at its end {:.2f} and {:.2f}; our first level {:.2f} and {:.2f}".format(
            *shown, *(100 * first[m] for m in ("precision", "recall"))
        )
        yield claim, "less", text, verdict(held)


def vectors_sooner(page: Page) -> Iterator[Line]:
    for name in page.about(support_vectors).names:
        for kernel in support_vectors.kernels(name):
            both = [
                page.of(support_vectors.subset_cell(page.scale, name, kernel, method))
                for method in ("dcsvm", "libsvm")
            ]
            if not all(both):
                continue
            ours, theirs = (first_found(result["points"]) for result in both)
            claim = f"{title(name)}, {kernel}: DC-SVM finds them sooner than LIBSVM's shrinking (4)"
            told = {
                m: f"after {number(s)} s" if s else "never" for m, s in (("o", ours), ("t", theirs))
            }
            held = ours is not None and (theirs is None or ours < theirs)
            yield claim, "sooner", f"{told['o']}, LIBSVM {told['t']}", verdict(held)
            if kernel == "polynomial":
                least = max(min(p["precision"], p["recall"]) for p in both[1]["points"])
                claim = f"{title(name)}, polynomial: LIBSVM does not find 20 % in 10^5 s (5)"
                seconds = number(both[1]["points"][-1]["seconds"])
                rows = f"{both[1]['n_rows']:,} rows"
                text = f"{percent(least)} % within {seconds} s ({rows})"
                yield claim, "under 20 %", text, verdict(least < 0.2)


def early_accuracy(page: Page) -> Iterator[Line]:
    apart = {
        problem.name: both[0]["accuracy"] - both[1]["accuracy"]
        for problem in compared.problems_of(page.about(comparison))
        if (both := problem.beside("early"))
    }
    if apart:
        lowest = min(apart, key=apart.get)
        theirs = published.comparison().values()
        paper = min(one["early"][1] - one["dcsvm"][1] for one in theirs) / 100
        text = f"{points(apart[lowest])} % at worst ({lowest})"
        claim = "Early prediction has near-optimal accuracy (5)"
        held = apart[lowest] >= paper - NEAR_OPTIMAL
        yield claim, f"{points(paper)} % at worst", text, verdict(held)
        better = sum(value < 0 for value in apart.values())
        claim = "The whole problem gives a better accuracy than early prediction (5)"
        theirs = sum(one["early"][1] < one["dcsvm"][1] for one in published.comparison().values())
        paper = f"{theirs} of {len(published.comparison())}"
        yield claim, paper, f"{better} of {len(apart)}", verdict(better == len(apart))


def fold_speedup(page: Page) -> Iterator[Line]:
    below, slow, total = 0, 0, 0
    for problem in compared.problems_of(page.about(comparison)):
        ours = problem.results.get("early")
        for method in COMPETITORS:
            result = problem.results.get(method)
            if ours and result:
                total += 1
                below += result["accuracy"] < ours["accuracy"]
                slow += result["seconds"] >= 50 * ours["seconds"]
    if total:
        text = f"of {total}, {slow} take 50 times as long and {below} are less accurate than early"
        claim = "More than 50-fold speedup at a higher accuracy than competitors (5)"
        yield claim, "consistently", text, verdict(slow == below == total)


def on_all_settings(page: Page) -> Iterator[Line]:
    counts = [grids.faster_than_libsvm(own) for own in subset_grids(page).values()]
    if counts:
        faster, both = (sum(column) for column in zip(*counts, strict=True))
        claim = "DC-SVM is faster than LIBSVM on 96 of 100 settings (5)"
        yield claim, "96 of 100", f"{faster} of {both}", verdict(faster >= 0.96 * both)
    for name, own in subset_grids(page).items():
        faster, both = grids.faster_than_libsvm(own)
        where = grids.subset_title(page.about(grid), name)
        claim = f"DC-SVM is faster than LIBSVM for almost every setting: {where} (captions)"
        yield claim, "almost every", f"{faster} of {both}", verdict(faster >= 0.9 * both)
    least = [
        one["seconds"] / max(own["dcsvm"][s]["seconds"], SHORTEST)
        for own in subset_grids(page).values()
        for s, one in own["libsvm"].items()
        if s[1] in SMALL and one["seconds"] and "limit" not in own["dcsvm"][s]
    ]
    if least:
        claim = "With a small gamma DC-SVM is still 1 to 2 times faster than LIBSVM (5)"
        yield (
            claim,
            "1 to 2",
            f"{times(min(least))} to {times(max(least))}",
            verdict(min(least) >= 1),
        )


def captions(page: Page) -> Iterator[Line]:
    for name, own in subset_grids(page).items():
        if in_paper(name) not in FASTER_ON_GRIDS:
            continue
        wanted = FASTER_ON_GRIDS[in_paper(name)]
        ratios = [
            (one["seconds"] or 0.0) / max(own["early"][s]["seconds"], SHORTEST)
            for s, one in own["libsvm"].items()
        ]
        above = sum(ratio >= wanted for ratio in ratios)
        is_open = above < len(ratios) and all(
            ratio >= wanted or "limit" in one
            for ratio, one in zip(ratios, own["libsvm"].values(), strict=True)
        )
        where = grids.subset_title(page.about(grid), name)
        claim = f"Early prediction is always {wanted} times faster than LIBSVM: {where} (captions)"
        text = f"at least {times(min(ratios))}; {wanted} in {above} of {len(ratios)}"
        yield claim, f"{wanted}", text, OPEN if is_open else verdict(above == len(ratios))


def subset_grids(page: Page) -> dict[str, dict[str, grids.Grid]]:
    return grids.subset_grids(page.about(grid))


def small_gamma(page: Page) -> Iterator[Line]:
    own = page.about(grid)
    apart = {}
    for name in filter(grid.has_peers, own.names):
        early, exact = (grids.settings(own, name, method) for method in ("early", "dcsvm"))
        both = [
            early[s]["accuracy"] - exact[s]["accuracy"]
            for s in early.keys() & exact.keys()
            if s[1] in SMALL and "accuracy" in early[s] and "accuracy" in exact[s]
        ]
        if both:
            apart[title(name)] = mean(both)
    if apart:
        text = joined(f"{points(value)} % on {name}" for name, value in apart.items())
        claim = "With a small gamma early prediction has the same or better accuracy (5)"
        yield claim, "same or better", text, verdict(min(apart.values()) >= -SIMILAR / 100)


def polynomial_speed(page: Page) -> Iterator[Line]:
    for name in page.about(polynomial).names:
        for method, ours in (("libsvm", "single"), ("lasvm", "dcsvm")):
            both = [
                polynomial.cell(
                    page.scale, name, one, polynomial.compared(page.scale, one), page.threads
                )
                for one in (method, ours)
            ]
            theirs, own = map(page.of, both)
            shown = compared.ratio(theirs, page.results.limit(both[0]), own)
            if shown != "-":
                rows = f"{own['n_rows']:,} rows"
                title_of = {"libsvm": "LIBSVM, one thread each", "lasvm": "LaSVM"}[method]
                claim = f"Polynomial kernel, {title(name)}, {rows}: 100 times {title_of} (5)"
                yield factor(claim, 100, shown)


def cut_short(page: Page) -> Iterator[Line]:
    for setting, printed in CUT_SHORT.items():
        found = grids.settings(page.about(grid), "covtype", "dcsvm").get(setting, {})
        if "accuracy" in found:
            claim = "covtype, C=2^{}, gamma=2^{}: accuracy of the exact solvers (Table 9)".format(
                *setting
            )
            held = abs(100 * found["accuracy"] - float(printed)) <= 0.5
            why = " (ours have converged)" * found["converged"]
            yield claim, printed, percent(found["accuracy"]) + why, verdict(held)


def census_gamma(page: Page) -> Iterator[Line]:
    found = grids.settings(page.about(grid), "census", "dcsvm")
    own = {s: one["accuracy"] for s, one in found.items() if s[1] == 10 and "accuracy" in one}
    theirs = [float(published.grid()["census", c, g, "dcsvm"][0]) for c, g in own]
    if own:
        span = f"{percent(min(own.values()))} to {percent(max(own.values()))}"
        held = all(abs(100 * a - b) <= 0.5 for a, b in zip(own.values(), theirs, strict=True))
        claim = "census, gamma=2^10: accuracy of the exact solvers (Table 10)"
        yield claim, f"{min(theirs):g} to {max(theirs):g}", span, verdict(held)


def robust(page: Page) -> Iterator[Line]:
    for name, own in subset_grids(page).items():
        done = [s for s in grid.SETTINGS if all("accuracy" in own[m][s] for m in grids.ROBUST)]
        if done:
            least = {m: min(own[m][s]["accuracy"] for s in done) for m in grids.ROBUST}
            where = grids.subset_title(page.about(grid), name)
            text = "least accuracy {}, DC-SVM's {}, LIBSVM's {}".format(
                *(percent(least[m]) for m in grids.ROBUST)
            )
            claim = f"Early prediction is more robust to C and gamma: {where} (5)"
            yield (
                claim,
                "more",
                text,
                verdict(least["early"] > max(least["dcsvm"], least["libsvm"])),
            )


def convergence_of_objective(page: Page) -> Iterator[Line]:
    for name in page.about(convergence).names:
        cells = {
            (method, options["tolerance"]): convergence.cell(
                page.scale, name, method, options, page.threads
            )
            for method, options in (
                ("dcsvm", convergence.REFERENCE),
                ("single", convergence.DEFAULT),
                ("libsvm", convergence.DEFAULT),
            )
        }
        best, single, libsvm = map(page.of, cells.values())
        if best and single:
            error = single["objective"] / best["objective"] - 1
            claim = f"{title(name)}: the exact solution has a relative error of 10^-6 (1)"
            yield claim, "1e-06", f"{abs(error):.0e}", verdict(abs(error) <= 1e-6)
        limit = page.results.limit(list(cells.values())[-1])
        shown = compared.ratio(libsvm, limit, single)
        if shown not in ("-",) and not shown.startswith("<"):
            claim = f"{title(name)}: DC-SVM converges faster than LIBSVM, one thread each (5)"
            yield factor(claim, 1, shown)


def prediction_methods(page: Page) -> Iterator[Line]:
    ours = [result for _, result, _ in predicted.settings(page.about(prediction)) if result]
    if ours:
        best = sum(
            one["early"]["accuracy"] > max(one[m]["accuracy"] for m in ("naive", "bcm"))
            for one in ours
        )
        claim = "Early prediction is more accurate than the naive sum and the BCM (Table 1)"
        yield claim, "4 of 4", f"{best} of {len(ours)}", verdict(best == len(ours))


def growing_levels(page: Page) -> Iterator[Line]:
    own = page.about(level_times)
    for cell in level_times.cells(page.scale, own.names, page.threads):
        if result := page.of(cell):
            theirs = published.LEVEL_TIMES[0][1] / sum(t for _, t in published.LEVEL_TIMES.values())
            last = by_level.last_seconds(result)
            share = last / (last + sum(level["seconds_training"] for level in result["levels"]))
            name = title(cell.settings["problem"]["data"])
            claim = f"{name}: most of training is for the whole problem (Table 6)"
            yield claim, f"{percent(theirs)} %", f"{percent(share)} %", verdict(share > 0.5)
