// Definition of a kernel: a function of an argument of two rows.
//
// dcsvm/kernel/kernels.py defines the names and properties used in Python, kernel_value_impl.h the
// formulas of the functions, and tiles_impl.h the contribution of a feature to an argument.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace dcsvm {

// Argument of a kernel function: x'z, |x - z|^2, the sum of |x_k - z_k|, or none for precomputed
// values.
enum class Argument { product, squared_distance, absolute_distance, none };
constexpr std::string_view argument_names[] = {"product", "squared_distance", "absolute_distance",
                                               "none"};

constexpr Argument default_distance = Argument::squared_distance;

// The function of the argument s: s, (gamma s + coef0)^degree, exp(-gamma s), exp(-gamma sqrt(s)),
// tanh(gamma s + coef0).
enum class Function { identity, power, decay, root_decay, tanh };
constexpr std::string_view function_names[] = {"identity", "power", "decay", "root_decay", "tanh"};

struct Kernel {
  Argument argument = Argument::squared_distance;
  Function function = Function::decay;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;
  // Whether to compute values minus 1, for distances only. If most values are near 1, this makes
  // rounding errors much smaller.
  bool less_one = false;
};

// Returns the enumerator with this name. Throws std::invalid_argument for an unknown name.
template <class Enum, std::size_t n>
Enum named(const std::string_view (&names)[n], std::string_view name) {
  for (std::size_t k = 0; k < n; ++k) {
    if (names[k] == name) return static_cast<Enum>(k);
  }
  throw std::invalid_argument("kernels have no " + std::string(name));
}

inline Kernel kernel_of(const std::string& argument, const std::string& function) {
  Kernel kernel;
  kernel.argument = named<Argument>(argument_names, argument);
  kernel.function = named<Function>(function_names, function);
  return kernel;
}

// Returns whether the argument is a distance, 0 for equal rows.
constexpr bool is_distance(Argument argument) {
  return argument == Argument::squared_distance || argument == Argument::absolute_distance;
}

// Calls work(term). term(gap) returns the contribution of a feature to a distance; gap >= 0 is the
// absolute difference of its values in two rows.
template <class Work>
void with_gap_term(Argument distance, Work work) {
  if (distance == Argument::absolute_distance) {
    work([](auto gap) { return gap; });
  } else {
    work([](auto gap) { return gap * gap; });
  }
}

// Returns whether the argument is a multiple of x'z plus a term of each row, so that it can be
// computed by matrix products, also of bytes.
constexpr bool is_from_products(Argument argument) {
  return argument == Argument::product || argument == Argument::squared_distance;
}

// Returns whether the argument is a sum of absolute differences, for which processors have an
// instruction on bytes.
constexpr bool is_from_differences(Argument argument) {
  return argument == Argument::absolute_distance;
}

// Returns the contribution of a value to its row's term, which tiles combine with sums over shared
// features.
constexpr double row_term(Argument argument, float value) {
  switch (argument) {
    case Argument::squared_distance:
      return static_cast<double>(value) * value;
    case Argument::absolute_distance:
      return value < 0 ? -static_cast<double>(value) : value;
    case Argument::product:
    case Argument::none:
      break;
  }
  return 0.0;
}

// Returns whether a weighted sum of kernel values is an inner product with one vector.
constexpr bool is_linear(const Kernel& kernel) {
  return kernel.argument == Argument::product && kernel.function == Function::identity;
}

}  // namespace dcsvm
