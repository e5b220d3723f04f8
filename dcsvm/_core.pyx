"""Typed wrappers of csrc/: check shapes, release the GIL, call.

Rows are passed as Points, subsets of rows as int32 indices, all else as contiguous NumPy arrays.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

import numpy as np


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


NO_LIMIT = 2**62  # bytes of memory
MAX_SECONDS = 1e9  # 30 years; the clock counts nanoseconds in 64 bits


class Stopped(Exception):
    """A computation was stopped by a request; it returned no result.

    Parameters
    ----------
    reason : str
        The message of the exception.
    """

    def __init__(self, reason="stopped before a model existed"):
        super().__init__(reason)


cdef class Stop:
    """Stop request: set by any thread, or after some seconds.

    There is no time limit if the seconds are None, infinite or MAX_SECONDS or more.
    """

    cdef CStop stop

    def __init__(self, seconds=None):
        if seconds is None:
            return
        if seconds != seconds:
            raise ValueError("seconds must be a number or None, got nan")
        if seconds < MAX_SECONDS:
            self.stop.set_deadline(seconds)

    def request(self):
        """Request the stop, from any thread."""
        self.stop.request()

    @property
    def is_requested(self):
        return self.stop.is_requested()

    def check(self):
        """Raise Stopped if a stop is requested."""
        if self.stop.is_requested():
            raise Stopped


def allowed_threads():
    """Return OpenMP's number of threads, as set by OMP_NUM_THREADS or threadpoolctl."""
    return c_allowed_threads()


def next_lap():
    """Return how this thread's loops used threads since its last call, in seconds.

    Returns (work, waits, serial): work inside parallel loops and waits of their threads, each summed
    over the threads, and the seconds outside of loops.
    """
    lap = c_next_lap()
    waits = lap.loops.reserved - lap.loops.working
    return lap.loops.working, max(waits, 0.0), max(lap.seconds - lap.loops.elapsed, 0.0)


cdef CStop* stop_of(Stop stop) noexcept:
    return &stop.stop if stop is not None else NULL


def check_threads(int threads):
    if threads < 1:
        raise ValueError(f"threads must be at least 1, not {threads}")


def check_entries(size_t n, what, *arrays):
    if any(len(array) != n for array in arrays):
        raise ValueError(f"{what} do not have one entry per variable")


def check_range(numbers, n, what):
    if len(numbers) == 0:
        return
    for number in (np.min(numbers), np.max(numbers)):
        if not 0 <= number < n:
            raise ValueError(f"{what} number {number} is outside 0..{n - 1}")


def check_indptr(indptr, n_values, what):
    indptr = np.asarray(indptr)
    if indptr[0] != 0 or indptr[len(indptr) - 1] != n_values or np.any(np.diff(indptr) < 0):
        raise ValueError(f"{what} do not start at 0, ascend and end at {n_values}")


include "_coding.pxi"
include "_points.pxi"
include "_kernel.pxi"
include "_serving.pxi"
include "_solver.pxi"


def value_cost(Setup setup, Points points):
    """Return the time of a kernel evaluation in nanoseconds, by a fixed cost model."""
    return c_tile_cost(setup.setup, points.points)


def matrix_bytes(size_t n_variables):
    """Return the size in bytes of a solver's matrices for a problem with n_variables."""
    return c_matrix_bytes(n_variables, Precision.single_tiles)


def array_bytes(size_t n_variables):
    """Return the maximum size in bytes of a solver's arrays for a problem with n_variables."""
    return c_array_bytes(n_variables)


def usable_threads(int threads):
    """Return the number of threads used of those requested: 1 without OpenMP."""
    return threads if has_openmp else 1


def trim_heap():
    """Return freed memory to the system, if the C library keeps it."""
    with nogil:
        c_trim_heap()


def instruction_set():
    """Return the name of the instruction set of the kernel tiles."""
    return isa().name.decode()


def byte_loop_name(argument):
    """Return the name of the loop that sums rows of bytes for an argument, or None."""
    cdef const ByteLoop* loop = byte_loop(argument_of(argument))
    return loop.name.decode() if loop else None
