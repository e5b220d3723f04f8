// The five kernels of LIBSVM, their parameters, and the forms in which two rows are compared.
//
// The formulas are in kernel_value_impl.h, written once for vectors of float and double.
#pragma once

namespace dcsvm {

enum class KernelType { linear = 0, polynomial = 1, rbf = 2, sigmoid = 3, precomputed = 4 };

struct Kernel {
  KernelType type = KernelType::rbf;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;
  // RBF only: values less 1. Where most are near 1 their rounding is that much smaller.
  bool less_one = false;
};

// How a tile computes the argument of the kernel from two rows.
//   difference:  sum of squared differences (accurate for any norm; RBF on dense rows)
//   product:     dot product, and norms for RBF (cheaper; accurate where the norms are small)
//   sparse:      dot product over the stored entries, summed in float64
//   bytes:       dot product of 8-bit integers, exact
//   precomputed: no argument; the value is an entry of one row, at the other row's column
enum class Form { difference, product, sparse, bytes, precomputed };

}  // namespace dcsvm
