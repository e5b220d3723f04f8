"""svm-grid's lines: of a setting on standard output and in the -out file, and the last one."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from dcsvm.data.pieces import DataError, read_text
from dcsvm.problem.option_rules import REGRESSIONS
from dcsvm.problem.options import TrainOptions
from dcsvm.selection.grid import Grid, Score, Setting

NUMBER = r"(-?[0-9]+(?:\.[0-9]*)?(?:e[-+]?[0-9]+)?)(?![\w.])"
LETTERS = {"C": "c", "gamma": "g", "epsilon": "p"}


class GridLines:
    """The lines of a search for what is not fixed: `names` of C, gamma, epsilon; `n_rows` are held
    out."""

    def __init__(self, names: list[str], options: TrainOptions, n_rows: int):
        self.names, self.n_rows, self.C = names, n_rows, options.C
        self.is_regression = options.svm_type in REGRESSIONS
        self.word = "mse" if self.is_regression else "rate"

    def rate(self, score: Score) -> float:
        return score.loss if self.is_regression else 100.0 * (1.0 - score.loss)

    def told(self, source: str, score: Score, best: Score | None) -> str:
        """`[local] 5.0 -7.0 96.15 (best c=32.0, g=0.0078125, rate=96.15)`"""
        own = " ".join(str(exponent) for exponent in self.exponents(score.setting).values())
        line = f"[{source}] {own} {self.rate(score):g}"
        if best is None:
            return line
        values = [f"{LETTERS[name]}={getattr(best.setting, name)!r}, " for name in self.names]
        return f"{line} (best {''.join(values)}{self.word}={self.rate(best):g})"

    def last(self, best: Score) -> str:
        """`32.0 0.0078125 96.15`"""
        values = [repr(getattr(best.setting, name)) for name in self.names]
        return f"{' '.join(values)} {self.rate(best):g}"

    def kept(self, score: Score) -> str:
        """`log2c=5.0 log2g=-7.0 rate=96.15`, and what is not as it should be."""
        exponents = self.exponents(score.setting)
        own = " ".join(f"log2{LETTERS[name]}={value}" for name, value in exponents.items())
        digits = 17 if self.is_regression else 12
        partly = "" if score.is_complete else f" rows={score.n_rows}"
        missed = "" if score.converged else " not_converged"
        return f"{own} {self.word}={self.rate(score):.{digits}g}{partly}{missed}"

    def exponents(self, setting: Setting) -> dict[str, float]:
        return {name: round(math.log2(getattr(setting, name)), 9) for name in self.names}

    def read(self, path: str, grid: Grid) -> list[Score]:
        """The scores of an -out file, svm-grid's too. Raises DataError."""
        text = bytes(read_text(path)).decode("utf-8", "replace")
        found: dict[Setting, Score] = {}
        # a line without its end was being written when the search ended
        for number, line in enumerate(text.split("\n")[:-1], 1):
            if line.strip():
                score = self._parsed(line)
                if score is None:
                    raise DataError(
                        f"{path}:{number}: expected a line such as "
                        f"{' '.join(f'log2{LETTERS[name]}=1' for name in self.names)} "
                        f"{self.word}=90, found {line[:40]!r}"
                    )
                found[score.setting] = score
        # exponents of the grid are those of the lines up to rounding
        own = {tuple(self.exponents(one).values()): one for one in grid.settings}
        return [
            replace(score, setting=own.get(tuple(self.exponents(setting).values()), setting))
            for setting, score in found.items()
        ]

    def _parsed(self, line: str) -> Score | None:
        values = {}
        for name in self.names:
            match = re.search(rf"\blog2{LETTERS[name]}={NUMBER}", line)
            if not match or abs(float(match[1])) > 1000:
                return None
            values[name] = 2.0 ** float(match[1])
        match, rows = re.search(rf"\b{self.word}={NUMBER}", line), re.search(r"\brows=(\d+)", line)
        n_rows = int(rows[1]) if rows else self.n_rows
        if not match or not 1 <= n_rows <= self.n_rows:
            return None
        rate = float(match[1])
        loss = rate if self.is_regression else round(n_rows * (1.0 - rate / 100.0)) / n_rows
        if not 0.0 <= loss <= (math.inf if self.is_regression else 1.0):
            return None
        return Score(
            setting=Setting(values.get("C", self.C), values.get("gamma"), values.get("epsilon")),
            loss=loss,
            losses=(),
            n_rows=n_rows,
            weight=float(n_rows),
            is_complete=rows is None,
            converged="not_converged" not in line,
            n_sv=None,
            seconds=0.0,
        )
