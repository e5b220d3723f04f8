"""The paper's claims: its number, ours from the same cells as the tables, and whether it holds.

A claim about a data set that is replaced is compared on the substitute.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from paper import published
from paper.baselines import COMPETITORS
from paper.experiments import bias, comparison, convergence, level_times, polynomial, prediction
from paper.experiments import grid as searches
from paper.experiments import support_vectors as vectors
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
EQUAL = 0.5  # per cent of the test rows: an accuracy that agrees with a printed one
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
    return table("claim | paper | here | ", [line for make in makers for line in make(page)])


def verdict(holds: bool) -> str:
    return HOLDS if holds else NOT


def factor(claim: str, wanted: float, shown: str) -> Iterator[Line]:
    """Compare a factor with the paper's: a number, a lower bound, or not known, "-" or "<"."""
    if shown != "-" and not shown.startswith("<"):
        is_bound, value = shown.startswith(">"), float(shown.strip(">").replace(",", ""))
        held = value >= wanted
        yield claim, f"{wanted:g}", shown, OPEN if is_bound and not held else verdict(held)


def agrees(accuracies: list[float], printed: list[float]) -> bool:
    return all(abs(100 * a - b) <= EQUAL for a, b in zip(accuracies, printed, strict=True))


def problems_of(page: Page) -> list[compared.Problem]:
    return compared.problems_of(page.about(comparison))


def problem_of(page: Page, name: str) -> compared.Problem | None:
    """Return the problem of all rows of a data set of the paper."""
    chosen = comparison.problems(page.scale, page.about(comparison).names)
    for one, problem in zip(chosen, problems_of(page), strict=True):
        if in_paper(one["data"]) == name and one["rows"] == page.scale.rows:
            return problem
    return None


def subset_grids(page: Page) -> Iterator[tuple[str, str, dict[str, grids.Grid]]]:
    """Yield the data set, the title and the grids of the methods of each subset."""
    own = page.about(searches)
    for name, found in grids.subset_grids(own).items():
        yield in_paper(name), grids.subset_title(own, name), found


def on_covtype(page: Page) -> Iterator[Line]:
    problem = problem_of(page, "covtype")
    if not problem:
        return
    several = f"early prediction, {page.threads} threads, is more than 100 times faster"
    libsvm, limit = problem.results.get("libsvm"), page.results.limit(problem.cells["libsvm"])
    for method, claim, wanted in (
        ("single", "covtype: DC-SVM, one thread each, is 7 times faster than LIBSVM (abstract)", 7),
        ("early", f"covtype: {several} than LIBSVM (abstract)", 100),
    ):
        shown = compared.ratio(libsvm, limit, problem.results.get(method))
        yield from factor(claim, wanted, shown)
    if early := problem.results.get("early"):
        claim = "covtype: early prediction has about 96 % (abstract)"
        held = verdict(early["accuracy"] >= 0.955)
        yield claim, "96.03 to 96.12", percent(early["accuracy"]), held


def with_bias(page: Page) -> Iterator[Line]:
    claim = "LIBSVM has similar accuracy with and without a bias (5)"
    if (problem := problem_of(page, "ijcnn1")) and {"libsvm", "direct"} <= set(problem.results):
        own = [problem.results[method]["accuracy"] for method in ("libsvm", "direct")]
        shown = "{} with, {} without".format(*map(percent, own))
        where = f"{problem.results['direct']['n_rows']:,} rows of ijcnn1"
        held = abs(own[0] - own[1]) <= SIMILAR / 100
        yield f"{claim}: {where}", "98.69", shown, verdict(held)
    apart = {}
    for name in page.about(bias).names:
        pair = [page.result(bias, name, method, None) for method in ("biased", "direct")]
        if all(pair):
            apart[title(name)] = pair[0]["accuracy"] - pair[1]["accuracy"]
    if apart:
        within = sum(abs(value) <= SIMILAR / 100 for value in apart.values())
        widest = max(apart, key=lambda name: abs(apart[name]))
        text = f"within {SIMILAR} % on {within} of {len(apart)}; {points(apart[widest])} ({widest})"
        yield f"{claim}: parts of all data sets", "similar", text, verdict(within == len(apart))


def vectors_found(page: Page) -> Iterator[Line]:
    for name in page.about(vectors).names:
        dcsvm, cascade = (page.result(vectors, name, "rbf", m) for m in ("dcsvm", "cascade"))
        if not dcsvm or not cascade:
            continue
        for point in (one for one in dcsvm["points"] if one["clusters"] == 256):
            shown = point["precision"], point["recall"]
            text = "precision {}, recall {}".format(*map(percent, shown))
            claim = f"{title(name)}: 256 clusters find about 90 % of the support vectors (4)"
            yield claim, "90", text, verdict(min(shown) >= ABOUT_90)
        first, last = dcsvm["points"][0], cascade["points"][-1]
        shown = [percent(one[m]) for one in (last, first) for m in ("precision", "recall")]
        held = last["precision"] < first["precision"] and last["recall"] < first["recall"]
        claim = f"{title(name)}: CascadeSVM finds them less accurately (4)"
        text = "at its end {} and {}; our first level {} and {}".format(*shown)
        yield claim, "less", text, verdict(held)


def vectors_sooner(page: Page) -> Iterator[Line]:
    for name in page.about(vectors).names:
        for kernel in vectors.kernels(name):
            dcsvm, libsvm = (
                page.of(vectors.subset_cell(page.scale, name, kernel, method))
                for method in ("dcsvm", "libsvm")
            )
            if not dcsvm or not libsvm:
                continue
            ours, theirs = (first_found(result["points"]) for result in (dcsvm, libsvm))
            claim = f"{title(name)}, {kernel}: DC-SVM finds them sooner than LIBSVM's shrinking (4)"
            told = [f"after {number(s)} s" if s else "never" for s in (ours, theirs)]
            held = ours is not None and (theirs is None or ours < theirs)
            yield claim, "sooner", "{}, LIBSVM {}".format(*told), verdict(held)
            if kernel == "polynomial":
                least = max(min(p["precision"], p["recall"]) for p in libsvm["points"])
                claim = f"{title(name)}, polynomial: LIBSVM does not find 20 % in 10^5 s (5)"
                seconds = number(libsvm["points"][-1]["seconds"])
                text = f"{percent(least)} % within {seconds} s ({libsvm['n_rows']:,} rows)"
                yield claim, "under 20 %", text, verdict(least < 0.2)


def early_accuracy(page: Page) -> Iterator[Line]:
    both = {one.name: one.beside("early") for one in problems_of(page) if one.beside("early")}
    if both:
        apart = {name: one["accuracy"] - ours["accuracy"] for name, (one, ours) in both.items()}
        theirs = [one["early"][1] - one["dcsvm"][1] for one in published.comparison().values()]
        lowest, paper = min(apart, key=apart.get), min(theirs) / 100
        text = f"{points(apart[lowest])} % at worst ({lowest})"
        claim = "Early prediction has near-optimal accuracy (5)"
        held = apart[lowest] >= paper - NEAR_OPTIMAL
        yield claim, f"{points(paper)} % at worst", text, verdict(held)
        better = sum(value < 0 for value in apart.values())
        claim = "The whole problem gives a better accuracy than early prediction (5)"
        paper = f"{sum(value < 0 for value in theirs)} of {len(theirs)}"
        yield claim, paper, f"{better} of {len(apart)}", verdict(better == len(apart))


def fold_speedup(page: Page) -> Iterator[Line]:
    pairs = [
        (one.results[method], one.results["early"])
        for one in problems_of(page)
        for method in COMPETITORS
        if {method, "early"} <= set(one.results)
    ]
    if pairs:
        below = sum(result["accuracy"] < ours["accuracy"] for result, ours in pairs)
        slow = sum(result["seconds"] >= 50 * ours["seconds"] for result, ours in pairs)
        text = f"{slow} take 50 times as long and {below} are less accurate than early"
        claim = "More than 50-fold speedup at a higher accuracy than competitors (5)"
        held = slow == below == len(pairs)
        yield claim, "consistently", f"of {len(pairs)}, {text}", verdict(held)


def on_all_settings(page: Page) -> Iterator[Line]:
    counts = {where: grids.faster_than_libsvm(found) for _, where, found in subset_grids(page)}
    if counts:
        faster, both = (sum(column) for column in zip(*counts.values(), strict=True))
        claim = "DC-SVM is faster than LIBSVM on 96 of 100 settings (5)"
        yield claim, "96 of 100", f"{faster} of {both}", verdict(faster >= 0.96 * both)
    for where, (faster, both) in counts.items():
        claim = f"DC-SVM is faster than LIBSVM for almost every setting: {where} (captions)"
        yield claim, "almost every", f"{faster} of {both}", verdict(faster >= 0.9 * both)
    least = [
        one["seconds"] / max(found["dcsvm"][s]["seconds"], SHORTEST)
        for _, _, found in subset_grids(page)
        for s, one in found["libsvm"].items()
        if s[1] in SMALL and one["seconds"] and "limit" not in found["dcsvm"][s]
    ]
    if least:
        claim = "With a small gamma DC-SVM is still 1 to 2 times faster than LIBSVM (5)"
        span = f"{times(min(least))} to {times(max(least))}"
        yield claim, "1 to 2", span, verdict(min(least) >= 1)


def captions(page: Page) -> Iterator[Line]:
    for name, where, found in subset_grids(page):
        if wanted := FASTER_ON_GRIDS.get(name):
            ratios = {
                s: (one["seconds"] or 0.0) / max(found["early"][s]["seconds"], SHORTEST)
                for s, one in found["libsvm"].items()
            }
            below = [s for s, ratio in ratios.items() if ratio < wanted]
            is_open = below and all("limit" in found["libsvm"][s] for s in below)
            claim = (
                f"Early prediction is always {wanted} times faster than LIBSVM: {where} (captions)"
            )
            text = f"at least {times(min(ratios.values()))}; {wanted} in "
            text += f"{len(ratios) - len(below)} of {len(ratios)}"
            yield claim, f"{wanted}", text, OPEN if is_open else verdict(not below)


def small_gamma(page: Page) -> Iterator[Line]:
    own, apart = page.about(searches), {}
    for name in filter(searches.has_peers, own.names):
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
    named = {"libsvm": ("LIBSVM, one thread each", "single"), "lasvm": ("LaSVM", "dcsvm")}
    for name in page.about(polynomial).names:
        for method, (peer, ours) in named.items():
            theirs, own = (
                polynomial.cell(
                    page.scale, name, one, polynomial.compared(page.scale, one), page.threads
                )
                for one in (method, ours)
            )
            result = page.of(own)
            shown = compared.ratio(page.of(theirs), page.results.limit(theirs), result)
            rows = f"{result['n_rows']:,} rows" if result else ""
            claim = f"Polynomial kernel, {title(name)}, {rows}: 100 times {peer} (5)"
            yield from factor(claim, 100, shown)


def cut_short(page: Page) -> Iterator[Line]:
    found = grids.settings(page.about(searches), "covtype", "dcsvm")
    for (c, g), printed in CUT_SHORT.items():
        if "accuracy" in (one := found.get((c, g), {})):
            claim = f"covtype, C=2^{c}, gamma=2^{g}: accuracy of the exact solvers (Table 9)"
            held = agrees([one["accuracy"]], [float(printed)])
            why = " (ours have converged)" * one["converged"]
            yield claim, printed, percent(one["accuracy"]) + why, verdict(held)


def census_gamma(page: Page) -> Iterator[Line]:
    found = grids.settings(page.about(searches), "census", "dcsvm")
    own = {s: one["accuracy"] for s, one in found.items() if s[1] == 10 and "accuracy" in one}
    theirs = [float(published.grid()[("census", *s, "dcsvm")][0]) for s in own]
    if own:
        span = f"{percent(min(own.values()))} to {percent(max(own.values()))}"
        claim = "census, gamma=2^10: accuracy of the exact solvers (Table 10)"
        held = agrees([*own.values()], theirs)
        yield claim, f"{min(theirs):g} to {max(theirs):g}", span, verdict(held)


def robust(page: Page) -> Iterator[Line]:
    for _, where, found in subset_grids(page):
        least = {m: min(own) for m, own in grids.accuracies(found).items() if own}
        if least:
            early, exact, libsvm = least.values()
            shown = map(percent, (early, exact, libsvm))
            text = "least accuracy {}, DC-SVM's {}, LIBSVM's {}".format(*shown)
            claim = f"Early prediction is more robust to C and gamma: {where} (5)"
            yield claim, "more", text, verdict(early > max(exact, libsvm))


def convergence_of_objective(page: Page) -> Iterator[Line]:
    default = convergence.DEFAULT
    for name in page.about(convergence).names:
        best = page.result(convergence, name, "dcsvm", convergence.REFERENCE)
        single = page.result(convergence, name, "single", default)
        if best and single:
            error = abs(single["objective"] / best["objective"] - 1)
            claim = f"{title(name)}: the exact solution has a relative error of 10^-6 (1)"
            yield claim, "1e-06", f"{error:.0e}", verdict(error <= 1e-6)
        libsvm = convergence.cell(page.scale, name, "libsvm", default, page.threads)
        shown = compared.ratio(page.of(libsvm), page.results.limit(libsvm), single)
        claim = f"{title(name)}: DC-SVM converges faster than LIBSVM, one thread each (5)"
        yield from factor(claim, 1, shown)


def prediction_methods(page: Page) -> Iterator[Line]:
    ours = [result for _, result, _ in predicted.settings(page.about(prediction)) if result]
    if ours:
        accuracies = [[one[m]["accuracy"] for m in ("early", "naive", "bcm")] for one in ours]
        best = sum(early > max(others) for early, *others in accuracies)
        claim = "Early prediction is more accurate than the naive sum and the BCM (Table 1)"
        yield claim, "4 of 4", f"{best} of {len(ours)}", verdict(best == len(ours))


def growing_levels(page: Page) -> Iterator[Line]:
    theirs = published.LEVEL_TIMES[0][1] / sum(t for _, t in published.LEVEL_TIMES.values())
    for cell in level_times.cells(page.scale, page.about(level_times).names, page.threads):
        if result := page.of(cell):
            last = by_level.last_seconds(result)
            share = last / (last + sum(level["seconds_training"] for level in result["levels"]))
            name = title(cell.settings["problem"]["data"])
            claim = f"{name}: most of training is for the whole problem (Table 6)"
            yield claim, f"{percent(theirs)} %", f"{percent(share)} %", verdict(share > 0.5)
