// The state of a solve, in arrays of the problem's size: it can end anywhere and go on from there.
//
// The gradient of a variable that is shrunk away is not kept up to date: it is that of `base`, the
// alpha when all gradients were last known, and what changed since is added when it is needed.
#pragma once

#include <cstdint>

namespace dcsvm {

// What the gradient of a variable is.
enum class Known : std::uint8_t {
  nothing,   // not known
  at_base,   // K base - linear
  at_alpha,  // K alpha - linear
};

struct Iterate {
  double* alpha = nullptr;
  double* gradient = nullptr;
  double* base = nullptr;  // an earlier alpha
  Known* known = nullptr;
};

}  // namespace dcsvm
