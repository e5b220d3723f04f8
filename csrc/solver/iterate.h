// Where a solve is.
#pragma once

#include <cstdint>

namespace dcsvm {

// What is known of the gradient of a variable.
enum class Known : std::uint8_t {
  nothing,
  at_base,   // it is that of `base`
  at_alpha,  // it is that of `alpha`
};

// Where a solve is, in arrays of the problem's size: it can end anywhere and go on from there.
struct Iterate {
  double* alpha = nullptr;
  double* gradient = nullptr;
  double* base = nullptr;  // an earlier alpha
  Known* known = nullptr;
};

}  // namespace dcsvm
