"""Reference for the tests: kernels, box QPs and certificates in plain NumPy float64, and test data.

The functions here call the code under test only to wrap arrays and to start commands.
"""

import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg

from dcsvm import _core
from dcsvm.data.rows import Rows
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, KERNEL_TYPES, SQUARED_DISTANCE, Kernel
from dcsvm.problem.formulation import BoxQP

FORMS = {"difference": 0, "product": 1, "sparse": 2}


# -------------------------------------------------------------------------------------- commands


def command_of(name, *arguments):
    """Return the command line that runs a command in a separate process."""
    code = f"from dcsvm.cli.{name} import main; main(prog_name='dcsvm-{name}')"
    return [sys.executable, "-c", code, *map(str, arguments)]


def program(name, *arguments, **options):
    """Run a command in a separate process; return its output and status."""
    line = command_of(name, *arguments)
    return subprocess.run(line, capture_output=True, text=True, timeout=60, **options)


def libsvm(tool, *arguments):
    """Run a tool of LIBSVM and return its output; skip the test if it is not installed."""
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed")
    line = [tool, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


# ------------------------------------------------------------------------------------------ data


TYPES = {  # name -> options
    "c_svc": {},
    "c_svc with bias": {"bias": True},
    "class weights": {"bias": True, "class_weight": {1.0: 3.0, 2.0: 0.5}},
    "nu_svc": {"svm_type": "nu_svc", "nu": 0.3},
    "one_class": {"svm_type": "one_class", "nu": 0.2},
    "epsilon_svr": {"svm_type": "epsilon_svr", "epsilon": 0.05},
    "nu_svr": {"svm_type": "nu_svr", "nu": 0.4},
}


def grid_rows(n_samples, n_features, seed=0, density=1.0):
    """Return float32 features in [0, 1); the share `density` is nonzero."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features), dtype=np.float32)
    if density < 1:
        X[rng.random(X.shape) >= density] = 0
    return X


def labelled_rows(n_samples, n_features=4, seed=0, noise=0.1):
    """Return rows in [-1, 1) with labels +1 and -1 by a wavy surface, some of them flipped."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_samples, n_features)).astype(np.float32)
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1:].sum(axis=1) ** 2 > 0.5, 1.0, -1.0)
    y[rng.random(n_samples) < noise] *= -1
    y[:2] = 1.0, -1.0
    return X, y


def spots(n, n_classes, seed=0, repeats=0):
    """Return rows of three features, classes in noisy stripes; the last `repeats` are copies."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3)).astype(np.float32)
    y = np.floor(2 * X[:, 0] + 2 * X[:, 1] + 0.3 * rng.standard_normal(n)) % n_classes
    again = rng.integers(0, n, repeats)
    return np.concatenate([X, X[again]]), np.concatenate([y, y[again]])


def surface(n, seed=0, repeats=0):
    """Return the rows of spots() and smooth targets."""
    X, _ = spots(n, 2, seed, repeats)
    return X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]


def uneven_rows(n, seed):
    """Return rows with large, small, usual, mostly zero and constant features, and labels."""
    X, y = labelled_rows(n, 4, seed=seed)
    absent = np.random.default_rng(seed).random(n) < 0.7
    wide = [X[:, 0] * 1e3 + 5e3, X[:, 1] * 1e-3, X[:, 2], np.where(absent, 0, X[:, 3])]
    return np.column_stack([*wide, np.full(n, 7.0)]).round(6), y


def libsvm_text(X, y, first_index=1):
    """Return rows as LIBSVM text, every number with all its digits."""
    lines = []
    for row, label in zip(np.asarray(X), y, strict=True):
        pairs = "".join(f" {j}:{float(v)!r}" for j, v in enumerate(row, first_index) if v)
        lines.append(f"{label:.17g}{pairs}\n")
    return "".join(lines)


def one_hot_rows(n, sizes, n_numeric, missing=0.0, seed=0):
    """Return numeric columns, then one-hot groups; in the share `missing` of rows a group is 0."""
    rng = np.random.default_rng(seed)
    blocks = [rng.normal(size=(n, n_numeric))]
    for size in sizes:
        block = np.eye(size)[rng.integers(size, size=n)]
        block[rng.random(n) < missing] = 0
        blocks.append(block)
    return np.concatenate(blocks, axis=1).astype(np.float32)


def csr_rows(X):
    """Return a float32 array as CSR rows, even if dcsvm would choose another storage format."""
    stored = X != 0
    indptr = np.concatenate(([0], np.cumsum(stored.sum(axis=1)))).astype(np.int64)
    indices = np.nonzero(stored)[1].astype(np.int32)
    return Rows(*X.shape, indptr=indptr, indices=indices, values=X[stored])


def dense_rows(X):
    return Rows(*X.shape, dense=np.ascontiguousarray(X, dtype=np.float32))


def dense(rows):
    if rows.is_dense:
        return rows.dense
    X = np.zeros((rows.n_samples, rows.n_features), np.float32)
    X[np.repeat(np.arange(rows.n_samples), np.diff(rows.indptr)), rows.indices] = rows.values
    return X


# --------------------------------------------------------------------------------------- kernels


def points_of(X, form="product", threads=1):
    rows = csr_rows(X) if form == "sparse" else dense_rows(X)
    return _core.Points(rows, threads)


def setup_of(kernel, points, form=None):
    """Make a core setup for a Kernel, or (name, gamma, coef0, degree)."""
    kernel = kernel if isinstance(kernel, Kernel) else Kernel(*kernel)
    return _core.Setup(kernel, points, None if form is None else FORMS[form])


def prepared(kernel, points, form=None):
    """Return the result of setup_of() and the points prepared for it."""
    setup = setup_of(kernel, points, form)
    return setup, points.prepared(setup, 1)


def kernels_with(gamma=1.0, coef0=0.0, degree=3):
    """List every kernel of features, with these values for its parameters."""
    given = {"gamma": gamma, "coef0": coef0, "degree": degree}
    return [
        Kernel(one.name, **{name: given[name] for name in one.parameters})
        for one in KERNEL_TYPES
        if not one.is_precomputed
    ]


def forms_of(kernel):
    """List the evaluation forms that the core has for floats and sparse rows."""
    products = _core.is_from_products(kernel.type.argument)
    forms = {"difference": kernel.type.is_of_distance, "product": products}
    return (*(form for form, is_there in forms.items() if is_there), "sparse")


def kernel_values(kernel, X, Z):
    """Compute K(X, Z) in float64, from the formulas of LIBSVM's README.

    A kernel is a Kernel, or (name, gamma, coef0, degree).
    """
    if isinstance(kernel, Kernel):
        kernel = (kernel.name, kernel.gamma, kernel.coef0, kernel.degree)
    name, gamma, coef0, degree = kernel
    return FORMULAS[name](X.astype(np.float64), Z.astype(np.float64), gamma, coef0, degree)


def _squared_distances(X, Z):
    squared = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        squared[i] = ((x - Z) ** 2).sum(axis=1)
    return squared


def _absolute_distances(X, Z):
    distances = np.empty((len(X), len(Z)))
    for i, x in enumerate(X):
        distances[i] = np.abs(x - Z).sum(axis=1)
    return distances


def distances(kernel, X, Z):
    """Compute the argument of a kernel that is a distance."""
    compute = {SQUARED_DISTANCE: _squared_distances, ABSOLUTE_DISTANCE: _absolute_distances}
    return compute[kernel.type.argument](X.astype(np.float64), Z.astype(np.float64))


def allowed_error(kernel, form, X, Z, unit):
    """Bound the error of kernel values whose argument has a relative error `unit` in its terms."""
    X, Z = X.astype(np.float64), Z.astype(np.float64)
    kernel = kernel if isinstance(kernel, Kernel) else Kernel(*kernel)
    if kernel.type.is_of_distance:
        squares = np.add.outer(*((A**2).sum(axis=1) for A in (X, Z)))
        terms = squares if form == "product" else np.ones(squares.shape) / kernel.gamma
        return ERRORS[kernel.name](kernel, terms, unit)
    return ERRORS[kernel.name](kernel, np.abs(X) @ np.abs(Z).T, unit)


# By kernel name: the formula for float64 arrays, and the error of a value by the size of its terms.
FORMULAS = {
    "linear": lambda X, Z, gamma, coef0, degree: X @ Z.T,
    "polynomial": lambda X, Z, gamma, coef0, degree: (gamma * (X @ Z.T) + coef0) ** degree,
    "rbf": lambda X, Z, gamma, coef0, degree: np.exp(-gamma * _squared_distances(X, Z)),
    "sigmoid": lambda X, Z, gamma, coef0, degree: np.tanh(gamma * (X @ Z.T) + coef0),
    "laplacian": lambda X, Z, gamma, coef0, degree: np.exp(-gamma * _absolute_distances(X, Z)),
    "exponential": lambda X, Z, gamma, coef0, degree: np.exp(
        -gamma * np.sqrt(_squared_distances(X, Z))
    ),
}
ERRORS = {
    "linear": lambda kernel, terms, unit: unit * terms + 1e-300,
    "polynomial": lambda kernel, terms, unit: (
        unit * (kernel.degree + 1) * (kernel.gamma * terms + abs(kernel.coef0)) ** kernel.degree
        + 1e-300
    ),
    "rbf": lambda kernel, terms, unit: unit * (1 + kernel.gamma * terms),
    "sigmoid": lambda kernel, terms, unit: unit * (kernel.gamma * terms + abs(kernel.coef0) + 1),
    "laplacian": lambda kernel, terms, unit: unit * (1 + kernel.gamma * terms),
    "exponential": lambda kernel, terms, unit: unit + kernel.gamma * np.sqrt(unit * terms),
}


# --------------------------------------------------------------------- box QPs and certificates


def c_svc(sign, C, sample_weight=1):
    """Return equation (1) of the paper in signed alpha (y_i alpha_i), with weighted bounds."""
    sign, bound = np.ascontiguousarray(sign, dtype=np.float64), C * sample_weight
    return BoxQP(sign, np.where(sign > 0, 0.0, -bound), np.where(sign > 0, bound, 0.0))


def with_constraint(problem):
    """Return the problem with one equality constraint on the sum of all variables."""
    group = np.zeros(problem.size, np.int8)
    return BoxQP(problem.linear, problem.lower, problem.upper, group, 1)


def full_alpha(model, n_samples):
    """Return the signed alpha of all rows of a two-class or regression model."""
    alpha = np.zeros(n_samples)
    alpha[model.exact.row_numbers] = model.exact.dual_coef[0]
    return alpha


def objective(K, linear, alpha):
    return 0.5 * alpha @ (K @ alpha) - linear @ alpha


def certificate(K, problem, alpha):
    """Recompute (violation, gap) of alpha: LIBSVM's m - M for each equality constraint."""
    gradient = K @ alpha - problem.linear
    group = np.full(problem.size, -1) if problem.constraint_of is None else problem.constraint_of
    may_grow, may_shrink = alpha < problem.upper, alpha > problem.lower
    violation = 0.0
    for number in range(problem.n_constraints):
        inside = group == number
        grow = np.max(-gradient[inside & may_grow], initial=-np.inf)
        shrink = np.min(-gradient[inside & may_shrink], initial=np.inf)
        violation = max(violation, grow - shrink)
        ends = [value for value in (grow, shrink) if np.isfinite(value)]
        gradient[inside] += np.mean(ends) if ends else 0.0
    alone = group < 0
    violation = max(
        violation,
        np.max(-gradient[alone & may_grow], initial=0.0),
        np.max(gradient[alone & may_shrink], initial=0.0),
    )
    to_lower = (alpha - problem.lower) * np.maximum(gradient, 0.0)
    to_upper = (problem.upper - alpha) * np.maximum(-gradient, 0.0)
    return violation, float(np.sum(to_lower + to_upper))


def solve_reference(K, problem, sums=None):
    """Solve a convex box QP with optional equality constraints by Mehrotra's interior-point method.

    K is the matrix of the variables (not of the rows). `sums` are the right sides of the equality
    constraints. Returns (alpha, lower bound of the objective); the bound is alpha's objective minus
    its gap.
    """
    n, linear = problem.size, problem.linear
    lower, upper = problem.lower, problem.upper
    group = np.full(n, -1) if problem.constraint_of is None else problem.constraint_of
    A = np.array([group == number for number in range(problem.n_constraints)], float).reshape(-1, n)
    b = np.zeros(len(A)) if sums is None else np.asarray(sums, float)
    scale = max(1.0, np.abs(np.diag(K)).max())
    width = upper - lower
    a, y = 0.5 * (lower + upper), np.zeros(len(A))
    below, above = 0.5 * width, 0.5 * width  # stored apart from a: they become tiny
    down, up = np.ones(n) * scale, np.ones(n) * scale
    best, since_best = (np.inf, a), 0
    for _ in range(80):
        dual = K @ a - linear - down + up + A.T @ y
        primal = A @ a - b
        mu = (below @ down + above @ up) / (2 * n)
        gap = mu * 2 * n + np.abs(dual) @ width + 1e3 * scale * np.abs(primal).sum()
        since_best += 1
        if gap < best[0]:
            best, since_best = (gap, a), 0
        if gap <= 1e-12 * (1 + abs(objective(K, linear, a))) or since_best == 5:
            break
        H = K + np.diag(down / below + up / above)
        H[np.diag_indices(n)] += 1e-13 * scale
        try:
            factor = scipy.linalg.cho_factor(H)
        except np.linalg.LinAlgError:
            break
        spread = scipy.linalg.cho_solve(factor, A.T) if len(A) else np.zeros((n, 0))

        def step(down_target, up_target):
            right = -dual + down_target / below - down - (up_target / above - up)  # noqa: B023
            da = scipy.linalg.cho_solve(factor, right)  # noqa: B023
            dy = np.zeros(0)
            if len(A):
                dy = np.linalg.solve(A @ spread, A @ da + primal)  # noqa: B023
                da = da - spread @ dy  # noqa: B023
            d_down = (down_target - down * da) / below - down  # noqa: B023
            d_up = (up_target + up * da) / above - up  # noqa: B023
            return da, dy, d_down, d_up

        def longest(values, changes):
            falling = changes < 0
            return min(1.0, np.min(-values[falling] / changes[falling], initial=1.0))

        da, _, d_down, d_up = step(0.0, 0.0)
        t = min(longest(below, da), longest(above, -da))
        s = min(longest(down, d_down), longest(up, d_up))
        after = (below + t * da) @ (down + s * d_down) + (above - t * da) @ (up + s * d_up)
        centre = mu * (after / (2 * n) / mu) ** 3
        da, dy, d_down, d_up = step(centre - da * d_down, centre + da * d_up)
        t = 0.995 * min(longest(below, da), longest(above, -da))
        s = 0.995 * min(longest(down, d_down), longest(up, d_up))
        below, above = below + t * da, above - t * da
        a = np.where(below < above, lower + below, upper - above)
        y, down, up = y + s * dy, down + s * d_down, up + s * d_up
    gap, a = best
    return a, objective(K, linear, a) - gap
