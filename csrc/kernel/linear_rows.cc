#include "kernel/linear_rows.h"

#include <algorithm>

#include "kernel/kernel_setup.h"
#include "rows/codes.h"
#include "threads/parallel.h"

namespace dcsvm {

namespace {

// Values in a block of rows per entry of w, so that adding the blocks is a small part of the work.
// More blocks than `max_blocks` do not help any practical number of threads.
constexpr double values_per_entry = 8;
constexpr std::size_t max_blocks = 32;

void add_some(const LinearRows& rows, const RowList& list, const SourceWeights& weights,
              std::size_t first, std::size_t last, std::size_t begin, std::size_t end, double* w) {
  for (std::size_t k = first; k < last; ++k) {
    if (!weights.indptr) {
      if (weights.values[k] != 0.0) rows.add(list[k], weights.values[k], w);
      continue;
    }
    for (auto at = weights.indptr[k]; at < weights.indptr[k + 1]; ++at) {
      const auto column = static_cast<std::size_t>(weights.columns[at]);
      if (column >= begin && column < end)
        rows.add(list[k], weights.values[at], w + (column - begin) * rows.dimension());
    }
  }
}

// A value of a row takes about as long as a kernel value.
int threads_for_rows(const LinearRows& rows, std::size_t n_rows, int n_threads) {
  const double values = static_cast<double>(n_rows) * rows.mean_stored();
  return threads_for(static_cast<std::size_t>(values), n_threads);
}

}  // namespace

LinearRows::LinearRows(const Points& points) : points_(points), dimension_(points.n_features) {
  std::vector<std::size_t> n_values(points.n_codes);
  for (std::size_t i = 0; i < points.n_samples; ++i) {
    for (std::size_t k = 0; k < points.n_codes; ++k) {
      const std::size_t code = points.codes_of(i)[k];
      if (code != no_code) n_values[k] = std::max(n_values[k], code + 1);
    }
  }
  for (const std::size_t n : n_values) {
    first_of_code_.push_back(dimension_);
    dimension_ += n;
  }
}

double LinearRows::mean_stored() const {
  const double n = static_cast<double>(std::max<std::size_t>(points_.n_samples, 1));
  const double all = points_.is_dense()
                         ? n * static_cast<double>(points_.n_features + points_.n_codes)
                         : static_cast<double>(points_.indptr[points_.n_samples]);
  return std::max(all / n, 1.0);
}

void LinearRows::prefetch(std::size_t row) const {
  constexpr std::size_t max_bytes = 512;
  if (points_.is_dense()) {
    const auto [first, row_bytes] = stored_rows(points_);
    touch(first + row * row_bytes, std::min(row_bytes, max_bytes));
  } else {
    const std::size_t n_bytes = std::min(stored(row) * sizeof(float), max_bytes);
    touch(points_.indices + points_.indptr[row], n_bytes);
    touch(points_.values + points_.indptr[row], n_bytes);
  }
}

void add_rows(const LinearRows& rows, const RowList& list, const SourceWeights& weights,
              std::size_t begin, std::size_t end, int n_threads, double* w) {
  const std::size_t size = (end - begin) * rows.dimension();
  const double values = static_cast<double>(list.size) * rows.mean_stored();
  const auto wanted =
      static_cast<std::size_t>(values / (values_per_entry * static_cast<double>(size + 1)));
  const std::size_t n_blocks = std::clamp<std::size_t>(wanted, 1, max_blocks);
  if (n_blocks == 1) {
    add_some(rows, list, weights, 0, list.size, begin, end, w);
    return;
  }
  std::vector<double> parts(n_blocks * size);
  parallel_for({threads_for_rows(rows, list.size, n_threads), n_blocks}, [&](std::size_t b) {
    add_some(rows, list, weights, list.size * b / n_blocks, list.size * (b + 1) / n_blocks, begin,
             end, parts.data() + b * size);
  });
  for (std::size_t b = 0; b < n_blocks; ++b) {
    for (std::size_t j = 0; j < size; ++j) w[j] += parts[b * size + j];
  }
}

void multiply_rows(const LinearRows& rows, const RowList& list, const double* w, int n_threads,
                   double* out) {
  parallel_for({threads_for_rows(rows, list.size, n_threads), list.size, batch_rows},
               [&](std::size_t k) { out[k] = rows.dot(list[k], w); });
}

}  // namespace dcsvm
