// The kernel matrix of rows that several clusters have in common: pairs of classes, or folds, in
// one place. Computed once, it takes the place of kernel values for all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel/kernel_setup.h"
#include "rows/points.h"

namespace dcsvm {

class SharedMatrix {
 public:
  // `rows` differ; reading is fast where those of a cluster stand side by side.
  SharedMatrix(const KernelSetup& setup, const Points& points, std::vector<std::int32_t> rows,
               int n_threads);

  static std::size_t bytes(std::size_t n_rows) { return n_rows * n_rows * sizeof(float); }

  const KernelSetup& setup() const { return setup_; }
  const Points& points() const { return points_; }
  // The place of a row among those of the matrix.
  std::int32_t place(std::int32_t row) const;
  std::int64_t n_values() const;

 private:
  KernelSetup setup_;
  std::vector<std::int32_t> rows_, columns_;
  std::vector<std::int32_t> order_;  // of the rows, ascending
  std::vector<double> half_norms_;
  std::unique_ptr<float[]> values_;
  Points points_;
};

}  // namespace dcsvm
