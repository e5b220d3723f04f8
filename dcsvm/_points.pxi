# Part of _core.pyx. Rows, a kernel on them, and which of them may meet.

cdef Argument argument_of(name) except *:
    return kernel_of(name.encode(), b"identity").argument


cdef cbool all_are(const float[::1] values, float value) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(values.shape[0]):
        if values[k] != value:
            return False
    return True


cdef class Points:
    """Rows of a data set for the core: dense (n, d), CSR, or of a precomputed kernel. They never
    change: what is encoded or prepared for a kernel is another object. Keeps the arrays alive, of which
    those without entries have an address, too."""

    cdef CPoints points
    cdef size_t n_columns  # features, codes included
    cdef object arrays, row_terms, byte_arrays, columns, other_terms
    cdef object prepared_for  # the argument and the form of which the row terms are
    # squared norm, negative until it is asked for; an object could be freed while a thread reads it
    cdef double largest
    cdef int threads
    cdef Coding coding  # the same object where rows meet as the same codes

    def __cinit__(self):
        self.largest = -1

    def __init__(self, rows, int threads):
        """The Rows as they are; packed ones as floats."""
        check_threads(threads)
        cdef const float[:, ::1] dense
        cdef const uint8_t[:, ::1] dense_bytes
        cdef const int64_t[::1] indptr
        cdef const int32_t[::1] indices
        cdef const float[::1] values
        cdef const int32_t[::1] columns
        if rows.is_packed:
            rows = rows.as_floats(threads)
        self.threads = threads
        self.points.n_samples = rows.n_samples
        self.points.n_features = self.n_columns = rows.n_features
        self.points.is_mapped = rows.is_in_file
        if rows.is_bytes:
            self.arrays = dense_bytes = rows.stored
            row_size = self.points.byte_row_size()
            if dense_bytes.shape[0] != rows.n_samples or dense_bytes.shape[1] != row_size:
                raise ValueError("rows of bytes do not have the stated shape")
            self.points.dense_bytes = &dense_bytes[0, 0]
        elif rows.dense is not None:
            self.arrays = dense = rows.dense
            if dense.shape[0] != rows.n_samples or dense.shape[1] != rows.n_features:
                raise ValueError("dense rows do not have the stated shape")
            self.points.dense = &dense[0, 0]
            self.points.dense_stride = rows.n_features
        elif rows.indptr is not None:
            self.arrays = indptr, indices, values = rows.indptr, rows.indices, rows.values
            if indptr.shape[0] != rows.n_samples + 1 or indices.shape[0] != values.shape[0]:
                raise ValueError("CSR arrays do not have the stated shape")
            check_indptr(rows.indptr, values.shape[0], "CSR arrays")
            check_range(rows.indices, rows.n_features, "column")
            self.points.indptr, self.points.indices = &indptr[0], &indices[0]
            self.points.values = &values[0]
            self.points.has_only_ones = all_are(values, 1)
        if rows.columns is not None:
            self.columns = columns = rows.columns
            if columns.shape[0] != <Py_ssize_t>rows.n_samples:
                raise ValueError("there is not one column for each row")
            check_range(rows.columns, rows.n_features, "column")
            self.points.columns = &columns[0]

    @staticmethod
    def of_codes(Coding coding, const uint8_t[:, ::1] coded, size_t n_features, int threads):
        """Rows of so many features that `coding` has encoded, uint8 (n, coding.row_size)."""
        if <size_t>coded.shape[1] != coding.columns.row_size():
            raise ValueError("rows with codes do not have the stated shape")
        cdef Points points = Points.__new__(Points)
        points.points.n_samples, points.n_columns = coded.shape[0], n_features
        points.take_codes(coding, coded)
        points.threads = threads
        return points

    cdef Points copied(self):
        cdef Points other = Points.__new__(Points)
        other.points, other.n_columns, other.coding = self.points, self.n_columns, self.coding
        other.arrays, other.byte_arrays, other.columns = self.arrays, self.byte_arrays, self.columns
        other.other_terms, other.threads, other.largest = self.other_terms, self.threads, self.largest
        return other

    cdef take_codes(self, Coding coding, const uint8_t[:, ::1] coded):
        take_coded(coding.columns, &coded[0, 0], self.points)
        self.arrays, self.coding = coded, coding

    @property
    def n_samples(self):
        return self.points.n_samples

    @property
    def n_features(self):
        return self.points.n_features

    @property
    def largest_squared_norm(self):
        """|x|^2 of the longest row, as the rows were when it was first asked for; 0 of rows of a
        precomputed kernel."""
        cdef double largest = 0
        if self.largest < 0:
            if self.points.columns == NULL and self.has_features:
                with nogil:
                    largest = c_largest_squared_norm(self.points, self.threads)
            self.largest = largest
        return self.largest

    @property
    def has_features(self):
        return self.points.is_dense() or self.points.indptr != NULL

    @property
    def n_codes(self):
        return self.points.n_codes

    @property
    def has_bytes(self):
        return self.points.bytes != NULL

    def bytes_beat_sparse(self, argument):
        """Whether bytes of all features are cheaper than these sparse rows, for the argument of a
        kernel."""
        return bytes_beat_sparse(self.points, argument_of(argument))

    def encoded_as(self, Points other, Setup setup, int threads):
        """Encode dense rows as `other` was, by its codes or as bytes, to meet it by a setup.

        Returns (the encoded rows, which of them lost nothing, bool (n,): no others must be used),
        or None where other is not encoded."""
        if other.coding is None and other.points.bytes == NULL:
            return None
        if self.points.n_features != other.n_columns or not self.points.is_dense():
            raise ValueError("rows are not of the same columns")
        fitting = np.empty(self.points.n_samples, dtype=np.uint8)
        cdef uint8_t[::1] fits = fitting
        cdef double[::1] terms = np.empty(self.points.n_samples)
        if self.points.n_samples == 0:
            return self, fitting.view(bool)
        if other.points.bytes != NULL:
            with nogil:
                c_find_bytes(self.points, threads, &fits[0])
            return self.as_bytes(threads), fitting.view(bool)
        with nogil:
            c_find_fitting(self.points, other.coding.columns, setup.setup.kernel.argument, threads,
                           &fits[0], &terms[0])
        coded = np.empty((self.points.n_samples, other.coding.row_size), dtype=np.uint8)
        other.coding.encode(self, coded, threads)
        cdef Points result = self.copied()
        result.take_codes(other.coding, coded)
        result.points.other_terms = &terms[0]
        result.other_terms = terms
        return result, fitting.view(bool)

    def are_bytes(self, int threads):
        """Whether these are dense rows of 8-bit integers."""
        cdef cbool found
        if not self.points.is_dense() or self.points.n_samples == 0 or self.points.n_codes > 0:
            return False
        with nogil:
            found = are_bytes(self.points, threads)
        return found

    def as_bytes(self, int threads):
        """The same dense rows, which meet others as bytes, which they must be, as both sides of a
        tile must: those that they are, or a copy of floats."""
        cdef Points result = self.copied()
        cdef uint8_t[:, ::1] values
        row_sums = np.empty(self.points.n_samples, dtype=np.int32)
        cdef int32_t[::1] sums = row_sums
        if self.points.dense_bytes != NULL:
            result.points.bytes = self.points.dense_bytes
            with nogil:
                c_sum_bytes(result.points, threads, &sums[0])
            result.byte_arrays = self.arrays, row_sums
        else:
            values = np.empty((self.points.n_samples, self.points.byte_row_size()), dtype=np.uint8)
            with nogil:
                c_encode_bytes(self.points, threads, &values[0, 0], &sums[0])
            result.points.bytes = &values[0, 0]
            result.byte_arrays = values, row_sums
        result.points.byte_sums = &sums[0]
        return result

    def with_bytes(self, codes, int32_t origin=0, int32_t step=1):
        """The same rows, which meet each other as 8-bit integers, `codes` uint8 (n, d), zeros after
        the features up to a multiple of 4 columns; distances are those of the integers. With another
        origin and step, as may_step() allows, they may meet rows of bytes as origin + step * codes, in products."""
        cdef const uint8_t[:, ::1] values = codes
        sums = codes.sum(axis=1, dtype=np.int32)
        cdef int32_t[::1] row_sums = sums
        if codes.shape != (self.points.n_samples, self.points.byte_row_size()):
            raise ValueError("there is not one 8-bit integer for each feature")
        cdef Points result = self.copied()
        result.points.bytes, result.points.byte_sums = &values[0, 0], &row_sums[0]
        result.points.byte_origin, result.points.byte_step = origin, step
        result.byte_arrays = codes, sums
        return result

    @property
    def bytes_beside(self):
        """Bytes of what an encoding holds beside the rows themselves."""
        codes = 0 if self.coding is None else np.asarray(self.arrays).nbytes
        return codes + sum(array.nbytes for array in self.byte_arrays or ()
                           if array is not self.arrays)

    def prepared(self, Setup setup, int threads):
        """Return these rows with the row terms of a setup, which rows must have before they meet
        others."""
        cdef Points result = self.copied()
        cdef double[::1] terms = np.empty(max(self.points.n_samples, 1))
        with nogil:
            compute_row_terms(self.points, setup.setup, threads, &terms[0])
        result.row_terms, result.prepared_for = terms, setup.needs
        result.points.row_terms = &terms[0]
        return result


cdef class Setup:
    """A kernel on points and the one form its values take in a run (see csrc/simd/isa.h).

    `kernel` has a `type` with the names of an argument and a function (csrc/simd/kernel.h), gamma,
    coef0 and degree. `is_flat`: most values are above 1/2."""

    cdef KernelSetup setup

    def __init__(self, kernel, Points points, form=None, cbool is_flat=False):
        cdef CKernel own = kernel_of(kernel.type.argument.encode(), kernel.type.function.encode())
        own.gamma, own.coef0, own.degree = kernel.gamma, kernel.coef0, kernel.degree
        cdef cbool is_precomputed = own.argument == Argument.none
        if not is_precomputed and not points.has_features:
            raise ValueError("rows without features are for a precomputed kernel")
        if is_flat and not is_distance(own.argument):
            raise ValueError("only values that fall with a distance are flat")
        self.setup = choose_setup(points.points, own, points.largest_squared_norm)
        self.setup.is_flat = is_flat
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
        if self.setup.form == Form.difference and not is_distance(own.argument):
            raise ValueError("the difference form is for distances")
        if self.setup.form == Form.product and not c_is_from_products(own.argument):
            raise ValueError("the product form is for arguments that come from products")

    @property
    def needs(self):
        """What row terms depend on."""
        return <int>self.setup.kernel.argument, <int>self.setup.form

    @property
    def form(self):
        return ("difference", "product", "sparse", "bytes", "precomputed")[<int>self.setup.form]


cdef check_plain(Points points, what):
    """Raise ValueError for rows that are encoded or not dense."""
    if not points.points.is_dense() or points.points.n_codes > 0:
        raise ValueError(f"{what} of dense rows as they are")


cdef cbool holds_values(Points a, Points b):
    return a.points.dense != NULL and b.points.columns != NULL


def check_sides(Setup setup, Points a, Points b, int threads):
    check_threads(threads)
    cdef cbool is_precomputed = setup.setup.form == Form.precomputed
    if is_precomputed and not (holds_values(a, b) or holds_values(b, a)):
        raise ValueError("neither side has the kernel values with the other")
    cdef Points points
    for points in () if is_precomputed else (a, b):
        if setup.setup.form == Form.bytes:
            if points.points.bytes == NULL:
                raise ValueError("rows are not encoded as bytes")
        elif (setup.setup.form == Form.sparse) == points.points.is_dense():
            raise ValueError(f"rows do not have the form {setup.form}")
    if setup.setup.form == Form.bytes and not c_is_from_products(setup.setup.kernel.argument) and (
            a.points.byte_origin != b.points.byte_origin or a.points.byte_step != b.points.byte_step):
        raise ValueError("differences of bytes are of rows with the same origin and step")
    if a.coding is not b.coding:
        raise ValueError("coded rows meet only rows of the same codes")
    if a.points.n_features != b.points.n_features:
        raise ValueError(f"rows have {a.points.n_features} and {b.points.n_features} features")
    for points in (a, b):
        if points.prepared_for != setup.needs:
            raise ValueError("rows are not prepared for this setup")


cdef RowList row_list(Points points, const int32_t[::1] index) except *:
    cdef RowList rows
    rows.points, rows.size = &points.points, points.points.n_samples
    if index is not None:
        rows.index, rows.size = &index[0], index.shape[0]
        check_range(np.asarray(index), points.points.n_samples, "row")
    return rows


cdef CCutoff as_cutoff(cutoff) except *:
    cdef CCutoff result
    if cutoff is not None:
        result.distance.value = cutoff.distance
        result.distance.argument = argument_of(cutoff.argument)
        result.value = cutoff.value
    return result
