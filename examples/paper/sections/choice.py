"""C and gamma chosen by five folds beside the paper's choice."""

from __future__ import annotations

import math

from paper.experiments import choice
from paper.experiments.choice import METHODS, cell
from paper.markdown import compared, counted, joined, number, percent, powers, table
from paper.problems import DATA_SETS
from paper.sections import Page, title

MODELS = {"early": "early", "dcsvm": "exact"}
HEADING = (
    "data set | models | rows | settings | search s | chosen C, gamma | folds % | test % | "
    "paper's C, gamma | test % with those"
)


def searches(page: Page) -> str:
    return table(HEADING, [line(page, name, method) for name in page.names for method in METHODS])


def line(page: Page, name: str, method: str) -> list[str]:
    one = cell(page.scale, name, method, page.threads)
    result, known = page.of(one), DATA_SETS[name]
    paper = powers(math.log2(known.C), math.log2(known.gamma))
    start = [title(name), MODELS[method]]
    if result is None:
        return [*start, "-", "-", page.seconds(one), "-", "-", "-", paper, "-"]
    start += [f"{result['n_rows']:,}", str(result["n_settings"]), number(result["seconds"])]
    start.append(powers(result["log2_C"], result["log2_gamma"]))
    start += [percent(result["fold_accuracy"]), percent(result["test_accuracy"])]
    return [*start, paper, percent(result["paper_test_accuracy"])]


def against_paper(page: Page) -> str:
    """Count the data sets on which the chosen setting is better than the paper's."""
    sentences = []
    for method, models in MODELS.items():
        words = [
            compared(one["test_accuracy"], one["paper_test_accuracy"], "above", "below")
            for name in page.names
            if (one := page.result(choice, name, method))
        ]
        if words:
            counts = joined(f"{word} on {words.count(word)}" for word in dict.fromkeys(words))
            sentences.append(
                f"With {models} models, the test accuracy of the chosen setting, compared with "
                f"that of the paper's, is {counts} of {counted(len(words), 'data set')}."
            )
    return " ".join(sentences)
