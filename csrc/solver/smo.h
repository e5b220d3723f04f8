// solve(): the working-set SMO solver on one box QP, the second of the project's two verbs.
//
// Every outer step solves a working set in memory (working_step.h), then updates the gradient of
// the active variables from the kernel rows of those that changed. Variables that stay at a bound
// are shrunk away and memory is compacted to the rest (Joachims, "Making large-scale SVM learning
// practical", 1999); before convergence is declared a kernel product brings their gradient up to
// date. What the variables mean (labels, classes, problem types) is not known here.
#pragma once

#include <cstddef>

#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/iterate.h"
#include "solver/solve_options.h"

namespace dcsvm {

// What solve() allocates besides caches and packed rows: the kernel matrix of a working set with
// its factor, and the arrays with an entry for every variable.
std::size_t matrix_bytes(std::size_t n_variables, Precision precision);
std::size_t array_bytes(std::size_t n_variables);

// Improves the alpha of `iterate`, which is feasible, in place; never makes the objective worse.
// Starts from its gradient unless some entry is `nothing`; leaves all entries `at_alpha` unless it
// is stopped. Converged means: violation <= tolerance over all variables. Violation, objective and
// gap are reported where the whole gradient is known at the end.
SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                  const Iterate& iterate, const SolveOptions& options);

}  // namespace dcsvm
