// The arguments of kernel functions, one struct for each, and their dispatch. Included in the
// namespaces of kernel.h, for numbers, and of isa_impl.h, for vectors.
//
// Tiles, terms of rows and bounds of boxes depend on the struct alone. It has:
//   name, is_distance (0 for equal rows);
//   sums:       the kind of sum that byte_loop() or matrix products may compute for it;
//   pair, factor: the argument is `factor` times the sum of pair() over the features that both rows
//               have; for a distance, the terms of both rows are added.
// A distance also has:
//   row_term:   the contribution of a value to the term of its row;
//   gap:        the contribution of a feature; 1 for the values 0 and 1, since codes count columns;
//   least, most: bounds of gap() between a value in [low_a, high_a] and one in [low_b, high_b].

// Return the least and the largest difference between values of two intervals.
template <class Value>
DCSVM_INLINE constexpr Value least_difference(Value low_a, Value high_a, Value low_b,
                                              Value high_b) {
  return maximum(maximum(low_a - high_b, low_b - high_a), Value(0));
}
template <class Value>
DCSVM_INLINE constexpr Value largest_difference(Value low_a, Value high_a, Value low_b,
                                                Value high_b) {
  return maximum(high_a - low_b, high_b - low_a);
}

// x'z
struct Product {
  static constexpr std::string_view name = "product";
  static constexpr bool is_distance = false;
  static constexpr Sums sums = Sums::products;
  static constexpr int factor = 1;
  template <class Value>
  DCSVM_INLINE constexpr Value pair(Value a, Value b) {
    return a * b;
  }
};

// |x - z|^2
struct SquaredDistance {
  static constexpr std::string_view name = "squared_distance";
  static constexpr bool is_distance = true;
  static constexpr Sums sums = Sums::products;
  static constexpr int factor = -2;
  template <class Value>
  DCSVM_INLINE constexpr Value pair(Value a, Value b) {
    return a * b;
  }
  template <class Value>
  DCSVM_INLINE constexpr Value row_term(Value value) {
    return value * value;
  }
  template <class Value>
  DCSVM_INLINE constexpr Value gap(Value a, Value b) {
    return (a - b) * (a - b);
  }
  template <class Value>
  DCSVM_INLINE constexpr Value least(Value low_a, Value high_a, Value low_b, Value high_b) {
    const Value difference = least_difference(low_a, high_a, low_b, high_b);
    return difference * difference;
  }
  template <class Value>
  DCSVM_INLINE constexpr Value most(Value low_a, Value high_a, Value low_b, Value high_b) {
    const Value difference = largest_difference(low_a, high_a, low_b, high_b);
    return difference * difference;
  }
};

// The sum of |x_k - z_k|
struct AbsoluteDistance {
  static constexpr std::string_view name = "absolute_distance";
  static constexpr bool is_distance = true;
  static constexpr Sums sums = Sums::differences;
  static constexpr int factor = 1;
  template <class Value>
  DCSVM_INLINE constexpr Value pair(Value a, Value b) {
    return absolute(a - b) - absolute(a) - absolute(b);
  }
  template <class Value>
  DCSVM_INLINE constexpr Value row_term(Value value) {
    return absolute(value);
  }
  template <class Value>
  DCSVM_INLINE constexpr Value gap(Value a, Value b) {
    return absolute(a - b);
  }
  template <class Value>
  DCSVM_INLINE constexpr Value least(Value low_a, Value high_a, Value low_b, Value high_b) {
    return least_difference(low_a, high_a, low_b, high_b);
  }
  template <class Value>
  DCSVM_INLINE constexpr Value most(Value low_a, Value high_a, Value low_b, Value high_b) {
    return largest_difference(low_a, high_a, low_b, high_b);
  }
};

// No argument, for precomputed values: has no tiles.
struct NoArgument {
  static constexpr std::string_view name = "none";
  static constexpr bool is_distance = false;
  static constexpr Sums sums = Sums::others;
};

// Returns work(struct of the argument).
template <class Work>
constexpr auto with_argument(Argument argument, const Work& work) {
  switch (argument) {
    case Argument::product:
      return work(Product());
    case Argument::squared_distance:
      return work(SquaredDistance());
    case Argument::absolute_distance:
      return work(AbsoluteDistance());
    case Argument::none:
      return work(NoArgument());
  }
  __builtin_unreachable();
}
