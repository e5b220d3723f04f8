// Coordinate descent on the dual of a linear SVM, in random order and with shrinking (Hsieh, Chang,
// Lin, Keerthi and Sundararajan, ICML 2008). A step costs the values of one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "solver/linear_state.h"

namespace dcsvm {

class LinearDescent {
 public:
  explicit LinearDescent(LinearState& state);

  // One pass over the active variables, in at most so many steps. Returns the largest violation
  // met on the way.
  double pass(std::int64_t most_steps);
  // Makes all variables active again.
  void activate();

  std::size_t n_active() const { return active_.size(); }
  std::int64_t steps() const { return steps_; }  // of all passes
  double values() const { return values_; }      // of rows that were touched, by all passes

 private:
  void shuffle();

  LinearState& state_;
  std::vector<std::int32_t> active_;
  // A variable at its lower bound is shrunk where its gradient is above `high_`, at its upper one
  // where it is below `low_`: the largest and least gradients that violated in the last pass.
  double high_ = std::numeric_limits<double>::infinity();
  double low_ = -std::numeric_limits<double>::infinity();
  std::uint64_t random_ = 1;
  std::int64_t steps_ = 0;
  double values_ = 0;
};

}  // namespace dcsvm
