"""The paper's claims: its number, ours from the same cells as the tables, and whether it holds.

A claim about a data set that is replaced is compared on the substitute.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import mean

from paper import published
from paper.baselines import COMPETITORS, ours_beside
from paper.experiments import (
    bias,
    bound,
    clustering,
    comparison,
    convergence,
    level_times,
    polynomial,
    prediction,
)
from paper.experiments import grid as searches
from paper.experiments import support_vectors as vectors
from paper.markdown import SHORTEST, joined, number, percent, points, table, times
from paper.sections import Page, in_paper, title
from paper.sections import clustering as by_clustering
from paper.sections import comparison as compared
from paper.sections import convergence as converging
from paper.sections import grid as grids
from paper.sections import level_times as by_level
from paper.sections import prediction as predicted
from paper.sections.bound import RESOLVED
from paper.sections.support_vectors import MEASURES, first_found

HOLDS, NOT, OPEN = "holds", "does not hold", "open: a lower bound"
SIMILAR = 0.1  # per cent of the test rows: accuracies that the paper would print as similar
ABOUT_90 = 0.85  # a share from here on rounds to 90 per cent, in tens
EQUAL = 0.5  # per cent of the test rows: an accuracy that agrees with a printed one, or almost
NEAR_OPTIMAL = 0.002  # share of the test rows by which our worst may be below the paper's worst
ALMOST_EVERY = 0.9  # share of the settings
TIGHT = 10  # a bound that is at most so many times what it bounds
CONSTANT = 1.2  # seconds of levels are almost constant up to this factor
FASTER_ON_GRIDS = {"ijcnn1": 10, "webspam": 30, "covtype": 50, "census": 50}  # captions
SMALL = (-10, -6)  # exponents of a small gamma
CUT_SHORT = {(10, -10): "52.5", (10, -6): "57.1"}  # covtype: exponents, accuracy of exact solvers

Line = tuple[str, str, str, str]  # claim, the paper's number, ours, verdict


def claims(page: Page) -> str:
    makers = (
        on_covtype, without_levels, with_bias, tight_bound, adaptive_clusters, vectors_found,
        vectors_of_cascade, vectors_sooner, early_accuracy, fold_speedup, less_memory,
        convergence_of_objective, on_all_settings, captions, small_gamma, robust, polynomial_speed,
        cut_short, census_gamma, prediction_methods, time_of_levels,
    )  # fmt: skip
    return table("claim | paper | here | ", [line for make in makers for line in make(page)])


def rules(_: Page) -> str:
    """Say when a claim in words holds."""
    return (
        f"Accuracies are similar within {SIMILAR} % of the test rows, and equal or almost the same "
        f"within {EQUAL}; near-optimal ends {100 * NEAR_OPTIMAL:g} below the paper's worst. About "
        f"90 % begins at {100 * ABOUT_90:g} in precision and in recall, almost every setting at "
        f"{100 * ALMOST_EVERY:g} % of them. A bound of {TIGHT} times the difference is tight, and "
        f"seconds within a factor of {CONSTANT} are almost constant."
    )


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


def without_levels(page: Page) -> Iterator[Line]:
    """Compare with the same solver from zero, which in the paper is LIBSVM's."""
    pairs = [both for one in problems_of(page) if (both := one.beside("direct"))]
    ratios = [a["seconds"] / b["seconds"] for a, b in pairs if b["seconds"] >= SHORTEST]
    theirs = [one["libsvm"][0] / one["dcsvm"][0] for one in published.comparison().values()]
    if ratios:
        spans = [f"{number(min(own))} to {number(max(own))}" for own in (theirs, ratios)]
        claim = "DC-SVM is faster than the same solver on all rows from zero (Tables 3 and 4)"
        yield claim, *spans, verdict(min(ratios) > 1)


def with_bias(page: Page) -> Iterator[Line]:
    claim = "LIBSVM has similar accuracy with and without a bias (5)"
    if (problem := problem_of(page, "ijcnn1")) and {"libsvm", "direct"} <= set(problem.results):
        own = [problem.results[method]["accuracy"] for method in ("libsvm", "direct")]
        shown = "{} with, {} without".format(*map(percent, own))
        where = f"{problem.results['direct']['n_rows']:,} rows of ijcnn1"
        held = abs(own[0] - own[1]) <= SIMILAR / 100
        yield f"{claim}: {where}", "98.69", shown, verdict(held)
    apart = {
        one.name: both[0]["accuracy"] - both[1]["accuracy"]
        for one in problems_of(page)
        if not one.is_part and (both := one.beside("libsvm"))
    }
    yield from within(f"{claim}: the most rows that LIBSVM could have", apart)
    apart, rows = {}, 0
    for name in page.about(bias).names:
        pair = [page.result(bias, name, method, None) for method in ("biased", "direct")]
        if all(pair):
            apart[title(name)] = pair[0]["accuracy"] - pair[1]["accuracy"]
            rows = max(rows, pair[0]["n_rows"])
    yield from within(f"{claim}: {rows:,} rows of all data sets", apart)


def within(claim: str, apart: dict[str, float]) -> Iterator[Line]:
    """Count the differences of accuracy that are similar, and give the largest."""
    if apart:
        near = sum(abs(value) <= SIMILAR / 100 for value in apart.values())
        widest = max(apart, key=lambda name: abs(apart[name]))
        text = f"within {SIMILAR} % on {near} of {len(apart)}; {points(apart[widest])} ({widest})"
        yield claim, "similar", text, verdict(near == len(apart))


def tight_bound(page: Page) -> Iterator[Line]:
    for name in page.about(bound).names:
        found = {
            partition: [
                page.of(bound.cell(name, k, partition, page.threads)) for k in bound.CLUSTERS
            ]
            for partition in bound.PARTITIONS
        }
        if not all(all(own) for own in found.values()):
            continue
        resolved = [one for own in found.values() for one in own if one["difference"] >= RESOLVED]
        if resolved:
            ratios = [one["bound"] / one["difference"] for one in resolved]
            claim = f"{title(name)}: the bound of Theorem 1 is reasonably tight (3)"
            span = f"{times(min(ratios))} to {times(max(ratios))} times the difference"
            yield claim, "nearly overlapping curves", span, verdict(max(ratios) <= TIGHT)
        ours, random = (found[partition] for partition in bound.PARTITIONS)
        pairs = list(zip(ours, random, strict=True))
        less = sum(a["difference"] < b["difference"] for a, b in pairs)
        claim = f"{title(name)}: kernel k-means is nearer to the optimum than random parts (3)"
        yield claim, "nearer", f"for {less} of {len(pairs)} numbers", verdict(less == len(pairs))


def adaptive_clusters(page: Page) -> Iterator[Line]:
    """Count the levels above the finest whose gap is smaller than without support vectors."""
    for name in page.about(clustering).names:
        adaptive, *others = (
            page.result(clustering, name, one) for one in ("adaptive", "random", "tree")
        )
        if not adaptive or not all(others):
            continue
        gaps = [list(map(by_clustering.gap_of, one["levels"][1:])) for one in (adaptive, *others)]
        ours, *theirs = gaps
        less = [sum(a <= b for a, b in zip(ours, one, strict=True)) for one in theirs]
        if ours:
            claim = f"{title(name)}: adaptive clusters get progressively better than others (4)"
            text = "of {} levels {} at least as near as random samples', {} as the tree's"
            held = all(count == len(ours) for count in less)
            yield claim, "better", text.format(len(ours), *less), verdict(held)


def vectors_found(page: Page) -> Iterator[Line]:
    for name in page.about(vectors).names:
        dcsvm = page.result(vectors, name, "rbf", "dcsvm")
        for point in (one for one in (dcsvm or {}).get("points", ()) if one["clusters"] == 256):
            shown = point["precision"], point["recall"]
            text = "precision {}, recall {}".format(*map(percent, shown))
            claim = f"{title(name)}: 256 clusters find about 90 % of the support vectors (4)"
            yield claim, "90", text, verdict(min(shown) >= ABOUT_90)


def vectors_of_cascade(page: Page) -> Iterator[Line]:
    """Compare CascadeSVM with DC-SVM at the same number of parts."""
    for name in page.about(vectors).names:
        for kernel in vectors.kernels(name):
            pair = [page.result(vectors, name, kernel, m) for m in ("dcsvm", "cascade")]
            if not all(pair):
                continue
            ours, theirs = ({one["clusters"]: one for one in own["points"]} for own in pair)
            if both := ours.keys() & theirs.keys():
                less = [sum(theirs[k][m] < ours[k][m] for k in both) for m in MEASURES]
                claim = f"{title(name)}, {kernel}: CascadeSVM finds them less accurately (4)"
                text = f"precision lower at {less[0]}, recall at {less[1]} of {len(both)} numbers"
                yield claim, "less", f"{text} of parts", verdict(min(less) == len(both))


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
    both = {
        one.name: one.beside("early")
        for one in problems_of(page)
        if not one.is_part and one.beside("early")
    }
    if both:
        apart = {name: one["accuracy"] - ours["accuracy"] for name, (one, ours) in both.items()}
        theirs = [one["early"][1] - one["dcsvm"][1] for one in published.comparison().values()]
        lowest, paper = min(apart, key=apart.get), min(theirs) / 100
        text = f"{points(apart[lowest])} % at worst ({lowest})"
        claim = "Early prediction has near-optimal accuracy (5)"
        held = apart[lowest] >= paper - NEAR_OPTIMAL
        yield claim, f"{points(paper)} % at worst", text, verdict(held)
        better = sum(round(value, 4) < 0 for value in apart.values())
        claim = "The whole problem gives a better accuracy than early prediction (5)"
        printed = sum(value < 0 for value in theirs)
        held = better * len(theirs) >= printed * len(apart)
        paper, text = f"{printed} of {len(theirs)}", f"{better} of {len(apart)}"
        yield claim, paper, text, verdict(held)


def fold_speedup(page: Page) -> Iterator[Line]:
    """Count a competitor that exceeded its limit as slow if the limit is as long."""
    count = slow = both = 0
    finished = []
    for one in problems_of(page):
        for method in COMPETITORS:
            result, ours = one.results.get(method), one.results.get("early")
            seconds = result["seconds"] if result else page.results.limit(one.cells[method])
            if not ours or not seconds:
                continue
            count += 1
            is_slow = seconds >= 50 * ours["seconds"]
            slow += is_slow
            if result:
                finished.append(result["accuracy"] < ours["accuracy"])
                both += is_slow and finished[-1]
    if finished:
        text = f"{slow} of {count} take 50 times as long as early; of {len(finished)} with a "
        text += f"result {sum(finished)} are less accurate, {both} are both"
        claim = "More than 50-fold speedup at a higher accuracy than competitors (5)"
        yield claim, "consistently", text, verdict(slow == count and both == len(finished))


def less_memory(page: Page) -> Iterator[Line]:
    pairs = [
        (result["added_mb"], ours["added_mb"])
        for one in problems_of(page)
        for method in COMPETITORS
        if (result := one.results.get(method)) and (ours := one.results.get(ours_beside(method)))
        if result.get("added_mb") is not None and ours.get("added_mb") is not None
    ]
    if pairs:
        more = sum(theirs > ours for theirs, ours in pairs)
        claim = "DC-SVM outperforms its competitors in memory usage (abstract)"
        text = f"{more} of {len(pairs)} add more MB to the rows"
        yield claim, "outperforms", text, verdict(more == len(pairs))


def on_all_settings(page: Page) -> Iterator[Line]:
    counts = {
        (name, where): grids.faster_than_libsvm(found) for name, where, found in subset_grids(page)
    }
    if counts:
        faster, both = (sum(column) for column in zip(*counts.values(), strict=True))
        claim = "DC-SVM is faster than LIBSVM on 96 of 100 settings (5)"
        yield claim, "96 of 100", f"{faster} of {both}", verdict(faster >= 0.96 * both)
    for (name, where), (faster, both) in counts.items():
        least, words = (ALMOST_EVERY, "almost every") if name == "ijcnn1" else (1.0, "every")
        claim = f"DC-SVM is faster than LIBSVM for {words} setting: {where} (captions)"
        paper = "; in ".join([words, *in_its_table(name, "dcsvm", 1)])
        yield claim, paper, f"{faster} of {both}", verdict(faster >= least * both)
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


def in_its_table(name: str, method: str, wanted: float) -> Iterator[str]:
    """Count the settings of the paper's own table that have a factor over LIBSVM."""
    theirs = published.grid()
    seconds = [
        [float(theirs[(name, *pair, one)][1].strip(">")) for one in ("libsvm", method)]
        for pair in searches.SETTINGS
        if (name, *pair, "libsvm") in theirs
    ]
    if seconds:
        count = sum(libsvm > wanted * ours for libsvm, ours in seconds)
        yield f"{count} of {len(seconds)} of its table"


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
            paper = "; in ".join([f"{wanted}", *in_its_table(name, "early", wanted)])
            yield claim, paper, text, OPEN if is_open else verdict(not below)


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
        text = f"on average {text}"
        claim = "With a small gamma early prediction has almost the same or better accuracy (5)"
        yield claim, "almost the same", text, verdict(min(apart.values()) >= -EQUAL / 100)


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
    printed = published.grid()
    theirs = [float(printed[("census", *s, m)][0]) for m in ("dcsvm", "libsvm") for s in own]
    if own:
        span = f"{percent(min(own.values()))} to {percent(max(own.values()))}"
        claim = "census, gamma=2^10: accuracy of the exact solvers (Table 10)"
        held = agrees([*own.values()] * 2, theirs)
        yield claim, f"{min(theirs):g} to {max(theirs):g}", span, verdict(held)


def robust(page: Page) -> Iterator[Line]:
    own = page.about(searches)
    for name in filter(searches.has_peers, own.names):
        early, exact = (
            [one["accuracy"] for one in grids.settings(own, name, m).values() if "accuracy" in one]
            for m in ("early", "dcsvm")
        )
        if early and exact:
            text = f"least accuracy {percent(min(early))}, DC-SVM's {percent(min(exact))}"
            claim = f"Early prediction is more robust to C and gamma: {title(name)} (5)"
            yield claim, "more", text, verdict(min(early) > min(exact))


def convergence_of_objective(page: Page) -> Iterator[Line]:
    default = convergence.DEFAULT
    for name in page.about(convergence).names:
        best = converging.least_objective(page, convergence, name)
        single = page.result(convergence, name, "single", default)
        where = f"{title(name)}, {single['n_rows']:,} rows" if single else title(name)
        if best and single:
            error = (single["objective"] - best) / abs(best)
            shown = f"{error:.0e}" if error else "the least f"
            claim = f"{where}: the exact solution has a relative error of 10^-6 (1)"
            yield claim, "1e-06", shown, verdict(error <= 1e-6)
        libsvm = convergence.cell(page.scale, name, "libsvm", default, page.threads)
        shown = compared.ratio(page.of(libsvm), page.results.limit(libsvm), single)
        claim = f"{where}: DC-SVM converges faster than LIBSVM, one thread each (5)"
        yield from factor(claim, 1, shown)


def prediction_methods(page: Page) -> Iterator[Line]:
    ours = [result for _, result, _ in predicted.settings(page.about(prediction)) if result]
    if ours:
        accuracies = [[one[m]["accuracy"] for m in ("early", "naive", "bcm")] for one in ours]
        best = sum(early > max(others) for early, *others in accuracies)
        claim = "Early prediction is more accurate than the naive sum and the BCM (Table 1)"
        yield claim, "4 of 4", f"{best} of {len(ours)}", verdict(best == len(ours))


def time_of_levels(page: Page) -> Iterator[Line]:
    for cell in level_times.cells(page.scale, page.about(level_times).names, page.threads):
        if (result := page.of(cell)) and result["levels"]:
            clusterings = [level["seconds_clustering"] for level in result["levels"]]
            grows = by_level.grows(result)
            span = f"{number(min(clusterings))} to {number(max(clusterings))} s"
            theirs = [seconds for seconds, _ in published.LEVEL_TIMES.values()]
            paper = f"{number(min(theirs))} to {number(max(theirs))} s, increasing"
            name = title(cell.settings["problem"]["data"])
            claim = f"{name}: clustering takes almost the same time at each level, training more "
            claim += "and more (Table 6)"
            held = max(clusterings) <= CONSTANT * max(min(clusterings), SHORTEST) and grows
            shown = f"{span}, {'increasing' if grows else 'not always more'}"
            yield claim, paper, shown, verdict(held)
