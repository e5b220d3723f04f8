"""A part solved by its active set: the solution of the whole part, few passes over all rows."""

import pytest
from reference import labelled_rows

from dcsvm.data.rows import Rows
from dcsvm.problem.options import TrainOptions
from dcsvm.solving import preparation, work
from dcsvm.training.train import train_rows


class FarRows(work.Work):
    has_far_rows = True
    rounds: list[int] = []

    def solve(self, parts, iterate, effort, progress, stop):
        solved = super().solve(parts, iterate, effort, progress, stop)
        FarRows.rounds.append(self.n_rounds)
        return solved


@pytest.mark.parametrize(
    "options",
    [{"C": 4.0}, {"C": 4.0, "bias": True}, {"svm_type": "epsilon_svr", "C": 2.0}],
    ids=["plain", "bias", "svr"],
)
def test_the_solution_is_that_of_the_whole_part(monkeypatch, options):
    X, y = labelled_rows(3000, 3, seed=5)
    rows, options = Rows.from_array(X), TrainOptions(gamma=2.0, levels=1, threads=1, **options)
    wanted = train_rows(rows, y, options)[1]
    monkeypatch.setattr(preparation, "Work", FarRows)
    monkeypatch.setattr(work, "LARGE", 1000)
    monkeypatch.setattr(FarRows, "rounds", [])
    found = train_rows(rows, y, options)[1]
    assert max(FarRows.rounds) > 1
    assert found.converged and found.violation <= 1e-3
    assert found.objective == pytest.approx(wanted.objective, rel=1e-5)
