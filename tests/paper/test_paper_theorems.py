"""Test the paper's lemma and theorems on models that were written and read, in float64 NumPy."""

import numpy as np
import pytest
from reference import kernel_values, labelled_rows

import dcsvm
from dcsvm.data.rows import Rows

C, GAMMA = 32.0, 2.0


class Problem:
    """Equation (1) without a bias: f(alpha) = alpha' Q alpha / 2 - sum(alpha) in [0, C]^n."""

    def __init__(self):
        X, self.y = labelled_rows(1700, 4, seed=5)
        self.X = X.astype(np.float32)
        self.K = kernel_values(("rbf", GAMMA, 0, 0), self.X, self.X)
        self.Q = self.K * np.outer(self.y, self.y)

    def f(self, alpha):
        return 0.5 * alpha @ self.Q @ alpha - alpha.sum()

    def alpha_of(self, model, part):
        alpha = np.zeros(len(self.y))
        alpha[part.row_numbers] = part.dual_coef[0] * model.labels[0] * self.y[part.row_numbers]
        return alpha


def violation(gradient, alpha):
    """Return the largest violation of equation (9), the KKT conditions."""
    inside = np.abs(gradient)
    at_bounds = np.where(alpha <= 0, np.maximum(-gradient, 0), np.maximum(gradient, 0))
    return np.where((alpha <= 0) | (alpha >= C), at_bounds, inside).max()


@pytest.fixture(scope="module")
def problem():
    return Problem()


@pytest.fixture(scope="module")
def best(problem):
    model = dcsvm.train(problem.X, problem.y, C=C, gamma=GAMMA, levels=0, tolerance=1e-6)
    return problem.alpha_of(model, model.exact)


@pytest.fixture(scope="module", params=[4, 16])
def joined(request, problem, tmp_path_factory):
    """Return alpha bar of one level and the cluster of each row, from the text model."""
    options = {"levels": 1, "branching": request.param}
    path = tmp_path_factory.mktemp("model") / "model"
    dcsvm.train(problem.X, problem.y, C=C, gamma=GAMMA, **options).save(path)
    model = dcsvm.load_model(path)
    cluster = model.early.partition.assign(Rows.from_array(problem.X), 1)
    return problem.alpha_of(model, model.early), np.asarray(cluster).reshape(-1)


def between(problem, cluster, rows):
    """Compute D(pi), the sum of K over the pairs of rows in different clusters."""
    cluster = cluster[rows]
    K = problem.K[rows][:, rows]
    return K[cluster[:, None] != cluster].sum()


def test_the_solution_is_optimal(problem, best):
    assert violation(problem.Q @ best - 1, best) < 2e-6


def test_the_joined_solution_is_optimal_for_the_kernel_within_clusters(problem, joined):
    """Lemma 1 and equation (2)."""
    alpha, cluster = joined
    within = np.where(cluster[:, None] == cluster, problem.Q, 0.0)
    assert violation(within @ alpha - 1, alpha) < 1.1e-3


def test_the_difference_of_objectives_is_bounded(problem, best, joined):
    """Theorems 1 and 3."""
    alpha, cluster = joined
    support = np.flatnonzero((alpha > 0) | (best > 0))
    gap = problem.f(alpha) - problem.f(best)
    bounds = [0.5 * C**2 * between(problem, cluster, rows) for rows in (support, slice(None))]
    assert -1e-3 <= gap <= bounds[0] <= bounds[1]


def test_the_distance_of_the_solutions_is_bounded(problem, best, joined):
    """The second parts of both theorems, with the smallest eigenvalue of the kernel matrix."""
    alpha, cluster = joined
    smallest = max(np.linalg.eigvalsh(problem.K)[0], 1e-300)
    support = np.flatnonzero((alpha > 0) | (best > 0))
    bound = C**2 * between(problem, cluster, support) / smallest
    assert ((best - alpha) ** 2).sum() <= bound


def test_a_large_gradient_excludes_a_support_vector(problem, best, joined):
    """Theorem 2."""
    alpha, cluster = joined
    D = between(problem, cluster, slice(None))
    smallest = max(np.linalg.eigvalsh(problem.K)[0], 1e-300)
    within = np.where(cluster[:, None] == cluster, problem.Q, 0.0) @ alpha - 1
    limit = C * D * (1 + np.sqrt(len(alpha)) / np.sqrt(smallest * D))
    assert not np.any((alpha == 0) & (within > limit) & (best > 1e-9))
