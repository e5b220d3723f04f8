// Definition of a kernel: a function of an argument of two rows.
//
// dcsvm/kernel/kernels.py defines the names and properties used in Python, kernel_value_impl.h the
// formulas of the functions, and arguments_impl.h the formulas of the arguments.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace dcsvm {

// Argument of a kernel function, see arguments_impl.h: x'z, |x - z|^2, the sum of |x_k - z_k|,
// and `none`, the last one, for precomputed values.
enum class Argument { product, squared_distance, absolute_distance, none };

constexpr Argument default_distance = Argument::squared_distance;

// Kinds of sums over features that give an argument, apart from the terms of rows: inner products,
// also by matrix products; absolute differences; others, only by pair() and gap() of the argument.
// Processors have instructions for the first two on bytes.
enum class Sums { products, differences, others };

// The function of the argument s: s, (gamma s + coef0)^degree, exp(-gamma s), exp(-gamma sqrt(s)),
// tanh(gamma s + coef0), which is the last.
enum class Function { identity, power, decay, root_decay, tanh };

// has_root: whether it is a function of sqrt(s), which magnifies errors of s near 0.
struct FunctionProperties {
  std::string_view name;
  bool has_root;
};

constexpr FunctionProperties properties_of(Function function) {
  switch (function) {
    case Function::identity:
      return {"identity", false};
    case Function::power:
      return {"power", false};
    case Function::decay:
      return {"decay", false};
    case Function::root_decay:
      return {"root_decay", true};
    case Function::tanh:
      return {"tanh", false};
  }
  __builtin_unreachable();
}

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

template <class Value>
constexpr Value maximum(Value a, Value b) {
  return a > b ? a : b;
}
template <class Value>
constexpr Value absolute(Value a) {
  return a < 0 ? -a : a;
}

#define DCSVM_INLINE static inline __attribute__((always_inline))
#include "simd/arguments_impl.h"

inline std::string_view name_of(Argument argument) {
  return with_argument(argument, [](auto of) { return of.name; });
}
inline std::string_view name_of(Function function) { return properties_of(function).name; }

// Returns the enumerator with this name, at most `last`. Throws std::invalid_argument for an
// unknown name.
template <class Enum>
Enum named(std::string_view name, Enum last) {
  for (int k = 0; k <= static_cast<int>(last); ++k) {
    if (name_of(static_cast<Enum>(k)) == name) return static_cast<Enum>(k);
  }
  throw std::invalid_argument("kernels have no " + std::string(name));
}

inline Kernel kernel_of(const std::string& argument, const std::string& function) {
  Kernel kernel;
  kernel.argument = named(argument, Argument::none);
  kernel.function = named(function, Function::tanh);
  return kernel;
}

// Returns whether the argument is a distance, 0 for equal rows.
constexpr bool is_distance(Argument argument) {
  return with_argument(argument, [](auto of) { return of.is_distance; });
}

constexpr Sums sums_of(Argument argument) {
  return with_argument(argument, [](auto of) { return of.sums; });
}

// Returns whether the argument is a multiple of x'z plus a term of each row, so that it can be
// computed by matrix products, also of bytes.
constexpr bool is_from_products(Argument argument) { return sums_of(argument) == Sums::products; }

// Calls work(struct of the argument) for a distance.
template <class Work>
void with_distance(Argument argument, const Work& work) {
  with_argument(argument, [&](auto of) {
    if constexpr (of.is_distance) work(of);
  });
}

// Returns whether a weighted sum of kernel values is an inner product with one vector.
constexpr bool is_linear(const Kernel& kernel) {
  return kernel.argument == Argument::product && kernel.function == Function::identity;
}

}  // namespace dcsvm
