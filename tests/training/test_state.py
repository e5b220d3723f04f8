"""Test the budget of a run."""

import numpy as np

from dcsvm import _core
from dcsvm.problem.options import TrainOptions
from dcsvm.training.state import LIMITS, Budget


def solved(**work):
    reports = np.zeros(2, _core.SOLVE_REPORT)
    for name, amount in work.items():
        reports[name] = amount
    return reports


def test_only_limits_that_are_given_are_in_a_budget():
    assert Budget.of(TrainOptions()).left == {}
    given = TrainOptions(**dict.fromkeys(LIMITS.values(), 7))
    assert Budget.of(given).left == dict.fromkeys(LIMITS, 7)


def test_a_budget_is_used_up_when_one_kind_of_work_is():
    budget = Budget({"iterations": 10, "rebuilds": 5})
    budget.use(solved(iterations=2, rebuilds=2, outer_steps=100))
    assert budget.left == {"iterations": 6, "rebuilds": 1} and not budget.is_used_up
    budget.use(solved(iterations=0, rebuilds=2))
    assert budget.left == {"iterations": 6, "rebuilds": 0} and budget.is_used_up


def test_folds_that_are_solved_together_use_their_mean():
    budget = Budget({"iterations": 10})
    budget.use(solved(iterations=7), n_folds=2)
    assert budget.left == {"iterations": 3}


def test_a_part_of_a_budget_keeps_the_other_limits():
    budget = Budget({"iterations": 10, "rebuilds": 5})
    assert budget.at_most({"iterations": 3}).left == {"iterations": 3, "rebuilds": 5}
    assert budget.at_most({"iterations": 20}).left == budget.left
    assert Budget({}).at_most({"iterations": 20}).left == {"iterations": 20}
