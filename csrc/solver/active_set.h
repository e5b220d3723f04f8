// The active (not shrunk) variables of a solve, in ascending order, one lane each.
//
// Shrinking follows Joachims and LIBSVM, but drops variables later: only after several consecutive
// steps at a bound, and only with a margin.
//
// Two selection rules alternate in working_step.cc: the most violating variables (SVMlight;
// Joachims, 1999) plus free ones of the previous set, and the neighbours of the most violating
// variable. Callers pass kernel values in; nothing here computes kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solver/box_qp.h"

namespace dcsvm {

struct ActiveSet {
  std::vector<std::int32_t> index;  // variables of the problem
  // padded to whole panels of lanes
  std::vector<double> alpha, gradient, lower, upper, violation;
  std::vector<std::int8_t> constraint_of;  // empty: no equality constraints
  std::vector<std::uint8_t> goes_up;       // whether a violator's alpha should increase
  std::vector<std::int32_t> violators;     // positions, ascending
  std::vector<double> multipliers;         // of the equality constraints
  double largest_violation = 0;

  std::size_t size() const { return index.size(); }
  double reduced_gradient(std::size_t p) const {
    return constraint_of.empty()
               ? gradient[p]
               : gradient[p] + multipliers[static_cast<std::size_t>(constraint_of[p])];
  }

  void load(const BoxQP& qp, const std::vector<std::int32_t>& variables, const double* alpha_of,
            const double* gradient_of, std::size_t n_lanes);
  void write_back(double* alpha_of) const;
  // Returns the shrunk variables of the problem, ascending.
  std::vector<std::int32_t> others(std::size_t n_variables) const;
  // Computes violations, violators and multipliers; returns the largest violation.
  double measure(int n_constraints);
  // Counts an outer step. Returns how many variables have been shrinkable for `shrink_delay`
  // consecutive steps. A shrinkable variable is at a bound, and its gradient points outwards by
  // more than the largest violation or `max_margin`, whichever is smaller.
  std::size_t count_shrinkable(double max_margin);
  std::vector<std::int32_t> not_shrinkable() const;  // positions
  // Keeps the given positions, ascending; returns the new position of each variable, or -1.
  std::vector<std::int32_t> keep(const std::vector<std::int32_t>& kept, std::size_t n_lanes);

  // State that load() and measure() do not restore.
  template <class Archive>
  void archive(Archive& archive) {
    archive(shrinkable_steps_);
  }
  bool is_sound() const { return shrinkable_steps_.size() == size(); }

 private:
  std::vector<std::uint8_t>
      shrinkable_steps_;  // consecutive shrinkable outer steps of each variable
};

// Replaces a working set (positions, ascending) by one of at most `target` members. Up to three
// quarters are free variables of the old set, most violating first; without them the method stalls
// on ill-conditioned problems. The rest are the most violating other variables: half of them should
// increase, half decrease. If kernel values are nearly constant, only both together make progress.
void select_working_set(const ActiveSet& active, std::size_t target,
                        std::vector<std::int32_t>& working);

// Returns the position of the most violating variable.
std::int32_t most_violating(const ActiveSet& active);

// Replaces a working set by the neighbours of the most violating variable: at most `target`
// variables with the largest `kernel_values`, chosen among violators that are free or violate by
// more than `negligible`. Neighbours are strongly coupled, so they are optimized together. If only
// the most violating variables move, their neighbours violate next.
void select_neighbourhood(const ActiveSet& active, const std::vector<float>& kernel_values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working);

}  // namespace dcsvm
