// solve(): the working-set SMO solver on one box QP, the second of the project's two verbs.
//
// Every outer step takes a working set of up to q variables: the free variables of the last one
// and the most violating others. It is solved in memory (working_set.h), then the gradient of the
// active variables is updated from the kernel rows of those that changed. Variables that sit
// quietly at a bound are shrunk away, and memory is compacted to the rest; what changed since is
// added to their gradient by a kernel product before convergence is declared.
#pragma once

#include <cstddef>

#include "kernel/kernel_setup.h"
#include "solver/box_qp.h"
#include "solver/iterate.h"
#include "solver/solve_options.h"

namespace dcsvm {

// What solve() takes besides caches and packed rows: the kernel matrix of a working set and its
// factor, and an array entry here and there for every variable.
std::size_t matrix_bytes(std::size_t n_variables);
std::size_t array_bytes(std::size_t n_variables);

// Improves the alpha of `iterate` (feasible) in place. Starts from its gradient where something is
// known of all its entries, and leaves it known `at_alpha` unless it is stopped. Never makes the
// objective worse. Converged means: violation <= tolerance over all variables. Violation, objective
// and gap are reported where the whole gradient is known.
SolveReport solve(const KernelSetup& setup, const Points& points, const BoxQp& qp,
                  const Iterate& iterate, const SolveOptions& options);

}  // namespace dcsvm
