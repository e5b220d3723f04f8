// The kernel matrix of the working set, kept from one outer step to the next.
//
// Values between members that stay are copied, those of new members are read from cached kernel
// rows, and only what is in neither is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel_setup.h"
#include "simd/aligned_vector.h"

namespace dcsvm {

// The members of a working set: their rows; the lanes at which kernel rows have their values; their
// own kernel rows where these are cached, else null.
struct Members {
  std::vector<std::int32_t> rows, lanes;
  std::vector<const float*> cached;
};

template <class Real>
class WorkingKernel {
 public:
  std::size_t stride() const { return stride_; }  // a multiple of panel_rows; padding is zero
  const Real* data() const { return kernel_.data(); }

  // Makes this the matrix of the members; from[w] is the place of member w in the matrix so far, -1
  // for a new one. Returns the number of kernel values computed.
  std::int64_t fill(const KernelSetup& setup, const Points& points, const Members& members,
                    const std::vector<std::int32_t>& from, int n_threads);

  // Keeps the members at these places, ascending.
  void keep(const std::vector<std::int32_t>& places);

 private:
  std::int64_t compute(const KernelSetup& setup, const Points& points, const Members& members,
                       int n_threads);
  void read_cached(const Members& members, const std::vector<std::int32_t>& from, int n_threads);

  AlignedVector<Real> kernel_, previous_;
  // places of members: new ones, those that stay, and those without a cached row, new ones first
  std::vector<std::int32_t> new_, old_, uncached_;
  std::size_t size_ = 0, stride_ = 0;
};

}  // namespace dcsvm
