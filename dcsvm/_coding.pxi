# Part of _core.pyx. 0/1 columns of dense rows as codes (csrc/rows/codes.h).

cdef class Coding:
    """Map from columns to codes (csrc/rows/codes.h).

    `numeric` are the columns kept as floats, `codes` the 0/1 columns of each code. All
    other columns are zero in the rows that were searched.
    """

    cdef CodedColumns columns

    @property
    def row_size(self):
        """Size of an encoded row in bytes."""
        return self.columns.row_size()

    def __eq__(self, other):
        return isinstance(other, Coding) and self.columns == (<Coding>other).columns

    __hash__ = None

    def encode(self, Points points, uint8_t[:, ::1] out, int threads):
        """Encode the rows of dense points into `out`, uint8 (n, row_size)."""
        if <size_t>out.shape[0] != points.points.n_samples or <size_t>out.shape[1] != self.row_size:
            raise ValueError("the array does not have the shape of the rows with codes")
        check_plain(points, "codes are those")
        if out.shape[0] > 0:
            with nogil:
                c_encode(points.points, self.columns, threads, &out[0, 0])


cdef class CodingSearch:
    """Search for codes in dense rows that arrive in batches."""

    cdef unique_ptr[CodeSearch] search
    cdef size_t n_features

    def __init__(self, size_t n_features):
        self.search.reset(new CodeSearch(n_features))
        self.n_features = n_features

    def see(self, Points part, int threads):
        check_threads(threads)
        check_plain(part, "codes are found in features")
        if part.points.n_features != self.n_features:
            raise ValueError("rows are not of the same features")
        with nogil:
            self.search.get().see(part.points, threads)

    def found(self, double worth, cbool are_bytes, argument):
        """Return the Coding of the rows seen so far, or None if it does not pay.

        It pays if a pair of encoded rows takes at most 1/worth of the operations of a pair of dense
        rows and, with `are_bytes`, no more than a pair of rows of bytes for the
        `argument` of the kernel. With more rows a pair usually costs more.
        """
        cdef Coding coding = Coding()
        coding.columns = self.search.get().found()
        cdef double cost = coding.columns.cost()
        if coding.columns.codes.size() == 0 or cost * worth > 2.0 * self.n_features:
            return None
        cdef Argument own = argument_of(argument)
        if (are_bytes and c_may_be_bytes(self.n_features, own)
                and bytes_cost(self.n_features, own) < cost):
            return None
        return coding
