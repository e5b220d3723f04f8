"""Nodes that compute kernel values of rows and vectors in float64.

A product of rows is a matrix product, and so is |x - z|^2 = |x|^2 - 2 x'z + |z|^2, of rows less a
center, so that rows far from 0 keep their differences. A sum of |x_j - z_j| is one only if z_j has
few values: with the values a < b, |x - z| is |x - a|, plus |x - b| - |x - a| where z = b. Other
features are added one by one, all rows and vectors at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, PRODUCT, SQUARED_DISTANCE, Kernel
from dcsvm.model.onnx_nodes import DOUBLE, Graph, State, Step

MAX_VALUES = 16  # of a feature in matrix products; a step from one to the next is a column
# Kernel values of a block. Adding feature by feature is fast while they fit in the CPU cache.
BLOCK_VALUES = {PRODUCT: 2**22, SQUARED_DISTANCE: 2**22, ABSOLUTE_DISTANCE: 2**17}
BLOCK_FEATURES = 2**21  # feature values of the rows of a block


@dataclass(frozen=True, eq=False)
class Steps:
    """Features with few values in vectors, and the steps between neighbouring values.

    `features` (m,) are the features, `first` float64 (m,) their smallest values. `owner` (n_steps,)
    is the feature of each step from `lower` to `upper`, float32 (n_steps,). `others` are the other
    features.
    """

    features: np.ndarray
    first: np.ndarray
    owner: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    others: np.ndarray

    @staticmethod
    def of(vectors: np.ndarray) -> Steps:
        """Find the steps of vectors float32 (n, d)."""
        values = [np.unique(column) for column in vectors.T]
        few = np.array([j for j, own in enumerate(values) if len(own) <= MAX_VALUES], np.int64)
        n_steps = np.array([len(values[j]) - 1 for j in few], np.int64)
        none = np.zeros(0, np.float32)
        lower, upper = (
            np.concatenate([none, *(values[j][side] for j in few)])
            for side in (slice(None, -1), slice(1, None))
        )
        return Steps(
            few,
            np.array([values[j][0] for j in few], np.float64),
            np.repeat(few, n_steps),
            lower,
            upper,
            np.setdiff1d(np.arange(vectors.shape[1]), few),
        )


class KernelNodes:
    """A kernel of rows and some of the `vectors` float32 (n, d), n at least 1."""

    def __init__(self, kernel: Kernel, vectors: np.ndarray):
        self.kernel, self.argument = kernel, kernel.type.argument
        if self.argument == ABSOLUTE_DISTANCE:
            self.steps = Steps.of(vectors)
        elif self.argument == SQUARED_DISTANCE:
            self.center = vectors.mean(axis=0, dtype=np.float64)

    def values(self, graph: Graph, rows: str, vectors: str) -> str:
        """Compute K (m, n) of rows float64 (m, d) and vectors float32 (n, d)."""
        arguments = {
            PRODUCT: self._products,
            SQUARED_DISTANCE: self._squared_distances,
            ABSOLUTE_DISTANCE: self._absolute_distances,
        }
        argument = arguments[self.argument](graph, rows, vectors)
        return FUNCTIONS[self.kernel.type.function](graph, self.kernel, argument)

    def block(self, n_vectors: int, n_features: int) -> int:
        """Return the number of rows whose values with `n_vectors` are computed at once."""
        argument, width = self.argument, n_features
        if argument == ABSOLUTE_DISTANCE:
            argument = argument if len(self.steps.others) else PRODUCT
            width = max(width, len(self.steps.owner))
        return max(min(BLOCK_VALUES[argument] // n_vectors, BLOCK_FEATURES // width), 1)

    def _products(self, graph: Graph, rows: str, vectors: str) -> str:
        """Compute gamma x'z + coef0, or x'z without gamma."""
        z = graph.cast(vectors, DOUBLE)
        if not self.kernel.type.has_gamma:
            return graph.MatMul(rows, graph.Transpose(z, perm=[1, 0]))
        # [gamma x, coef0] times [z, 1]; a product times gamma has a gamma of float32 in onnxruntime
        left = graph.Concat(
            graph.Mul(rows, self.kernel.gamma), _column(graph, rows, self.kernel.coef0), axis=1
        )
        right = graph.Concat(z, _column(graph, z, 1.0), axis=1)
        return graph.MatMul(left, graph.Transpose(right, perm=[1, 0]))

    def _squared_distances(self, graph: Graph, rows: str, vectors: str) -> str:
        """Compute -(gamma s^power)^(1 / power) of the squared distances s."""
        factor = -(self.kernel.gamma ** (1 / self.kernel.type.power))
        x, z = (graph.Sub(tensor, self.center) for tensor in (rows, graph.cast(vectors, DOUBLE)))
        x_squares, z_squares = (graph.sum_of(graph.Mul(one, one), 1) for one in (x, z))
        # [-2 x, |x|^2, 1] times [z, 1, |z|^2]
        left = graph.Concat(
            graph.Mul(x, -2 * factor), graph.Mul(x_squares, factor), _column(graph, x, factor),
            axis=1,
        )  # fmt: skip
        right = graph.Concat(z, _column(graph, z, 1.0), z_squares, axis=1)
        negative = graph.MatMul(left, graph.Transpose(right, perm=[1, 0]))
        return graph.Min(negative, 0.0)

    def _absolute_distances(self, graph: Graph, rows: str, vectors: str) -> str:
        """Compute -gamma s of the sums of absolute differences s."""
        steps, negative = self.steps, None
        factor = -self.kernel.gamma
        if len(steps.features):
            first = graph.Sub(graph.columns(rows, steps.features), steps.first)
            left = graph.sum_of(graph.Abs(first), 1)
            right = _column(graph, vectors, factor)
            if len(steps.owner):
                own = graph.columns(rows, steps.owner)
                far, near = (
                    graph.Abs(graph.Sub(own, end.astype(np.float64)))
                    for end in (steps.upper, steps.lower)
                )
                beyond = graph.GreaterOrEqual(graph.columns(vectors, steps.owner), steps.upper)
                longer = graph.Mul(graph.Sub(far, near), factor)
                left = graph.Concat(left, longer, axis=1)
                right = graph.Concat(right, graph.cast(beyond, DOUBLE), axis=1)
            negative = graph.MatMul(left, graph.Transpose(right, perm=[1, 0]))
        if not len(steps.others):
            assert negative is not None  # there are features
            return negative
        x = graph.Mul(graph.columns(rows, steps.others), factor)
        z = graph.Mul(graph.columns(graph.cast(vectors, DOUBLE), steps.others), factor)
        z = graph.Transpose(z, perm=[1, 0])

        def difference(inner: Graph, which: str) -> str:
            """Compute gamma |x_j - z_j| of a feature (1,) of `others`."""
            own, others = (inner.Gather(one, which, axis=axis) for one, axis in ((x, 1), (z, 0)))
            return inner.Abs(inner.Sub(own, others))

        begin = 0
        if negative is None:
            negative, begin = graph.Neg(difference(graph, graph.constant([0]))), 1

        def step(inner: Graph, number: str, total: str) -> Step:
            which = inner.Add(number, [begin])
            added: list[State] = []
            return None, [inner.Sub(total, difference(inner, which))], added

        n_left = len(steps.others) - begin
        if n_left == 0:
            return negative
        (total,) = graph.loop(graph.constant(n_left), [(negative, DOUBLE)], step)
        return total


def _column(graph: Graph, matrix: str, value: float) -> str:
    """Return a column float64 (n, 1) of one value for a matrix of n rows."""
    return graph.filled(graph.Concat(graph.n_rows(matrix), [1], axis=0), value)


def _power(graph: Graph, kernel: Kernel, argument: str) -> str:
    if kernel.degree == 0:
        return graph.filled(graph.Shape(argument), 1.0)
    # by repeated squares: Pow is slow
    result, base, degree = None, argument, kernel.degree
    while degree:
        if degree % 2:
            result = base if result is None else graph.Mul(result, base)
        degree //= 2
        base = graph.Mul(base, base) if degree else base
    assert result is not None
    return result


# By the function of a kernel: its value of gamma x'z + coef0, or of minus the distance times gamma,
# with gamma in the power of the root.
FUNCTIONS: dict[str, Callable[[Graph, Kernel, str], str]] = {
    "identity": lambda _graph, _kernel, argument: argument,
    "power": _power,
    "decay": lambda graph, _kernel, argument: graph.Exp(argument),
    "tanh": lambda graph, _kernel, argument: graph.Tanh(argument),
    "root_decay": lambda graph, _kernel, argument: graph.Exp(
        graph.Neg(graph.Sqrt(graph.Neg(argument)))
    ),
}
