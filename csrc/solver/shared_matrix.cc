#include "solver/shared_matrix.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernel/kernel_matrix.h"

namespace dcsvm {

SharedMatrix::SharedMatrix(const KernelSetup& setup, const Points& points,
                           std::vector<std::int32_t> rows, int n_threads)
    : rows_(std::move(rows)),
      columns_(rows_.size()),
      order_(rows_.size()),
      half_norms_(rows_.size()),
      values_(new float[rows_.size() * rows_.size()]) {
  symmetric_kernel_matrix(setup, {&points, rows_.data(), rows_.size()}, n_threads, values_.get());
  std::iota(columns_.begin(), columns_.end(), 0);
  order_ = columns_;
  std::sort(order_.begin(), order_.end(), [this](std::int32_t a, std::int32_t b) {
    return rows_[static_cast<std::size_t>(a)] < rows_[static_cast<std::size_t>(b)];
  });
  setup_.kernel.type = KernelType::precomputed;
  setup_.form = Form::precomputed;
  points_.n_samples = points_.n_features = rows_.size();
  points_.dense = values_.get();
  points_.half_norms = half_norms_.data();
  points_.columns = columns_.data();
}

std::int32_t SharedMatrix::place(std::int32_t row) const {
  return *std::lower_bound(order_.begin(), order_.end(), row,
                           [this](std::int32_t place, std::int32_t wanted) {
                             return rows_[static_cast<std::size_t>(place)] < wanted;
                           });
}

std::int64_t SharedMatrix::n_values() const {
  const auto n = static_cast<std::int64_t>(rows_.size());
  return n * (n + 1) / 2;
}

}  // namespace dcsvm
