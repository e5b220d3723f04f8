// The kernel matrix of the working set, kept from one outer step to the next: values between
// members that stay are copied, only those of new members are computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel_tile.h"

namespace dcsvm {

class WorkingKernel {
 public:
  std::size_t stride() const { return stride_; }  // a multiple of panel_rows; padding is zero
  const float* data() const { return kernel_.data(); }

  // Makes this the matrix of `rows`; from[w] is the place of member w in the matrix so far, -1 for
  // a new one. Returns the number of kernel values computed.
  std::int64_t fill(const KernelSetup& setup, const Points& points,
                    const std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& from,
                    int n_threads);

  // Keeps the members at these places, ascending.
  void keep(const std::vector<std::int32_t>& places);

 private:
  std::vector<float> kernel_, previous_, computed_;
  std::size_t size_ = 0, stride_ = 0;
};

}  // namespace dcsvm
