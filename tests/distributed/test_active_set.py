"""A part solved by its active set, here without any workers: the solution of the whole part."""

import pytest
from reference import labelled_rows

pytest.importorskip("distributed")

from dcsvm.data.rows import Rows  # noqa: E402
from dcsvm.distributed.active_set import ActiveSet  # noqa: E402
from dcsvm.problem.options import TrainOptions  # noqa: E402
from dcsvm.solving import preparation  # noqa: E402
from dcsvm.solving.work import Work  # noqa: E402
from dcsvm.training.train import train_rows  # noqa: E402


class InActiveSets(Work):
    """Solves every large part whose gradient is known in this way."""

    n_rounds = 0

    def solve_together(self, parts, iterate, effort, progress, stop):
        return super().solve(parts, iterate, effort, progress, stop)

    def solve(self, parts, iterate, effort, progress, stop):
        is_known = iterate.is_known[parts.members].all()
        if len(parts.sizes) > 1 or not is_known:
            return self.solve_together(parts, iterate, effort, progress, stop)
        active = ActiveSet(self, parts, iterate, effort, progress)
        report = active.solve(stop)
        InActiveSets.n_rounds += active.n_rounds
        return [report]


@pytest.mark.parametrize(
    "options",
    [{"C": 4.0}, {"C": 4.0, "bias": True}, {"svm_type": "epsilon_svr", "C": 2.0}],
    ids=["plain", "bias", "svr"],
)
def test_the_solution_is_that_of_the_whole_part(monkeypatch, options):
    X, y = labelled_rows(3000, 3, seed=5)
    rows, options = Rows.from_array(X), TrainOptions(gamma=2.0, levels=1, threads=1, **options)
    wanted = train_rows(rows, y, options)[1]
    monkeypatch.setattr(preparation, "Work", InActiveSets)
    InActiveSets.n_rounds = 0
    found = train_rows(rows, y, options)[1]
    assert InActiveSets.n_rounds > 1
    assert found.converged and found.violation <= 1e-3
    assert found.objective == pytest.approx(wanted.objective, rel=1e-5)
