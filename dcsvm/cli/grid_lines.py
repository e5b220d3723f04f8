"""The lines of svm-grid: printed and stored ones of a setting, and the last one."""

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
    """The format of the lines of a search.

    `names` are the searched ones of C, gamma and epsilon; `n_rows` rows are held out.
    """

    def __init__(self, names: list[str], options: TrainOptions, n_rows: int):
        self.names, self.n_rows, self.C = names, n_rows, options.C
        self.is_regression = options.svm_type in REGRESSIONS
        self.word = "mse" if self.is_regression else "rate"

    def rate(self, score: Score) -> float:
        return score.loss if self.is_regression else 100.0 * (1.0 - score.loss)

    def printed(self, source: str, score: Score, best: Score | None) -> str:
        """Format as `[local] 5.0 -7.0 96.15 (best c=32.0, g=0.0078125, rate=96.15)`."""
        exponents = " ".join(str(exponent) for exponent in self.exponents(score.setting).values())
        line = f"[{source}] {exponents} {self.rate(score):g}"
        if best is None:
            return line
        values = [f"{LETTERS[name]}={getattr(best.setting, name)!r}, " for name in self.names]
        return f"{line} (best {''.join(values)}{self.word}={self.rate(best):g})"

    def last(self, best: Score) -> str:
        """Format as `32.0 0.0078125 96.15`."""
        values = [repr(getattr(best.setting, name)) for name in self.names]
        return f"{' '.join(values)} {self.rate(best):g}"

    def stored(self, score: Score) -> str:
        """Format as `log2c=5.0 log2g=-7.0 rate=96.15`, with marks of incomplete scores."""
        exponents = " ".join(
            f"log2{LETTERS[name]}={exponent}"
            for name, exponent in self.exponents(score.setting).items()
        )
        digits = 17 if self.is_regression else 12
        partial = "" if score.is_complete else f" rows={score.n_rows}"
        failed = "" if score.converged else " not_converged"
        return f"{exponents} {self.word}={self.rate(score):.{digits}g}{partial}{failed}"

    def exponents(self, setting: Setting) -> dict[str, float]:
        return {name: round(math.log2(getattr(setting, name)), 9) for name in self.names}

    def read(self, path: str, grid: Grid) -> list[Score]:
        """Read the scores of an -out file of dcsvm-grid or svm-grid. Raises DataError."""
        text = bytes(read_text(path)).decode("utf-8", "replace")
        scores: dict[Setting, Score] = {}
        # an interrupted search may leave an incomplete last line
        for number, line in enumerate(text.split("\n")[:-1], 1):
            if line.strip():
                score = self._parsed(line)
                if score is None:
                    raise DataError(
                        f"{path}:{number}: expected a line such as "
                        f"{' '.join(f'log2{LETTERS[name]}=1' for name in self.names)} "
                        f"{self.word}=90, found {line[:40]!r}"
                    )
                scores[score.setting] = score
        # the exponents of lines are rounded
        settings = {tuple(self.exponents(one).values()): one for one in grid.settings}
        return [
            replace(score, setting=settings.get(tuple(self.exponents(setting).values()), setting))
            for setting, score in scores.items()
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
