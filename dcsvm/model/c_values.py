"""C code that computes decision values: by all support vectors, or by those of a row's clusters.

Kernel values are float64. The machine of a cluster is a sum over its vectors; with the linear
kernel it may be a normal vector for each pair of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

import numpy as np

from dcsvm.data.arrays import Csr
from dcsvm.kernel.kernels import ABSOLUTE_DISTANCE, PRODUCT, SQUARED_DISTANCE, Kernel
from dcsvm.kernel.sources import NodeSplit, Partition
from dcsvm.model.c_literals import array, doubles, floats, integers, number
from dcsvm.model.c_rows import RowCode
from dcsvm.model.parts import EarlyModel, ExactModel
from dcsvm.model.predict import pairs_of_lines

# Share of values that are not 0 below which rows are stored sparse. A value then takes 6 bytes
# instead of 4, and the loop over two sparse rows takes a few times as long for each.
SPARSE = 0.3
SAME_CENTER = 1e-12  # as in csrc/kernel/routing.cc: centers are equal except for rounding

# By argument: what a feature adds; by function: the value of `argument`.
TERMS = {
    PRODUCT: "x * z",
    SQUARED_DISTANCE: "(x - z) * (x - z)",
    ABSOLUTE_DISTANCE: "fabs(x - z)",
}
FUNCTIONS = {
    "identity": "argument",
    "power": "dcsvm_power($gamma * argument + $coef0, $degree)",
    "decay": "exp(-$gamma * argument)",
    "root_decay": "exp(-$gamma * sqrt(argument))",
    "tanh": "tanh($gamma * argument + $coef0)",
}
POWER = """\
static double dcsvm_power(double base, int degree) {
  double power = 1.0;
  for (; degree > 0; degree /= 2) {
    if (degree % 2 == 1) power *= base;
    base *= base;
  }
  return power;
}

"""
TERM = Template("static double dcsvm_${argument}_term(double x, double z) { return $term; }\n\n")
DENSE_ARGUMENT = Template(
    """\
/* Returns the $words of a row and vector i. */
static double dcsvm_$argument(const dcsvm_row *row, int i) {
  const float *const vector = dcsvm_vectors + i * DCSVM_FEATURES;
  double sums[4] = {$rest, 0.0, 0.0, 0.0};
  int k, lane;
  for (k = 0; k + 4 <= DCSVM_FEATURES; k += 4) {
    for (lane = 0; lane < 4; ++lane)
      sums[lane] += dcsvm_${argument}_term(row->value[k + lane], vector[k + lane]);
  }
  for (; k < DCSVM_FEATURES; ++k) sums[0] += dcsvm_${argument}_term(row->value[k], vector[k]);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

"""
)
SPARSE_ARGUMENT = Template(
    """\
/* Returns the $words of a row and vector i. */
static double dcsvm_$argument(const dcsvm_row *row, int i) {
  const int end = dcsvm_vector_starts[i + 1];
  int a = 0, b = dcsvm_vector_starts[i];
  double sum = $rest;
  while (a < row->size && b < end) {
    const int j = row->index[a], k = dcsvm_indices[b];
    sum += dcsvm_${argument}_term(j <= k ? row->value[a] : 0.0, k <= j ? dcsvm_vectors[b] : 0.0);
    a += j <= k;
    b += k <= j;
  }
  for (; a < row->size; ++a) sum += dcsvm_${argument}_term(row->value[a], 0.0);
  for (; b < end; ++b) sum += dcsvm_${argument}_term(0.0, dcsvm_vectors[b]);
  return sum;
}

"""
)
KERNEL = Template(
    """\
static double dcsvm_$name(const dcsvm_row *row, int i) {
  const double argument = dcsvm_$argument(row, i);
  return $value;
}

"""
)
MACHINE = Template(
    """\
/* Computes the decision values by the machine of a cluster. */
static void dcsvm_machine(const dcsvm_row *row, int cluster, double *values) {
  int i, pair;
  for (pair = 0; pair < DCSVM_VALUES; ++pair) values[pair] = 0.0;
  for (i = dcsvm_clusters[cluster]; i < dcsvm_clusters[cluster + 1]; ++i) {
    const double K = dcsvm_kernel(row, $vector);
$add  }
  for (pair = 0; pair < DCSVM_VALUES; ++pair)
    values[pair] -= dcsvm_rho[cluster * DCSVM_VALUES + pair];
}

"""
)
ADD_NOTHING = "    (void)K; /* of one class */\n"
ADD = "    values[0] += dcsvm_coef[i] * K;\n"
ADD_TO_PAIRS = """\
    const double *const coef = dcsvm_coef + i * (DCSVM_CLASSES - 1);
    const int own = dcsvm_class[i];
    int other;
    pair = own - 1; /* of class 0 and the own one */
    for (other = 0; other < own; ++other) {
      values[pair] += coef[other] * K;
      pair += DCSVM_CLASSES - 2 - other;
    }
    for (; other < DCSVM_CLASSES - 1; ++other) values[++pair] += coef[other] * K;
"""
LINEAR_MACHINE = Template(
    """\
/* Computes the decision values by the machine of a cluster. */
static void dcsvm_machine(const dcsvm_row *row, int cluster, double *values) {
  int k, pair;
  for (pair = 0; pair < DCSVM_VALUES; ++pair) {
    const double *const normal =
        dcsvm_normals + (cluster * DCSVM_VALUES + pair) * DCSVM_FEATURES;
    double sum = 0.0;
    for (k = 0; k < $size; ++k) sum += normal[$index] * row->value[k];
    values[pair] = sum - dcsvm_rho[cluster * DCSVM_VALUES + pair];
  }
}

"""
)
ROUTE = Template(
    """\
/* The nodes of the tree of clusters are numbered level by level; the last $n_clusters are the
   clusters. A row goes to the nearest child of its node$comment. */
typedef struct {
  int nearest;
$second_member} dcsvm_place;

static dcsvm_place dcsvm_step(const dcsvm_row *row, int node) {
  const int first = dcsvm_children[node], n = dcsvm_children[node + 1] - first;
  double squared[$n_parts]; /* distances to the centers less K(x, x) */
  dcsvm_place to = {$first_place};
  int child, best = 0;
  if (n == 1) return to;
  for (child = 0; child < n; ++child) {
    const int end = dcsvm_samples[first + child + 1];
    int i = dcsvm_samples[first + child], n_rows = end - i;
    double sum = 0.0;
    for (; i < end; ++i) sum += dcsvm_center_kernel(row, $shift + i);
    squared[child] = dcsvm_squares[first + child] - 2.0 * sum / (n_rows > 0 ? n_rows : 1);
    if (squared[child] < squared[best]) best = child;
  }
  to.nearest = first + best;
$second_child  return to;
}

static dcsvm_place dcsvm_route(const dcsvm_row *row) {
  dcsvm_place at = {$root};
  while (at.nearest < DCSVM_NODES) {
    const dcsvm_place next = dcsvm_step(row, at.nearest);
$descend  }
  return at;
}

"""
)
SECOND_COMMENT = ",\n   and has a second one beyond the nearest boundary"
SECOND_MEMBER = """\
  int second;      /* beyond the nearest boundary, -1 without one */
  double distance; /* to this boundary */
"""
SECOND_CHILD = """\
  for (child = 0; child < n; ++child) {
    const int low = child < best ? child : best, high = child < best ? best : child;
    double gap, distance;
    if (child == best) continue;
    gap = dcsvm_gaps[dcsvm_gap_starts[node] + high * (high - 1) / 2 + low];
    distance = gap > 0.0 ? (squared[child] - squared[best]) / gap : 0.0;
    if (distance < to.distance || to.second < 0) {
      to.distance = distance;
      to.second = first + child;
    }
  }
"""
DESCEND = "    at = next;\n"
DESCEND_WITH_SECOND = """\
    if (next.distance < at.distance) {
      at = next;
      continue;
    }
    at.nearest = next.nearest;
    if (at.second >= 0) at.second = dcsvm_step(row, at.second).nearest;
"""
DECIDE = Template(
    """\
static int dcsvm_decide(const dcsvm_row *row, double *values) {
$body  return DCSVM_VALUES;
}

"""
)
BY_ONE = "  dcsvm_machine(row, 0, values);\n"
BY_NEAREST = """\
  dcsvm_machine(row, dcsvm_route(row).nearest - DCSVM_NODES, values);
"""
BY_TWO = Template(
    """\
  const dcsvm_place at = dcsvm_route(row);
  const double share = 0.5 * (1.0 + at.distance / $blend);
  double second[$n_values];
  int pair;
  dcsvm_machine(row, at.nearest - DCSVM_NODES, values);
  if (at.second < 0 || share >= 1.0) return DCSVM_VALUES;
  dcsvm_machine(row, at.second - DCSVM_NODES, second);
  for (pair = 0; pair < DCSVM_VALUES; ++pair) {
    const double mean = share * values[pair] + (1.0 - share) * second[pair];
    if (!isnan(mean)) values[pair] = mean;
    else if (isnan(values[pair])) values[pair] = second[pair];
  }
"""
)


@dataclass(frozen=True, eq=False)
class Machines:
    """The machines of a part of a model.

    `start` int64 (n_clusters + 1,) are the first vectors of the clusters. `owner` (n_sv,) is the
    place of each vector among `vectors`, which are distinct, or None if they are the same.
    `normals` float64 (n_clusters * n_pairs, d) replace the vectors of a linear kernel; else None.
    """

    part: ExactModel | EarlyModel
    rho: np.ndarray
    start: np.ndarray
    vectors: Csr
    owner: np.ndarray | None
    normals: np.ndarray | None

    @staticmethod
    def of(part: ExactModel | EarlyModel, kernel: Kernel, rows: RowCode) -> Machines:
        rho = np.atleast_2d(part.rho)
        n_clusters, n_sv = len(rho), part.rows.n_samples
        start, owner, first = np.array([0, n_sv]), None, None
        if isinstance(part, EarlyModel):
            start = np.searchsorted(part.cluster, np.arange(n_clusters + 1))
            _, first, owner = np.unique(part.row_numbers, return_index=True, return_inverse=True)
        vectors = rows.vectors(part.rows)
        if kernel.type.is_linear and 0 < rho.size <= n_sv:
            normals = _normals(part, start, vectors, rows.size)
            return Machines(part, rho, start, no_rows(), None, normals)
        if owner is None or first is None or len(first) == n_sv:
            return Machines(part, rho, start, vectors, None, None)
        return Machines(part, rho, start, vectors.take(first), owner.reshape(-1), None)

    @property
    def n_vectors(self) -> int:
        return len(self.vectors.indptr) - 1

    def code(self, *, is_sparse: bool) -> str:
        """Return `dcsvm_machine` and its arrays."""
        part, n_pairs = self.part, self.rho.shape[1]
        code = array("double", "dcsvm_rho", doubles(self.rho))
        if self.normals is not None:
            code += f"{array('double', 'dcsvm_normals', doubles(self.normals))}\n"
            size, index = ("row->size", "row->index[k]") if is_sparse else ("DCSVM_FEATURES", "k")
            return code + LINEAR_MACHINE.substitute(size=size, index=index)
        code += integers("dcsvm_clusters", self.start)
        vector, add = "i", ADD_NOTHING
        if n_pairs:
            code += array("double", "dcsvm_coef", doubles(part.dual_coef.T))
            add = ADD
        if n_pairs > 1 and part.class_ is not None:
            code += integers("dcsvm_class", part.class_)
            add = ADD_TO_PAIRS
        if self.owner is not None:
            code += integers("dcsvm_owner", self.owner)
            vector = "dcsvm_owner[i]"
        return f"{code}\n{MACHINE.substitute(vector=vector, add=add)}"


def no_rows() -> Csr:
    return Csr(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


def _normals(
    part: ExactModel | EarlyModel, start: np.ndarray, vectors: Csr, n_features: int
) -> np.ndarray:
    """Return the normal vectors of all clusters and pairs, float64 (n_clusters * n_pairs, d)."""
    from scipy import sparse

    n_sv, n_pairs = part.rows.n_samples, part.rho.shape[-1]
    n_clusters = len(start) - 1
    pair = np.zeros((n_sv, 1), np.int64)
    if n_pairs > 1 and part.class_ is not None:
        pair = pairs_of_lines(part.class_, len(part.dual_coef) + 1)
    cluster = np.repeat(np.arange(n_clusters), np.diff(start))
    target = cluster[:, None] * n_pairs + pair
    vector = np.broadcast_to(np.arange(n_sv)[:, None], target.shape)
    shape = n_clusters * n_pairs, n_sv
    weights = sparse.csr_matrix((part.dual_coef.T.ravel(), (target.ravel(), vector.ravel())), shape)
    rows = sparse.csr_matrix(
        (vectors.values.astype(np.float64), vectors.indices, vectors.indptr), (n_sv, n_features)
    )
    return (weights @ rows).toarray()


class KernelCode:
    """The kernels of machines and of centers, and the vectors of both.

    The sampled rows of centers follow the vectors of machines.
    """

    def __init__(self, rows: RowCode, vectors: Csr, sample: Csr):
        self.rows, self.vectors = rows, Csr.joined([vectors, sample])
        n_rows = len(self.vectors.indptr) - 1
        self.is_sparse = len(self.vectors.values) < SPARSE * n_rows * len(rows.features)

    def code(self, kernels: dict[str, Kernel]) -> str:
        """Return the kernels by the names of their functions, without "dcsvm_"."""
        if not kernels:
            return ""
        code = self._arrays()
        for argument in dict.fromkeys(kernel.type.argument for kernel in kernels.values()):
            rest = self.rows.rest.get(argument)
            template = SPARSE_ARGUMENT if self.is_sparse else DENSE_ARGUMENT
            code += TERM.substitute(argument=argument, term=TERMS[argument])
            code += template.substitute(
                argument=argument,
                words=argument.replace("_", " "),
                rest=f"row->{rest.name}" if rest else "0.0",
            )
        if any(kernel.type.function == "power" for kernel in kernels.values()):
            code += POWER
        for name, kernel in kernels.items():
            values = {"gamma": kernel.gamma, "coef0": kernel.coef0}
            value = Template(FUNCTIONS[kernel.type.function]).substitute(
                {key: number(one) for key, one in values.items()}, degree=kernel.degree
            )
            code += KERNEL.substitute(name=name, argument=kernel.type.argument, value=value)
        return code

    def _arrays(self) -> str:
        """Return the arrays of the vectors."""
        indptr, indices, values = self.vectors
        if self.is_sparse:
            code = integers("dcsvm_vector_starts", indptr) + integers("dcsvm_indices", indices)
            return f"{code}{array('float', 'dcsvm_vectors', floats(values))}\n"
        dense = np.zeros((len(indptr) - 1, len(self.rows.features)), np.float32)
        dense[np.repeat(np.arange(len(dense)), np.diff(indptr)), indices] = values
        return f"{array('float', 'dcsvm_vectors', floats(dense))}\n"


class TreeCode:
    """The tree of clusters: the nodes of all levels, and then the clusters."""

    def __init__(self, partition: Partition):
        self.partition, splits = partition, partition.splits
        self.n_nodes = sum(len(split.n_parts) for split in splits)
        self.most_parts = max(int(split.n_parts.max()) for split in splits)

    def code(self, first_sample: int) -> str:
        """Return `dcsvm_route` and its arrays, given the place of the first sampled row."""
        splits, has_second = self.partition.splits, self.partition.blend > 0
        # the children of each node follow the root, in the order of the nodes
        n_parts = np.concatenate([split.n_parts for split in splits])
        code = integers("dcsvm_children", 1 + np.concatenate(([0], np.cumsum(n_parts))))
        n_sampled = np.concatenate([_sizes(split) for split in splits])
        code += integers("dcsvm_samples", np.concatenate(([0, 0], np.cumsum(n_sampled))))
        blocks = [block for split in splits for block in _blocks(split)]
        squares = np.concatenate([[0.0], *(np.diagonal(block) for block in blocks)])
        code += array("double", "dcsvm_squares", doubles(squares))
        if has_second:
            gaps = [_gaps(block) for block in blocks]
            starts = np.cumsum([0, *map(len, gaps)])
            code += integers("dcsvm_gap_starts", starts)
            code += array("double", "dcsvm_gaps", doubles(np.concatenate(gaps)))
        beyond = ", -1, HUGE_VAL" if has_second else ""
        route = ROUTE.substitute(
            n_clusters=self.partition.n_clusters,
            comment=SECOND_COMMENT if has_second else "",
            second_member=SECOND_MEMBER if has_second else "",
            n_parts=self.most_parts,
            first_place=f"first{beyond}",
            root=f"0{beyond}",
            shift=first_sample,
            second_child=SECOND_CHILD if has_second else "",
            descend=DESCEND_WITH_SECOND if has_second else DESCEND,
        )
        return f"{code}\n{route}"


def _sizes(split: NodeSplit) -> np.ndarray:
    """Return the number of sampled rows of each cluster of a split."""
    return np.bincount(split.cluster, minlength=split.n_clusters)


def _blocks(split: NodeSplit) -> list[np.ndarray]:
    """Return the inner products of the centers of each node, (n, n)."""
    ends = np.cumsum(split.n_parts**2)
    return [
        split.products[end - n * n : end].reshape(n, n)
        for n, end in zip(split.n_parts.tolist(), ends.tolist(), strict=True)
    ]


def _gaps(products: np.ndarray) -> np.ndarray:
    """Return twice the distances of the centers b > a of a node, by b, then a; 0 if equal."""
    squares = np.diagonal(products)
    norms = squares[:, None] + squares
    between = np.maximum(norms - 2 * products, SAME_CENTER * np.abs(norms))
    return 2 * np.sqrt(np.maximum(between, 0.0))[np.tril_indices(len(products), -1)]


def decision_code(tree: TreeCode | None, n_values: int) -> str:
    """Return `dcsvm_decide`, given the tree of clusters, None without one."""
    if tree is None:
        return DECIDE.substitute(body=BY_ONE)
    if tree.partition.blend == 0:
        return DECIDE.substitute(body=BY_NEAREST)
    blend = number(tree.partition.blend)
    return DECIDE.substitute(body=BY_TWO.substitute(blend=blend, n_values=n_values))
