"""Build graphs of ONNX operators: nodes, constants and loops.

The operators have one form in all versions of ai.onnx from 13 to 22, so that the nodes also fit
graphs of skl2onnx; ReduceMax, for example, has another one since version 18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

BOOL, DOUBLE, FLOAT, INT64, STRING = (
    TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING,
)  # fmt: skip
OPSETS = {"": 13, "ai.onnx.ml": 2}
IR_VERSION = 10  # onnxruntime before 1.18 rejects it: its second answer of a file can be wrong
AFTER_ALL = 2**62  # place of an item that is none

State = tuple[str, int]  # a tensor and the type of its elements
Step = tuple[str | None, Sequence[str], Sequence[State]]


class Graph:
    """Nodes in the order of their computation, and constants, which loops share.

    `name_of` makes a word a name that no tensor has yet. An operator is a method: `graph.Add(a, b)`
    adds a node and returns the name of its output. Numbers and arrays among the inputs become
    constants, of float64 or int64 if they are Python's.

    If `is_sorted`, somebody sorts the nodes by their inputs without a look into loops. Then the
    number of steps of a loop is made of all that it uses.
    """

    def __init__(
        self,
        name_of: Callable[[str], str],
        outer: Graph | None = None,
        *,
        is_sorted: bool = False,
    ):
        self.name_of, self.is_sorted = name_of, is_sorted
        self.nodes: list[Any] = []
        self.used: set[str] = set()  # by nodes, or by those of their loops
        self.constants: list[Any] = [] if outer is None else outer.constants
        self.names: dict[Any, str] = {} if outer is None else outer.names  # by their content

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)
        return partial(self.add, op_type)

    def add(self, op_type: str, *inputs: Any, n_outputs: int = 0, **attributes: Any) -> Any:
        """Add a node; return the name of its output, or a list of names for `n_outputs`."""
        outputs = [self.name_of(op_type) for _ in range(max(n_outputs, 1))]
        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        self.used.update(names)
        # skl2onnx gives its own nodes names such as Add and Add1
        name = f"node_{outputs[0]}"
        self.nodes.append(helper.make_node(op_type, names, outputs, name, **attributes))
        return outputs if n_outputs else outputs[0]

    def constant(self, value: Any) -> str:
        """Store a number or an array of numbers or text, once; return its name."""
        array = np.asarray(value, order="C")
        key = array.dtype.str, array.shape, sha256(array.tobytes()).digest()
        if key not in self.names:
            self.names[key] = name = self.name_of("constant")
            array = array.astype(object) if array.dtype.kind == "U" else array
            self.constants.append(numpy_helper.from_array(array, name))
        return self.names[key]

    def cast(self, tensor: Any, kind: int) -> str:
        return self.add("Cast", tensor, to=kind)

    def filled(self, shape: Any, value: float) -> str:
        """Return a tensor of one value, float64 or int64 as Python's number."""
        content = numpy_helper.from_array(np.array([value]))
        return self.add("ConstantOfShape", shape, value=content)

    def columns(self, tensor: str, which: Any) -> str:
        """Return columns (n, m) of a matrix, given by their indices (m,)."""
        return self.add("Gather", tensor, np.asarray(which, np.int64), axis=1)

    def column(self, tensor: str, number: int) -> str:
        """Return a column (n,) of a matrix."""
        return self.add("Reshape", self.columns(tensor, [number]), [-1])

    def joined(self, matrices: Sequence[str]) -> str:
        """Return the columns of matrices as one."""
        return self.add("Concat", *matrices, axis=1) if len(matrices) > 1 else matrices[0]

    def split(self, tensor: str, sizes: Any, axis: int) -> list[str]:
        """Return pieces of these sizes."""
        sizes = np.asarray(sizes, np.int64)
        pieces: list[str] = self.add("Split", tensor, sizes, n_outputs=len(sizes), axis=axis)
        return pieces

    def n_rows(self, tensor: str) -> str:
        """Return the first dimension of a tensor (1,)."""
        return self.add("Slice", self.add("Shape", tensor), [0], [1])

    def sum_of(self, tensor: str, axis: int) -> str:
        """Sum over an axis, which stays with the length 1."""
        return self.add("ReduceSum", tensor, [axis], keepdims=1)

    def matrix(self, values: np.ndarray) -> str:
        """Store a matrix (n, m), n at least 1, in few bytes; return its tensor.

        Of a column with a usual number, as 0, only others are stored, each with the gap to the one
        before. If these are the same number, only the gaps are stored.
        """
        usual = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
        usual = np.where(2 * (values == usual).sum(axis=0) > len(values), usual, 0)
        is_other, size = values != usual, values.itemsize
        n_others = is_other.sum(axis=0)
        first = values[is_other.argmax(axis=0), np.arange(values.shape[1])]
        is_single = (~is_other | (values == first)).all(axis=0)
        is_dense = ~is_single & ((size + 1) * n_others >= size * len(values))
        parts, order = [], []
        for of_kind in (is_dense, ~(is_dense | is_single), is_single):
            which = np.flatnonzero(of_kind)
            if len(which) == 0:
                continue
            own = values[:, which]
            if of_kind is is_dense:
                parts.append(self.constant(own))
            else:
                single = first[which] if of_kind is is_single else None
                parts.append(self._sparse(own, usual[which].astype(values.dtype), single))
            order.append(which)
        if len(parts) == 1:
            return parts[0]
        return self.columns(self.joined(parts), np.argsort(np.concatenate(order)))

    def _sparse(self, values: np.ndarray, usual: np.ndarray, single: np.ndarray | None) -> str:
        """Store the numbers of a matrix (n, m) that are not `usual` (m,).

        `single` (m,) are the others of a column, if they are the same.
        """
        filled = self.add("Expand", usual, list(values.shape))
        places = np.flatnonzero(values != usual)
        if len(places) == 0:
            return filled
        gaps = np.diff(places, prepend=0)
        gaps = gaps.astype(np.min_scalar_type(int(gaps.max())))
        index = self.add("CumSum", self.cast(self.constant(gaps), INT64), 0)
        numbers = values.ravel()[places]
        if single is not None:
            numbers = self.add("Gather", single, self.add("Mod", index, [len(single)]))
        flat = self.add("Reshape", filled, [-1])
        flat = self.add("ScatterElements", flat, index, numbers, axis=0)
        return self.add("Reshape", flat, list(values.shape))

    def loop(self, n_steps: str, states: Sequence[State], body: Callable[..., Step]) -> list[str]:
        """Repeat `body`, at most `n_steps` times.

        body(graph, step, *states) adds the nodes of a step to `graph`. It returns whether to go on,
        None for always; the new states; and the results of the step. Returns the last states, and
        the results of all steps, stacked.
        """
        inner = Graph(self.name_of, self)
        step, go = self.name_of("step"), self.name_of("go")
        own = [(self.name_of("state"), kind) for _, kind in states]
        goes_on, ended, results = body(inner, step, *(name for name, _ in own))
        inputs: list[tuple[str, int, list[int] | None]] = [(step, INT64, []), (go, BOOL, [])]
        inputs += [(name, kind, None) for name, kind in own]
        kinds = [BOOL, *(kind for _, kind in states), *(kind for _, kind in results)]
        made = {name for node in inner.nodes for name in node.output}
        names = [
            name if name in made else inner.add("Identity", name)  # a body ends with nodes
            for name in (goes_on or go, *ended, *(name for name, _ in results))
        ]
        graph = helper.make_graph(
            inner.nodes, self.name_of("body"),
            [helper.make_tensor_value_info(*one) for one in inputs],
            [
                helper.make_tensor_value_info(*one, None)
                for one in zip(names, kinds, strict=True)
            ],
        )  # fmt: skip
        made |= {step, go, *(name for name, _ in own)}
        used = inner.used - made
        self.used |= used
        if self.is_sorted:
            sizes = [self.add("Size", name) for name in sorted(used - set(self.names.values()))]
            nothing = self.add("Mul", self.add("Min", *sizes), np.array(0))
            n_steps = self.add("Add", n_steps, nothing)
        given = [n_steps, np.array(True), *(name for name, _ in states)]
        return self.add("Loop", *given, n_outputs=len(kinds) - 1, body=graph)


def in_groups(
    graph: Graph, group: str, block: int, width: int, body: Callable[[Graph, str, str], str]
) -> tuple[str, str]:
    """Compute numbers of n items, group by group, in blocks of at most `block` items.

    `group` int64 (n,) is the group of each item. body(graph, items, group) returns the float64
    numbers (m, width) of `items` int64 (m,), all of one `group` (1,). Returns a matrix with `width`
    columns, and the row of each item in it, int64 (n,).
    """
    n = graph.Shape(group)
    sorted_group, order = graph.TopK(group, n, n_outputs=2, axis=0, largest=0)
    _, first, inverse, counts = graph.Unique(sorted_group, n_outputs=4)
    end = graph.Gather(graph.Add(first, counts), inverse)  # of the group of each item
    size = graph.Min(n, [block])

    def step(inner: Graph, _step: str, begin: str) -> Step:
        stop = inner.Min(inner.Gather(end, begin), inner.Add(begin, size))
        items = inner.Slice(order, begin, stop)
        numbers = body(inner, items, inner.Gather(sorted_group, begin))
        # the results of all steps have one shape
        n_missing = inner.Sub(size, inner.Sub(stop, begin))
        rest = inner.filled(inner.Concat(n_missing, [width], axis=0), 0.0)
        padded = inner.Concat(numbers, rest, axis=0)
        places = inner.Concat(items, inner.filled(n_missing, AFTER_ALL), axis=0)
        goes_on = inner.Squeeze(inner.Less(stop, n))
        return goes_on, [stop], [(padded, DOUBLE), (places, INT64)]

    begin = graph.constant([0])
    n_steps = graph.Squeeze(graph.Shape(end))
    _, numbers, places = graph.loop(n_steps, [(begin, INT64)], step)
    _, back = graph.TopK(graph.Reshape(places, [-1]), n, n_outputs=2, axis=0, largest=0)
    return graph.Reshape(numbers, [-1, width]), back


def in_blocks(
    graph: Graph, n: str, block: int, width: int, body: Callable[[Graph, str], str]
) -> str:
    """Compute numbers (n, width) of n items in blocks; `n` int64 (1,), `body` as of `in_groups`."""
    size = graph.Min(n, [block])
    items = graph.Range(0, graph.Squeeze(n), 1)

    def step(inner: Graph, number: str) -> Step:
        begin = inner.Mul(size, number)
        own = inner.Slice(items, begin, inner.Add(begin, size))
        n_missing = inner.Sub(size, inner.Shape(own))
        rest = inner.filled(inner.Concat(n_missing, [width], axis=0), 0.0)
        return None, [], [(inner.Concat(body(inner, own), rest, axis=0), DOUBLE)]

    n_steps = graph.Squeeze(graph.Div(graph.Add(n, [block - 1]), [block]))
    (numbers,) = graph.loop(n_steps, [], step)
    return graph.Slice(graph.Reshape(numbers, [-1, width]), [0], n)
