"""Nodes that compute kernel values of rows and vectors in float64.

A product of rows is a matrix product, and so is |x - z|^2 = |x|^2 - 2 x'z + |z|^2, of rows less a
center, so that rows far from 0 keep their differences. A sum of |x_j - z_j| is one only if z_j has
few values: with the values a < b, |x - z| is |x - a|, plus |x - b| - |x - a| where z = b. Other
features are added one by one, all rows and vectors at once, as 2 max(x, z) - x - z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, PRODUCT, SQUARED_DISTANCE, Kernel
from dcsvm.model.onnx_nodes import DOUBLE, Graph, State, Step

MAX_VALUES = 32  # of a feature in matrix products; a step from one to the next is a column
MAX_NODES = 100  # features that are added without a loop
# Kernel values of a block. Sums feature by feature are fast while they fit in the cache of a core,
# and products of at least so many rows.
BLOCK_VALUES = {PRODUCT: 2**19, SQUARED_DISTANCE: 2**19, ABSOLUTE_DISTANCE: 2**17}
MIN_ROWS, MAX_BLOCK_VALUES = 64, 2**25
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
    """A kernel of rows and vectors.

    `vectors` are tensors with n columns, made of vectors float32 (n, d) with the tensor `given`.
    """

    def __init__(self, graph: Graph, kernel: Kernel, vectors: np.ndarray, given: str):
        self.kernel, self.argument = kernel, kernel.type.argument
        z = graph.cast(given, DOUBLE)
        if self.argument == PRODUCT:
            prepared = [self._for_products(graph, z)]
        elif self.argument == SQUARED_DISTANCE:
            self.center = vectors.mean(axis=0, dtype=np.float64)
            prepared = [self._for_squared_distances(graph, z)]
        else:
            self.steps = Steps.of(vectors)
            self.center = vectors[:, self.steps.others].mean(axis=0, dtype=np.float64)
            prepared = self._for_absolute_distances(graph, given, z)
        # a product with a transposed matrix fails in onnxruntime 1.17
        self.vectors = [graph.Transpose(one, perm=[1, 0]) for one in prepared]

    def some_vectors(self, graph: Graph, begin: str, end: str) -> list[str]:
        """Return `vectors` from `begin` (1,) to `end` (1,)."""
        return [graph.Slice(one, begin, end, [1]) for one in self.vectors]

    def values(self, graph: Graph, rows: str, vectors: list[str]) -> str:
        """Compute K (m, n) of rows float64 (m, d) and `vectors`, all or some."""
        left = {
            PRODUCT: self._of_products,
            SQUARED_DISTANCE: self._of_squared_distances,
            ABSOLUTE_DISTANCE: self._of_absolute_distances,
        }
        argument = graph.MatMul(left[self.argument](graph, rows), vectors[0])
        if len(vectors) > 1:
            argument = self._less_maxima(graph, argument, rows, vectors[1])
        return FUNCTIONS[self.kernel.type.function](graph, self.kernel, argument)

    def block(self, n_vectors: int, n_features: int) -> int:
        """Return the number of rows whose values with `n_vectors` are computed at once."""
        width = n_features
        if self.argument == ABSOLUTE_DISTANCE:
            width = max(width, len(self.steps.owner))
        most = min(BLOCK_FEATURES // width, MAX_BLOCK_VALUES // n_vectors)
        return max(min(max(BLOCK_VALUES[self.argument] // n_vectors, MIN_ROWS), most), 1)

    # products: [gamma x, coef0] times [z, 1], or x times z without gamma. onnxruntime rounds a
    # factor of a product, so gamma is none

    def _for_products(self, graph: Graph, z: str) -> str:
        if not self.kernel.type.has_gamma:
            return z
        return graph.Concat(z, _column(graph, z, 1.0), axis=1)

    def _of_products(self, graph: Graph, rows: str) -> str:
        if not self.kernel.type.has_gamma:
            return rows
        offset = _column(graph, rows, self.kernel.coef0)
        return graph.Concat(graph.Mul(rows, self.kernel.gamma), offset, axis=1)

    # minus squared distances, times gamma^(1 / power): [-2 x, |x|^2, 1] times [z, 1, |z|^2]

    def _for_squared_distances(self, graph: Graph, z: str) -> str:
        z = graph.Sub(z, self.center)
        squares = graph.sum_of(graph.Mul(z, z), 1)
        return graph.Concat(z, _column(graph, z, 1.0), squares, axis=1)

    def _of_squared_distances(self, graph: Graph, rows: str) -> str:
        factor = -(self.kernel.gamma ** (1 / self.kernel.type.power))
        x = graph.Sub(rows, self.center)
        squares = graph.Mul(graph.sum_of(graph.Mul(x, x), 1), factor)
        return graph.Concat(graph.Mul(x, -2 * factor), squares, _column(graph, x, factor), axis=1)

    # minus sums of absolute differences, times gamma: the first column is the sum of |x - a| less
    # that of the other x, the second one the sum of the other z, further ones are steps

    def _for_absolute_distances(self, graph: Graph, given: str, z: str) -> list[str]:
        steps, gamma = self.steps, self.kernel.gamma
        columns, others = [_column(graph, z, -gamma)], []
        if len(steps.others):
            z = graph.Sub(graph.columns(z, steps.others), self.center)
            columns.append(graph.Mul(graph.sum_of(z, 1), gamma))
            others.append(graph.Mul(z, 2 * gamma))
        if len(steps.owner):
            # onnxruntime computes Less, and not GreaterOrEqual, once when a file is loaded
            is_before = graph.Less(graph.columns(given, steps.owner), steps.upper)
            columns.append(graph.cast(graph.Not(is_before), DOUBLE))
        return [graph.joined(columns), *others]

    def _of_absolute_distances(self, graph: Graph, rows: str) -> str:
        steps, gamma = self.steps, self.kernel.gamma
        columns, sums = [], []
        if len(steps.features):
            first = graph.Sub(graph.columns(rows, steps.features), steps.first)
            sums.append(graph.sum_of(graph.Abs(first), 1))
        if len(steps.others):
            sums.append(graph.Neg(graph.sum_of(self._others(graph, rows), 1)))
            columns.append(_column(graph, rows, 1.0))
        if len(steps.owner):
            own = graph.columns(rows, steps.owner)
            far, near = (
                graph.Abs(graph.Sub(own, end.astype(np.float64)))
                for end in (steps.upper, steps.lower)
            )
            columns.append(graph.Mul(graph.Sub(near, far), gamma))
        return graph.joined([graph.Sum(*sums), *columns])

    def _others(self, graph: Graph, rows: str) -> str:
        return graph.Sub(graph.columns(rows, self.steps.others), self.center)

    def _less_maxima(self, graph: Graph, argument: str, rows: str, z: str) -> str:
        """Subtract 2 gamma max(x_j, z_j) of each of the other features."""
        n, both = len(self.steps.others), 2 * self.kernel.gamma
        x = graph.Mul(self._others(graph, rows), both)
        if n > MAX_NODES:

            def step(inner: Graph, number: str, total: str) -> Step:
                which = inner.Add(number, [0])
                own, other = (inner.Gather(one, which, axis=k) for one, k in ((x, 1), (z, 0)))
                added: list[State] = []
                return None, [inner.Sub(total, inner.Max(own, other))], added

            (argument,) = graph.loop(graph.constant(n), [(argument, DOUBLE)], step)
            return argument
        columns, lines = (graph.split(one, [1] * n, k) for one, k in ((x, 1), (z, 0)))
        for own, other in zip(columns, lines, strict=True):
            argument = graph.Sub(argument, graph.Max(own, other))
        return argument


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
    "decay": lambda graph, _kernel, argument: graph.Exp(graph.Min(argument, 0.0)),
    "tanh": lambda graph, _kernel, argument: graph.Tanh(argument),
    "root_decay": lambda graph, _kernel, argument: graph.Exp(
        graph.Neg(graph.Sqrt(graph.Neg(graph.Min(argument, 0.0))))
    ),
}
