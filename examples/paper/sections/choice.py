"""C and gamma chosen by five folds beside the paper's choice."""

from __future__ import annotations

import math

from paper.cells import Cell
from paper.experiments.choice import METHODS, cell
from paper.markdown import duration, number, percent, table
from paper.problems import DATA_SETS
from paper.sections import Page, title
from paper.sections.words import compared, joined

MODELS = {"early": "early", "dcsvm": "exact"}
HEADING = [
    "data set",
    "models",
    "rows",
    "settings",
    "search s",
    "chosen C, gamma",
    "folds %",
    "test %",
    "paper's C, gamma",
    "test % with those",
]


def show(page: Page) -> str:
    pairs = [(name, method) for name in page.names for method in METHODS]
    cells = {pair: cell(page.scale, *pair, page.threads) for pair in pairs}
    shown = [pair for pair in pairs if cells[pair].saved(page.results.folder)]
    absent = [f"{title(name)} ({MODELS[m]})" for name, m in pairs if (name, m) not in shown]
    parts = []
    if shown:
        parts.append(table(HEADING, [line(page, *pair, cells[pair]) for pair in shown]))
    if absent:
        parts.append(f"Not measured: {joined(absent)}.")
    return "\n\n".join(parts)


def line(page: Page, name: str, method: str, one: Cell) -> list[str]:
    result = page.results.of(one)
    known = DATA_SETS[name]
    paper = powers(math.log2(known.C), math.log2(known.gamma))
    start = [title(name), MODELS[method]]
    if result is None:
        return [*start, "-", "-", page.seconds(one), "-", "-", "-", paper, "-"]
    return [
        *start,
        f"{result['n_rows']:,}",
        str(result["n_settings"]),
        number(result["seconds"]),
        powers(result["log2_C"], result["log2_gamma"]),
        percent(result["fold_accuracy"]),
        percent(result["test_accuracy"]),
        paper,
        percent(result["paper_test_accuracy"]),
    ]


def powers(log2_c: float, log2_gamma: float) -> str:
    return f"2^{log2_c:g}, 2^{log2_gamma:g}"


def conclude(page: Page) -> str:
    """Compare the test accuracies of the chosen and of the paper's settings, from the cells."""
    results = {
        (name, method): page.results.of(cell(page.scale, name, method, page.threads))
        for name in page.names
        for method in METHODS
    }
    if not results or not all(results.values()):
        return ""
    return " ".join(about(method, results) for method in METHODS)


def about(method: str, results: dict[tuple[str, str], dict]) -> str:
    own = {name: result for (name, m), result in results.items() if m == method}
    gains = {
        name: round(100 * (result["test_accuracy"] - result["paper_test_accuracy"]), 2)
        for name, result in own.items()
    }
    words = [compared(gain, 0, "above", "below") for gain in gains.values()]
    phrases = {"above": "above", "equal": "equal to", "below": "below"}
    shares = joined(
        [f"{phrase} it on {words.count(word)}" for word, phrase in phrases.items() if word in words]
    )
    widest = max(gains, key=lambda name: abs(gains[name]))
    extreme = compared(gains[widest], 0, "above", "below")
    seconds = sum(result["seconds"] for result in own.values())
    text = (
        f"With {MODELS[method]} models the search takes {duration(seconds)} on "
        f"{joined([title(name) for name in own])} together. Compared with the test "
        f"accuracy of the paper's C and gamma, that of the chosen ones is {shares} of {len(own)} "
        "data sets"
    )
    if gains[widest] == 0:
        return f"{text}."
    return f"{text}; it differs most on {title(widest)}, {abs(gains[widest]):.2f} % {extreme}."
