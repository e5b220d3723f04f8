# Part of _core.pyx. Kernel products, clusters of rows, components, and spatial order.

cdef class Weights:
    """Weights of all sources: one column, or a CSR matrix. Keeps references to the arrays."""

    cdef SourceWeights weights
    cdef object arrays

    def __init__(self, weights, size_t n_sources):
        cdef const int64_t[::1] indptr
        cdef const int32_t[::1] columns
        cdef const double[::1] values
        self.weights.n_columns = 1
        if isinstance(weights, tuple):
            indptr, columns, values, self.weights.n_columns = weights
            if <size_t>indptr.shape[0] != n_sources + 1 or columns.shape[0] != values.shape[0]:
                raise ValueError("weights do not have one row per source")
            check_indptr(weights[0], values.shape[0], "weights")
            check_range(weights[1], weights[3], "column")
            self.weights.indptr, self.weights.columns = &indptr[0], &columns[0]
        else:
            values = weights
            if <size_t>values.shape[0] != n_sources:
                raise ValueError("weights do not have one entry per source")
        self.weights.values = &values[0]
        self.arrays = weights


cdef Precision precision_of(cbool double_tiles) noexcept nogil:
    return Precision.double_tiles if double_tiles else Precision.single_tiles


def kernel_product(Setup setup, Points targets, target_rows, Points sources, source_rows, weights,
                   cbool double_tiles, int threads, cutoff=None, Stop stop=None):
    """Return the kernel product K(targets, sources) W, float64 (n_targets, n_columns).

    `weights` is a vector (one column) or a tuple (indptr, columns, values, n_columns): W in CSR
    form, one row per source. `double_tiles` evaluates the kernel in float64 instead of float32.
    Kernel values beyond the `cutoff` (None: no cutoff) may be omitted; the truncation error
    is at most cutoff.value times the sum of |weights| of the column. Raises Stopped.
    """
    check_sides(setup, targets, sources, threads)
    cdef RowList a = row_list(targets, target_rows), b = row_list(sources, source_rows)
    cdef Weights w = Weights(weights, b.size)
    result = np.zeros((a.size, w.weights.n_columns))
    cdef double[:, ::1] out = result
    if a.size == 0 or b.size == 0:
        return result
    cdef CCutoff limit = as_cutoff(cutoff)
    cdef const CStop* c_stop = stop_of(stop)
    cdef ProductCount count
    with nogil:
        count = c_kernel_product(setup.setup, a, b, w.weights, precision_of(double_tiles), limit,
                                 threads, &out[0, 0], c_stop)
    if not count.complete:
        raise Stopped
    return result


def cluster_product(Setup setup, Points targets, const int32_t[::1] target_rows,
                    const int64_t[::1] target_start, Points sources,
                    const int32_t[::1] source_rows, const int64_t[::1] source_begin,
                    const int64_t[::1] source_end, weights, cbool double_tiles, int threads,
                    cutoff=None, Stop stop=None):
    """Return the kernel product within each cluster, as kernel_product().

    Cluster c has the targets target_start[c] to before target_start[c + 1] and the sources
    source_begin[c] to before source_end[c]: positions in the lists of rows. The weights are of all
    sources. Raises Stopped.
    """
    check_sides(setup, targets, sources, threads)
    cdef RowList a = row_list(targets, target_rows), b = row_list(sources, source_rows)
    cdef Weights w = Weights(weights, b.size)
    n_clusters = len(source_begin)
    check_indptr(target_start, a.size, "clusters")
    if len(target_start) != n_clusters + 1 or len(source_end) != n_clusters:
        raise ValueError("clusters have targets and sources")
    check_range(source_begin, b.size + 1, "source")
    check_range(source_end, b.size + 1, "source")
    if np.any(np.asarray(source_begin) > np.asarray(source_end)):
        raise ValueError("sources of a cluster end before they begin")
    result = np.zeros((a.size, w.weights.n_columns))
    cdef double[:, ::1] out = result
    if a.size == 0 or b.size == 0:
        return result
    cdef ClusterRanges ranges
    ranges.target_start = &target_start[0]
    ranges.source_begin = &source_begin[0]
    ranges.source_end = &source_end[0]
    ranges.n_clusters = n_clusters
    cdef CCutoff limit = as_cutoff(cutoff)
    cdef const CStop* c_stop = stop_of(stop)
    cdef ProductCount count
    with nogil:
        count = c_cluster_product(setup.setup, a, b, w.weights, ranges, precision_of(double_tiles),
                                  limit, threads, &out[0, 0], c_stop)
    if not count.complete:
        raise Stopped
    return result


def kernel_matrix(Setup setup, Points targets, target_rows, Points sources, source_rows, int threads):
    """Return K(targets, sources), float32 (n_targets, n_sources)."""
    check_sides(setup, targets, sources, threads)
    cdef RowList a = row_list(targets, target_rows), b = row_list(sources, source_rows)
    result = np.empty((a.size, b.size), dtype=np.float32)
    cdef float[:, ::1] out = result
    if a.size == 0 or b.size == 0:
        return result
    with nogil:
        c_kernel_matrix(setup.setup, a, b, threads, &out[0, 0])
    return result


def sparse_sums(const double[:, ::1] matrix, weights, const int32_t[::1] rows,
                const int32_t[::1] groups, int threads):
    """Return the inner products of matrix[rows[k]] and the weights of groups[k], float64 (n,).

    `weights` are a matrix in CSR form, as in kernel_product(), with a row for each group and the
    columns of `matrix`.
    """
    check_threads(threads)
    cdef size_t n_groups = weights[0].shape[0] - 1, n = rows.shape[0]
    cdef Weights w = Weights(weights, n_groups)
    check_range(np.asarray(rows), matrix.shape[0], "row")
    check_range(np.asarray(groups), n_groups, "group")
    if w.weights.n_columns != <size_t>matrix.shape[1] or <size_t>groups.shape[0] != n:
        raise ValueError("weights, rows and groups do not fit the matrix")
    sums = np.zeros(n)
    cdef double[::1] out = sums
    if n > 0 and matrix.shape[1] > 0:
        with nogil:
            c_sparse_sums(&matrix[0, 0], w.weights, &rows[0], &groups[0], n, threads, &out[0])
    return sums


def sign_sums(const float[:, ::1] rows, const float[:, ::1] others, const float[:, ::1] weights):
    """Return weighted sums of the signs of rows (n, d) less others (m, d), float32 (m, d).

    Entry (j, k) is the sum over i of weights[i, j] times the sign of rows[i, k] - others[j, k]; the
    sign of 0 is 0. `weights` are (n, m).
    """
    n, m, d = rows.shape[0], others.shape[0], rows.shape[1]
    if others.shape[1] != d or weights.shape[0] != n or weights.shape[1] != m:
        raise ValueError("rows, others and weights do not have shapes (n, d), (m, d) and (n, m)")
    sums = np.zeros((m, d), np.float32)
    cdef float[:, ::1] out = sums
    if sums.size > 0 and rows.shape[0] > 0:
        with nogil:
            c_sign_sums(&rows[0, 0], rows.shape[0], &others[0, 0], others.shape[0], rows.shape[1],
                        &weights[0, 0], &out[0, 0])
    return sums


def may_step(size_t n_features, double origin, double step):
    """Return whether rows of bytes can be combined with rows of integers origin + step * k.

    k is a byte, from 0 to 255.
    """
    return c_suit_bytes(n_features) and c_may_step(n_features, origin, step)


def suit_bytes(size_t n_features):
    """Return whether tiles of bytes are faster for n_features, if the machine has them."""
    return c_suit_bytes(n_features)


def is_from_products(argument):
    """Return whether a kernel argument, given by name, is computed from inner products of rows."""
    return c_is_from_products(argument_of(argument))


def may_be_bytes(size_t n_features, argument):
    """Return whether this machine has tiles of bytes, and they are faster for n_features.

    `argument` is the name of the kernel's.
    """
    return c_may_be_bytes(n_features, argument_of(argument))


def hash_rows(const uint32_t[:, :] words, const uint64_t[::1] factors, int threads):
    """Return 64-bit hashes, uint64 (n,), of rows of words (n, d), contiguous, with odd factors (d,)."""
    check_threads(threads)
    cdef size_t n = words.shape[0], n_words = words.shape[1]
    hashes = np.zeros(n, np.uint64)
    cdef uint64_t[::1] out = hashes
    if <size_t>factors.shape[0] != n_words or (n_words > 1 and words.strides[1] != sizeof(uint32_t)):
        raise ValueError("rows of words are not contiguous, or there is not one factor for each word")
    if n > 0 and n_words > 0:
        with nogil:
            c_hash_rows(&words[0, 0], n, words.strides[0] // sizeof(uint32_t), &factors[0], n_words,
                        threads, &out[0])
    return hashes


def are_equal_rows(const uint8_t[:, ::1] rows, const int32_t[::1] first, const int32_t[::1] second,
                   int threads):
    """Return whether rows first[i] and second[i] are equal for all i, given the bytes of all rows."""
    cdef size_t n = len(first)
    cdef cbool are_equal
    check_threads(threads)
    check_range(np.asarray(first), rows.shape[0], "row")
    check_range(np.asarray(second), rows.shape[0], "row")
    if len(second) != n:
        raise ValueError("there is not one second row for each first one")
    if n == 0 or rows.shape[1] == 0:
        return True
    with nogil:
        are_equal = c_are_equal_rows(&rows[0, 0], rows.shape[1], &first[0], &second[0], n, threads)
    return are_equal


def first_equal(const uint64_t[::1] keys, int threads):
    """Return the index of the first of the keys that are equal to each key, int32 (n,).

    Keys are 64-bit hashes, uint64 (n,).
    """
    check_threads(threads)
    first = np.empty(keys.shape[0], np.int32)
    cdef int32_t[::1] out = first
    if keys.shape[0] > 0:
        with nogil:
            find_first_equal(&keys[0], keys.shape[0], threads, &out[0])
    return first


def reorder_rows(uint8_t[:, ::1] rows, const int32_t[::1] order, int threads):
    """Reorder rows in place: row order[i] becomes row i; `order` is a permutation.

    `rows` are the bytes of values of any type.
    """
    check_threads(threads)
    n_rows, n_bytes = rows.shape[0], rows.shape[1]
    check_range(np.asarray(order), n_rows, "row")
    if len(order) != n_rows:
        raise ValueError("an order of rows names every row once")
    if n_rows == 0 or n_bytes == 0:
        return
    with nogil:
        c_reorder_rows(&rows[0, 0], rows.shape[1], &order[0], rows.shape[0], threads)


cdef class Nodes:
    """Sampled rows of the nodes of one level of a tree of clusters (csrc/kernel/kernel_kmeans.h).

    Node p has rows[start[p]] to before rows[start[p + 1]]. Keeps references to the arrays.
    """

    cdef NodeSamples nodes
    cdef readonly Points points
    cdef readonly object rows, start

    def __init__(self, Points points, const int32_t[::1] rows, const int64_t[::1] start):
        check_indptr(start, rows.shape[0], "nodes")
        self.points = points
        self.rows, self.start = np.asarray(rows), np.asarray(start)
        self.nodes.rows = row_list(points, self.rows)
        self.nodes.start, self.nodes.n_nodes = &start[0], start.shape[0] - 1


def kernel_kmeans(Setup setup, Nodes nodes, const int32_t[::1] n_parts, uint64_t seed, int threads):
    """Split the rows of each node into at most n_parts[node] nonempty children.

    Returns the child of each row, int32, from 0 within its node.
    """
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
    """Return inner products of the centers of the children of each node, float64.

    A node with n children has an n x n block; without sampled rows the block is zero. `part` is as
    returned by kernel_kmeans().
    """
    check_threads(threads)
    block_start = check_parts(nodes, part, first_child)
    products = np.zeros(block_start[len(block_start) - 1])
    cdef double[::1] out = products
    cdef const int64_t[::1] begin = block_start
    if nodes.nodes.rows.size:
        with nogil:
            c_mean_products(setup.setup, nodes.nodes, &part[0], &begin[0], threads, &out[0])
    return products


cdef check_parts(Nodes nodes, const int32_t[::1] part, const int64_t[::1] first_child):
    """Return the start of each node's block of products, int64; check the arrays."""
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
    used = np.zeros(first_child[first_child.shape[0] - 1], bool)
    used[np.asarray(first_child)[node] + numbers] = True
    if not np.all(used | np.repeat(n_parts == 1, n_parts)):
        raise ValueError("a part has no rows")
    return np.concatenate(([0], np.cumsum(n_parts**2))).astype(np.int64)


cdef class FoundSplit:
    """Node split of a level, checked once for all calls of route().

    `part` and `first_child` are as in mean_products(), which returns `products`. Keeps references
    to the arrays.
    """

    cdef NodeSplit split
    cdef readonly Nodes nodes
    cdef object arrays

    def __init__(self, Nodes nodes, const int64_t[::1] first_child, const int32_t[::1] part,
                 const double[::1] products):
        block_start = check_parts(nodes, part, first_child)
        cdef const int64_t[::1] begin = block_start
        if products.shape[0] != block_start[len(block_start) - 1]:
            raise ValueError("there is not one product for each pair of parts")
        self.nodes = nodes
        self.arrays = (np.asarray(first_child), np.asarray(part), np.asarray(products), block_start)
        self.split.samples = nodes.nodes
        self.split.part = &part[0]
        self.split.first_child = &first_child[0]
        self.split.block_start = &begin[0]
        self.split.products = &products[0]


def route(Setup setup, Points targets, target_rows, const int32_t[::1] node, FoundSplit split,
          int threads, Stop stop=None, *, cbool second=True, cbool double_tiles=False):
    """Assign rows to the next level of a tree of clusters.

    `node` int32 is the node of each target, or -1. Returns (nearest child int32, second child
    int32, distance float64). The second child is beyond the nearest cluster boundary; the distance
    is to this boundary. Without a boundary they are -1 and infinity. Both are None unless `second`.
    `double_tiles` evaluates kernels in float64. Raises Stopped.
    """
    cdef Nodes nodes = split.nodes
    check_sides(setup, targets, nodes.points, threads)
    cdef RowList rows = row_list(targets, target_rows)
    cdef AssignmentArrays places
    if node.shape[0] != <Py_ssize_t>rows.size:
        raise ValueError("there is not one node for each target")
    if rows.size > 0 and not -1 <= np.min(node) <= np.max(node) < nodes.nodes.n_nodes:
        raise ValueError(f"a node is outside -1..{nodes.nodes.n_nodes - 1}")
    nearest = np.empty(rows.size, np.int32)
    across = np.empty(rows.size, np.int32) if second else None
    distance = np.empty(rows.size) if second else None
    if rows.size == 0:
        return nearest, across, distance
    cdef int32_t[::1] out_nearest = nearest, out_second = across
    cdef double[::1] out_distance = distance
    places.nearest = &out_nearest[0]
    places.second = &out_second[0] if second else NULL
    places.distance = &out_distance[0] if second else NULL
    cdef const CStop* c_stop = stop_of(stop)
    cdef cbool complete
    with nogil:
        complete = c_route(setup.setup, rows, &node[0], split.split, precision_of(double_tiles),
                           threads, places, c_stop)
    if not complete:
        raise Stopped
    return nearest, across, distance


cdef check_some(Points points, what):
    check_plain(points, what)
    if points.points.n_samples == 0:
        raise ValueError("there are no rows")


cdef as_array(vector[int32_t]& numbers):
    """Return a copy of a nonempty vector."""
    return np.asarray(<int32_t[:numbers.size()]>numbers.data()).copy()


def find_components(Points points, cutoff, size_t min_component, int threads,
                    size_t memory_bytes=NO_LIMIT):
    """Find components of dense rows: rows of different components are beyond the cutoff.

    Components with fewer than min_component rows are merged. The box tree takes at most
    `memory_bytes`. Returns the rows component by component, int32 (n,), and the start of each
    component, int64 (n_components + 1,).
    """
    cdef Components found
    cdef CCutoff c_cutoff = as_cutoff(cutoff)
    check_some(points, "components are those")
    with nogil:
        found = c_find_components(points.points, c_cutoff.distance, min_component, memory_bytes,
                                  threads)
    return as_array(found.order), np.array(found.start, dtype=np.int64)


def neighbour_order(Points points, int threads):
    """Return a spatial order of dense rows, int32 (n,): neighbours are adjacent."""
    cdef vector[int32_t] found
    check_some(points, "an order is that")
    with nogil:
        found = c_neighbour_order(points.points, threads)
    return as_array(found)


def share_apart(Points points, const int32_t[::1] order, cutoff, size_t n_tried, int threads):
    """Return the fraction of sampled pairs (row, block of rows) provably beyond the cutoff.

    Blocks are consecutive rows in `order`; at most n_tried rows are compared with all blocks.
    """
    cdef RowList rows = row_list(points, order)
    cdef CCutoff c_cutoff = as_cutoff(cutoff)
    cdef double share
    if not points.points.is_dense() or rows.size == 0 or n_tried == 0:
        raise ValueError("distances are bounded for dense rows")
    with nogil:
        share = c_share_apart(rows, c_cutoff.distance, n_tried, threads)
    return share


def box_distances(argument, const float[::1] low, const float[::1] high,
                  const float[:, ::1] others_low, const float[:, ::1] others_high):
    """Return lower bounds on the distances from rows of a box to rows of n others, float64 (n,).

    A box has the minima and maxima of the features of its rows. `argument` is the name of the
    distance.
    """
    cdef Argument distance = argument_of(argument)
    cdef size_t i, d = low.shape[0], n = others_low.shape[0]
    if not is_distance(distance):
        raise ValueError("boxes bound distances only")
    if (<size_t>high.shape[0] != d or <size_t>others_low.shape[1] != d
            or <size_t>others_high.shape[1] != d or <size_t>others_high.shape[0] != n):
        raise ValueError("boxes do not have the same features")
    cdef double[::1] found = np.empty(n)
    for i in range(n):
        found[i] = least_distance(distance, d, &low[0], &high[0], &others_low[i, 0], &others_high[i, 0])
    return np.asarray(found)
