"""Solve the clusters of a level separately, for early prediction.

Rows near a cluster boundary may be in two clusters. It is possible to solve only some clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from dcsvm.data.sorting import group_order, group_sizes
from dcsvm.model.parts import EarlyModel
from dcsvm.problem.formulation import Formulation
from dcsvm.solving.checkpoint import RunControl
from dcsvm.solving.extraction import early_model
from dcsvm.solving.level_partition import LevelPartition
from dcsvm.solving.preparation import Prepared
from dcsvm.solving.report import Costs, LevelReport
from dcsvm.solving.solver import FormulationSolver
from dcsvm.solving.state import Budget, check_array, check_floats

PART_VALUES = 3e4  # fixed cost of a subproblem, in kernel evaluations


class LevelSolver:
    """Solver of the clusters of one level.

    `division` partitions the rows of the formulation `whole` into the clusters.

    Attributes
    ----------
    solver : solver of the level's formulation; a row in two clusters has variables in both.
    cluster : int32, cluster of each variable.
    part : int64, subproblem of each variable.
    is_solved : bool (n_clusters,).
    converged : bool (n_folds,), whether all solved clusters of a fold converged.
    objective : sum of the objectives of solved clusters.
    """

    def __init__(
        self,
        prepared: Prepared,
        control: RunControl,
        whole: Formulation,
        division: LevelPartition,
        level: int,
        save: Callable[[], None] = lambda: None,
        budget: Budget | None = None,
    ):
        self.whole, self.division, self.level = whole, division, level
        self.clustered = division.clustered(whole)
        self.formulation = self.clustered.formulation
        self.cluster = self.clustered.cluster
        self.solver = FormulationSolver(prepared, control, self.formulation, save, budget)
        self.is_solved = np.zeros(division.n_clusters, bool)
        self.objective = 0.0
        n_groups = int(prepared.components.n_components)
        self.part = self.cluster.astype(np.int64)
        if whole.n_problems > 1:
            self.part += self.formulation.problem_index.astype(np.int64) * division.n_clusters
        if not whole.has_constraints and n_groups > 1:  # a constraint couples a whole cluster
            self.part *= n_groups
            self.part += prepared.components.component[self.formulation.problem.rows]
        self.n_places = division.n_clusters * (1 if whole.has_constraints else n_groups)
        self.converged = np.ones(whole.n_folds, bool)

    def solve_clusters(self, tolerance: float, chosen: np.ndarray | None = None) -> None:
        """Solve the chosen clusters that are not solved yet.

        `chosen` is bool (n_clusters,), or None for all clusters. Raises Stopped.
        """
        wanted = ~self.is_solved if chosen is None else chosen & ~self.is_solved
        own = np.flatnonzero(wanted[self.cluster])
        members = own[group_order(self.part[own])].astype(np.int32)
        part = self.part[members]
        first = np.flatnonzero(np.diff(part, prepend=-1))
        parts, sizes = part[first], np.diff(first, append=len(part))
        solved = self.solver.solve(members, sizes, tolerance)
        self.objective += sum(solved["objective"].tolist())
        missed = parts[~solved["converged"]]
        self.converged[missed // (self.n_places * self.formulation.n_problems_of_fold)] = False
        self.is_solved |= wanted

    @cached_property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the subproblems, ascending, and the number of variables of each."""
        return group_sizes(self.part)

    @cached_property
    def costs(self) -> np.ndarray:
        """Estimated cost of each cluster in kernel evaluations, float64 (n_clusters,).

        The cost of a subproblem is its squared size plus PART_VALUES.
        """
        parts, sizes = self.sizes
        n_of_cluster = self.n_places // self.division.n_clusters
        cluster = parts // n_of_cluster % self.division.n_clusters
        costs = sizes.astype(np.float64) ** 2 + PART_VALUES
        return np.bincount(cluster, costs, self.division.n_clusters)

    def hand_over_counts(self, solver: FormulationSolver) -> None:
        """Add costs and iterations to the solver of the whole problem, and reset them here."""
        own = self.solver.state
        solver.costs.include(own.costs)
        solver.state.n_iterations += own.n_iterations
        own.n_iterations[:] = 0
        own.costs = Costs()

    def level_report(self, seconds_clustering: float, seconds_training: float) -> LevelReport:
        """Return the report of the level; the caller fills in `n_sv`."""
        counts = self.solver.costs.counts
        return LevelReport(
            level=self.level,
            n_clusters=self.division.n_clusters,
            largest_cluster=int(self.sizes[1].max()),
            seconds_clustering=seconds_clustering,
            seconds_training=seconds_training,
            n_sv=0,
            objective=self.objective,
            kernel_evaluations=counts["kernel_evaluations"],
            pairs_skipped=counts["pairs_skipped"],
            overlap=self.formulation.problem.size / max(self.whole.problem.size, 1),
        )

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the state for a checkpoint, as arrays by name."""
        own = {"is_solved": self.is_solved, "objective": np.array([self.objective])}
        return self.solver.state.to_arrays() | own | {"all_converged": self.converged}

    def set_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        """Resume from the arrays of a checkpoint.

        If the clusters differ, raises one of the errors of RunState.set_arrays.
        """
        solver, budget = self.solver, self.solver.state.budget
        prepared, problem = solver.prepared, self.formulation.problem
        size = prepared.data.rows.n_samples, prepared.components.n_components
        solver.state.set_arrays(arrays, problem, *size)
        solver.state.budget, solver.is_warm = budget, True
        for name, known in (("is_solved", self.is_solved), ("all_converged", self.converged)):
            check_array(arrays[name], known.dtype, len(known))
        check_floats(arrays["objective"], 1)
        self.is_solved, self.converged = arrays["is_solved"], arrays["all_converged"]
        self.objective = float(arrays["objective"][0])

    def alpha_from(self, alpha: np.ndarray) -> np.ndarray:
        """Convert an alpha of the whole problem to an alpha of this level.

        A row in two clusters has its alpha in the nearest one and 0 in the other.
        """
        own = alpha[self.clustered.origin]
        own[self.clustered.is_copy] = 0.0
        return own

    def alpha_of_whole(self) -> np.ndarray:
        """Return a feasible alpha of the whole problem, taken from each row's nearest cluster."""
        own = ~self.clustered.is_copy
        alpha = np.zeros(self.whole.problem.size)
        alpha[self.clustered.origin[own]] = self.solver.alpha[own]
        return self.whole.with_constraints(alpha) if self.clustered.is_copy.any() else alpha

    def offsets(self) -> np.ndarray:
        """Return the rho of each cluster, float64 (n_clusters, n_problems)."""
        return self.solver.solution.offsets_of_clusters(self.cluster, self.division.n_clusters)

    def model(self) -> tuple[EarlyModel, int]:
        """Return the early model and its number of bounded support vectors."""
        partition = self.division.partition
        return early_model(self.solver.solution, self.level, partition, self.cluster)
