# Part of _core.pyx. Solve box QPs: clusters, spans, decision values of held-out rows.

cdef BoxQP box_qp(problem) except *:
    cdef const double[::1] linear = problem.linear, lower = problem.lower, upper = problem.upper
    cdef const int8_t[::1] constraint_of = problem.constraint_of
    cdef const int32_t[::1] row = problem.row
    cdef int n_constraints = problem.n_constraints
    cdef BoxQP qp
    qp.size, qp.violation_scale = linear.shape[0], problem.violation_scale
    check_entries(qp.size, "bounds", lower, upper)
    qp.linear, qp.lower, qp.upper = &linear[0], &lower[0], &upper[0]
    qp.n_constraints, qp.divides_by_margin = n_constraints, problem.divides_by_margin
    if qp.divides_by_margin and n_constraints != 2:
        raise ValueError(f"a margin needs 2 equality constraints, got {n_constraints}")
    if (constraint_of is None) != (n_constraints == 0):
        raise ValueError(f"constraint_of is required for {n_constraints} constraints, and only then")
    if constraint_of is not None:
        check_entries(qp.size, "constraint_of", constraint_of)
        if qp.size and not 0 <= np.min(constraint_of) <= np.max(constraint_of) < n_constraints:
            raise ValueError(f"constraint_of must be between 0 and {n_constraints - 1}")
        qp.constraint_of = &constraint_of[0]
    if row is not None:
        check_entries(qp.size, "row numbers", row)
        qp.row = &row[0]
    return qp


def optimality(problem, const int64_t[::1] start, const double[::1] alpha,
               const double[::1] gradient):
    """Evaluate the optimality of each of several independent subproblems.

    Part c has the variables start[c] to before start[c + 1]; alpha is feasible, `gradient` its
    gradient. Returns objectives, KKT violations, duality gaps and violation scales, float64
    (n_parts,) each, and multipliers, float64 (n_parts, n_constraints). Violations are in units of their
    scale.
    """
    cdef BoxQP qp = box_qp(problem), part = qp
    cdef Optimality found
    cdef Py_ssize_t n_parts = start.shape[0] - 1, i, k
    cdef int64_t begin
    check_indptr(np.asarray(start), qp.size, "parts")
    check_entries(qp.size, "alpha and gradient", alpha, gradient)
    numbers, multipliers = np.zeros((4, n_parts)), np.zeros((n_parts, qp.n_constraints))
    numbers[3] = problem.violation_scale
    cdef double[:, ::1] out = numbers, of_sums = multipliers
    with nogil:
        for i in range(n_parts):
            begin = start[i]
            part.size = <size_t>(start[i + 1] - begin)
            if part.size == 0:
                continue
            part.linear = qp.linear + begin
            part.lower = qp.lower + begin
            part.upper = qp.upper + begin
            if qp.constraint_of != NULL:
                part.constraint_of = qp.constraint_of + begin
            found = c_optimality(part, &alpha[begin], &gradient[begin])
            out[0, i] = found.objective
            out[1, i] = found.violation / found.violation_scale
            out[2, i] = found.gap
            out[3, i] = found.violation_scale
            for k in range(<Py_ssize_t>found.multipliers.size()):
                of_sums[i, k] = found.multipliers[k]
    return *numbers, multipliers


cdef Clusters as_clusters(problem, Points points, const int64_t[::1] start,
                          const int32_t[::1] members) except *:
    """Raise ValueError for variables outside the problem, or rows outside the points."""
    cdef size_t size = len(problem.linear)
    if problem.row is not None:
        check_range(problem.row, points.points.n_samples, "row")
    elif size > points.points.n_samples:
        raise ValueError(f"{size} variables do not fit {points.points.n_samples} rows")
    check_indptr(start, len(members), "cluster starts")
    check_range(members, size, "variable")
    return Clusters(start.shape[0] - 1, &start[0], &members[0])


# SolveReport of csrc/solver/solve.h
SOLVE_REPORT = np.dtype([
    ("finished", np.bool_), ("converged", np.bool_),
    *((name, np.float64) for name in ("violation", "objective", "gap", "neglected")),
    *((name, np.int64) for name in (
        "iterations", "outer_steps", "newton_steps", "rebuilds", "kernel_evaluations",
        "pairs_skipped", "rows_computed", "rows_reused")),
    *((f"seconds_{name}", np.float64) for name in (
        "tiles", "inner", "newton", "selection", "rebuild")),
], align=True)
assert SOLVE_REPORT.itemsize == sizeof(SolveReport)


cdef class SolveState:
    """State of a solve of clusters of the given sizes, initially not started."""

    cdef vector[ClusterState] clusters

    def __init__(self, sizes=()):
        cdef size_t i
        self.clusters.resize(len(sizes))
        for i in range(self.clusters.size()):
            self.clusters[i].is_done = sizes[i] == 0

    def __len__(self):
        return self.clusters.size()

    def is_finished(self, size_t cluster):
        return cluster < self.clusters.size() and self.clusters[cluster].is_done

    @property
    def is_done(self):
        """Whether all clusters are solved."""
        cdef size_t i
        for i in range(self.clusters.size()):
            if not self.clusters[i].is_done:
                return False
        return True

    def finish(self, size_t cluster, report):
        """Mark a cluster as solved elsewhere, with a report (SOLVE_REPORT)."""
        if cluster >= self.clusters.size():
            raise ValueError(f"cluster must be below {self.clusters.size()}, got {cluster}")
        cdef const uint8_t[::1] stored = np.array([report], SOLVE_REPORT).view(np.uint8)
        memcpy(&self.clusters[cluster].report, &stored[0], sizeof(SolveReport))
        self.clusters[cluster].is_done = True

    @property
    def reports(self):
        """Work of each cluster so far, an array of SOLVE_REPORT."""
        cdef size_t i
        reports = np.zeros(self.clusters.size(), SOLVE_REPORT)
        cdef uint8_t[::1] out = reports.view(np.uint8)
        for i in range(self.clusters.size()):
            memcpy(&out[i * sizeof(SolveReport)], &self.clusters[i].report, sizeof(SolveReport))
        return reports

    def to_array(self):
        """Return the state as bytes, uint8 (n,)."""
        cdef vector[uint8_t] found = c_bytes_of(self.clusters)
        return np.asarray(<uint8_t[:found.size()]>found.data()).copy()

    @staticmethod
    def from_array(const uint8_t[::1] stored):
        """Restore a state from to_array(). Raises ValueError for other bytes."""
        cdef SolveState state = SolveState()
        if stored.shape[0] == 0:
            raise ValueError("stored must not be empty")
        state.clusters = c_states_of(&stored[0], stored.shape[0])
        return state


cdef ClusterOptions cluster_options(settings) except *:
    """Convert SolverSettings. Raises ValueError for a limit that the solver lacks."""
    cdef ClusterOptions options
    cdef dict limits = options.solve.limits
    if not settings.limits.keys() <= limits.keys():
        raise ValueError(f"limits must be of {', '.join(limits)}, got {', '.join(settings.limits)}")
    limits.update(settings.limits)
    options.solve.limits = limits
    options.solve.tolerance, options.solve.attainable = settings.tolerance, settings.attainable
    options.solve.n_threads, options.memory_bytes = settings.threads, settings.memory_bytes
    options.solve.precision = precision_of(settings.float64)
    options.solve.gradient_error = settings.neglected
    options.solve.cutoff = as_cutoff(settings.cutoff)
    return options


def solve_clusters(Setup setup, Points points, parts, iterate, settings, control):
    """Solve the box QP of every part in place; return an array of SOLVE_REPORT, one for each.

    `settings` are SolverSettings. `control` is a SolveControl. A solve continues from its state,
    which an earlier solve of the same parts left with this iterate, and updates the state; raises
    ValueError for the state of other parts. `control.progress` is None or an object with attributes
    `error` and `stop`, called with (parts done, variables done, violation, active variables, outer
    steps) while the iterate is valid; if it returns true, the solver updates the iterate.

    The alpha of `iterate` must be feasible; its gradients are restricted to the parts. Known
    gradients are used if all of a part are known.
    """
    cdef BoxQP qp = box_qp(parts.problem)
    cdef const int64_t[::1] start = parts.start
    cdef const int32_t[::1] members = parts.members
    cdef ClusterOptions options = cluster_options(settings)
    cdef SolveState state = control.state
    cdef Iterate arrays
    cdef double[::1] alpha = iterate.alpha, gradient = iterate.gradient, base = iterate.base
    cdef uint8_t[::1] known = iterate.known
    check_entries(qp.size, "arrays of the iterate", alpha, gradient, base, known)
    check_sides(setup, points, points, settings.threads)
    cdef Clusters clusters = as_clusters(parts.problem, points, start, members)
    if len(state) != clusters.n_clusters:
        raise ValueError(f"state must have {clusters.n_clusters} clusters, got {len(state)}")
    if members.shape[0] == 0:
        return state.reports
    arrays.alpha, arrays.gradient, arrays.base = &alpha[0], &gradient[0], &base[0]
    arrays.known = <GradientState*>&known[0]
    options.solve.stop = stop_of(control.stop)
    progress = control.progress
    if progress is not None:
        set_progress(options, call_progress, <void*>progress)
    with nogil:
        c_solve_clusters(setup.setup, points.points, qp, clusters, arrays, options, state.clusters)
    if progress is not None and progress.error is not None:
        raise progress.error
    return state.reports


def squared_spans(Setup setup, Points points, problem, const int64_t[::1] start,
                  const int32_t[::1] members, const double[::1] alpha,
                  const uint8_t[::1] wanted, size_t n_exact, int threads):
    """Return squared spans of support vectors, float64 (n_variables,).

    Without a support vector its own decision value changes by |alpha| times its squared span
    (leave-one-out estimate). Clusters are as in solve_clusters(). The result is 0 for variables
    that are not `wanted` and for other variables than support vectors. For clusters with more than
    `n_exact` free support vectors it is an upper bound.
    """
    cdef BoxQP qp = box_qp(problem)
    check_entries(qp.size, "alpha and wanted", alpha, wanted)
    check_sides(setup, points, points, threads)
    cdef Clusters clusters = as_clusters(problem, points, start, members)
    spans = np.zeros(qp.size)
    if members.shape[0] == 0:
        return spans
    cdef double[::1] out = spans
    with nogil:
        c_squared_spans(setup.setup, points.points, qp, clusters, &alpha[0], &wanted[0], n_exact,
                        threads, &out[0])
    return spans


def held_out_values(Setup setup, Points points, problem, held, scales, double tolerance,
                    cbool is_classification, cbool decides, size_t memory_bytes, int threads,
                    Stop stop=None):
    """Return decision values of held-out rows, float64 (n_scales, n_entries, n_columns), and a
    report (a dict) for each scale.

    `held` has `members` int32 and `start` int64 (n_clusters * n_columns + 1,), the variables of
    each binary problem (column) of each cluster; `left` float64 (n_folds, n_samples), the training
    weight of every row in each fold; and `rows` int32 and `rows_start` int64
    (n_clusters * n_folds + 1,), the entries: rows of a cluster that a fold holds out. Box
    constraints are the bounds of `problem` times the training weight and each of the `scales`,
    which ascend. Values are nan without training rows. If `decides`, a cluster with one class or
    no support vectors predicts its majority class. Kernel matrices of clusters need at most
    `memory_bytes`. Raises Stopped.
    """
    cdef BoxQP qp = box_qp(problem)
    cdef HeldOutJob c_held
    cdef HeldOutOptions options
    cdef vector[HeldOutReport] reports
    cdef const int64_t[::1] start = held.start, rows_start = held.rows_start
    cdef const int32_t[::1] members = held.members, rows = held.rows
    cdef const double[:, ::1] left = held.left
    check_sides(setup, points, points, threads)
    c_held.parts = as_clusters(problem, points, start, members)
    check_indptr(held.rows_start, len(held.rows), "entries")
    check_range(held.rows, points.points.n_samples, "row")
    c_held.n_folds = left.shape[0]
    if left.shape[1] != <Py_ssize_t>points.points.n_samples or c_held.n_folds == 0:
        raise ValueError(f"left must have shape (n_folds, {points.points.n_samples}), got "
                         f"({left.shape[0]}, {left.shape[1]})")
    c_held.n_clusters = (rows_start.shape[0] - 1) // c_held.n_folds
    c_held.n_columns = (start.shape[0] - 1) // max(c_held.n_clusters, 1)
    if (c_held.n_clusters * c_held.n_folds + 1 != <size_t>rows_start.shape[0]
            or c_held.n_clusters * c_held.n_columns + 1 != <size_t>start.shape[0]):
        raise ValueError("clusters, folds and columns do not fit")
    if np.any(np.diff(scales) <= 0) or np.any(np.asarray(scales) <= 0):
        raise ValueError("scales must be positive and ascend")
    values = np.full((len(scales), len(held.rows), c_held.n_columns), np.nan)
    cdef double[:, :, ::1] out = values
    if values.size == 0:
        return values, [{"missed": 0, "support": 0, "iterations": 0} for _ in scales]
    c_held.train_weight, c_held.start, c_held.rows = &left[0, 0], &rows_start[0], &rows[0]
    options.scales = scales
    options.is_classification, options.decides = is_classification, decides
    options.memory_bytes, options.n_threads = memory_bytes, threads
    options.tolerance = tolerance
    options.stop = stop_of(stop)
    with nogil:
        reports = c_held_out_values(setup.setup, points.points, qp, c_held, options, &out[0, 0, 0])
    if reports.empty():
        raise Stopped
    return values, [reports[i] for i in range(reports.size())]
