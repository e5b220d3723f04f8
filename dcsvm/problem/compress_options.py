"""How small a compressed model is to be."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dcsvm.problem.option_rules import choice, integer, number, optional
from dcsvm.problem.options import RULES

COMPRESS_RULES = {
    "vectors": optional(integer(1)),
    "times": optional(number("above 1 and finite", lambda value: 1 < value < math.inf)),
    "loss": optional(number("above 0 and below 100", lambda value: 0 < value < 100)),
    "method": optional(choice("exact", "early")),
    "steps": optional(integer(1)),
    "seed": RULES["seed"],
    "threads": RULES["threads"],
}


@dataclass(frozen=True, kw_only=True)
class CompressOptions:
    """What is asked for, one of three: at most so many `vectors`; so many `times` fewer kernel
    values for a row; or a `loss`, percent of the labels that may change. `method` None is "exact"
    where the model has it, else "early". The landmarks of a cluster take so many `steps`, None
    for a number that suits its rows."""

    vectors: int | None = None
    times: float | None = None
    loss: float | None = None
    method: str | None = None
    steps: int | None = None
    seed: int = 0
    threads: int | None = None

    def __post_init__(self):
        for name, rule in COMPRESS_RULES.items():
            object.__setattr__(self, name, rule.check(name, getattr(self, name)))
        asked = [name for name in ("vectors", "times", "loss") if getattr(self, name) is not None]
        if len(asked) != 1:
            raise ValueError(
                f"vectors, times or loss is needed, one of the three; {len(asked)} are given"
            )
