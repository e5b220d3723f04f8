"""Make a model a graph of standard ONNX operators: decision values, labels, probabilities.

All is computed in float64, in blocks of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from onnx import helper

from dcsvm.kernel.kernels import PRECOMPUTED
from dcsvm.model.onnx_input import Inputs, RowNodes, input_kinds
from dcsvm.model.onnx_nodes import (
    DOUBLE,
    FLOAT,
    INT64,
    IR_VERSION,
    OPSETS,
    STRING,
    Graph,
    Step,
    in_blocks,
)
from dcsvm.model.onnx_values import decision_values
from dcsvm.model.parts import (
    MAX_SWEEPS,
    MIN_NORMAL,
    MIN_PROBABILITY,
    N_MARKS,
    TOLERANCE,
    ModelParts,
    Probability,
)

BLOCK = 2**21  # numbers of a block
VOTES, PROBABILITIES, SCORES = "votes", "probabilities", "scores"  # what labels are chosen by


@dataclass(frozen=True)
class Prediction:
    """Names of the tensors of a prediction.

    `label` (n,) is the label, +1 or -1, or the value of a regression; `values` float64
    (n, n_pairs); `scores` and `probabilities` float64 (n, k), or None.
    """

    label: str
    values: str
    scores: str | None
    probabilities: str | None


def model_bytes(model: ModelParts, method: str | None) -> bytes:
    """Return the contents of an ONNX file, see Model.to_onnx. Raises ValueError."""
    given = _given(model, method)
    texts = frozenset(name for name, (kind, _) in given.items() if kind == STRING)
    inputs = Inputs("X", {}) if _takes_matrix(model) else Inputs(None, {k: k for k in given}, texts)
    graph = Graph(_names(set(given)))
    found = predict_nodes(graph, model, inputs, model.labels, method=method)
    outputs = []
    for word, tensor, kind, shape in _outputs(model, found):
        name = word
        while name in given:  # of a column
            name += "_"
        graph.nodes.append(helper.make_node("Identity", [tensor], [name], name))
        outputs.append(helper.make_tensor_value_info(name, kind, ["rows", *shape]))
    made = helper.make_graph(
        graph.nodes, "dcsvm",
        [
            helper.make_tensor_value_info(name, kind, ["rows", width])
            for name, (kind, width) in given.items()
        ],
        outputs, graph.constants,
    )  # fmt: skip
    opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
    file = helper.make_model(
        made, opset_imports=opsets, ir_version=IR_VERSION, producer_name="dcsvm"
    )
    return bytes(file.SerializeToString())


def _takes_matrix(model: ModelParts) -> bool:
    """Return whether the input is one matrix, not the columns of a table."""
    return model.table is None or model.table.is_of_matrix


def _given(model: ModelParts, method: str | None) -> dict[str, tuple[int, int | str]]:
    """Return the type and the number of columns of each input."""
    if not _takes_matrix(model):
        return {name: (kind, 1) for name, kind in input_kinds(model).items()}
    scaling, table = model.scaling, model.table
    is_shift = scaling is not None and scaling.is_shift
    n_features: int | str = model.part(method).rows.n_features
    if table is not None:
        n_features = table.n_columns_of_matrix
    elif scaling is not None and not is_shift:
        n_features = scaling.n_features or "features"  # there may be more, without a range
    return {"X": (DOUBLE if is_shift else FLOAT, n_features)}


def _outputs(model: ModelParts, found: Prediction) -> list[tuple[str, str, int, list[int]]]:
    """Return names, tensors, types, and shapes after the rows, of the outputs."""
    kind = INT64 if model.svm_type == "one_class" else DOUBLE
    if model.is_classifier:
        kind = {"U": STRING, "i": INT64, "f": DOUBLE}[class_labels(model.labels).dtype.kind]
    outputs = [("label", found.label, kind, []), ("values", found.values, DOUBLE, [model.n_pairs])]
    if found.probabilities is not None:
        k = len(model.labels) if model.is_classifier else 2
        outputs.append(("probabilities", found.probabilities, DOUBLE, [k]))
    return outputs


class EstimatorNodes(NamedTuple):
    """Nodes, constants and opsets for a graph of skl2onnx.

    `label` is (n,), for one-class (n, 1). `numbers` (n, m) are probabilities, if the model has
    them, or else the scores, or the values; for two classes (n, 2), as of any classifier.
    """

    nodes: list[Any]
    constants: list[Any]
    opsets: set[tuple[str, int]]
    label: str
    numbers: str


def estimator_nodes(
    model: ModelParts,
    name_of: Callable[[str], str],
    given: dict[str, tuple[str, bool]],
    labels: np.ndarray,
    **how: Any,
) -> EstimatorNodes:
    """Return the nodes of an estimator, see `Model.onnx_nodes`. Raises ValueError."""
    graph = Graph(name_of, is_sorted=True)
    table = model.table
    columns = {name: tensor for name, (tensor, _) in given.items()}
    is_named = table is not None and any(one.name in columns for one in table.columns)
    matrix = next(iter(columns.values())) if len(columns) == 1 and not is_named else None
    texts = frozenset(tensor for tensor, is_text in given.values() if is_text)
    inputs = Inputs(matrix, {} if matrix else columns, texts)
    found = predict_nodes(graph, model, inputs, labels, **how)
    label, numbers = found.label, found.probabilities or found.scores or found.values
    if model.svm_type == "one_class":
        label = graph.Unsqueeze(label, [1])
        numbers = found.values
    elif model.is_classifier and len(model.labels) == 2 and numbers == found.values:
        numbers = graph.Concat(numbers, graph.Neg(numbers), axis=1)
    return EstimatorNodes(graph.nodes, graph.constants, set(OPSETS.items()), label, numbers)


def _names(taken: set[str]) -> Callable[[str], str]:
    """Return a function that makes words names that are not `taken`."""
    count = 0

    def name_of(word: str) -> str:
        nonlocal count
        while True:
            count += 1
            name = f"{word}_{count}"
            if name not in taken:
                return name

    return name_of


def predict_nodes(
    graph: Graph,
    model: ModelParts,
    inputs: Inputs,
    labels: np.ndarray,
    *,
    method: str | None = None,
    by: str = VOTES,
    has_scores: bool = False,
) -> Prediction:
    """Add the nodes that predict rows.

    `labels` (k,) are those of the classes. The label of several classes has the most VOTES,
    the largest of the PROBABILITIES, or the largest of the SCORES. Raises ValueError.
    """
    if model.kernel.is_precomputed:
        raise ValueError(
            f"a model of a {PRECOMPUTED.name} kernel cannot be exported: its rows are not in it"
        )
    part = model.with_own_rows().part(method)
    rows = RowNodes(graph, model, inputs, part.rows.n_features)
    if model.is_classifier and len(model.labels) == 1:
        values = graph.filled(graph.Concat(rows.count(graph), [0], axis=0), 0.0)
    else:
        values = decision_values(graph, model.kernel, part, rows)
    if model.is_classifier:
        place, scores, probabilities = _of_classes(graph, model, values, by, has_scores)
        label = graph.Gather(graph.constant(class_labels(labels)), place)
        return Prediction(label, values, scores, probabilities)
    label, probabilities = graph.Reshape(values, [-1]), None
    if not model.is_regression:
        label = graph.Where(graph.Greater(label, 0.0), np.array(1), np.array(-1))
        if model.probability is not None:
            probabilities = _of_marks(graph, values, model.probability.A)
    return Prediction(label, values, None, probabilities)


def class_labels(labels: np.ndarray) -> np.ndarray:
    """Return labels as text, as int64 if all are whole numbers, else as float64."""
    if labels.dtype.kind not in "biuf":
        return labels.astype(str)
    if labels.dtype.kind != "f" or np.array_equal(labels, np.round(labels)):
        return labels.astype(np.int64)
    return labels.astype(np.float64)


def _of_classes(
    graph: Graph, model: ModelParts, values: str, by: str, has_scores: bool
) -> tuple[str, str | None, str | None]:
    """Return the class index of each row, int64 (n,), scores and probabilities, or None.

    Two classes have no scores.
    """
    k, sigmoids, n = len(model.labels), model.probability, graph.n_rows(values)
    if k == 1:
        certain = graph.filled(graph.Concat(n, [1], axis=0), 1.0)
        return graph.filled(n, 0), None, None if sigmoids is None else certain
    if k == 2:
        is_second = graph.cast(graph.LessOrEqual(values, 0.0), INT64)
        probabilities = None
        if sigmoids is not None:
            first = _of_pairs(graph, values, sigmoids)
            probabilities = graph.Concat(first, graph.Sub(1.0, first), axis=1)
        return graph.Reshape(is_second, [-1]), None, probabilities

    def body(inner: Graph, items: str) -> str:
        own = inner.Gather(values, items)
        found = {VOTES: _votes(inner, own, k)}
        if has_scores:
            found[SCORES] = _scores(inner, own, k)
        if sigmoids is not None:
            found[PROBABILITIES] = _coupled(inner, _of_pairs(inner, own, sigmoids), k)
        place = inner.cast(inner.ArgMax(found[by], axis=1, keepdims=1), DOUBLE)
        return inner.Concat(place, *list(found.values())[1:], axis=1)

    width = 1 + k * (has_scores + (sigmoids is not None))
    stacked = in_blocks(graph, n, max(BLOCK // (k * k), 1), width, body)
    place = graph.cast(graph.column(stacked, 0), INT64)
    scores = graph.columns(stacked, np.arange(1, 1 + k)) if has_scores else None
    last = None if sigmoids is None else graph.columns(stacked, np.arange(width - k, width))
    return place, scores, last


def _members(graph: Graph, k: int) -> tuple[str, str]:
    """Mark the first and the second class of each pair, float64 (n_pairs, k)."""
    first, second = (
        graph.cast(graph.Equal(index[:, None], np.arange(k)), DOUBLE)
        for index in np.triu_indices(k, 1)
    )
    return first, second


def _votes(graph: Graph, values: str, k: int) -> str:
    """Count the votes for each class, (n, k); nan is none."""
    first, second = _members(graph, k)
    is_first, is_second = graph.Greater(values, 0.0), graph.LessOrEqual(values, 0.0)
    votes = graph.MatMul(graph.cast(is_first, DOUBLE), first)
    return graph.Add(votes, graph.MatMul(graph.cast(is_second, DOUBLE), second))


def _scores(graph: Graph, values: str, k: int) -> str:
    """Compute the scores of classes (n, k), see dcsvm.sklearn.estimators.class_scores."""
    first, second = _members(graph, k)
    is_first, is_second = graph.GreaterOrEqual(values, 0.0), graph.Less(values, 0.0)
    votes = graph.MatMul(graph.cast(is_first, DOUBLE), first)
    votes = graph.Add(votes, graph.MatMul(graph.cast(is_second, DOUBLE), second))
    known = graph.Where(graph.IsNaN(values), 0.0, values)
    sums = graph.MatMul(known, graph.Sub(first, second))
    return graph.Add(votes, graph.Div(sums, graph.Mul(graph.Add(graph.Abs(sums), 1.0), 3.0)))


def _of_pairs(graph: Graph, values: str, sigmoids: Probability) -> str:
    """Compute `pair_probabilities`, float64 (n, n_pairs)."""
    assert sigmoids.B is not None  # of a classifier
    powers = graph.Exp(graph.Add(graph.Mul(values, sigmoids.A), sigmoids.B))
    first = graph.Div(1.0, graph.Add(powers, 1.0))
    clipped = graph.Max(graph.Min(first, 1.0 - MIN_PROBABILITY), MIN_PROBABILITY)
    return graph.Where(graph.IsNaN(first), 0.5, clipped)


def _of_marks(graph: Graph, values: str, marks: np.ndarray) -> str:
    """Compute the probabilities of normal rows and outliers, float64 (n, 2)."""
    n_below = graph.sum_of(graph.cast(graph.LessOrEqual(marks, values), DOUBLE), 1)
    normal = graph.Div(n_below, float(N_MARKS))
    normal = graph.Max(graph.Min(normal, 1.0 - MIN_NORMAL), MIN_NORMAL)
    return graph.Concat(normal, graph.Sub(1.0, normal), axis=1)


def _coupled(graph: Graph, first: str, k: int) -> str:
    """Compute class probabilities (n, k) of several classes, see parts.coupled."""
    q, i, j = k * (k - 1) // 2, *np.triu_indices(k, 1)
    index = np.full((k, k), 2 * q)
    index[i, j], index[j, i] = np.arange(q), q + np.arange(q)
    zero = graph.Mul(graph.columns(first, [0]), 0.0)
    both = graph.Concat(first, graph.Sub(1.0, first), zero, axis=1)
    r = graph.Reshape(graph.columns(both, index.ravel()), [-1, k, k])
    unit = graph.constant(np.eye(k))
    diagonal = graph.Mul(graph.sum_of(graph.Mul(r, r), 1), unit)
    Q = graph.Sub(diagonal, graph.Mul(r, graph.Transpose(r, perm=[0, 2, 1])))

    def sweep(inner: Graph, _number: str, p: str) -> Step:
        product = inner.Squeeze(inner.MatMul(Q, inner.Unsqueeze(p, [2])), [2])
        value = inner.sum_of(inner.Mul(p, product), 1)
        error = inner.Abs(inner.Sub(product, value))
        is_large = inner.cast(inner.GreaterOrEqual(error, TOLERANCE / k), INT64)
        is_active = inner.Greater(inner.sum_of(is_large, 1), np.array(0))
        goes_on = inner.Greater(inner.ReduceSum(is_large, keepdims=0), np.array(0))

        def change(innermost: Graph, t: str, p: str, product: str, value: str) -> Step:
            of_class = innermost.Add(t, [0])
            own = innermost.Gather(Q, t, axis=1)
            corner, entry = (innermost.Gather(one, of_class, axis=1) for one in (own, product))
            step = innermost.Div(innermost.Sub(value, entry), corner)
            scale = innermost.Div(1.0, innermost.Add(step, 1.0))
            grown = innermost.Add(innermost.Mul(entry, 2.0), innermost.Mul(step, corner))
            value = innermost.Add(value, innermost.Mul(step, grown))
            value = innermost.Mul(value, innermost.Mul(scale, scale))
            product = innermost.Add(product, innermost.Mul(step, own))
            p = innermost.Add(p, innermost.Mul(step, innermost.Gather(unit, of_class)))
            return None, [innermost.Mul(p, scale), innermost.Mul(product, scale), value], []

        states = [(one, DOUBLE) for one in (p, product, value)]
        changed = inner.loop(inner.constant(k), states, change)[0]
        return goes_on, [inner.Where(is_active, changed, p)], []

    start = graph.filled(graph.Concat(graph.n_rows(first), [k], axis=0), 1.0 / k)
    (p,) = graph.loop(graph.constant(max(MAX_SWEEPS, k)), [(start, DOUBLE)], sweep)
    return p
