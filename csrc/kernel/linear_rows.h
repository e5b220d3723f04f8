// Rows as float64 vectors x, for the linear kernel <x, z>.
//
// X (X' weights) takes 2 n d operations instead of n |S| kernel evaluations. Sums over rows are
// taken in fixed blocks of rows, added in order, so no bit depends on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rows/codes.h"
#include "rows/points.h"
#include "simd/isa.h"

namespace dcsvm {

class LinearRows {
 public:
  explicit LinearRows(const Points& points);

  // Entries of x: the features, then one indicator per column of each code.
  std::size_t dimension() const { return dimension_; }
  // Returns the mean number of stored values of a row, at least 1.
  double mean_stored() const;
  // Returns the number of stored values of a row, the unit of work.
  std::size_t stored(std::size_t row) const {
    return points_.is_dense()
               ? points_.n_features + points_.n_codes
               : static_cast<std::size_t>(points_.indptr[row + 1] - points_.indptr[row]);
  }

  // Calls visit(entry, value) for the entries of x that are stored.
  template <class Visit>
  void for_each(std::size_t row, const Visit& visit) const {
    if (!points_.is_dense()) {
      for (auto k = points_.indptr[row]; k < points_.indptr[row + 1]; ++k)
        visit(static_cast<std::size_t>(points_.indices[k]), static_cast<double>(points_.values[k]));
      return;
    }
    const float* x = features_of(points_, row);
    for (std::size_t j = 0; j < points_.n_features; ++j) visit(j, static_cast<double>(x[j]));
    for_each_code(row, [&](std::size_t entry) { visit(entry, 1.0); });
  }

  double dot(std::size_t row, const double* w) const {
    if (!points_.is_dense()) return sparse_dot(row, w);
    double sum = isa().dot(features_of(points_, row), w, points_.n_features);
    for_each_code(row, [&](std::size_t entry) { sum += w[entry]; });
    return sum;
  }

  // w += weight x
  void add(std::size_t row, double weight, double* w) const {
    if (!points_.is_dense()) {
      for (auto k = points_.indptr[row]; k < points_.indptr[row + 1]; ++k)
        w[points_.indices[k]] += weight * static_cast<double>(points_.values[k]);
      return;
    }
    isa().add_multiple(features_of(points_, row), weight, points_.n_features, w);
    for_each_code(row, [&](std::size_t entry) { w[entry] += weight; });
  }

  double squared_norm(std::size_t row) const {
    double sum = 0;
    for_each(row, [&](std::size_t, double value) { sum += value * value; });
    return sum;
  }

  const Points& points() const { return points_; }
  // Prefetches a row.
  void prefetch(std::size_t row) const;

 private:
  template <class Visit>
  void for_each_code(std::size_t row, const Visit& visit) const {
    for (std::size_t k = 0; k < points_.n_codes; ++k) {
      const std::uint8_t code = points_.codes_of(row)[k];
      if (code != no_code) visit(first_of_code_[k] + code);
    }
  }

  // Two sums hide the latency of additions.
  double sparse_dot(std::size_t row, const double* w) const {
    double even = 0, odd = 0;
    auto k = points_.indptr[row];
    const auto end = points_.indptr[row + 1];
    for (; k + 1 < end; k += 2) {
      even += static_cast<double>(points_.values[k]) * w[points_.indices[k]];
      odd += static_cast<double>(points_.values[k + 1]) * w[points_.indices[k + 1]];
    }
    if (k < end) even += static_cast<double>(points_.values[k]) * w[points_.indices[k]];
    return even + odd;
  }

  const Points& points_;
  std::size_t dimension_;
  std::vector<std::size_t> first_of_code_;
};

// Adds X' W to w, where each row of the list is a source, for the columns `begin` to before `end`:
// entry k of column c is w[(c - begin) * dimension + k].
void add_rows(const LinearRows& rows, const RowList& list, const SourceWeights& weights,
              std::size_t begin, std::size_t end, int n_threads, double* w);

// out[k] = x_k w for the rows of a list.
void multiply_rows(const LinearRows& rows, const RowList& list, const double* w, int n_threads,
                   double* out);

}  // namespace dcsvm
