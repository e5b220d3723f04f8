// The five kernels of LIBSVM and how a value is obtained from a row pair.
//
// The formulas themselves are in kernel_value() of isa_impl.h, written once for vectors of float
// and double; this file only names the parameters.
#pragma once

namespace dcsvm {

enum class KernelType { linear = 0, polynomial = 1, rbf = 2, sigmoid = 3, precomputed = 4 };

struct Kernel {
  KernelType type = KernelType::rbf;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;
};

// How the tile obtains the argument of the kernel from two rows.
//   difference: sum of squared differences (accurate for any norm; RBF on dense rows)
//   product:    dot product, and norms for RBF (cheaper where the norms are small enough)
//   sparse:     dot product over the stored entries, summed in float64
//   bytes:      dot product of 8-bit integers, exact
//   precomputed: no argument: the value is an entry of one row, at the other's column
enum class Form { difference, product, sparse, bytes, precomputed };

}  // namespace dcsvm
