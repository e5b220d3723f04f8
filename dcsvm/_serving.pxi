# Part of _core.pyx. Decision values of single rows (csrc/kernel/single_row.h), and votes.

cdef const CodedColumns* codes_of(Points points) noexcept:
    return &points.coding.columns if points.coding is not None else NULL


def packed_bytes(Setup setup, Points points):
    """Return the size in bytes of all points packed as lanes."""
    return packed_row_bytes(setup.setup, points.points) * points.points.n_samples


def check_packed(Setup setup, Points points):
    if setup.setup.form not in (Form.difference, Form.product, Form.bytes):
        raise ValueError("rows are served in the forms difference, product and bytes")
    check_sides(setup, points, points, 1)


cdef class FewRows:
    """Local models of clusters, or one model, packed for decision values of single rows.

    set_tree() adds the tree that assigns rows to clusters. Keeps references to all arguments.
    """

    cdef unique_ptr[PackedSources] sources
    cdef unique_ptr[RoutingTree] tree
    cdef ClusterModels models
    cdef object arrays

    def __init__(self, Setup setup, Points points, weights, const int64_t[::1] start,
                 const double[:, ::1] offsets, cbool double_tiles, double largest_value=float("inf")):
        """Pack the sources `points`; `weights` and `double_tiles` are as in kernel_product().

        The sources of cluster c are start[c] to before start[c + 1]; offsets[c] float64
        (n_columns,) is added to its sums. values() returns None for a row with a
        |feature| above `largest_value`.
        """
        check_packed(setup, points)
        check_indptr(start, points.points.n_samples, "clusters")
        cdef Weights w = Weights(weights, points.points.n_samples)
        if (offsets.shape[0] != start.shape[0] - 1
                or <size_t>offsets.shape[1] != w.weights.n_columns):
            raise ValueError("there is not one offset for each cluster and column")
        self.models.n_columns, self.models.blend = w.weights.n_columns, 0
        self.models.start, self.models.offsets = &start[0], &offsets[0, 0]
        self.models.largest_value = largest_value
        self.sources.reset(
            new PackedSources(setup.setup, points.points, codes_of(points), w.weights,
                              precision_of(double_tiles)))
        self.arrays = [points, w, np.asarray(start), np.asarray(offsets)]

    def set_tree(self, Setup setup, splits, double blend):
        """Set the tree, before the first row: a FoundSplit for each level.

        The sampled rows of all levels are all rows of one Points, in order. `blend` is the distance
        to a cluster boundary below which the models of both clusters are blended. Not thread-safe.
        """
        cdef Points points = splits[0].nodes.points
        cdef vector[NodeSplit] found
        cdef size_t first = 0
        check_packed(setup, points)
        for split in splits:
            rows = split.nodes.rows
            if split.nodes.points is not points or np.any(rows != first + np.arange(len(rows))):
                raise ValueError("the sampled rows of the splits are not all points, in order")
            first += len(rows)
            found.push_back((<FoundSplit>split).split)
        check_indptr([0, first], points.points.n_samples, "sampled rows of the splits")
        self.tree.reset(new RoutingTree(setup.setup, points.points, codes_of(points), found))
        self.models.blend = blend
        self.arrays.append((points, list(splits)))

    def values(self, const float[:, ::1] rows):
        """Return decision values, float64 (n, n_columns), or None.

        They have the same bits as with route() and kernel_product(). None if a row is not finite,
        has too large a feature, or cannot be encoded as codes or bytes.
        """
        cdef size_t n = rows.shape[0], d = rows.shape[1], n_columns = self.models.n_columns
        cdef size_t i = 0
        cdef cbool are_done = True
        result = np.empty((n, n_columns))
        cdef double[:, ::1] out = result
        if n == 0 or d == 0 or n_columns == 0:
            return None
        with nogil:
            while are_done and i < n:
                are_done = c_decision_values(&rows[i, 0], d, self.sources.get()[0], self.models,
                                             self.tree.get(), &out[i, 0])
                i += 1
        return result if are_done else None


def most_voted(const double[:, :] values, size_t n_classes):
    """Return the class with the most one-vs-one votes of each row, int64 (n,).

    `values` are decision values (n, n_pairs); ties go to the first class. Raises ValueError unless
    n_pairs is the number of pairs of classes.
    """
    if <size_t>values.shape[1] != n_classes * (n_classes - 1) // 2:
        raise ValueError("there is not one decision value for each pair of classes")
    result = np.zeros(values.shape[0], np.int64)
    cdef int64_t[::1] found = result
    cdef vector[int64_t] votes
    cdef size_t row, i, j, pair
    cdef double value
    with nogil:
        votes.resize(n_classes)
        for row in range(<size_t>values.shape[0]):
            votes.assign(n_classes, 0)
            pair = 0
            for i in range(n_classes):
                for j in range(i + 1, n_classes):
                    value = values[row, pair]
                    votes[i] += value > 0
                    votes[j] += value <= 0
                    pair += 1
            for i in range(n_classes):
                if votes[i] > votes[found[row]]:
                    found[row] = i
    return result
