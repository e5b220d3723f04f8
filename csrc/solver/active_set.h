// The active variables of a solve, those that are not shrunk away: in ascending order, one lane
// each.
//
// Shrinking is Joachims's, with LIBSVM's rule made lazier in time and stricter in size: a variable
// is dropped after some quiet steps, and only with a margin.
//
// Two rules for the next working set take turns in working_step.cc: the most violating variables
// (SVMlight's choice; Joachims, 1999) with free ones of the last set carried over, and the
// neighbourhood of the most violating one. Nothing is known of kernels but the values given.
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
  std::vector<std::int8_t> constraint_of;  // empty: there are no sums
  std::vector<std::uint8_t> goes_up;       // whether a violator's alpha should go up
  std::vector<std::int32_t> violators;     // positions, ascending
  std::vector<double> multipliers;         // of the sums
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
  // The variables of the problem that are shrunk away, ascending.
  std::vector<std::int32_t> others(std::size_t n_variables) const;
  // Computes violations, violators and multipliers; returns the largest violation.
  double measure(int n_constraints);
  // Counts another outer step; returns how many variables have been quiet for long enough to be
  // shrunk: at a bound and pointing outwards by more than the largest violation, or `most`.
  std::size_t count_shrinkable(double max_margin);
  std::vector<std::int32_t> not_shrinkable() const;  // positions
  // Keeps these positions, ascending; returns where each is now, or -1.
  std::vector<std::int32_t> keep(const std::vector<std::int32_t>& kept, std::size_t n_lanes);

  // What load() and measure() do not make again.
  template <class Archive>
  void archive(Archive& archive) {
    archive(shrinkable_steps_);
  }
  bool is_sound() const { return shrinkable_steps_.size() == size(); }

 private:
  std::vector<std::uint8_t> shrinkable_steps_;  // outer steps in a row
};

// Replaces a working set (positions, ascending) by one of at most `target` members. Up to three
// quarters are its own free variables, most violating first: without them the method stalls on
// ill-conditioned problems. The rest are the most violating others, half of them to go up and half
// to go down: where kernel values are nearly constant only both together make progress.
void select_working_set(const ActiveSet& active, std::size_t target,
                        std::vector<std::int32_t>& working);

// Position of the most violating variable.
std::int32_t most_violating(const ActiveSet& active);

// Replaces a working set by at most `target` variables with the largest kernel values with the most
// violating one, which has these `kernel_values`, among the violators that are free or violate by
// more than `negligible`. They depend most on each other and reach their optimum together, while
// the most violating variables of the whole problem only start their neighbours moving.
void select_neighbourhood(const ActiveSet& active, const std::vector<float>& kernel_values,
                          double negligible, std::size_t target,
                          std::vector<std::int32_t>& working);

}  // namespace dcsvm
