"""A colour, a marker and a line for each method, the same in all figures."""

from __future__ import annotations

from bench.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, Series

from paper.baselines import TITLES

METHODS = {  # colour, marker, line
    "early": (VERMILION, "o", "-"),
    "found": (ORANGE, "*", "-"),
    "dcsvm": (BLUE, "s", "-"),
    "single": (BLUE, "p", ":"),
    "direct": (SKY, "D", "-"),
    "libsvm": (BLACK, "^", "--"),
    "lasvm": (PURPLE, "v", "--"),
    "cascade": (GREEN, "P", "--"),
    "llsvm": (ORANGE, "X", ":"),
    "fastfood": (GREY, "<", ":"),
    "spsvm": (ORANGE, ">", "-."),
    "ltpu": (GREY, "d", "-."),
}


def of_method(method: str, points: list[tuple[float, float | None]], **more) -> Series:
    color, marker, line = METHODS[method]
    look = {"color": color, "marker": marker, "linestyle": line, "label": TITLES[method]}
    return Series(points, look | more)
