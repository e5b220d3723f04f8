// solve_linear(): the box QP of a linear kernel, in the space of w = X' alpha.
//
// Coordinate descent (linear_descent.h) and proximal Newton steps (linear_newton.h) take turns, by
// the work they have done: descent is fast where rows have few values in common, Newton steps where
// there are few features or the box is large. No kernel value is computed, and gradients are
// float64 sums.
#pragma once

#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/iterate.h"
#include "solver/solve_options.h"

namespace dcsvm {

// As solve(). Of the iterate only alpha counts on entry; all its entries are `at_alpha` at the end,
// however it ends. Memory: six vectors of n_features float64 besides arrays of variables, and up
// to 24 MB.
SolveReport solve_linear(const Points& points, const BoxQp& qp, const Iterate& iterate,
                         const SolveOptions& options);

}  // namespace dcsvm
