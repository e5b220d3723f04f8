"""Typed wrappers of csrc/: check shapes, release the GIL, call.

Rows come in as a Points object, row subsets as int32 row numbers, everything else as contiguous
NumPy arrays. Nothing is decided here and there are no defaults.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

import numpy as np


cdef extern from *:
    """
    #ifdef _OPENMP
    static const bool has_openmp = true;
    #else
    static const bool has_openmp = false;
    #endif
    """
    const cbool has_openmp


cdef extern from *:
    """
    using ProgressCall = int (*)(void* callable, std::size_t clusters, std::size_t variables,
                                 double violation, std::size_t n_active, std::int64_t steps);

    static void set_progress(dcsvm::ClusterOptions& options, ProgressCall call, void* callable) {
      options.progress = [call, callable](const dcsvm::ClusterProgress& now) {
        return call(callable, now.clusters_done, now.variables_done, now.current.violation,
                    now.current.n_active, now.current.outer_steps) != 0;
      };
    }
    """
    ctypedef int (*ProgressCall)(void*, size_t, size_t, double, size_t, int64_t) noexcept nogil
    void set_progress(ClusterOptions& options, ProgressCall call, void* callable) nogil


cdef int call_progress(void* callable, size_t clusters, size_t variables, double violation,
                       size_t n_active, int64_t steps) noexcept with gil:
    try:
        return 1 if (<object>callable)(clusters, variables, violation, n_active, steps) else 0
    except BaseException as error:
        (<object>callable).error = error
        (<object>callable).stop.request()
        return 0


cdef extern from "threads/simulated_cores.h" namespace "dcsvm" nogil:
    cdef cppclass SimulatedCores:
        void turn(cbool)
        double seconds_saved() const

    SimulatedCores& simulated_cores()


cdef extern from "threads/parallel.h" namespace "dcsvm" nogil:
    int c_allowed_threads "dcsvm::allowed_threads"()


NO_LIMIT = 2**62  # bytes of memory


class Stopped(Exception):
    """A computation was stopped before its end; nothing of it is kept."""


cdef class Stop:
    """A wish to end early, by a call from any thread or after some seconds (None: no limit)."""

    cdef CStop stop

    def __init__(self, seconds=None):
        if seconds is not None:
            self.stop.set_deadline(seconds)

    def request(self):
        self.stop.request()

    @property
    def is_requested(self):
        return self.stop.is_requested()


def allowed_threads():
    """Threads that OpenMP would use here: OMP_NUM_THREADS, or what threadpoolctl has set."""
    return c_allowed_threads()


def check_threads(int threads):
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")


def check_range(numbers, n, what):
    if len(numbers) == 0:
        return
    for number in (np.min(numbers), np.max(numbers)):
        if not 0 <= number < n:
            raise ValueError(f"{what} number {number} is outside 0..{n - 1}")


def check_indptr(indptr, n_values, what):
    if indptr[0] != 0 or indptr[len(indptr) - 1] != n_values or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{what} do not start at 0, ascend and end at {n_values}")


cdef class Points:
    """Rows of a data set for the core: dense float32 (n, d), CSR, or of a precomputed kernel.
    Keeps the arrays alive."""

    cdef CPoints points
    cdef CodedColumns coded_columns
    cdef size_t n_columns  # features, codes included
    cdef object arrays, half_norms, byte_arrays, columns, other_squares
    cdef object coding  # the same object where rows have the same codes

    def __init__(self, rows, int threads):
        check_threads(threads)
        cdef const float[:, ::1] dense
        cdef const uint8_t[:, ::1] dense_bytes
        cdef const int64_t[::1] indptr
        cdef const int32_t[::1] indices
        cdef const float[::1] values
        cdef const int32_t[::1] columns
        cdef double[::1] half_norms = np.empty(max(rows.n_samples, 1))
        self.points.n_samples = rows.n_samples
        self.points.n_features = self.n_columns = rows.n_features
        if rows.is_bytes:
            dense_bytes = rows.stored
            if (dense_bytes.shape[0] != rows.n_samples
                    or <size_t>dense_bytes.shape[1] != self.points.byte_row_size()):
                raise ValueError("rows of bytes do not have the stated shape")
            self.points.dense_bytes = &dense_bytes[0, 0] if rows.n_samples else <const uint8_t*>&half_norms[0]
            self.arrays = rows.stored
        elif rows.dense is not None:
            dense = rows.dense
            if dense.shape[0] != rows.n_samples or dense.shape[1] != rows.n_features:
                raise ValueError("dense rows do not have the stated shape")
            self.points.dense = &dense[0, 0] if dense.shape[0] and dense.shape[1] else <const float*>&half_norms[0]
            self.arrays = rows.dense
        elif rows.indptr is not None:
            indptr = rows.indptr
            indices = rows.indices
            values = rows.values
            if indptr.shape[0] != rows.n_samples + 1 or indices.shape[0] != values.shape[0]:
                raise ValueError("CSR arrays do not have the stated shape")
            check_indptr(rows.indptr, values.shape[0], "CSR arrays")
            check_range(rows.indices, rows.n_features, "column")
            self.points.indptr = &indptr[0]
            self.points.indices = &indices[0] if indices.shape[0] else NULL
            self.points.values = &values[0] if values.shape[0] else NULL
            self.arrays = (rows.indptr, rows.indices, rows.values)
        if rows.columns is not None:
            columns = rows.columns
            if columns.shape[0] != <Py_ssize_t>rows.n_samples:
                raise ValueError("there is not one column for each row")
            check_range(rows.columns, rows.n_features, "column")
            # an address even where there are no rows
            self.points.columns = &columns[0] if columns.shape[0] else <const int32_t*>&half_norms[0]
            self.columns = rows.columns
        self.half_norms = half_norms
        self.points.half_norms = &half_norms[0]
        cdef Form form = Form.product if rows.columns is None else Form.precomputed
        compute_half_norms(self.points, form, threads, &half_norms[0])

    @property
    def n_samples(self):
        return self.points.n_samples

    @property
    def n_features(self):
        return self.points.n_features

    @property
    def n_codes(self):
        return self.points.n_codes

    def encode(self, double worth, size_t memory_bytes, int threads):
        """Turn exclusive 0/1 columns into codes (csrc/rows/codes.h), in place, where a pair of
        rows then costs less than 1/worth of the operations; or let rows of bytes meet as such where
        that costs less still. What is added may take `memory_bytes`. Both sides of a tile must be these
        points, or others that were encoded as them. Returns the bytes that were added."""
        cdef CodedColumns columns
        if not self.points.is_dense() or self.points.n_samples == 0:
            return 0
        with nogil:
            columns = find_codes(self.points, threads)
        cdef size_t size = self.points.n_samples * (sizeof(float) * columns.numeric.size()
                                                    + columns.codes.size())
        cdef double cost = 2.0 * self.points.n_features
        cdef cbool has_codes = (columns.codes.size() > 0 and columns.cost() * worth <= cost
                                and size <= memory_bytes)
        if has_codes:
            cost = columns.cost()
        if (self.points.dense_bytes != NULL and may_be_bytes(self.points)
                and bytes_cost(self.points) < cost):
            self.encode_bytes(threads)
            return self.points.n_samples * sizeof(int32_t)
        if not has_codes:
            return 0
        self.coded_columns, self.coding = columns, object()
        self.encode_columns(threads)
        return size

    def encode_as(self, Points other, int threads):
        """Encode dense rows as `other` was, by its codes or as bytes, in place. Returns bool (n,):
        which rows are the same then; no others must be used. None where other is not encoded."""
        if other.coding is None and other.points.bytes == NULL:
            return None
        if self.points.n_features != other.n_columns or not self.points.is_dense():
            raise ValueError("rows are not of the same columns")
        fitting = np.empty(self.points.n_samples, dtype=np.uint8)
        cdef uint8_t[::1] fits = fitting
        cdef double[::1] squares
        if self.points.n_samples == 0:
            return fitting.astype(bool)
        if other.points.bytes != NULL:
            with nogil:
                c_find_bytes(self.points, threads, &fits[0])
            self.encode_bytes(threads)
        else:
            squares = np.empty(self.points.n_samples)
            with nogil:
                c_find_fitting(self.points, other.coded_columns, threads, &fits[0], &squares[0])
            self.coded_columns, self.coding = other.coded_columns, other.coding
            self.encode_columns(threads)
            self.points.other_squares = &squares[0]
            self.other_squares = squares
        return fitting.view(bool)

    cdef encode_columns(self, int threads):
        """Replace the rows by their numeric columns and codes."""
        cdef float[:, ::1] numeric
        cdef uint8_t[:, ::1] codes
        cdef size_t n_numeric = self.coded_columns.numeric.size()
        # a column even where there is none, for an address
        rows = np.zeros((self.points.n_samples, max(n_numeric, 1)), dtype=np.float32)
        row_codes = np.empty((self.points.n_samples, self.coded_columns.codes.size()), dtype=np.uint8)
        numeric, codes = rows, row_codes
        with nogil:
            c_encode(self.points, self.coded_columns, threads, &numeric[0, 0], &codes[0, 0])
        self.points.dense = &numeric[0, 0]
        self.points.dense_bytes = NULL
        self.points.n_features = n_numeric
        self.points.n_codes = self.coded_columns.codes.size()
        self.points.codes = &codes[0, 0]
        self.arrays = rows, row_codes

    @property
    def has_bytes(self):
        return self.points.bytes != NULL

    @property
    def may_be_bytes(self):
        """Whether bytes of all features are possible on this machine, and cheaper than sparse rows
        where these are such."""
        return may_be_bytes(self.points) and (
            self.points.indptr == NULL or bytes_beat_sparse(self.points))

    def are_bytes(self, int threads):
        """Whether the rows are 8-bit integers and this machine has tiles for them."""
        cdef cbool possible
        if not self.points.is_dense() or self.points.n_samples == 0 or self.points.n_codes > 0:
            return False
        with nogil:
            possible = are_bytes(self.points, threads)
        return possible

    def encode_bytes(self, int threads):
        """Let the rows meet others as bytes, which they must be, as both sides of a tile must: those
        that they are, or a copy of floats."""
        cdef uint8_t[:, ::1] values
        row_sums = np.empty(self.points.n_samples, dtype=np.int32)
        cdef int32_t[::1] sums = row_sums
        if self.points.dense_bytes != NULL:
            self.points.bytes, self.points.byte_sums = self.points.dense_bytes, &sums[0]
            with nogil:
                c_sum_bytes(self.points, threads, &sums[0])
            self.byte_arrays = self.arrays, row_sums
            return
        rows = np.empty((self.points.n_samples, self.points.byte_row_size()), dtype=np.uint8)
        values = rows
        with nogil:
            c_encode_bytes(self.points, threads, &values[0, 0], &sums[0])
        self.points.bytes = &values[0, 0]
        self.points.byte_sums = &sums[0]
        self.byte_arrays = rows, row_sums

    def take_bytes(self, codes):
        """Let the rows meet each other as 8-bit integers, `codes` uint8 (n, d), zeros after the
        features up to a multiple of 4 columns; distances are those of the integers. Returns the
        bytes they take."""
        cdef const uint8_t[:, ::1] values = codes
        sums = codes.sum(axis=1, dtype=np.int32)
        cdef int32_t[::1] row_sums = sums
        if codes.shape != (self.points.n_samples, self.points.byte_row_size()):
            raise ValueError("there is not one 8-bit integer for each feature")
        self.points.bytes = &values[0, 0] if codes.size else NULL
        self.points.byte_sums = &row_sums[0] if codes.size else NULL
        self.byte_arrays = codes, sums
        return codes.nbytes + sums.nbytes

    def fit(self, Setup setup, int threads):
        """Prepare the norms for the form of a setup; for dense rows after choosing it."""
        cdef double[::1] half_norms = self.half_norms
        compute_half_norms(self.points, setup.setup.form, threads, &half_norms[0])


cdef class Setup:
    """A kernel and the one form its values take in a run (see csrc/simd/kernel.h)."""

    cdef KernelSetup setup

    def __init__(self, int type, double gamma, double coef0, int degree, Points points, form=None,
                 cbool is_flat=False):
        cdef CKernel kernel
        kernel.type = <KernelType>type
        kernel.gamma = gamma
        kernel.coef0 = coef0
        kernel.degree = degree
        cdef cbool is_precomputed = kernel.type == KernelType.precomputed
        if not is_precomputed and not points.points.is_dense() and points.points.indptr == NULL:
            raise ValueError("rows without features are for a precomputed kernel")
        self.setup = choose_setup(points.points, kernel)
        self.setup.is_flat = is_flat and kernel.type == KernelType.rbf
        if form is not None:
            self.setup.form = <Form><int>form
            self.setup.exact_products = False
        if (self.setup.form == Form.precomputed) != is_precomputed:
            raise ValueError("the precomputed form is for the precomputed kernel, and its only one")
        if is_precomputed:
            return
        if self.setup.form != Form.bytes and (
                (self.setup.form == Form.sparse) == points.points.is_dense()):
            raise ValueError("the sparse form is for CSR rows, the others for dense ones")
        if self.setup.form == Form.bytes and points.points.bytes == NULL:
            raise ValueError("the form bytes is for rows encoded as bytes")
        if self.setup.form == Form.difference and self.setup.kernel.type != KernelType.rbf:
            raise ValueError("the difference form is for the RBF kernel")

    @property
    def form(self):
        return ("difference", "product", "sparse", "bytes", "precomputed")[<int>self.setup.form]


cdef cbool has_csr(Points points):
    return points.points.indptr != NULL


cdef cbool is_dense(Points points):
    return points.points.is_dense()


cdef cbool holds_values(Points a, Points b):
    return a.points.dense != NULL and b.points.columns != NULL


def check_sides(Setup setup, Points a, Points b, int threads):
    check_threads(threads)
    cdef cbool is_precomputed = setup.setup.form == Form.precomputed
    if is_precomputed and not (holds_values(a, b) or holds_values(b, a)):
        raise ValueError("neither side has the kernel values with the other")
    for points in () if is_precomputed else (a, b):
        if setup.setup.form == Form.bytes:
            if (<Points>points).points.bytes == NULL:
                raise ValueError("rows are not encoded as bytes")
        elif not (has_csr(points) if setup.setup.form == Form.sparse else is_dense(points)):
            raise ValueError(f"rows do not have the form {setup.form}")
    if a.coding is not b.coding:
        raise ValueError("coded rows meet only rows of the same codes")
    if a.points.n_features != b.points.n_features:
        raise ValueError(f"rows have {a.points.n_features} and {b.points.n_features} features")


cdef RowList row_list(Points points, const int32_t[::1] index) except *:
    cdef RowList rows
    rows.points = &points.points
    rows.index = NULL
    rows.size = points.points.n_samples
    if index is not None:
        rows.size = index.shape[0]
        rows.index = &index[0] if rows.size else NULL
        check_range(np.asarray(index), points.points.n_samples, "row")
    return rows


cdef CReach as_reach(reach) except *:
    cdef CReach result
    if reach is not None:
        result.squared_distance = reach.squared_distance
        result.value = reach.value
    return result


def kernel_product(Setup setup, Points targets, target_rows, Points sources, source_rows, weights,
                   cbool double_tiles, int threads, reach=None, Stop stop=None):
    """K(targets, sources) W in float64, (n_targets, n_columns).

    `weights` is a vector (one column) or a tuple (indptr, columns, values, n_columns): W in CSR
    form, one row per source. `double_tiles` evaluates the kernel in float64 instead of float32.
    Kernel values of rows out of `reach` (None: there are none) may be left out, which changes no
    entry by more than reach.value times the sum of its column's |weights|. Raises Stopped.
    """
    check_sides(setup, targets, sources, threads)
    cdef RowList a = row_list(targets, target_rows), b = row_list(sources, source_rows)
    cdef SourceWeights w
    cdef const int64_t[::1] indptr
    cdef const int32_t[::1] columns
    cdef const double[::1] values
    w.n_columns = 1
    w.indptr = NULL
    w.columns = NULL
    if isinstance(weights, tuple):
        indptr, columns, values, w.n_columns = weights
        if indptr.shape[0] != <Py_ssize_t>b.size + 1 or columns.shape[0] != values.shape[0]:
            raise ValueError("weights do not have one row per source")
        check_indptr(weights[0], values.shape[0], "weights")
        check_range(weights[1], weights[3], "column")
        w.indptr = &indptr[0]
        w.columns = &columns[0] if columns.shape[0] else NULL
    else:
        values = weights
        if values.shape[0] != <Py_ssize_t>b.size:
            raise ValueError("weights do not have one entry per source")
    w.values = &values[0] if values.shape[0] else NULL
    result = np.zeros((a.size, w.n_columns))
    cdef double[:, ::1] out = result
    if a.size == 0 or b.size == 0:
        return result
    cdef Precision precision = Precision.double_tiles if double_tiles else Precision.single_tiles
    cdef CReach limit = as_reach(reach)
    cdef const CStop* c_stop = NULL
    if stop is not None:
        c_stop = &stop.stop
    cdef ProductCount count
    with nogil:
        count = c_kernel_product(setup.setup, a, b, w, precision, limit, threads, &out[0, 0],
                                 c_stop)
    if not count.complete:
        raise Stopped
    return result


def kernel_matrix(Setup setup, Points targets, target_rows, Points sources, source_rows, int threads):
    """K(targets, sources) as float32, (n_targets, n_sources)."""
    check_sides(setup, targets, sources, threads)
    cdef RowList a = row_list(targets, target_rows), b = row_list(sources, source_rows)
    result = np.empty((a.size, b.size), dtype=np.float32)
    cdef float[:, ::1] out = result
    if a.size == 0 or b.size == 0:
        return result
    with nogil:
        c_kernel_matrix(setup.setup, a, b, threads, &out[0, 0])
    return result


def suit_bytes(size_t n_features):
    """Whether tiles of bytes are of use for that many features, where a machine has them."""
    return c_suit_bytes(n_features)


def reorder_rows(uint8_t[:, ::1] rows, const int32_t[::1] order):
    """Make row order[i] row i, for all i, in place; `rows` are the bytes of any values, and `order`
    names every row once."""
    n_rows, n_bytes = rows.shape[0], rows.shape[1]
    check_range(np.asarray(order), n_rows, "row")
    if len(order) != n_rows or np.any(np.bincount(order, minlength=n_rows) != 1):
        raise ValueError("an order of rows names every row once")
    if n_rows == 0 or n_bytes == 0:
        return
    with nogil:
        c_reorder_rows(&rows[0, 0], rows.shape[1], &order[0], rows.shape[0])


cdef class Nodes:
    """Sampled rows of the nodes of one level of a tree of clusters (csrc/kernel/kernel_kmeans.h):
    those of node p are rows[start[p]] to before rows[start[p + 1]]. Keeps the arrays alive."""

    cdef NodeSamples nodes
    cdef readonly Points points
    cdef readonly object rows, start

    def __init__(self, Points points, const int32_t[::1] rows, const int64_t[::1] start):
        check_indptr(np.asarray(start), rows.shape[0], "nodes")
        self.points = points
        self.rows, self.start = np.asarray(rows), np.asarray(start)
        self.nodes.rows = row_list(points, self.rows)
        self.nodes.start = &start[0]
        self.nodes.n_nodes = start.shape[0] - 1


def kernel_kmeans(Setup setup, Nodes nodes, const int32_t[::1] n_parts, uint64_t seed, int threads):
    """Divide the rows of each node into at most n_parts[node] parts, none empty; the part of each
    row, int32, from 0 in its node."""
    check_threads(threads)
    if n_parts.shape[0] != <Py_ssize_t>nodes.nodes.n_nodes or np.any(np.asarray(n_parts) < 1):
        raise ValueError("there is not a number of parts for each node")
    parts = np.zeros(nodes.nodes.rows.size, np.int32)
    cdef int32_t[::1] out = parts
    if len(parts):
        with nogil:
            c_kernel_kmeans(setup.setup, nodes.nodes, &n_parts[0], seed, threads, &out[0])
    return parts


def mean_products(Setup setup, Nodes nodes, const int32_t[::1] part, const int64_t[::1] first_child,
                  int threads):
    """Inner products of the means of the parts of each node, float64: an n x n block for each node
    of n parts, 0 where it has no rows. `part` is as kernel_kmeans() gives it."""
    check_threads(threads)
    block_start = check_parts(nodes, part, first_child)
    products = np.zeros(block_start[-1])
    cdef double[::1] out = products
    cdef const int64_t[::1] begin = block_start
    if nodes.nodes.rows.size:
        with nogil:
            c_mean_products(setup.setup, nodes.nodes, &part[0], &begin[0], threads, &out[0])
    return products


cdef check_parts(Nodes nodes, const int32_t[::1] part, const int64_t[::1] first_child):
    """Where the block of each node begins, int64; raises ValueError for parts that are not those of
    the nodes."""
    if (part.shape[0] != <Py_ssize_t>nodes.nodes.rows.size
            or first_child.shape[0] != <Py_ssize_t>nodes.nodes.n_nodes + 1):
        raise ValueError("the parts do not fit the nodes")
    n_parts = np.diff(first_child)
    sizes = np.diff(nodes.start)
    node = np.repeat(np.arange(len(n_parts)), sizes)
    if np.any(n_parts < 1) or np.any((n_parts > 1) != (sizes > 0)):
        raise ValueError("a node has sampled rows where it has parts")
    numbers = np.asarray(part)
    if np.any(numbers < 0) or np.any(numbers >= n_parts[node]):
        raise ValueError("a part is out of range")
    used = np.zeros(np.asarray(first_child)[-1], bool)
    used[np.asarray(first_child)[node] + numbers] = True
    if not np.all(used | np.repeat(n_parts == 1, n_parts)):
        raise ValueError("a part has no rows")
    return np.concatenate(([0], np.cumsum(n_parts**2))).astype(np.int64)


def route(Setup setup, Points targets, target_rows, const int32_t[::1] node, fork, int threads,
          Stop stop=None):
    """Rows one level down a tree of clusters. `node` int32 is where each target is, or -1; `fork`
    has `nodes`, and `part`, `first_child` and `products` as mean_products() takes and gives them.

    Returns (the nearest child, the one across the nearest border, the distance to that): int32,
    int32, float64; -1 and infinity where there is none. Raises Stopped.
    """
    cdef Nodes nodes = fork.nodes
    check_sides(setup, targets, nodes.points, threads)
    cdef RowList rows = row_list(targets, target_rows)
    cdef Fork limits
    cdef Places places
    cdef const int32_t[::1] part = fork.part
    cdef const int64_t[::1] first_child = fork.first_child
    cdef const double[::1] products = fork.products
    block_start = check_parts(nodes, part, first_child)
    cdef const int64_t[::1] begin = block_start
    if node.shape[0] != <Py_ssize_t>rows.size or products.shape[0] != block_start[-1]:
        raise ValueError("there is not one node for each target, or one product for each pair")
    check_range(np.asarray(node) + 1, nodes.nodes.n_nodes + 1, "node")
    nearest, second = np.empty((2, rows.size), np.int32)
    distance = np.empty(rows.size)
    if rows.size == 0:
        return nearest, second, distance
    cdef int32_t[::1] out_nearest = nearest, out_second = second
    cdef double[::1] out_distance = distance
    limits.samples = nodes.nodes
    limits.part = &part[0] if part.shape[0] else NULL
    limits.first_child = &first_child[0]
    limits.block_start = &begin[0]
    limits.products = &products[0]
    places.nearest = &out_nearest[0]
    places.second = &out_second[0]
    places.distance = &out_distance[0]
    cdef const CStop* c_stop = NULL
    if stop is not None:
        c_stop = &stop.stop
    cdef cbool complete
    with nogil:
        complete = c_route(setup.setup, rows, &node[0], limits, threads, places, c_stop)
    if not complete:
        raise Stopped
    return nearest, second, distance


def find_groups(Points points, double squared_distance, size_t smallest_group, int threads,
                size_t memory_bytes=NO_LIMIT):
    """(order, start): rows int32 group by group, and where each group starts, int64, with the end.

    |x - z|^2 >= squared_distance for dense rows of different groups; groups of fewer than
    smallest_group rows are put together. The search takes at most `memory_bytes` besides.
    """
    cdef Groups groups
    cdef size_t k
    if not points.points.is_dense() or points.points.n_codes > 0 or points.points.n_samples == 0:
        raise ValueError("groups are found in dense rows as they are")
    with nogil:
        groups = c_find_groups(points.points, squared_distance, smallest_group, memory_bytes,
                               threads)
    order = np.empty(groups.order.size(), np.int32)
    cdef int32_t[::1] out = order
    for k in range(groups.order.size()):
        out[k] = groups.order[k]
    return order, np.array(groups.start, dtype=np.int64)


def neighbour_order(Points points, int threads):
    """All dense rows, int32 (n,), such that rows that follow each other are near."""
    cdef vector[int32_t] found
    if not points.points.is_dense() or points.points.n_codes > 0 or points.points.n_samples == 0:
        raise ValueError("rows are ordered as they are, dense")
    with nogil:
        found = c_neighbour_order(points.points, threads)
    cdef int32_t[::1] order = np.empty(found.size(), np.int32)
    for k in range(found.size()):
        order[k] = found[k]
    return np.asarray(order)


def share_apart(Points points, const int32_t[::1] order, double squared_distance, size_t n_tried,
                int threads):
    """Part of the pairs of n_tried rows and blocks of rows, both in an order, that are provably at
    least that far from each other."""
    cdef RowList rows = row_list(points, order)
    cdef double share
    if not points.points.is_dense() or rows.size == 0 or n_tried == 0:
        raise ValueError("distances are bounded for dense rows")
    with nogil:
        share = c_share_apart(rows, squared_distance, n_tried, threads)
    return share


cdef BoxQp box_qp(problem) except *:
    cdef const double[::1] linear = problem.linear, lower = problem.lower, upper = problem.upper
    cdef const int8_t[::1] sum_of = problem.sum_of
    cdef const int32_t[::1] row = problem.row
    cdef int n_sums = problem.n_sums
    cdef BoxQp qp
    qp.size = linear.shape[0]
    if lower.shape[0] != linear.shape[0] or upper.shape[0] != linear.shape[0]:
        raise ValueError("bounds do not have one entry per variable")
    qp.linear = &linear[0] if qp.size else NULL
    qp.lower = &lower[0] if qp.size else NULL
    qp.upper = &upper[0] if qp.size else NULL
    qp.sum_of = NULL
    qp.n_sums = n_sums
    qp.unit = problem.unit
    qp.divides_by_margin = problem.divides_by_margin
    if qp.divides_by_margin and n_sums != 2:
        raise ValueError(f"a margin is that of 2 sums, not of {n_sums}")
    qp.row = NULL
    if sum_of is not None:
        if sum_of.shape[0] != linear.shape[0]:
            raise ValueError("sums do not have one entry per variable")
        if qp.size and not -1 <= np.min(sum_of) <= np.max(sum_of) < n_sums:
            raise ValueError(f"sums are not all between -1 and {n_sums - 1}")
        qp.sum_of = &sum_of[0] if qp.size else NULL
    if row is not None:
        if row.shape[0] != linear.shape[0]:
            raise ValueError("row numbers do not have one entry per variable")
        qp.row = &row[0] if qp.size else NULL
    return qp


def optimality(problem, const double[::1] alpha, const double[::1] gradient):
    """(objective, violation, gap, multipliers, unit) of a feasible alpha with its gradient; the
    violation is in the unit."""
    cdef BoxQp qp = box_qp(problem)
    if alpha.shape[0] != <Py_ssize_t>qp.size or gradient.shape[0] != <Py_ssize_t>qp.size:
        raise ValueError("alpha and gradient do not have one entry per variable")
    if qp.size == 0:
        return 0.0, 0.0, 0.0, [], problem.unit
    cdef Optimality result = c_optimality(qp, &alpha[0], &gradient[0])
    return (result.objective, result.violation / result.unit, result.gap,
            list(result.multipliers), result.unit)


cdef check_clusters(problem, Points points, start, members):
    """Raise ValueError for clusters of variables that are not of the problem, or one of other
    rows."""
    cdef size_t size = len(problem.linear)
    if problem.row is not None:
        check_range(problem.row, points.points.n_samples, "row")
    elif size > points.points.n_samples:
        raise ValueError(f"{size} variables do not fit {points.points.n_samples} rows")
    check_indptr(np.asarray(start), len(members), "cluster starts")
    check_range(np.asarray(members), size, "variable")


def solve_clusters(Setup setup, Points points, problem, const int64_t[::1] start,
                   const int32_t[::1] members, iterate, double tolerance, int64_t max_iterations,
                   size_t memory_bytes, int threads, progress, reach=None,
                   double gradient_error=0.0, Stop stop=None, double attainable=0.0):
    """Solve the box QP of every cluster in place; return one report (a dict) per cluster.

    `tolerance` is in the unit of the problem, and no violation below `attainable`, which is in none,
    is asked for. Cluster c has the variables members[start[c]:start[c + 1]]. The alpha of `iterate`
    must be feasible; its gradients are those inside the clusters. Where something is known of all of a
    cluster on entry it is used, with up to `gradient_error` left out of it. Kernel values of rows
    out of `reach` may be left out; `neglected` of a report bounds what that does to a gradient.
    `progress` is None or an object with attributes `error` and `stop`, called with (clusters done,
    variables done, violation, active variables, outer steps) while the iterate is valid; where it
    returns true the clusters bring the iterate up to date. `memory_bytes` are for the caches,
    matrices, arrays and copies of rows of all threads together; what a cluster needs at least, see
    matrix_bytes() and array_bytes(), it takes anyway.
    """
    cdef BoxQp qp = box_qp(problem)
    cdef Clusters clusters
    cdef ClusterOptions options
    cdef vector[SolveReport] reports
    cdef Iterate arrays
    cdef double[::1] alpha = iterate.alpha, gradient = iterate.gradient, base = iterate.base
    cdef uint8_t[::1] known = iterate.known
    if base.shape[0] != <Py_ssize_t>qp.size or known.shape[0] != <Py_ssize_t>qp.size:
        raise ValueError("base and known do not have one entry per variable")
    if alpha.shape[0] != <Py_ssize_t>qp.size or gradient.shape[0] != <Py_ssize_t>qp.size:
        raise ValueError("alpha and gradient do not have one entry per variable")
    check_sides(setup, points, points, threads)
    check_clusters(problem, points, start, members)
    if members.shape[0] == 0:
        return []
    clusters.n_clusters = start.shape[0] - 1
    clusters.start = &start[0]
    clusters.members = &members[0]
    options.solve.tolerance = tolerance
    options.solve.attainable = attainable
    options.solve.max_iterations = max_iterations
    options.memory_bytes = memory_bytes
    options.solve.n_threads = threads
    arrays.alpha = &alpha[0]
    arrays.gradient = &gradient[0]
    arrays.base = &base[0]
    arrays.known = <Known*>&known[0]
    if stop is not None:
        options.solve.stop = &stop.stop
    options.solve.gradient_error = gradient_error
    options.solve.reach = as_reach(reach)
    if progress is not None:
        set_progress(options, call_progress, <void*>progress)
    with nogil:
        reports = c_solve_clusters(setup.setup, points.points, qp, clusters, arrays, options)
    if progress is not None and progress.error is not None:
        raise progress.error
    return [reports[i] for i in range(reports.size())]


def squared_spans(Setup setup, Points points, problem, const int64_t[::1] start,
                  const int32_t[::1] members, const double[::1] alpha,
                  const uint8_t[::1] wanted, size_t n_exact, int threads):
    """What |alpha| of each support vector among the members of clusters, which are as in
    solve_clusters(), is multiplied with to tell how much lower its decision value is without it:
    float64 (n_variables,), 0 for those that are not `wanted` and for others. Those of clusters
    with more than `n_exact` free ones are upper bounds."""
    cdef BoxQp qp = box_qp(problem)
    cdef Clusters clusters
    if alpha.shape[0] != <Py_ssize_t>qp.size or wanted.shape[0] != <Py_ssize_t>qp.size:
        raise ValueError("alpha and wanted do not have one entry per variable")
    check_sides(setup, points, points, threads)
    check_clusters(problem, points, start, members)
    spans = np.zeros(qp.size)
    if members.shape[0] == 0:
        return spans
    cdef double[::1] out = spans
    clusters.n_clusters = start.shape[0] - 1
    clusters.start = &start[0]
    clusters.members = &members[0]
    with nogil:
        c_squared_spans(setup.setup, points.points, qp, clusters, &alpha[0], &wanted[0], n_exact,
                        threads, &out[0])
    return spans


def held_out_values(Setup setup, Points points, problem, held, scales, double tolerance,
                    cbool is_classification, cbool decides, size_t memory_bytes, int threads,
                    Stop stop=None):
    """Decision values of rows by solutions that have not seen them, float64 (n_scales, n_entries,
    n_columns), and a report (a dict) for each scale.

    `held` has `members` int32 and `start` int64 (n_clusters * n_columns + 1,), the variables of
    each column of each cluster; `left` float64 (n_folds, n_samples), the weight of every row in
    what a fold learns from; and `rows` int32 and `rows_start` int64 (n_clusters * n_folds + 1,),
    the entries, rows that a fold holds out of a cluster. Bounds are those of `problem` times the
    weight and each of the `scales`, which ascend. Values are nan where there is nothing to learn
    from. A cluster with one class, or no support vector, `decides` for what most of its rows are.
    Kernel matrices of clusters may take `memory_bytes`. Raises Stopped.
    """
    cdef BoxQp qp = box_qp(problem)
    cdef HeldOut c_held
    cdef HeldOutOptions options
    cdef vector[HeldOutReport] reports
    cdef const int64_t[::1] start = held.start, rows_start = held.rows_start
    cdef const int32_t[::1] members = held.members, rows = held.rows
    cdef const double[:, ::1] left = held.left
    check_sides(setup, points, points, threads)
    check_clusters(problem, points, held.start, held.members)
    check_indptr(held.rows_start, len(held.rows), "entries")
    check_range(held.rows, points.points.n_samples, "row")
    c_held.n_folds = left.shape[0]
    if left.shape[1] != <Py_ssize_t>points.points.n_samples or c_held.n_folds == 0:
        raise ValueError("there is not one weight for each row")
    c_held.n_clusters = (rows_start.shape[0] - 1) // c_held.n_folds
    c_held.n_columns = (start.shape[0] - 1) // max(c_held.n_clusters, 1)
    if (c_held.n_clusters * c_held.n_folds + 1 != <size_t>rows_start.shape[0]
            or c_held.n_clusters * c_held.n_columns + 1 != <size_t>start.shape[0]):
        raise ValueError("clusters, folds and columns do not fit")
    if np.any(np.diff(scales) <= 0) or np.any(np.asarray(scales) <= 0):
        raise ValueError("the scales do not ascend from 0")
    values = np.full((len(scales), len(held.rows), c_held.n_columns), np.nan)
    cdef double[:, :, ::1] out = values
    if values.size == 0:
        return values, [{"missed": 0, "support": 0, "iterations": 0} for _ in scales]
    c_held.parts.n_clusters = start.shape[0] - 1
    c_held.parts.start = &start[0]
    c_held.parts.members = &members[0] if members.shape[0] else NULL
    c_held.left = &left[0, 0]
    c_held.start = &rows_start[0]
    c_held.rows = &rows[0]
    options.scales = scales
    options.is_classification = is_classification
    options.decides = decides
    options.tolerance = tolerance
    options.memory_bytes = memory_bytes
    options.n_threads = threads
    if stop is not None:
        options.stop = &stop.stop
    with nogil:
        reports = c_held_out_values(setup.setup, points.points, qp, c_held, options, &out[0, 0, 0])
    if reports.empty():
        raise Stopped
    return values, [reports[i] for i in range(reports.size())]


def value_cost(Setup setup, Points points):
    """Nanoseconds that a kernel value takes, by a fixed cost model."""
    return c_tile_cost(setup.setup, points.points)


def matrix_bytes(size_t n_variables):
    """What the matrices of a solver take for a problem of that many variables."""
    return c_matrix_bytes(n_variables)


def array_bytes(size_t n_variables):
    """What the arrays of a solver take for a problem of that many variables, at most."""
    return c_array_bytes(n_variables)


def has_expensive_rows(Setup setup, Points points):
    """Whether computing a kernel row costs many times reading it, by a fixed cost model."""
    return c_has_expensive_rows(setup.setup, points.points)


def simulate_cores(cbool on):
    """From now on, or no longer, run loops as if there were as many cores as they may have threads:
    one thread does them, and what the others would save is counted. For one thread at a time."""
    simulated_cores().turn(on)


def seconds_saved():
    """What simulated cores have saved so far; the wall's seconds less these are theirs."""
    return simulated_cores().seconds_saved()


def usable_threads(int threads):
    """The number of threads a call with this many uses: 1 without OpenMP."""
    return threads if has_openmp else 1


def instruction_set():
    """Name of the instruction set the kernel tiles run on."""
    return isa().name.decode()
