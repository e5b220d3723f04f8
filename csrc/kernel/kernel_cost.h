// What kernel values cost, by a fixed model.
//
// Nothing is measured at run time: decisions that rest on these costs (what is cached, which
// method goes on) are the same in every run, and so are the bits of the result.
#pragma once

#include <cstddef>

#include "kernel/kernel_setup.h"
#include "rows/points.h"

namespace dcsvm {

// Nanoseconds of one kernel value on one core.
double tile_cost(const KernelSetup& setup, const Points& points);
// The same for reading a cached value while a gradient is updated.
constexpr double cached_entry_cost = 0.3;

// Whether bytes of all features are cheaper than the sparse rows that the points are.
bool bytes_beat_sparse(const Points& points);

// Whether kernel rows are worth keeping: a value costs more than memory that is touched for the
// first time.
bool caching_pays(const KernelSetup& setup, const Points& points);
// Whether computing a kernel row costs many times reading it.
bool has_expensive_rows(const KernelSetup& setup, const Points& points);

// Whether so many kernel values are enough to share among threads.
bool threads_pay(int n_threads, std::size_t n_values);

}  // namespace dcsvm
