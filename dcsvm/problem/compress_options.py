"""The options of model compression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from dcsvm.problem.option_rules import OptionError, choice, integer, number, optional
from dcsvm.problem.option_table import OptionTable, option
from dcsvm.problem.options import threads_option

of_size = partial(option, None, group="Size (give one)", is_basic=True)
of_method = partial(option, group="Method")


@dataclass(frozen=True, kw_only=True)
class CompressOptions(OptionTable):
    """The options of Model.compress: the target size, one of three, and the method.

    `vectors` is the maximum number of vectors, `times` the reduction of kernel evaluations per row,
    `loss` the percentage of labels that may change. `method` defaults to "exact", or to "early" if
    the model has no exact part. `steps` is the number of optimization steps per cluster, by default
    a function of its size.
    """

    function = "dcsvm.Model.compress"

    # fmt: off
    vectors: int | None = of_size(optional(integer(1)), "--vectors N",
        "maximum number of vectors",
        "The clusters of an early model share them.")
    times: float | None = of_size(
        optional(number("above 1 and finite", lambda value: 1 < value < math.inf)), "--times T",
        "reduce kernel evaluations per row by this factor",
        "The evaluations that assign a row to its cluster count, too.")
    loss: float | None = of_size(
        optional(number("above 0 and below 100", lambda value: 0 < value < 100)), "--loss PERCENT",
        "labels that may change, in percent; needs --test",
        "Several sizes are tried. The result is the smallest one that changes at most PERCENT of "
        "the labels with 95 % confidence, by the test rows.")
    method: str | None = option(None, optional(choice("exact", "early")))
    steps: int | None = of_method(None, optional(integer(1)), "--steps N",
        "optimization steps per cluster, 256 rows each",
        "The default is 200 passes over the rows, and at most 6000 steps. More steps fit better "
        "and take longer.",
        default_text="up to 6000")
    seed: int = of_method(0, integer(0), "--seed N", "random seed")
    threads: int | None = threads_option(group="Other")

    # fmt: on
    def __post_init__(self) -> None:
        super().__post_init__()
        targets = [name for name in ("vectors", "times", "loss") if getattr(self, name) is not None]
        if len(targets) != 1:
            reason = f"is required, exactly one of them, got {len(targets)}"
            raise OptionError("vectors, times or loss", reason)
